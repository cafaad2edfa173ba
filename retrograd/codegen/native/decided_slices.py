"""Products and sums of slices whose length and starts the data decide: loops over their elements."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Node, Value
from ...ops.ragged import SlicePair, add_within, dot_within, slices_of
from .c_texts import SIMD
from .elements import ElementWriter
from .indices import AxisIndex, CArray, c_type

LONGEST = 1024  # elements of a vector, up to which a library is not faster
LANES = 8  # sums of every eighth product, which run side by side


def is_ragged(node: Node) -> bool:
    """Whether a node is such a product or sum of two vectors that are not long."""
    if node.prim not in (dot_within, add_within) or node.inputs[0].aval.ndim > 1:
        return False
    return max(v.aval.size for v in node.inputs) <= LONGEST


def is_ragged_sum(node: Node) -> bool:
    """Whether a node adds a multiple of a slice to a slice."""
    return node.prim is add_within and is_ragged(node)


def is_ragged_product(node: Node) -> bool:
    """Whether a node multiplies two slices."""
    return node.prim is dot_within and is_ragged(node)


def _numbers(to: ElementWriter, pair: SlicePair) -> tuple[str, list[str]]:
    """The length of slices, and where each of them begins; nothing for the first element."""
    return to.pull(pair.length, ()), ["" if v is None else to.pull(v, ()) for v in pair.starts]


def _elements(to: ElementWriter, vectors: Sequence[Value], starts: Sequence[str], z: str) -> list[AxisIndex]:
    """The places of the z-th elements of slices, as variables of the innermost block."""
    found = []
    for vector, start in zip(vectors, starts, strict=True):
        if start:
            name = to.fresh("k")
            to.line(f"const int64_t {name} = {start} + {z};")
        else:
            name = z
        to.depth[name], to.rows[name] = len(to.blocks) - 1, vector
        found.append(AxisIndex(name))
    return found


def add_slice(to: ElementWriter, node: Node, array: CArray) -> None:
    """Write ``x[i : i + n] += c * y[j : j + n]`` into the array."""
    pair = slices_of(node)
    count, starts = _numbers(to, pair)
    z, c = to.fresh("z"), to.pull(node.inputs[1], ())
    with to.block(z) as block:
        at, there = _elements(to, pair.vectors, starts, z)
        to.line(f"{array.at((at,))} += rg_rounded({c} * {to.pull(pair.vectors[1], (there,))});")
    to.enclose(f"for (int64_t {z} = 0; {z} < {count}; {z}++) {{", block.lines, SIMD)


def slice_product(to: ElementWriter, node: Node) -> str:
    """Write ``x[i : i + n] @ y[j : j + n]``; the variable that it is."""
    pair, dtype = slices_of(node), c_type(node.out.aval.dtype)
    count, starts = _numbers(to, pair)
    lanes, found, first, z, k = to.fresh("lanes", f"{dtype} *restrict"), to.fresh("dot", dtype), *map(to.fresh, "zzz")
    to.line(f"{dtype} {lanes}[{LANES}] = {{0}};")

    def products(z: str, lane: str) -> list[str]:
        with to.block(z) as block:
            at = _elements(to, pair.vectors, starts, z)
            x, y = (to.pull(v, (k,)) for v, k in zip(pair.vectors, at, strict=True))
            to.line(f"{lanes}[{lane}] += rg_rounded({x} * {y});")
        return block.lines

    whole = f"{count} / {LANES} * {LANES}"
    inner = [f"const int64_t {z} = {first} + {k};", *products(z, k)]
    with to.block() as block:
        to.enclose(f"for (int64_t {k} = 0; {k} < {LANES}; {k}++) {{", inner, SIMD)
    to.enclose(f"for (int64_t {first} = 0; {first} < {whole}; {first} += {LANES}) {{", block.lines)
    rest = products(z, f"{z} % {LANES}")
    to.enclose(f"for (int64_t {z} = {whole}; {z} < {count}; {z}++) {{", rest)
    pairs = [f"({lanes}[{k}] + {lanes}[{k + 1}])" for k in range(0, LANES, 2)]
    to.line(f"const {dtype} {found} = ({pairs[0]} + {pairs[1]}) + ({pairs[2]} + {pairs[3]});")
    return found
