"""Parts of new arrays that are computed in place; the last passes make these operations."""

from __future__ import annotations

from ..ir.graph import Node
from ..ir.primitive import REGISTRY, primitive
from ..ir.texts import literal
from ..ir.types import Aval
from .index import Index


def _empty_code(node: Node) -> str:
    aval = node.out.aval
    dtype = "" if aval.dtype == float else f", {literal(aval.dtype)}"
    return f"np.empty({aval.shape[0] if aval.ndim == 1 else aval.shape}{dtype})"


def _part_code(node: Node) -> str:
    ufunc = REGISTRY[node.attrs["of"]].numpy.ufunc
    operands = ", ".join(f"{{{k}}}" for k in range(1, len(node.inputs)))
    return f"{ufunc}({operands}, out={{0}}[{{index}}])"


def _part_shape(x: Aval, *operands: Aval, index: Index, of: str) -> Aval:
    return x


# its elements are not read
empty = primitive("empty", lambda aval: aval, _empty_code, typed=True, order="C", final=True)
into_part = primitive("into_part", _part_shape, statement=_part_code, writes=0, loose=(1, 2), final=True)
