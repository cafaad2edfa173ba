"""numbers: Graph → Graph whose functions and loops on numbers only are nodes, which run on Python numbers.

Small arrays are numbers, too, where all of them can be taken apart.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ....ir.builder import Builder
from ....ir.graph import Graph, Node, Value
from ....ir.loop_node import loop_of
from ....ir.rewrite import Change, recursively, with_bodies, with_nodes
from ....ir.types import Aval
from ....ops.batching import by_elements
from ....ops.structural.guard import guard
from ....ops.structural.on_numbers import assemble, elements, numbers
from ....ops.structural.region import turn
from ....ops.structural.stack import absent, stack_length, step_numbers
from ..target import PASSES
from .integer_ranges import in_64_bits
from .number_texts import text_of
from .small_arrays import LARGEST, is_small, loops_apart, taken_apart

FEWEST = 3  # functions of NumPy's, or
SHORT = 12  # operations on numbers, from which a function is better off with Python's numbers
ON_ARRAYS = 2  # operations on numbers that one on small arrays counts as; it takes as long as twelve, but is one line
DEEPEST = 12  # loops and choices in each other
ENDS = frozenset({assemble, elements})
PASSED_ON = frozenset({guard, turn, step_numbers, stack_length, absent})
INTEGERS = frozenset({"add", "sub", "mul", "neg", "lt", "le", "gt", "ge", "eq", "ne"})
FLOAT, INT, BOOL = np.dtype(np.float64), np.dtype(np.int64), np.dtype(bool)


def with_numbers(graph: Graph) -> Graph:
    """The graph with its parts on numbers alone as nodes: all of it, or its loops."""
    through = any(v in graph.inputs for v in graph.outputs)
    body = None if through or not _worthwhile(graph) else _of_numbers(graph)
    if body is None:
        return recursively(graph, _with_loops)
    b = Builder()
    inputs = [x.value for x in b.inputs_like(graph.inputs)]
    return b.graph(graph.name, b.emit(numbers, inputs, {"body": body}, [v.hint for v in graph.outputs]))


PASSES.append(with_numbers)


def _with_loops(graph: Graph, inner: Change) -> Graph:
    if not graph.nested:
        return graph
    apart = loops_apart(graph)
    new = graph if apart is None or not all(_runs_on_numbers(node) for node in _loops(apart)) else apart
    made = new.producer
    return with_nodes(new, (_apart(node, made) or with_bodies(node, inner) for node in new.nodes))


def _loops(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if loop_of(node) is not None]


def _apart(loop: Node, made: dict[Value, Node]) -> Node | None:
    """A loop on numbers alone as a node of its own, with its constants; None for other nodes."""
    if loop_of(loop) is None:
        return None
    sources = [made.get(v) for v in loop.inputs]
    constants = dict.fromkeys(x for x in sources if x is not None and not x.inputs and _runs_on_numbers(x))
    inputs = tuple(dict.fromkeys(v for v in loop.inputs if made.get(v) not in constants))
    outputs = tuple(Value(v.aval, v.hint) for v in loop.outputs)
    body = _of_numbers(Graph("loop", inputs, (*constants, replace(loop, outputs=outputs)), outputs))
    return None if body is None else Node(numbers, inputs, {"body": body}, loop.outputs, loop.where)


def _of_numbers(graph: Graph) -> Graph | None:
    """The graph on numbers alone; None if there is none."""
    if not all(map(_enters, graph.inputs)):
        return None
    found = graph if _on_numbers(graph) else taken_apart(graph)
    return found if found is not None and _on_numbers(found) and in_64_bits(found) else None


def _worthwhile(graph: Graph) -> bool:
    """Whether NumPy's numbers take longer than the change to Python's."""
    operations = functions = 0
    for node in graph.nodes:
        if node.inputs and any(v.aval.kind != "python" for v in node.outputs):
            operations += ON_ARRAYS if any(v.aval.shape for v in node.outputs) else 1
            functions += bool(node.prim.numpy.ufunc) and not node.prim.numpy.op
            if functions >= FEWEST or operations >= SHORT or loop_of(node) is not None:
                return True
    return False


def _enters(value: Value) -> bool:
    """Whether a value may come in: a number, a small array, or rows of numbers or a list for the steps of a loop."""
    aval = value.aval
    if aval.kind == "array" and (aval.shape or aval.dtype != FLOAT):
        row = aval.shape[1:]
        return aval.dtype == FLOAT and aval.steps is None and (is_small(aval) or math.prod(row) <= LARGEST)
    if aval.steps is not None:
        return len(aval.steps) == 1 and aval.dtype in (FLOAT, INT, BOOL)
    return _is_number(aval) and (aval.dtype != INT or aval.kind == "python")


def _is_number(aval: Aval) -> bool:
    """Whether a value is a number or, as a result of ``np.where``, an array of no axes."""
    if aval.kind == "array":
        return not aval.shape and aval.dtype in (FLOAT, BOOL)
    return aval.kind in ("python", "scalar") and aval.dtype in (FLOAT, INT, BOOL)


def _on_numbers(graph: Graph, depth: int = 0) -> bool:
    """Whether all operations of a graph work on numbers, and rows are only gone over, or made, by loops."""
    return depth <= DEEPEST and all(_runs_on_numbers(node, depth) for node in graph.nodes)


def _runs_on_numbers(node: Node, depth: int = 0) -> bool:
    prim, avals = node.prim, [v.aval for v in (*node.inputs, *node.outputs)]
    if prim in ENDS:
        return all(map(_enters, (*node.inputs, *node.outputs)))
    structure = prim.structure
    if prim in PASSED_ON or (structure is not None and (structure.loop or structure.branches(node))):
        known = _passes(node) and not node.attrs.get("lanes")
        return known and all(_on_numbers(body, depth + 1) for _, body in node.graphs)
    if not all(a.steps is None and _is_number(a) for a in avals):
        return False
    dtypes = {a.dtype for a in avals}
    if prim.name == "const":
        return True
    if prim.name == "cast":
        return avals[1].kind == "python" or avals[1].dtype in (FLOAT, avals[0].dtype)
    if (INT in dtypes and prim.name not in INTEGERS) or (prim.name == "invert" and dtypes != {BOOL}):
        return False
    return by_elements(prim) and bool(text_of(node))


def _passes(node: Node) -> bool:
    """Whether a loop or a choice hands on numbers and lists of them, and goes over rows of numbers or makes them."""
    rows: set[int] = set()
    structure = node.prim.structure
    if structure is not None:
        ins, outs = structure.of_operands(node, node.inputs), structure.of_results(node, node.outputs)
        rows = {id(v) for v in (*ins.get("xs", ()), *outs.get("arrays", ()))}
    return all(_steps_of_numbers(v.aval) or (id(v) in rows and _enters(v)) for v in (*node.inputs, *node.outputs))


def _steps_of_numbers(aval: Aval) -> bool:
    return (aval.steps is None or (len(aval.steps) == 1 and aval.kind != "array")) and _is_number(aval)
