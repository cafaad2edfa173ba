"""Emit a graph and its plan as lines of NumPy: three-address statements with the user's names and lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...ir.embedded import EMBEDDED
from ...ir.graph import Graph, Node, Value, filled
from ...ir.plan import Plan
from ...ir.primitive import Primitive
from ...ir.texts import literal
from ...where import Where
from ..names import Names

NATIVE = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(bool), np.dtype(np.complex128))


class Line(NamedTuple):
    """A line of source: its nesting, its text, and the user's line behind it."""

    depth: int
    text: str
    where: Where | None


@dataclass(frozen=True)
class Definition:
    """One function of a generated module."""

    name: str
    parameters: list[str]
    lines: list[Line]
    results: list[str] | None  # None: it returns nothing


Emit = Callable[[Any, Node, list[str], list[str]], None]
EMITTERS: dict[Primitive, Emit] = {}  # for structural primitives, which need more than an expression


def emits(*prims: Primitive) -> Callable[[Emit], Emit]:
    """Register a writer of statements for primitives; it gets a node and the names of operands and results."""

    def add(emit: Emit) -> Emit:
        EMITTERS.update(dict.fromkeys(prims, emit))
        return emit

    return add


class Scope:
    """A module under construction: its functions, called ones first, and the names at its top."""

    def __init__(self, emitter: type[Emitter] | None = None) -> None:
        self.emitter = emitter or EMITTER_CLASSES[-1]
        self.names = Names(EMBEDDED)
        self.functions: list[Definition] = []
        self.helpers: dict[str, None] = {}
        self.arrays: dict[str, Any] = {}  # of known numbers
        self.calls_back = False  # whether it calls functions of the program that made it
        self.modules: dict[str, None] = {}  # of Python's, which it imports
        self.by_graph: dict[Graph, str] = {}  # the functions of bodies
        self.open: list[Names] = []  # the names of the functions under construction

    def add(self, plan: Plan, hint: str, make: Callable[[Plan, Scope], Emitter] | None = None) -> Definition:
        """Emit the function of a plan, after the functions that it calls."""
        name = self.names.fresh(hint, "function")
        while any(name in names.used for names in self.open):  # a variable there would hide the function
            name = self.names.fresh(hint, "function")
        for names in self.open:
            names.used.add(name)
        emitter = (make or self.emitter)(plan, self)
        self.open.append(emitter.names)
        parameters, results = emitter.written()
        self.open.pop()
        self.functions.append(Definition(name, parameters, emitter.lines, results))
        return self.functions[-1]


