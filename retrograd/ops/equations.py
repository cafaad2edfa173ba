"""Linear equations of special forms, by SciPy: triangular, banded, Sylvester's; and LU factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.graph import Node
from ..ir.primitive import REGISTRY, JvpMode, Primitive, primitive, pull, push
from ..ir.texts import Arg
from ..ir.types import Aval
from .axes import swap
from .batching import Flags
from .gather import gather
from .index import additem, getitem, setitem
from .lane_loops import looped
from .linalg.solutions import lanes_as_columns
from .shape import broadcast_to, reshape_to
from .triangles import tril, triu


def matrix(x: Aval) -> Aval:
    """One square matrix, in single or double precision; ValueError for anything else."""
    if x.ndim != 2 or x.shape[0] != x.shape[1] or x.dtype.char not in "fdFD" or x.steps is not None:
        raise ValueError(f"{x} is not a square matrix in single or double precision")
    return x


def _right_side(n: int, a: Aval, b: Aval) -> Aval:
    if b.ndim not in (1, 2) or b.shape[0] != n or a.dtype != b.dtype:
        raise ValueError(f"{a} and {b} do not form linear equations")
    return Aval(b.shape, b.dtype)


def _by_columns(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, **attrs: Any) -> Any:
    if not flags[0]:
        return lanes_as_columns(lambda b: prim(args[0], b, **attrs), args[1])
    return looped(prim, size, args, flags, **attrs)


# --- a triangle of a matrix; the rest is not read


def _triangular_shape(a: Aval, b: Aval, lower: bool, unit: bool, checked: bool = True) -> Aval:
    return _right_side(matrix(a).shape[0], a, b)


def _triangular_code(node: Node) -> str:
    unchecked = "" if node.attrs.get("checked", True) else ", check_finite=False"
    return f"scipy.linalg.solve_triangular({{0}}, {{1}}, lower={{lower}}, unit_diagonal={{unit}}{unchecked})"


def _triangle(x: Symbol, lower: bool, unit: bool) -> Any:
    return tril(x, k=-unit) if lower else triu(x, k=int(unit))


def _triangular_push_a(t: Symbol, out: Symbol, a: Symbol, b: Symbol, lower: bool, unit: bool, **checked: bool) -> Any:
    return solve_triangular(a, -(_triangle(t, lower, unit) @ out), lower=lower, unit=unit, **checked)


def _triangular_pull_b(ct: Symbol, a: Symbol, b: Any, lower: bool, unit: bool, **checked: bool) -> Any:
    return solve_triangular(swap(a), ct, lower=not lower, unit=unit, **checked)


# SciPy refuses nan and infinity unless it is told that a program does not ask for this
solve_triangular: Primitive = primitive(
    "solve_triangular",
    _triangular_shape,
    _triangular_code,
    names="linalg solve_triangular",
    batch=_by_columns,
    diff=(push(_triangular_push_a), pull(_triangular_pull_b)),
)


# --- the diagonals of a matrix: row u - d holds diagonal d, whose first elements stand in column max(d, 0)


def _banded_shape(ab: Aval, b: Aval, low: int, up: int) -> Aval:
    if ab.ndim != 2 or ab.shape[0] != low + up + 1 or ab.dtype.char not in "fdFD":
        raise ValueError(f"{ab} does not hold {low} lower and {up} upper diagonals")
    return _right_side(ab.shape[1], ab, b)


def _spans(n: int, low: int, up: int) -> list[tuple[int, slice, slice]]:
    """For each diagonal d: d, and the rows and columns of its elements."""
    return [(d, slice(max(-d, 0), n - max(d, 0)), slice(max(d, 0), n - max(-d, 0))) for d in range(-low, up + 1)]


def _banded_times(ab: Symbol, x: Symbol, low: int, up: int) -> Any:
    """The product of a banded matrix and a vector or matrix."""
    total = x.builder.zeros(Aval(x.shape, x.dtype))
    for d, rows, columns in _spans(ab.shape[1], low, up):
        part = getitem(x, index=(columns,))
        band = getitem(ab, index=(up - d, columns))
        if x.ndim == 2:
            band = broadcast_to(reshape_to(band, (*band.shape, 1)), part.shape)
        total = additem(total, band * part, index=(rows,))
    return total


def _banded_transpose(ab: Symbol, low: int, up: int) -> Any:
    turned = ab.builder.zeros(Aval(ab.shape, ab.dtype))
    for d, rows, columns in _spans(ab.shape[1], low, up):
        turned = setitem(turned, getitem(ab, index=(up - d, columns)), index=(low + d, rows))
    return turned


def _banded_push_ab(t: Symbol, out: Symbol, ab: Symbol, b: Symbol, low: int, up: int) -> Any:
    return solve_banded(ab, -_banded_times(t, out, low, up), low=low, up=up)


def _banded_pull_b(ct: Symbol, ab: Symbol, b: Any, low: int, up: int) -> Any:
    return solve_banded(_banded_transpose(ab, low, up), ct, low=up, up=low)


solve_banded: Primitive = primitive(
    "solve_banded",
    _banded_shape,
    "scipy.linalg.solve_banded(({low}, {up}), {0}, {1})",
    batch=_by_columns,
    diff=(push(_banded_push_ab), pull(_banded_pull_b)),
)


# --- A X + X B = Q


def _sylvester_shape(a: Aval, b: Aval, q: Aval) -> Aval:
    if q.shape != (matrix(a).shape[0], matrix(b).shape[0]) or not a.dtype == b.dtype == q.dtype:
        raise ValueError(f"{a}, {b} and {q} do not form a Sylvester equation")
    return Aval(q.shape, q.dtype)


solve_sylvester: Primitive = primitive(
    "solve_sylvester",
    _sylvester_shape,
    "scipy.linalg.solve_sylvester({0}, {1}, {2})",
    batch=looped,
    diff=(
        push(lambda t, out, a, b, q: solve_sylvester(a, b, -(t @ out))),
        push(lambda t, out, a, b, q: solve_sylvester(a, b, -(out @ t))),
        pull(lambda ct, a, b, q: solve_sylvester(swap(a), swap(b), ct)),
    ),
)


# --- P A = L U, both triangles in one matrix, as LAPACK gives them

ORDER = """
def pivot_order(pivots):
    order = np.arange(len(pivots))
    for k in range(len(pivots)):
        swapped = order[pivots[k]]
        order[pivots[k]] = order[k]
        order[k] = swapped
    return order
