"""The C function of a kernel: pointers to operands, results and workspaces in, results written."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from ...ir.graph import Graph, Value
from ...ir.loop_node import loop_of
from . import views  # noqa: F401 - it fills the table of views
from .alike_nests import with_functions
from .c_names import renumbered
from .c_texts import text_of
from .decided_formulas import FORMULAS, work_of_formula
from .element_form import element_form
from .elements import BEYOND, NeedsStorage, NoC
from .in_operands import Pairs, may_lie_in, with_one_storage
from .indices import TYPES, CArray, c_type, count, extents
from .step_loops import StepLoopWriter

SIZES = {name: np.dtype(code).itemsize for code, name in TYPES.items()}  # in bytes
RESTARTS = 200  # values that may turn out to need storage
MANY = 1000  # steps of a loop whose number is not known
LONGEST = 20_000  # operations, and lines of their C: a compiler takes up to a fifth of a second for a thousand lines


@dataclass(frozen=True)
class KernelFunction:
    """Source, the bytes of each workspace, the additions that a call takes, about, and whether it has parts.

    ``grows``: it keeps rows of as many steps as the data decide. ``fits`` are the pairs of a result and an operand that
    may have one storage, ``over`` those that have it.
    """

    source: str
    workspaces: tuple[int, ...]
    work: int
    parts: bool = False
    grows: bool = False
    fits: Pairs = ()
    over: Pairs = ()

    def in_operands(self, pairs: Pairs) -> KernelFunction:
        """The function that writes results into the storage of operands."""
        return replace(self, source=with_one_storage(self.source, pairs), over=pairs)


def identity_of(body: Graph, kernel: KernelFunction) -> Hashable:
    """What kernels have in common that are one function of C."""
    return kernel, len(body.inputs), tuple(v.aval for v in (*body.inputs, *body.outputs))


def kernel_function(body: Graph, name: str) -> KernelFunction:
    """``int name(void **p)`` for a graph, with a number of threads if it has parts; it is true if it gave up.

    Raises NoC if the graph has an operation that C has no text for.
    """
    if _length(body) > LONGEST:
        raise NoC(f"{_length(body)} operations in a row")
    if any(v.aval.steps is not None for v in (*body.inputs, *body.outputs)):
        raise NoC("lists of steps that NumPy makes or reads")
    body = element_form(body)
    stored: set[Value] = set()
    for _ in range(RESTARTS):
        try:
            return _written(body, name, stored)
        except NeedsStorage as wanted:
            if not stored.isdisjoint(wanted.values):
                raise NoC("a value is needed at an index that is not known") from None
            stored.update(wanted.values)
        except RecursionError:
            raise NoC("operations that move elements, too many in a row") from None
    raise NoC("too many values need storage")


def _written(body: Graph, name: str, stored: set[Value]) -> KernelFunction:
    to = StepLoopWriter(set(stored), name)
    head, places = [], []
    for k, v in enumerate(body.inputs):
        head.append(f"const {c_type(v.aval.dtype)} *restrict in{k} = p[{k}];")
        to.types[f"in{k}"] = f"const {c_type(v.aval.dtype)} *restrict"
        to.held[v] = CArray(f"in{k}", extents(v), v.aval.dtype)
    n = len(body.inputs)
    for k, v in enumerate(body.outputs):
        head.append(f"{c_type(v.aval.dtype)} *restrict out{k} = p[{n + k}];")
        to.types[f"out{k}"] = f"{c_type(v.aval.dtype)} *restrict"
        places.append((CArray(f"out{k}", extents(v), v.aval.dtype), ()))
    to.lower(body, places)
    n += len(body.outputs)
    sizes = []
    for k, (dtype, workspace, elements) in enumerate(to.workspaces):
        head.append(f"{dtype} *restrict {workspace} = p[{n + k}];")
        sizes.append(elements * SIZES[dtype])
    head += [f"{text} = 0;" for text in to.growing]
    if to.gives_up:
        head.append(f"int {BEYOND} = 0;")
    tables = [text for _, text in to.tables.values()]
    tail = [f"free({text.split()[1][1:]});" for text in to.growing if "*" in text]
    nests, calls = with_functions(to.blocks[0].lines, to.types, name)
    lines = [f"  {line}" for line in [*head, *tables, *calls, *tail]]
    threads = ", int64_t threads" if to.parts else ""
    end = [f"  return {BEYOND if to.gives_up else 0};", "}"]
    source = "\n".join([*to.parts, *nests, f"static int {name}(void **p{threads}) {{", *lines, *end])
    if source.count("\n") > LONGEST:
        raise NoC(f"{source.count(chr(10)):,} lines of C")
    parts, grows = bool(to.parts), bool(to.growing)
    return KernelFunction(renumbered(source), tuple(sizes), _work(body), parts, grows, may_lie_in(body, to))


def _length(body: Graph) -> int:
    return sum(1 + sum(_length(inner) for _, inner in node.graphs) for node in body.nodes)


def _work(body: Graph) -> int:
    total = 0
    for node in body.nodes:
        loop = loop_of(node)
        if loop is not None:
            total += (loop.length if loop.length >= 0 else MANY) * _work(loop.body)
        elif node.prim in FORMULAS:
            total += work_of_formula(node)
        elif (text := text_of(node)) is not None:
            total += text.work * max(count(v) for v in (*node.inputs, *node.outputs))
    return total
