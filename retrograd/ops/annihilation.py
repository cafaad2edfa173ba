"""Products in which a zero of the first operand wins, also over an infinity: for derivatives with ``nan_safe``."""

from __future__ import annotations

from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull, push
from .batching import elementwise
from .elementwise import function


def _code(operation: str) -> Any:
    def code(node: Node) -> str:
        number = "" if node.out.aval.shape else "[()]"
        return f"np.where({{0}} == 0, 0, {{0}} {operation} {{1}}){number}"

    return code


def _quotient_push(t: Symbol, out: Symbol, x: Symbol, y: Symbol) -> Any:
    return -annihilating_mul(annihilating_div(out, y), t)


annihilating_mul: Primitive = primitive(
    "annihilating_mul",
    function,
    _code("*"),
    batch=elementwise,
    diff=(pull(lambda ct, x, y: annihilating_mul(ct, y)), pull(lambda ct, x, y: annihilating_mul(x, ct))),
)
annihilating_div: Primitive = primitive(
    "annihilating_div",
    function,
    _code("/"),
    batch=elementwise,
    diff=(pull(lambda ct, x, y: annihilating_div(ct, y)), push(_quotient_push)),
)