"""


def _order_shape(pivots: Aval) -> Aval:
    if pivots.ndim != 1 or pivots.dtype.kind != "i":
        raise ValueError(f"{pivots} are not pivots")
    return Aval(pivots.shape, np.dtype(np.int64))


# for each row of the factors, the row of the matrix from which it comes
pivot_order = primitive("pivot_order", _order_shape, "pivot_order({0})", helper=ORDER, batch=looped)


def _lu_shape(a: Aval) -> tuple[Aval, ...]:
    return matrix(a), Aval(a.shape[:1], np.dtype(np.int32))


def _lu_jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
    """F = L⁻¹ P dA U⁻¹ is split: dL is L times its strict lower triangle, dU is the rest times U."""
    lu, pivots = b.copy_node(node, [args[0].value])
    low, up = tril(lu, k=-1), triu(lu, k=0)
    rows = gather(tans[0], pivot_order(pivots), index=(Arg(1), slice(None)))
    half = solve_triangular(low, rows, lower=True, unit=True)
    inner = swap(solve_triangular(swap(up), swap(half), lower=True, unit=False))
    strict = tril(inner, k=-1)
    return [lu, pivots], [low @ strict + strict + triu(inner, k=0) @ up, None]


def _lu_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    inner = Builder()
    one = inner.input(Aval(args[0].shape[1:], args[0].dtype))
    body = inner.graph(prim.name, inner.emit(prim, [one.value], {}))
    attrs = {"arrays": 2, "body": body, "carry": 0, "consts": 0, "length": size, "reverse": False}
    return args[0].builder.emit(REGISTRY["scan"], [args[0].value], attrs), [True, True]


lu_factor: Primitive = primitive(
    "lu_factor",
    _lu_shape,
    "scipy.linalg.lu_factor({0})",
    multi=True,
    jvp=_lu_jvp,
    batch=_lu_batch,
    fresh=lambda node: (0, 1),
)
