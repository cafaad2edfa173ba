"""Reads and writes at positions that data decide. A position out of bounds ends the kernel, and NumPy raises."""

from __future__ import annotations

from ...ir.graph import Node, Value
from ...ir.texts import Arg
from .c_texts import text_of
from .decided_formulas import is_formula_write
from .decided_slices import is_ragged_sum
from .elements import BEYOND, ElementWriter, NeedsStorage, StandsFor, moves
from .indices import AxisIndex, Indices, at, count, full, in_whole

WRITES = {"scatter": "=", "scatter_add": "+=", "setitem": "=", "additem": "+=", "subitem": "-="}  # in C


def writes_at(node: Node) -> bool:
    """Whether a node writes at positions that are operands."""
    return (node.prim.name in WRITES and len(node.inputs) > 2) or is_ragged_sum(node) or is_formula_write(node)


@moves("gather")
def read_at(to: ElementWriter, node: Node, index: Indices) -> str:
    """An element of a read at positions that are operands."""
    x = node.inputs[0]
    made = to.made.get(x)
    text = None if made is None else text_of(made)
    if text is not None and text.c and x not in to.held and x not in to.pending and count(x) > 1:
        raise NeedsStorage(x)  # it is read anywhere, and maybe often
    return to.pull(x, places(to, node, index))


def places(to: ElementWriter, node: Node, index: Indices) -> Indices:
    """Where in the first operand an element of the part lies that the index of a node names."""
    x = node.inputs[0]
    items = full(node.attrs["index"], x.aval.ndim)
    arrays = [node.inputs[item.position] for item in items if isinstance(item, Arg)]
    width = max(a.aval.ndim for a in arrays)
    left = _array_axis(items)
    chosen = index[left : left + width]

    def decided(item: Arg | int, n: int) -> AxisIndex:
        if isinstance(item, int):
            return at(item % n)
        array = node.inputs[item.position]
        own = chosen[width - array.aval.ndim :]
        spot = tuple(at(0) if m == 1 else i for m, i in zip(array.aval.shape, own, strict=True))
        return _checked(to, x, array, spot, n)

    return in_whole(items, x.aval.shape, (*index[:left], *index[left + width :]), decided)


def _array_axis(items: list[object]) -> int:
    """The axis of a part at which those of the positions begin: NumPy puts them first if slices stand between them."""
    spots = [k for k, item in enumerate(items) if isinstance(item, (Arg, int))]
    return 0 if spots[-1] - spots[0] + 1 != len(spots) else spots[0]


def _checked(to: ElementWriter, x: Value, array: Value, index: Indices, n: int) -> AxisIndex:
    """The position that an element of an array of positions names, between 0 and n."""
    text = to.pull(array, index)
    known = text.strip("()")
    if known.lstrip("-").isdecimal() and -n <= int(known) < n:
        return at(int(known) % n)
    level = to.level(array, index)
    block, key = to.blocks[level], ("position", array, index, n)
    if key not in block.memo:
        given, name = to.fresh("k"), to.fresh("k")
        block.lines.append(
            f"const int64_t {given} = {text} < 0 ? {text} + {n} : {text}, "
            f"{name} = {given} >= 0 && {given} < {n} ? {given} : 0;"
        )
        block.lines.append(f"{BEYOND} |= {given} != {name};")
        block.memo[key] = name
        to.gives_up = True
    name = block.memo[key]
    while isinstance(held := to.held.get(x), StandsFor) and not held.lead:
        x = held.value
    to.depth[name], to.rows[name] = level, x
    return AxisIndex(name)
