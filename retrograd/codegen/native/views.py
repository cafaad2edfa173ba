"""Views in C: an operation that moves elements maps the index, and pulls the element of its operand."""

from __future__ import annotations

import numpy as np

from ...ir.graph import Node
from .decided_places import read_at
from .elements import ElementWriter, NeedsStorage, NoC, StandsFor, moves
from .indices import AxisIndex, CArray, Indices, at, c_type, number
from .overwriting import known_places


@moves("broadcast")
def _broadcast(to: ElementWriter, node: Node, index: Indices) -> str:
    (x,) = node.inputs
    own = index[len(index) - x.aval.ndim :]
    return to.pull(x, tuple(at(0) if n == 1 else i for n, i in zip(x.aval.shape, own, strict=True)))


@moves("permute")
def _permute(to: ElementWriter, node: Node, index: Indices) -> str:
    places = dict(zip(node.attrs["axes"], index, strict=True))
    return to.pull(node.inputs[0], tuple(places[a] for a in range(len(index))))


@moves("reshape")
def _reshape(to: ElementWriter, node: Node, index: Indices) -> str:
    (x,), shape = node.inputs, node.out.aval.shape
    if [n for n in x.aval.shape if n != 1] == [n for n in shape if n != 1]:
        rest = iter([i for n, i in zip(shape, index, strict=True) if n != 1])
        return to.pull(x, tuple(at(0) if n == 1 else next(rest) for n in x.aval.shape))
    if all(i.var is None for i in index):
        flat = int(np.ravel_multi_index([i.off for i in index], shape)) if shape else 0
        return to.pull(x, tuple(at(int(k)) for k in np.unravel_index(flat, x.aval.shape)))
    source = x
    while isinstance(held := to.held.get(source), StandsFor) and not held.lead:
        source = held.value
    if source in to.pending and to.reads is not None:
        to.reads.append((source, (AxisIndex("?"),)))
        return "0"
    if isinstance(held, CArray) and held.whole:
        if to.reads is not None:
            to.reads.append((source, (AxisIndex("?"),)))
        return CArray(held.name, shape, held.dtype).at(index)
    raise NeedsStorage(source)


@moves("getitem")
def _getitem(to: ElementWriter, node: Node, index: Indices) -> str:
    if len(node.inputs) > 1:
        return read_at(to, node, index)
    return to.pull(node.inputs[0], known_places(node, index))


@moves("copy", "named", "owned", "stop_gradient")
def _same(to: ElementWriter, node: Node, index: Indices) -> str:
    return to.pull(node.inputs[0], index)


@moves("cast")
def _cast(to: ElementWriter, node: Node, index: Indices) -> str:
    return to.converted(node.inputs[0], index, node.out.aval.dtype)


@moves("iota")
def _iota(to: ElementWriter, node: Node, index: Indices) -> str:
    (i,), dtype = index, node.out.aval.dtype
    return number(i.off, dtype) if i.var is None else f"({c_type(dtype)}){i}"


@moves("roll")
def _roll(to: ElementWriter, node: Node, index: Indices) -> str:
    axis, (x,) = node.attrs["axis"], node.inputs
    n = x.aval.shape[axis]
    shift, i = node.attrs["shift"] % n, index[axis]
    if axis < len(index) - 1 and i.var in to.ranges and i.scale == 1:  # the row is looked up: the loop stays one
        block, key = to.blocks[to.depth[str(i.var)]], ("row", i, shift, n)
        if key not in block.memo:
            block.memo[key] = to.fresh("k")
            block.lines.append(
                f"const int64_t {block.memo[key]} = {i} < {shift} ? {i.moved(n - shift)} : {i.moved(-shift)};"
            )
        row = block.memo[key]
        to.depth[row], to.rows[row] = to.depth[str(i.var)], x
        return to.pull(x, (*index[:axis], AxisIndex(row), *index[axis + 1 :]))
    moved = i.moved(n - shift if to.within(i, 0, shift) else -shift)
    return to.pull(x, (*index[:axis], moved, *index[axis + 1 :]))


@moves("concatenate")
def _concatenate(to: ElementWriter, node: Node, index: Indices) -> str:
    axis, start = node.attrs["axis"], 0
    for x in node.inputs:
        n = x.aval.shape[axis]
        if n and to.within(index[axis], start, start + n):
            return to.pull(x, (*index[:axis], index[axis].moved(-start), *index[axis + 1 :]))
        start += n
    raise NoC("an element of no part")


@moves("array")
def _array(to: ElementWriter, node: Node, index: Indices) -> str:
    (i,) = index
    if i.var is not None:
        raise NeedsStorage(node.out)
    return to.converted(node.inputs[i.off], (), node.out.aval.dtype)


@moves("additem", "setitem", "subitem")
def _write(to: ElementWriter, node: Node, index: Indices) -> str:
    base, new = node.inputs
    place = to.part(node, index)
    if place is None:
        return to.pull(base, index)
    if node.prim.name == "setitem":
        return to.pull(new, place)
    if node.prim.name == "subitem":
        return f"{to.pull(base, index)} - {to.pull(new, place)}"
    return f"{to.pull(base, index)} + {to.pull(new, place)}"


@moves("step_numbers")
def _step_numbers(to: ElementWriter, node: Node, index: Indices) -> str:
    (i,) = index
    return str(i) if i.var is None else f"(int64_t){i}"


@moves("putmask")
def _putmask(to: ElementWriter, node: Node, index: Indices) -> str:
    x, mask, new = node.inputs
    return f"{to.pull(mask, index)} ? {to.pull(new, ())} : {to.pull(x, index)}"


@moves("tril", "triu")
def _triangle(to: ElementWriter, node: Node, index: Indices) -> str:
    (x,), (i, j), lower = node.inputs, index[-2:], node.prim.name == "tril"
    diagonal = i.moved(node.attrs["k"])
    zero = number(0, x.aval.dtype)
    if i.var is None and j.var is None:
        inside = j.off <= diagonal.off if lower else j.off >= diagonal.off
        return to.pull(x, index) if inside else zero
    return f"{j} {'<=' if lower else '>='} {diagonal} ? {to.pull(x, index)} : {zero}"


@moves("diagonal")
def _diagonal(to: ElementWriter, node: Node, index: Indices) -> str:
    i, k = index[-1], node.attrs["offset"]
    return to.pull(node.inputs[0], (*index[:-1], i.moved(max(-k, 0)), i.moved(max(k, 0))))