class Emitter:
    """Writes one function. Names are local: other functions may use them again, except for names of functions."""

    def __init__(self, plan: Plan, scope: Scope) -> None:
        self.plan = plan
        self.scope = scope
        self.names = Names(scope.names.used)
        self.name: dict[Value, str] = {}
        self.unmade: set[Value] = set()  # values that have a name, but that no statement makes
        self.lines: list[Line] = []
        self.depth = 1
        self.where: Where | None = None

    def line(self, text: str) -> None:
        """Add a statement."""
        self.lines.append(Line(self.depth, text, self.where))

    def fresh(self, hint: str | None = None) -> str:
        """A name that is used nowhere else."""
        return self.names.fresh(hint)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Nest the statements inside below ``header``."""
        self.line(header)
        self.depth += 1
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.line("pass")
        self.depth -= 1

    def assign(self, value: Value) -> str:
        """A new name for a value."""
        self.name[value] = self.names.fresh(value.hint)
        return self.name[value]

    def written(self) -> tuple[list[str], list[str] | None]:
        """Emit the function: its parameters, and the expressions of its results."""
        return [self.assign(v) for v in self.plan.order.inputs], self.graph(self.plan)

    def graph(self, plan: Plan) -> list[str]:
        """Emit all nodes; the expressions of the results."""
        graph = plan.order
        consts = {node.out: node for node in graph.nodes if node.prim.name == "const"}
        named = self._named(graph, consts)
        for node, dead in zip(graph.nodes, plan.dies, strict=True):
            self.where = node.where
            if node.prim.name != "const" or node.out in named:
                self._node(node, consts)
            if dead:
                self.free(dead)
        return [self._ref(v, consts) for v in graph.outputs]

    def _node(self, node: Node, consts: dict[Value, Node]) -> None:
        prim, text = node.prim, node.prim.numpy
        if text.helper:
            self.scope.helpers[text.helper] = None
        operands = [self._operand(node, i, consts) for i in range(len(node.inputs))]
        emit = EMITTERS.get(prim)
        if emit is not None:
            emit(self, node, operands, [self.assign(v) for v in node.outputs])
        elif text.statement:
            self._write(node, operands, consts)
        elif prim.multi:
            names = [self.assign(v) for v in node.outputs]
            self.line(f"{', '.join(names)} = {text.render(node, operands)}")
        else:
            result = self._expression(node, operands)
            self.line(f"{self.assign(node.out)} = {result}")

    def storage(self, out: Value) -> str | None:
        """The name of the storage that a value is computed into; None if a new array is made."""
        holder = self.plan.into.get(out)
        return None if holder is None else self.name[holder]

    def _expression(self, node: Node, operands: list[str]) -> str:
        text, out = node.prim.numpy, node.out
        storage = self.storage(out)
        if storage is not None:
            call = f"{text.ufunc}({', '.join(operands)})" if text.ufunc else text.render(node, operands)
            return f"{call[:-1]}, out={storage})"
        if node.prim.name == "pow" and operands[0].startswith("-"):
            operands = [f"({operands[0]})", *operands[1:]]
        if node.prim.name == "owned":
            return self._copied(operands[0], node.inputs[0])
        code = text.render(node, operands, text.op)
        return self._copied(code, out) if out in self.plan.copies else code

    def _copied(self, code: str, value: Value) -> str:
        """A copy that lies in memory as a value does."""
        return f"{code}.copy()" if value.aval.ndim < 2 or value in self.plan.ordered else f'{code}.copy("K")'

    def _write(self, node: Node, operands: list[str], consts: dict[Value, Node]) -> None:
        prim, out = node.prim, node.out
        base = node.inputs[prim.writes or 0]
        if out in self.plan.into:
            self.name[out] = self.name[base]
        else:
            source, text = consts.get(base), self._copied(operands[0], base)
            if source is not None:
                text = source.prim.numpy.render(source, [])
            self.line(f"{self.assign(out)} = {text}")
        operands[prim.writes or 0] = self.name[out]
        self.line(prim.numpy.render(node, operands, prim.numpy.statement))

    def _named(self, graph: Graph, consts: dict[Value, Node]) -> set[Value]:
        """The constant arrays that must be arrays somewhere, and not only numbers."""
        arrays = {v for v in consts if v.aval.kind == "array"}
        named = arrays.intersection(graph.outputs)
        for node in graph.nodes if arrays else ():
            if not arrays.isdisjoint(node.inputs):
                found = [i for i, v in enumerate(node.inputs) if v in arrays and v not in named]
                named.update(node.inputs[i] for i in found if not self._literal_here(node, i, consts))
        return named

    def free(self, values: Sequence[Value]) -> None:
        """Forget the names of values, which may free their storage."""
        made = [v for v in values if v in self.name and v not in self.unmade]
        names = dict.fromkeys(self.name[v] for v in made)
        if names:
            self.line(f"del {', '.join(names)}")

    def _ref(self, value: Value, consts: dict[Value, Node]) -> str:
        if value in self.name:
            return self.name[value]
        node = consts[value]
        return node.prim.numpy.render(node, [])

    def _operand(self, node: Node, i: int, consts: dict[Value, Node]) -> str:
        value = node.inputs[i]
        source = consts.get(value)
        if source is None:
            return self.name[value]
        if i == node.prim.writes and node.prim.numpy.statement:
            return ""
        if not self._literal_here(node, i, consts):
            return self._ref(value, consts)
        text, dtype, numpy = literal(source.attrs["value"]), value.aval.dtype, node.prim.numpy
        strong = [v.aval.dtype for v in node.inputs if v.aval.kind != "python" and not filled(v, consts)]
        weak = value.aval.kind == "python" or strong or not numpy.op  # beside Python numbers alone, it decides
        follows = not (numpy.helper or numpy.ufunc.startswith("scipy."))  # these may take a number to be a double
        if (dtype in strong and follows) or (dtype in NATIVE and weak):
            return text
        return f"{literal(dtype)}({text})"

    def _literal_here(self, node: Node, i: int, consts: dict[Value, Node]) -> bool:
        """Whether a constant operand can be written as a plain number that NumPy broadcasts."""
        prim, text, value = node.prim, node.prim.numpy, node.inputs[i]
        source = consts[value]
        if isinstance(source.attrs["value"], tuple):
            return False
        if text.statement:
            return i == prim.writes or i in text.loose
        if not text.broadcasts and i not in text.loose:
            return False
        if value.aval.kind != "array":
            return True
        numbers = [filled(v, consts) for v in node.inputs]
        others = {v.aval.shape for v, number in zip(node.inputs, numbers, strict=True) if not number}
        shape = node.out.aval.shape
        return i != numbers.index(True) or others == {shape} or np.broadcast_shapes(*others) == shape


EMITTER_CLASSES = [Emitter]  # the last writes functions: one that knows more than those before it
