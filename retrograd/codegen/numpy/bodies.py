"""An emitter that also writes the graphs inside nodes, inline or as functions, once or repeatedly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...ir.embedded import EMBEDDED
from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import loop_of
from ...ir.plan import Plan
from ...ir.structure import condition_of
from ...ir.texts import literal
from ...ir.types import Aval
from ...ops.shape import owned
from .emitter import EMITTER_CLASSES, Emitter, Scope
from .workspaces import LARGE, rows_of_arrays, workspaces

DEEPEST = 18


class BodyEmitter(Emitter):
    """Writes one function, and the bodies of its nodes.

    Emitters of structural primitives call ``line``, ``block``, ``fresh``, ``inline`` and ``function``.
    """

    def __init__(self, plan: Plan, scope: Scope) -> None:
        super().__init__(plan, scope)
        self.work: dict[Value, str] = {}  # storage made before a loop, by the value that first uses it
        self.at_work: set[Value] = set()
        self.states: dict[Graph, dict[Value, tuple[str, str]]] = {}  # storage, and source of the row of a step
        self.workspaces: dict[Graph, tuple[dict[Value, str], set[Value]]] = {}  # these two, for bodies that repeat
        self.named_rows: dict[Graph, dict[Value, str]] = {}  # names of rows of arrays in this step

    def function(self, body: Graph) -> str:
        """The name of the function in the module that computes ``body``; each body is emitted once."""
        plan = self.plan.bodies[body]
        given = {plan.buffer[x] for x in body.inputs}
        if any(plan.buffer[v] in given for v in plan.into):  # for a loop that owns them
            return self.scope.add(plan, body.name).name
        if body not in self.scope.by_graph:
            self.scope.by_graph[body] = self.scope.add(plan, body.name).name
        return self.scope.by_graph[body]

    def embed(self, *names: str) -> None:
        """Let the module contain embedded functions, and the functions that they call."""
        for name in names:
            self.scope.helpers.update(dict.fromkeys(EMBEDDED[name].sources))

    def dtype(self, dtype: np.dtype[Any]) -> str:
        """Source of a dtype."""
        return literal(dtype)

    def empty(self, text: str, *entries: Aval) -> str:
        """Source of an empty list or dict, given the avals of what one entry will hold."""
        return text

    def constant(self, node: Node) -> str:
        """Source of a new constant."""
        return node.prim.numpy.render(node, [])

    def shape(self, aval: Aval) -> str:
        """Source of a shape."""
        return str(aval.shape)

    def step_rows(self, value: Value) -> str:
        """Source of a new array of which each step fills a row, or of one in the workspace."""
        return self.work.get(value) or self.new(value)

    def new(self, value: Value) -> str:
        """Source of new storage."""
        return f"np.empty({self.shape(value.aval)}, {literal(value.aval.dtype)})"

    def steps(self, start: str, stop: str) -> str:
        """Source of the range of a loop over steps of which only the last state matters."""
        return f"range({start}, {stop})"

    def actions(self, node: Node, schedule: str) -> str:
        """Source of the actions that the loop of an adjoint sweep runs over."""
        return schedule

    def opened(self, node: Node, source: str) -> str:
        """Source that opens the disk on which a sweep keeps states."""
        return source

    def number(self, node: Node, name: str) -> str:
        """Source of the number of steps that a loop finds in the variable ``name``."""
        return name

    @contextmanager
    def working(self, *bodies: Graph) -> Iterator[None]:
        """Make large storage that a step needs for itself alone once, before the statements inside repeat the bodies.

        A step of one body is over before a step of another begins, so the bodies share this storage.
        """
        outer = self.workspaces
        made: dict[object, list[str]] = {}
        for body in bodies:
            names: dict[Value, str] = {}
            at_work: set[Value] = set()
            kept = self.states.get(body, {})
            free = {kind: iter(own) for kind, own in made.items()}
            for value, others in workspaces(self.plan.bodies[body]).items():
                kind = (value.aval.shape, value.aval.dtype)
                name = kept[value][0] if value in kept else next(free.get(kind, iter(())), None)
                if name is None:
                    name = self.fresh("work")
                    made.setdefault(kind, []).append(name)
                    self.line(f"{name} = {self.new(value)}")
                names[value] = name
                at_work.update(others)
            self.workspaces = {**self.workspaces, body: (names, at_work)}
        yield
        self.workspaces = outer
        if made:
            self.line(f"del {', '.join(name for own in made.values() for name in own)}")

    def name_rows(self, body: Graph, t: str) -> None:
        """Name the rows that the states of step ``t`` are computed into."""
        names, at_work = self.workspaces.get(body, ({}, set()))
        for value, (states, source) in self.states.get(body, {}).items():
            if source:
                names[value] = self.fresh("row")
                new = self.new(value) if body.producer[value].prim.multi else "None"  # loops fill what is there
                self.line(f"{names[value]} = {states}{source.format(t=t, new=new)}")
                self.named_rows.setdefault(body, {})[value] = names[value]
        self.workspaces = {**self.workspaces, body: (names, at_work)}

    def fill_rows(self, node: Node, arrays: Sequence[str], t: str) -> set[int]:
        """Let a step compute into its rows of these arrays of a loop where it can; the numbers of these arrays."""
        loop, body = loop_of(node), node.graphs[0][1]
        assert loop is not None
        found = rows_of_arrays(loop, self.plan.bodies[body])
        names, at_work = self.workspaces.get(body, ({}, set()))
        names = {**names, **{value: f"{arrays[k]}[{t}]" for value, k in found.items()}}
        self.workspaces = {**self.workspaces, body: (names, at_work)}
        return set(found.values())

    @contextmanager
    def loop(self, node: Node, arguments: Sequence[str]) -> Iterator[None]:
        """Repeat the statements inside while the condition of the node holds; one expression becomes the header."""
        at = len(self.lines)
        with self.block("while True:"):
            go = self.ask(node, arguments)
            own = self.lines[at + 1 :]
            if not own or (len(own) == 1 and own[0].text.startswith(f"{go} = ")):
                test = own[0].text.removeprefix(f"{go} = ") if own else go
                self.lines[at:] = [self.lines[at]._replace(text=f"while {test}:")]
            else:
                with self.block(f"if not {go}:"):
                    self.line("break")
            yield

    def ask(self, node: Node, arguments: Sequence[str]) -> str:
        """Emit the condition of a loop here; the name of its answer."""
        condition = condition_of(node)
        answer = self.inline(condition, arguments, bound=len(arguments))
        self.drop(answer, condition, self.plan.bodies[condition])
        return answer[0]

    def inline(self, body: Graph, arguments: Sequence[str], bound: int) -> list[str]:
        """Emit a body here; the names of its results.

        The first ``bound`` arguments are names or numbers; a further one that is not a name is assigned if the body
        uses it. Python nests at most twenty blocks: a body below that becomes a function.
        """
        if self.depth > DEEPEST:
            names = [self.fresh(v.hint) for v in body.outputs]
            self.line(f"{', '.join(names)} = {self.function(body)}({', '.join(arguments)})")
            return names
        used = {v for node in body.nodes for v in node.inputs} | set(body.outputs)
        own = [*body.inputs, *_constants(body)]  # another graph may have the same values, and other names for them
        known = {v: self.name.pop(v) for v in own if v in self.name}
        for i, (value, argument) in enumerate(zip(body.inputs, arguments, strict=True)):
            if i < bound or argument.isidentifier():
                self.name[value] = argument
            elif value in used:
                self.line(f"{self.assign(value)} = {argument}")
                self.named_rows.setdefault(body, {})[value] = self.name[value]
        outer = self.plan, self.where, self.work, self.at_work
        self.plan = self.plan.bodies[body]
        self.work, self.at_work = self.workspaces.get(body, ({}, set()))
        results = self.graph(self.plan)
        self.plan, self.where, self.work, self.at_work = outer
        for value in own:
            self.name.pop(value, None)
        self.name.update(known)
        return results

    def each(self, names: Sequence[str], sources: Sequence[str]) -> None:
        """Assign each source to its name, if it is another one."""
        for name, source in zip(names, sources, strict=True):
            if name != source:
                self.line(f"{name} = {source}")

    def start(self, node: Node, names: Sequence[str], sources: Sequence[str], inits: Sequence[Value]) -> None:
        """Assign the first carries of a loop, and forget the large ones that nothing reads later."""
        self.each(names, sources)
        plan, nodes = self.plan, self.plan.order.nodes
        others = Counter(node.inputs) - Counter(inits)
        storage = {plan.buffer[v] for v in inits if _is_large(v)} - {plan.buffer.get(v) for v in others}
        last = {plan.last_use[v] for v in inits if plan.buffer.get(v) in storage}
        dead = [v for k in last if k < len(nodes) and nodes[k].outputs == node.outputs for v in plan.dies[k]]
        gone = [v for v in dead if plan.buffer[v] in storage and v not in self.at_work]
        self.free([v for v in gone if self.name[v] not in names])
        for v in gone:
            self.name.pop(v, None)

    def moved(self, names: Sequence[str], results: Sequence[str], body: Graph) -> None:
        """Assign the first results of a body to names; the storage of a large result keeps no name from the body."""
        pairs = [(n, v) for n, v in zip(names, results, strict=False) if n != v]
        if pairs:
            self.line(f"{', '.join(n for n, _ in pairs)} = {', '.join(v for _, v in pairs)}")
        self.drop(results, body, self.plan.bodies[body], names)

    def drop(self, results: Sequence[str], body: Graph, plan: Plan, names: Sequence[str] = ()) -> None:
        """Delete the names of large storage that a body was given, worked in or made, other than ``names``."""
        made = [v for node in body.nodes for v in node.outputs]
        pairs = zip(body.outputs, results, strict=True)
        large = {o: v for o, v in pairs if o in made and _is_large(o) and v.isidentifier()}
        storage = {plan.buffer[o] for o in large}
        given = {plan.buffer[x] for x in body.inputs if _is_large(x)}
        views = {v for v in made if plan.buffer.get(v) in given and v not in plan.into}
        stays = {plan.buffer[v] for v in self.states.get(body, {})}  # in memory that the whole function has
        at_work = {v for v in self.workspaces.get(body, ({}, set()))[1] if plan.buffer[v] not in stays}
        freed = {v for values in plan.dies for v in values} - at_work  # what a result was copied from
        others = freed.union(_constants(body))
        own = [v for v in made if v not in others and (plan.buffer.get(v) in storage or v in views or v in at_work)]
        rows = [name for v, name in self.named_rows.pop(body, {}).items() if _is_large(v)]
        held = dict.fromkeys([*rows, *(self.name[v] for v in own if v in self.name), *large.values()])
        gone = [name for name in held if name not in names]
        if gone:
            self.line(f"del {', '.join(gone)}")

    def assign(self, value: Value) -> str:
        """A name for a value: that of its storage if a loop works in place there, else a new one."""
        holder = self.plan.into.get(value)
        if holder is None or not self.plan.order.producer[value].prim.multi:
            return super().assign(value)
        self.name[value] = self.name[holder]
        return self.name[value]

    def _node(self, node: Node, consts: dict[Value, Node]) -> None:
        """Write a node, but no copy of what nothing else reads."""
        if node.prim is owned and node.out in self.plan.into:
            self.name[node.out] = self.name[node.inputs[0]]
        else:
            super()._node(node, consts)

    def _expression(self, node: Node, operands: list[str]) -> str:
        """Source of a result; a copy of a constant is a constant of its own."""
        source = self.plan.order.producer.get(node.inputs[0]) if node.prim is owned else None
        if source is not None and source.prim.name == "const":
            return self.constant(source)
        return super()._expression(node, operands)

    def _literal_here(self, node: Node, i: int, consts: dict[Value, Node]) -> bool:
        return node.prim is owned or super()._literal_here(node, i, consts)

    def storage(self, out: Value) -> str | None:
        """The name of the storage that a value is computed into, which may be made before a loop."""
        holder = self.plan.into.get(out)
        return self.work.get(out) if holder is None else self.name[holder]

    def free(self, values: Sequence[Value]) -> None:
        """Forget values, but no storage that the next step needs."""
        super().free([v for v in values if v not in self.at_work])


EMITTER_CLASSES.append(BodyEmitter)


def _constants(body: Graph) -> list[Value]:
    return [node.out for node in body.nodes if node.prim.name == "const"]


def _is_large(value: Value) -> bool:
    return value.aval.kind == "array" and value.aval.nbytes >= LARGE
