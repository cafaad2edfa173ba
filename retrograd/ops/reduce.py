"""Reductions over axes, given as a tuple of non-negative ints."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import REGISTRY, Primitive, primitive, pull, push
from ..ir.types import Aval
from .batching import shifted_axis
from .elementwise import cast, eq


def reduced(x: Aval, axis: tuple[int, ...], keepdims: bool) -> Aval:
    """The aval of a reduction: over all axes it is a scalar, as NumPy's is."""
    if any(not 0 <= a < x.ndim for a in axis) or len(set(axis)) != len(axis):
        raise ValueError(f"axes {axis} are not distinct axes of {x}")
    if keepdims:
        shape = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
    else:
        shape = tuple(n for i, n in enumerate(x.shape) if i not in axis)
    return Aval(shape, x.dtype, "array" if shape else "scalar")


def expand(r: Symbol, x: Any, axis: tuple[int, ...]) -> Symbol:
    """A reduced value stretched back over the reduced axes of ``x``."""
    shape = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
    if r.shape != shape:
        r = REGISTRY["reshape"](r, aval=Aval(shape, r.dtype))
    stretched: Symbol = r if shape == x.shape else REGISTRY["broadcast"](r, aval=Aval(x.shape, r.dtype))
    return stretched


def reduction(name: str, ufunc: str, diff: Any, **fields: Any) -> Primitive:
    """A reduction by a ufunc's ``reduce``."""

    def code(node: Node) -> str:
        axis, whole = node.attrs["axis"], len(node.attrs["axis"]) == node.inputs[0].aval.ndim
        over = "None" if whole else str(axis[0]) if len(axis) == 1 else str(axis)
        return f"{ufunc}.reduce({{0}}, axis={over}{', keepdims=True' if node.attrs['keepdims'] else ''})"

    return primitive(name, reduced, code, diff=(diff,), batch=shifted_axis, takes_out=True, **fields)


def _extremum_push(t: Symbol, out: Symbol, x: Symbol, axis: tuple[int, ...], keepdims: bool) -> Symbol:
    """The tangents at the extrema; ties share equally."""
    hit = cast(eq(x, expand(out, x, axis)), aval=Aval(x.shape, x.dtype))
    tangent: Symbol = sum_(t * hit, axis=axis, keepdims=keepdims) / sum_(hit, axis=axis, keepdims=keepdims)
    return tangent


sum_ = reduction("sum", "np.add", pull(lambda ct, x, axis, keepdims: expand(ct, x, axis)))
max_ = reduction("max", "np.maximum", push(_extremum_push))
min_ = reduction("min", "np.minimum", push(_extremum_push))


def _arg_shape(x: Aval, axis: int) -> Aval:
    return reduced(Aval(x.shape, np.dtype(np.int64)), (axis,), False)


argmax = primitive("argmax", _arg_shape, "np.argmax({0}, axis={axis})", batch=shifted_axis, takes_out=True)
argmin = primitive("argmin", _arg_shape, "np.argmin({0}, axis={axis})", batch=shifted_axis, takes_out=True)
