"""Products in which a zero of the first operand wins, also over an infinity: for derivatives with ``nan_safe``."""

from __future__ import annotations

from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull, push
from ..ir.texts import literal
from ..ir.types import Aval
from .batching import elementwise
from .elementwise import function


def _code(operation: str) -> Any:
    """The source computes no product where the first operand is zero, so that NumPy warns of none."""

    def code(node: Node) -> str:
        aval = node.out.aval
        number = "" if aval.shape else "[()]"
        return f"{operation}({{0}}, {{1}}, out=np.zeros({aval.shape}, {literal(aval.dtype)}), where={{0}} != 0){number}"

    return code


def _mask(t: Aval, factor: Aval) -> int:
    return t.size


def _quotient_push(t: Symbol, out: Symbol, x: Symbol, y: Symbol) -> Any:
    return -annihilating_mul(annihilating_div(out, y), t)


annihilating_mul: Primitive = primitive(
    "annihilating_mul",
    function,
    _code("np.multiply"),
    batch=elementwise,
    order="C",
    scratch=_mask,
    diff=(pull(lambda ct, x, y: annihilating_mul(ct, y)), pull(lambda ct, x, y: annihilating_mul(x, ct))),
)
annihilating_div: Primitive = primitive(
    "annihilating_div",
    function,
    _code("np.divide"),
    batch=elementwise,
    order="C",
    scratch=_mask,
    diff=(pull(lambda ct, x, y: annihilating_div(ct, y)), push(_quotient_push)),
)
