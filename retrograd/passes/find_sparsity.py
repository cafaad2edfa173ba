"""find_sparsity: for each result of a graph, find the elements of one input that its elements may depend on."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..ir.evaluate import run_node
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import REGISTRY
from ..ops.index import shifted
from .inline import body_in_place

Matrix = Any  # a scipy.sparse.csr_array; scipy is an extra
Pattern = Matrix | None  # None: the value depends on no element
Shape = tuple[int, ...]

# Primitives that act on each element alone, beside the ufuncs.
ELEMENTWISE = frozenset(
    {
        "bessel_i",
        "cast",
        "clip",
        "copy",
        "i0",
        "imag",
        "log_ratio",
        "nan_to_num",
        "normal_ratio",
        "polynomial",
        "pow",
        "real",
        "root",
        "round",
        "sinc",
        "where",
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
        "setitem",
        "take_along",
        "tril",
        "triu",
    }
)
# Primitives that add into an array, and the primitives that read at the same places.
ADDING = {"additem": "getitem", "scatter_add": "gather", "add_along": "take_along"}
REDUCING = frozenset({"max", "min", "nanmax", "nanmin", "prod", "sum"})
RUNNING = frozenset({"cummax", "cummin", "cumprod", "cumsum", "partition", "recurrence", "sort"})


def find_sparsity(graph: Graph, active: int, args: Sequence[Any]) -> list[Matrix]:
    """For each result a matrix of one row per element of it and one column per element of input ``active``.

    A stored entry means that there may be a derivative. Integers among ``args`` are indices, and the pattern holds for
    their values only. The results of any other primitive depend on all elements of its operands.
    """
    from scipy.sparse import csr_array, eye_array  # scipy is an extra

    known = [x if v.aval.dtype.kind in "iub" else None for v, x in zip(graph.inputs, args, strict=True)]
    numbers: Hashable = tuple(None if x is None else np.asarray(x).tobytes() for x in known)

    def found() -> list[Matrix]:
        n = graph.inputs[active].aval.size
        patterns: list[Pattern] = [None] * len(graph.inputs)
        patterns[active] = eye_array(n, dtype=np.int8, format="csr")
        outs = _Analysis(n).run(graph, patterns, known)
        sizes = [v.aval.size for v in graph.outputs]
        return [csr_array((m, n), dtype=np.int8) if p is None else p for p, m in zip(outs, sizes, strict=True)]

    return graph.once(("sparsity", active, numbers), found)


class _Analysis:
    """Patterns with respect to ``n`` elements, node by node; and the values of integers that depend on none of them."""

    def __init__(self, n: int) -> None:
        self.n = n

    def run(self, graph: Graph, patterns: Sequence[Pattern], known: Sequence[Any]) -> list[Pattern]:
        of: dict[Value, Pattern] = dict(zip(graph.inputs, patterns, strict=True))
        value: dict[Value, Any] = dict(zip(graph.inputs, known, strict=True))
        for node in graph.nodes:
            found = self.node(node, [of[v] for v in node.inputs], [value[v] for v in node.inputs])
            of.update(zip(node.outputs, found, strict=True))
            constant = node.prim.run is None and not node.prim.effect and all(value[v] is not None for v in node.inputs)
            whole = constant and all(v.aval.dtype.kind in "iub" for v in node.outputs)
            results = run_node(node, [value[v] for v in node.inputs]) if whole else [None] * len(node.outputs)
            value.update(zip(node.outputs, results, strict=True))
        return [of[v] for v in graph.outputs]

    def node(self, node: Node, patterns: list[Pattern], known: list[Any]) -> list[Pattern]:
        prim, name = node.prim, node.prim.name
        if prim.diff:
            patterns = [None if prim.derivative(i) is None else p for i, p in enumerate(patterns)]
        if all(p is None for p in patterns) or not any(v.aval.inexact for v in node.outputs):
            return [None] * len(node.outputs)
        if (body := body_in_place(node)) is not None:
            return self.run(body, patterns, known)
        rule = self.rule(node)
        indices = [x for v, x in zip(node.inputs, known, strict=True) if not v.aval.inexact]
        if rule is None or (name in PLACING | set(ADDING) and any(x is None for x in indices)):
            return [self.everything(patterns, v.aval.size) if v.aval.inexact else None for v in node.outputs]
        return [rule(node, patterns, known)]

    def rule(self, node: Node) -> Callable[[Node, list[Pattern], list[Any]], Pattern] | None:
        name = node.prim.name
        if name == "matmul":
            return self.matmul
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
        total.data[:] = 1
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
        for p in patterns:
            total = total if p is None else total + self.gathered(np.zeros(p.shape[0], int), 1, p)
        total.data[:] = 1
        return total[np.zeros(size, int)]

    def elementwise(self, node: Node, patterns: list[Pattern], known: list[Any]) -> Pattern:
        return self.union(patterns, node.out.aval.size)

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


def _lines(shape: Shape, axes: Shape) -> tuple[Any, int]:
    """For each element the number of its line along ``axes``, and the number of lines."""
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    size = math.prod(kept)
    return np.broadcast_to(np.arange(size).reshape(kept), shape), size
