"""Products in which a zero wins, also over an infinity and nan: for derivatives with ``nan_safe``.

Zero wins as either factor. Forward and reverse mode multiply the same factors in opposite orders, so they agree.
"""

from __future__ import annotations

from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull, push
from ..ir.texts import literal
from .batching import elementwise
from .elementwise import function


def _code(operation: str, where: str) -> Any:
    """The source computes no product that a zero wins, so that NumPy warns of none."""

    def code(node: Node) -> str:
        aval = node.out.aval
        found = f"{operation}({{0}}, {{1}}, out=np.zeros({aval.shape}, {literal(aval.dtype)}), where={where})"
        if aval.kind == "python":
            return f"{'complex' if aval.dtype.kind == 'c' else 'float'}({found})"
        return found if aval.shape else f"{found}[()]"

    return code


def _quotient_push(t: Symbol, out: Symbol, x: Symbol, y: Symbol) -> Any:
    return -annihilating_mul(annihilating_div(out, y), t)


annihilating_mul: Primitive = primitive(
    "annihilating_mul",
    function,
    _code("np.multiply", "np.logical_and({0}, {1})"),
    batch=elementwise,
    order="C",
    scratch=lambda t, factor: t.size,  # the mask
    diff=(pull(lambda ct, x, y: annihilating_mul(ct, y)), pull(lambda ct, x, y: annihilating_mul(x, ct))),
)
annihilating_div: Primitive = primitive(
    "annihilating_div",
    function,
    _code("np.divide", "({0} != 0) > np.isinf({1})"),
    batch=elementwise,
    order="C",
    scratch=lambda t, factor: 3 * t.size,  # the masks
    diff=(pull(lambda ct, x, y: annihilating_div(ct, y)), push(_quotient_push)),
)
