"""The exact rewrites of reads and writes by index."""

from __future__ import annotations

from typing import Any

from ..ir.builder import Symbol
from ..ir.texts import Arg
from ..ops.elementwise import const
from ..ops.gather import gather, scatter, scatter_add
from ..ops.index import Index, additem, getitem, setitem, shifted
from ..ops.shape import iota
from .patterns import Rule
from .rules import EXACT

PAST = 4  # how many writes elsewhere a read moves past


def _whole(x: Symbol, i: tuple[Any, ...]) -> Symbol | None:
    return None if any(type(s) is int or s != slice(None) for s in i) else x


def _past(x: Symbol, v: Symbol, i: Index, j: Index) -> Symbol | None:
    """A read after a few writes: from before them if they wrote elsewhere, or of the value that one of them wrote."""
    if not _apart(i, j):
        return None
    for _ in range(PAST):
        before = x.node
        if before is None or before.prim is not setitem or len(before.inputs) != 2:
            return getitem(x, index=i)  # type: ignore[no-any-return]  # symbols are untyped under operators
        if before.attrs["index"] == i:
            return x.builder.symbol(before.inputs[1])
        if not _apart(i, before.attrs["index"]):
            return getitem(x, index=i)  # type: ignore[no-any-return]  # symbols are untyped under operators
        x = x.builder.symbol(before.inputs[0])
    return None  # no walk further back: for each read it would take quadratic time


def _apart(i: Index, j: Index) -> bool:
    """Whether two indices of ints and full slices name different elements."""
    if not all(type(a) is int or a == slice(None) for a in (*i, *j)):
        return False
    return any(type(a) is type(b) is int and a != b and (a >= 0) == (b >= 0) for a, b in zip(i, j, strict=False))


def _unchanged(x: Symbol, v: Symbol, i: Index) -> Symbol | None:
    """What no element is written into."""
    return x if not v.aval.size else None


def _added(x: Symbol, v: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    return additem(x, v, t, index=j) if shifted(i, 1) == j else None


def _subtracted(x: Symbol, v: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    return additem(x, -v, t, index=j) if shifted(i, 1) == j else None


def _added_at_two(x: Symbol, v: Symbol, s: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    return additem(x, v, s, t, index=j) if shifted(i, 1) == j else None


def _gathered(x: Symbol, v: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    return scatter_add(x, v, t, index=j, unique=True) if shifted(i, 1) == j else None


def _taken(x: Symbol, v: Symbol, t: Symbol, i: Index, j: Index) -> Symbol | None:
    return scatter_add(x, -v, t, index=j, unique=True) if shifted(i, 1) == j else None


def counts_up(s: Symbol) -> bool:
    """Whether a vector has the numbers 0, 1, 2 and so on."""
    if s.node is None or s.ndim != 1:
        return False
    return s.node.prim is iota or (s.node.prim is const and s.node.attrs["value"] == tuple(range(s.shape[0])))


def _one_of_each_row(x: Symbol, s: Symbol, t: Symbol, i: Index) -> Symbol | None:
    """A read of one element of each row, ``x[np.arange(n), t]``: neither it nor its adjoint's write names one twice."""
    if i != (Arg(1), Arg(2)) or not counts_up(s) or s.shape != t.shape:
        return None
    found: Symbol = gather(x, s, t, index=i, unique=True)
    return found


EXACT += [
    Rule(lambda x, s, t, i: gather(x, s, t, index=i, unique=None), _one_of_each_row),
    Rule(lambda x, i: getitem(x, index=i), _whole),
    Rule(lambda x, v, i: getitem(setitem(x, v, index=i), index=i), lambda x, v, i: v),
    Rule(lambda x, v, i, j: getitem(setitem(x, v, index=j), index=i), _past),
    Rule(lambda x, v, i: setitem(x, v, index=i), _unchanged),
    Rule(lambda x, v, i: additem(x, v, index=i), _unchanged),
    Rule(lambda x, v, i: setitem(x, getitem(x, index=i) + v, index=i), lambda x, v, i: additem(x, v, index=i)),
    Rule(lambda x, v, i: setitem(x, v + getitem(x, index=i), index=i), lambda x, v, i: additem(x, v, index=i)),
    Rule(lambda x, v, i: setitem(x, getitem(x, index=i) - v, index=i), lambda x, v, i: additem(x, -v, index=i)),
    Rule(lambda x, v, t, i, j: setitem(x, getitem(x, t, index=i) + v, t, index=j), _added),
    Rule(lambda x, v, t, i, j: setitem(x, v + getitem(x, t, index=i), t, index=j), _added),
    Rule(lambda x, v, t, i, j: setitem(x, getitem(x, t, index=i) - v, t, index=j), _subtracted),
    Rule(lambda x, v, s, t, i, j: setitem(x, getitem(x, s, t, index=i) + v, s, t, index=j), _added_at_two),
    Rule(lambda x, v, t, i, j: scatter(x, gather(x, t, index=i, unique=True) + v, t, index=j, unique=True), _gathered),
    Rule(lambda x, v, t, i, j: scatter(x, gather(x, t, index=i, unique=True) - v, t, index=j, unique=True), _taken),
]
