"""The rules of find_sparsity: on which elements of their operands the results of each primitive may depend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..ir.evaluate import run_node
from ..ir.graph import Node, Value
from ..ir.primitive import REGISTRY
from ..ops.index import shifted

Matrix = Any  # a scipy.sparse.csr_array; scipy is an extra
# A Matrix; None: the value depends on no element. A list of steps has a list, with a pattern for each or one for all.
Pattern = Any
Shape = tuple[int, ...]

# Primitives that act on each element alone, beside the ufuncs.
ELEMENTWISE = frozenset(
    {
        "bessel_i",
        "beta_left",
        "binom_fall",
        "cast",
        "clip",
        "copy",
        "digamma_rise",
        "gamma_left",
        "i0",
        "imag",
        "log_beta_density",
        "log_betainc",
        "log_betaincc",
        "log_excess",
        "log_gamma_density",
        "log_gammainc",
        "log_gammaincc",
        "log_ratio",
        "log_stdtr",
        "log_student_density",
        "mirrored_drop",
        "mirrored_rise",
        "nan_to_num",
        "normal_ratio",
        "owned",
        "polynomial",
        "pow",
        "pseudo_huber_by_width",
        "pseudo_huber_pull",
        "real",
        "relative_gap",
        "root",
        "round",
        "sinc",
        "student_rate",
        "student_slope",
        "student_weight",
        "where",
        "zeta_drop",
    }
)
# Primitives whose results consist of elements of their operands, or zeros.
PLACING = frozenset(
    {
        "array",
        "broadcast",
        "concatenate",
        "diag",
        "diagonal",
        "gather",
        "getitem",
        "permute",
        "reshape",
        "roll",
        "scatter",
        "set_slice",
        "setitem",
        "slice_at",
        "take_along",
        "tril",
        "triu",
    }
)
# Primitives that add into an array, and the primitives that read at the same places.
ADDING = {"add_slice": "slice_at", "additem": "getitem", "scatter_add": "gather", "add_along": "take_along"}
# Primitives that act on each of a stack of matrices alone.
STACKED = frozenset({"cholesky", "cofactors", "det", "eigh", "eigvalsh", "inv", "pinv", "qr", "solve"})
# Primitives whose results are zero where their operands are zero, and nowhere else.
SAME_ZEROS = frozenset({"cast", "conj", "copy", "neg", "owned"})
MOST_ENTRIES = 20_000_000  # of a product by a constant; with more, it counts as full
REDUCING = frozenset({"max", "min", "nanmax", "nanmin", "prod", "sum"})
RUNNING = frozenset({"cummax", "cummin", "cumprod", "cumsum", "partition", "recurrence", "sort"})


class SparsityRules:
    """Patterns with respect to ``n`` elements: of the results of a node, given those of its operands.

    ``known`` is what is known of the operands: of integers their values, of other constants which of them may differ
    from zero; None stands for no knowledge.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def rule(self, node: Node) -> Callable[[Node, list[Pattern], list[Any]], Pattern] | None:
        name = node.prim.name
        own = {
            "matmul": self.matmul,
            "mul": self.scaled,
            "cross": self.cross,
            "fft": self.transformed,
            "rfft": self.transformed,
            "irfft": self.transformed,
            "vecdot": self.dotted,
            "convolve": self.convolved,
            "sparse_product": self.by_sparse,
            "sparse_solve": self.by_column,
        }
        if name in own:
            return own[name]
        if name in PLACING:
            return self.placed
        if name in ADDING:
            return self.added
        if name in REDUCING:
            return self.reduced
        if name in RUNNING:
            return self.running
        return self.elementwise if node.prim.numpy.ufunc or name in ELEMENTWISE else None

    def empty(self, size: int) -> Matrix:
        from scipy.sparse import csr_array  # scipy is an extra

        return csr_array((size, self.n), dtype=np.int8)

    def union(self, patterns: Sequence[Pattern], size: int) -> Matrix:
        total = self.empty(size)
        for p in patterns:
            total = total if p is None else total + p
            total.data[:] = 1  # before it overflows
        return total

    def gathered(self, rows: Any, size: int, p: Matrix) -> Matrix:
        """The sum of patterns of rows: row i of ``p`` goes into row ``rows[i]`` of the result."""
        from scipy.sparse import csr_array  # scipy is an extra

        place = csr_array((np.ones(rows.size, np.int32), (rows.ravel(), np.arange(rows.size))), (size, rows.size))
        found = csr_array(place @ p.astype(np.int32))
        found.data[:] = 1
        return found.astype(np.int8)

    def everything(self, patterns: Sequence[Pattern], size: int) -> Matrix:
        total = self.empty(1)
        for p in _single(patterns):
            total = total + self.gathered(np.zeros(p.shape[0], int), 1, p)
            total.data[:] = 1  # before it overflows
        return total[np.zeros(size, int)]

    def elementwise(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        return self.union(patterns, node.out.aval.size)

    def scaled(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        """A product of elements: a factor that is zero leaves nothing of the other."""
        found = list(patterns)
        for i, x in enumerate(known):
            if x is not None and patterns[i] is None and (p := found[1 - i]) is not None and not np.all(x):
                kept = np.broadcast_to(x, node.out.aval.shape).ravel()
                found[1 - i] = self.routed(np.flatnonzero(kept), np.flatnonzero(kept), kept.size, p)
        return self.union(found, node.out.aval.size)

    def routed(self, to: Any, at: Any, size: int, p: Matrix) -> Matrix:
        """Sums of rows: row ``at[k]`` of ``p`` goes into row ``to[k]`` of the result, for each k."""
        from scipy.sparse import csr_array  # scipy is an extra

        route = csr_array((np.ones(len(to), np.int32), (to, at)), (size, p.shape[0]))
        found = csr_array(route @ p.astype(np.int32))
        found.data[:] = 1
        return found.astype(np.int8)

    def cross(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        """A component depends on the two others of each operand."""
        at = np.arange(node.out.aval.size)
        others = [at - at % 3 + (at + shift) % 3 for shift in (1, 2)]
        return self.union([p[rows] for p in patterns if p is not None for rows in others], at.size)

    def transformed(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        """A Fourier transform: an element depends on its line along the axes, whose length may change."""
        axes = node.attrs["axis"]
        rows, size = _lines(node.inputs[0].aval.shape, axes)
        return self.gathered(rows, size, patterns[0])[_lines(node.out.aval.shape, axes)[0].ravel()]

    def dotted(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        """Products of vectors along the last axis."""
        shape = node.inputs[0].aval.shape
        rows, size = _lines(shape, (len(shape) - 1,))
        return self.union([self.gathered(rows, size, p) for p in patterns if p is not None], size)

    def convolved(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        n, m = (v.aval.size for v in node.inputs)
        if n * m > MOST_ENTRIES:
            return self.everything(patterns, node.out.aval.size)
        first = 0 if node.attrs["mode"] == "full" else m - 1
        masks = [
            np.ones(v.aval.size, bool) if x is None or p is not None else np.asarray(x)
            for v, x, p in zip(node.inputs, known, patterns, strict=True)
        ]
        i, j = np.nonzero(np.multiply.outer(*masks))
        to = i + j - first
        inside = (to >= 0) & (to < node.out.aval.size)
        at = (i[inside], j[inside])
        parts = [self.routed(to[inside], at[k], node.out.aval.size, p) for k, p in enumerate(patterns) if p is not None]
        return self.union(parts, node.out.aval.size)

    def by_sparse(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        """A product by a constant sparse matrix, whose places are known."""
        _, indices, starts, _ = known
        p, size = patterns[3], node.out.aval.size
        columns = size // max(node.out.aval.shape[0], 1)
        lines, others = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), np.asarray(indices)
        rows, cols = (lines, others) if node.attrs["by_rows"] else (others, lines)
        k = np.arange(columns)
        return self.routed((rows[:, None] * columns + k).ravel(), (cols[:, None] * columns + k).ravel(), size, p)

    def by_column(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        """Solutions of equations: each column depends on all of its right side."""
        shape = node.out.aval.shape
        rows, size = _lines(shape, (0,))
        return self.gathered(rows, size, patterns[-1])[rows.ravel()]

    def stacked(self, node: Node, patterns: list[Pattern], v: Value) -> Pattern:
        """Results for each of a stack of matrices; solutions for a constant matrix, column by column."""
        first = node.inputs[0].aval
        if node.prim.name == "solve" and patterns[0] is None and first.ndim > 1:
            shape = v.aval.shape
            rows, size = _lines(shape, (max(len(shape) - 2, 0),))
            return self.gathered(rows, size, patterns[1])[rows.ravel()]
        count = math.prod(first.shape[:-2])
        if not count:
            return self.empty(v.aval.size)
        found = [
            self.gathered(np.repeat(np.arange(count), p.shape[0] // count), count, p) for p in patterns if p is not None
        ]
        return self.union(found, count)[np.repeat(np.arange(count), v.aval.size // count)]

    def placed(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        """Run the node on the numbers of the elements, from 1 on: its result shows where each element went."""
        from scipy.sparse import vstack  # scipy is an extra

        stack, operands, count = [self.empty(1)], [], 1
        for v, p, x in zip(node.inputs, patterns, known, strict=True):
            if not v.aval.inexact:
                operands.append(x)
                continue
            numbers = np.zeros(v.aval.size, np.int64) if p is None else np.arange(count, count + v.aval.size)
            operands.append(numbers.reshape(v.aval.shape) if v.aval.kind == "array" else numbers[0])
            if p is not None:
                stack.append(p)
                count += v.aval.size
        (where,) = run_node(node, operands)
        return vstack(stack, format="csr")[np.ravel(where)]

    def added(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        (x, v, *rest), (p, q, *_) = node.inputs, patterns
        total = [p]
        if q is not None:
            attrs = dict(node.attrs)
            if "index" in attrs:
                attrs["index"] = shifted(attrs["index"], -1)
            read = Node(REGISTRY[ADDING[node.prim.name]], (x, *rest), attrs, (v,))
            (places,) = run_node(read, [np.arange(x.aval.size).reshape(x.aval.shape), *known[2:]])
            total.append(self.gathered(np.asarray(places), x.aval.size, q))
        return self.union(total, x.aval.size)

    def reduced(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        axis = node.attrs["axis"]
        rows, size = _lines(node.inputs[0].aval.shape, axis if isinstance(axis, tuple) else (axis,))
        (p,) = patterns
        assert p is not None
        return self.gathered(rows, size, p)

    def running(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        shape = node.out.aval.shape
        rows, size = _lines(shape, (node.attrs["axis"],))
        lines = [self.gathered(rows, size, p) for p in patterns if p is not None and p.shape[0] == rows.size]
        if len(lines) < sum(p is not None for p in patterns):
            return self.everything(patterns, math.prod(shape))
        return self.union(lines, size)[rows.ravel()]

    def matmul(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        """An element depends on a row of one operand and a column of the other, over all lanes that broadcast to it."""
        (a, b), (p, q) = (v.aval.shape for v in node.inputs), patterns
        a, b = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
        full = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
        if (found := self.by_constant(a, b, p, q, known)) is not None:
            return found
        total = []
        for shape, axis, pattern in ((a, len(a) - 1, p), (b, len(b) - 2, q)):
            if pattern is None:
                continue
            rows, size = _lines(shape, (axis,))
            kept = (*shape[:axis], 1, *shape[axis + 1 :])
            total.append(
                self.gathered(rows, size, pattern)[np.broadcast_to(np.arange(size).reshape(kept), full).ravel()]
            )
        return self.union(total, math.prod(full))

    def by_constant(self, a: Shape, b: Shape, p: Pattern, q: Pattern, known: list[Any]) -> Pattern:
        """A product of matrices of which one is a constant with zeros; None if that is not so."""
        constant, varying = (known[0], q) if p is None else (known[1], p)
        if constant is None or (p is not None and q is not None) or np.all(constant):
            return None
        m, n, inner = a[-2], b[-1], a[-1]
        *lead, i, j = np.nonzero(np.reshape(constant, a if p is None else b))
        others = n if p is None else m
        if len(i) * others > MOST_ENTRIES:
            return None
        stack = np.ravel_multi_index(lead, a[:-2]) if lead else np.zeros(len(i), int)
        k = np.arange(others)
        size = math.prod(a[:-2]) * m * n
        if p is None:  # a[i, j] times b[j, k]
            to = ((stack * m + i) * n)[:, None] + k
            at = ((stack * inner + j) * n)[:, None] + k
        else:  # a[k, i] times b[i, j]
            to = (stack * m * n + j)[:, None] + k * n
            at = (stack * m * inner + i)[:, None] + k * inner
        return self.routed(to.ravel(), at.ravel(), size, varying)


def _single(patterns: Iterable[Pattern]) -> Iterator[Matrix]:
    """The patterns that there are, those of steps one by one."""
    for p in patterns:
        if isinstance(p, list):
            yield from _single(p)
        elif p is not None:
            yield p


def _lines(shape: Shape, axes: Shape) -> tuple[Any, int]:
    """For each element the number of its line along ``axes``, and the number of lines."""
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    size = math.prod(kept)
    return np.broadcast_to(np.arange(size).reshape(kept), shape), size
