"""Reductions over axes, given as a tuple of non-negative ints in their order."""

from __future__ import annotations

from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import REGISTRY, Primitive, Pull, Push, primitive, pull
from ..ir.types import Aval
from .batching import shifted_axis


def reduced(x: Aval, axis: tuple[int, ...], keepdims: bool) -> Aval:
    """The aval of a reduction: over all axes it is a scalar, as NumPy's is."""
    if any(not 0 <= a < x.ndim for a in axis) or sorted(set(axis)) != list(axis):
        raise ValueError(f"axes {axis} are not distinct axes of {x} in their order")
    shape = tuple(1 if i in axis else n for i, n in enumerate(x.shape) if keepdims or i not in axis)
    return Aval(shape, x.dtype, "array" if shape else "scalar")


def expand(r: Symbol, x: Any, axis: tuple[int, ...]) -> Symbol:
    """A reduced value stretched back over the reduced axes of ``x``."""
    shape = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
    if r.shape != shape:
        r = REGISTRY["reshape"](r, aval=Aval(shape, r.dtype))
    stretched: Symbol = r if shape == x.shape else REGISTRY["broadcast"](r, aval=Aval(x.shape, r.dtype))
    return stretched


def reduction(name: str, ufunc: str, diff: Pull | Push | None, **fields: Any) -> Primitive:
    """A reduction by a ufunc's ``reduce``."""
    shape = fields.pop("shape", reduced)
    return primitive(
        name, shape, lambda node: reduce_code(node, ufunc), diff=(diff,), batch=shifted_axis, takes_out=True, **fields
    )


def over_all(node: Node) -> bool:
    """Whether a reduction goes over all axes."""
    return len(node.attrs["axis"]) == node.inputs[0].aval.ndim


def reduce_code(node: Node, ufunc: str) -> str:
    """The code of a reduction by a ufunc."""
    axis = node.attrs["axis"]
    over = "None" if over_all(node) else str(axis[0]) if len(axis) == 1 else str(axis)
    return f"{ufunc}.reduce({{0}}, axis={over}{', keepdims=True' if node.attrs['keepdims'] else ''})"


sum_ = reduction("sum", "np.add", pull(lambda ct, x, axis, keepdims: expand(ct, x, axis)))
