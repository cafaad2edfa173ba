"""Functions on numbers only: they run on Python numbers, and again on NumPy scalars if these raise."""

from __future__ import annotations

import numpy as np

from ....ir.graph import Graph, Node, Value
from ....ir.loop_node import loop_of
from ....ir.plan import Plan
from ....ir.texts import literal
from ....ops.structural.on_numbers import assemble, elements, nested, numbers
from ..bodies import BodyEmitter
from ..emitter import Scope, emits
from .number_texts import FAILURES, text_of


class NumberEmitter(BodyEmitter):
    """Writes one function of the type of its numbers, the module that has their functions, and the numbers."""

    def __init__(self, plan: Plan, scope: Scope) -> None:
        super().__init__(plan, scope)
        self.type, self.functions = self.fresh("number"), self.fresh("m")
        self.rows: dict[str, str] = {}  # what gives the numbers in arrays that loops go over, by their names

    def written(self) -> tuple[list[str], list[str]]:
        order = self.plan.order
        names = [self.assign(v) for v in order.inputs]
        for name, value in zip(names, order.inputs, strict=True):
            if value.aval.shape:
                if value.aval.ndim == 1 and _only_gone_over(order, value):
                    self.rows[name] = name
                    self.line(f"{name} = {name}.data if {self.type} is float else {name}")
            elif value.aval.steps is not None and value.aval.dtype == np.float64:
                self.line(f"{name} = list(map({self.type}, {name}))")
            elif _is_float64(value):
                self.line(f"{name} = {self.type}({name})")
        results = self.graph(self.plan)
        self.where = None
        pairs = zip(results, order.outputs, strict=True)
        floats = [x for name, value in pairs for x in self._numbers_in(name, value, order.producer)]
        if floats:
            with self.block(f"if {self.type} is float and not {self.functions}.isfinite({' + '.join(floats)}):"):
                self.line('raise ArithmeticError("a result is not finite")')
        return [self.type, self.functions, *names], results

    def _numbers_in(self, name: str, value: Value, made: dict[Value, Node]) -> list[str]:
        """The floats that a result consists of; none for what loops collect."""
        if value.aval.dtype != np.float64 or value.aval.steps is not None:
            return []
        if not value.aval.shape:
            return [name]
        source = made.get(value)
        numbers = source.inputs if source is not None and source.prim is assemble else ()
        return [self.name[v] for v in numbers if v in self.name]

    def _expression(self, node: Node, operands: list[str]) -> str:
        if node.prim.name == "cast":
            return self._cast(node, operands[0])
        if node.prim is assemble:
            return super()._expression(node, operands)
        if _is_float64(node.out):
            operands = [
                f"{self.type}({x})" if wanting else x for x, wanting in zip(operands, _to_numbers(node), strict=True)
            ]
        return text_of(node).format(*operands, number=self.type, m=self.functions)

    def _cast(self, node: Node, operand: str) -> str:
        before, after = node.inputs[0].aval, node.out.aval
        if _is_float64(node.out) and not _is_float64(node.inputs[0]):
            return f"{self.type}({operand})"
        if after.kind != "python" and before.dtype == after.dtype:
            return operand
        kinds = {"f": "float", "b": "bool", "i": "int"}
        return f"{kinds[after.dtype.kind]}({operand})"

    def _named(self, graph: Graph, consts: dict[Value, Node]) -> set[Value]:
        return set()  # they are numbers

    def _ref(self, value: Value, consts: dict[Value, Node]) -> str:
        if value in self.name or value not in consts:
            return super()._ref(value, consts)
        text = literal(consts[value].attrs["value"])
        return f"{self.type}({text})" if _is_float64(value) else text

    def _operand(self, node: Node, i: int, consts: dict[Value, Node]) -> str:
        value = node.inputs[i]
        if value in consts:
            strong = any(v.aval.kind == "scalar" and _is_float64(v) and v not in consts for v in node.inputs)
            return literal(consts[value].attrs["value"]) if strong and node.prim.numpy.op else self._ref(value, consts)
        name = self.name[value]
        if value.aval.ndim == 1 and loop_of(node) is not None:
            return self._row(name)
        return name

    def _row(self, name: str) -> str:
        """The name of what gives the numbers in an array one by one: a memory view gives Python's."""
        rows = self.rows.get(name) or self.fresh(name)
        if name not in self.rows:
            self.line(f"{rows} = {name}.data if {self.type} is float else {name}")
        if self.depth == 1:  # else it may not be made wherever it is read
            self.rows[name] = rows
        return rows


def _only_gone_over(graph: Graph, value: Value) -> bool:
    """Whether loops alone read an array."""
    return all(loop_of(node) is not None for node in graph.uses.get(value, ()))


@emits(elements)
def _elements(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    """Write names for the numbers in an array, of the type of its numbers where the function has one."""
    names = nested(outs, node.inputs[0].aval.shape)[1:-1]
    way = (
        f"{ins[0]}.tolist() if {emitter.type} is float else {ins[0]}" if isinstance(emitter, NumberEmitter) else ins[0]
    )
    emitter.line(f"{names} = {way}")


@emits(numbers)
def _numbers(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    scope, (body,) = emitter.scope, (body for _, body in node.graphs)
    if body not in scope.by_graph:
        scope.by_graph[body] = scope.add(emitter.plan.bodies[body], f"{body.name}_numbers", NumberEmitter).name
    name = scope.by_graph[body]
    scope.modules["math"] = None
    results = ", ".join(outs)
    every = all(_is_float64(v) and v.aval.kind == "scalar" for v in node.outputs)
    with emitter.block("try:"):
        call = f"{name}({', '.join(['float', 'math', *ins])})"
        if every:
            call = f"np.float64({call})" if len(outs) == 1 else f"map(np.float64, {call})"
        emitter.line(f"{results} = {call}")
    with emitter.block(f"except {FAILURES}:"):
        emitter.line(f"{results} = {name}({', '.join(['np.float64', 'np', *ins])})")
    order = emitter.plan.order
    for out, value, aval in ((out, v, v.aval) for out, v in zip(outs, node.outputs, strict=True)):
        if aval.steps is not None:
            if aval.kind != "python" and not _read_as_numbers(order, value):
                emitter.line(f"{out} = list(map({literal(aval.dtype)}, {out}))")
        elif aval.kind == "array" and not aval.shape:
            emitter.line(f"{out} = np.asarray({out})")
        elif aval.kind == "scalar" and not every:
            emitter.line(f"{out} = {literal(aval.dtype)}({out})")


def _read_as_numbers(graph: Graph, collected: Value) -> bool:
    """Whether only code on Python numbers reads a list: other code needs NumPy's, which divide by zero and wrap."""
    return collected not in graph.outputs and all(node.prim is numbers for node in graph.uses.get(collected, ()))


def _to_numbers(node: Node) -> list[bool]:
    """Which operands become numbers, so that the result is one: bools and Python's floats are none.

    A function may hand an operand on. An operator takes them beside a number, and its first operand where all are such.
    """
    others = [not _is_float64(v) for v in node.inputs]
    if node.prim.name == "where":
        others[0] = False  # the mask
    elif "numbers" not in node.prim.texts:
        others = [all(others) and k == 0 for k in range(len(others))]
    return others


def _is_float64(value: Value) -> bool:
    """Whether a value is one of NumPy's numbers that Python's floats stand for."""
    aval = value.aval
    return aval.kind != "python" and not aval.shape and aval.steps is None and aval.dtype == np.float64
