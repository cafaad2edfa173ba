"""checkpoint: Graph → Graph in which a loop that saves residuals and the loop that reads them become sweeps.

The pass runs after all differentiation and after every rewrite that may change a rounding, so that results stay bitwise
equal. The residuals of the first loop are computed again, step by step, from the states that it kept. Draws and calls
of host functions are not repeated: their results are saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import LoopNode, loop_of
from ...ir.rewrite import Env, rebuild, walk, with_bodies, with_nodes
from ...ir.structure import Layout
from ...ops.structural.flags import picked
from ...ops.structural.open_sweep import open_sweep
from ...ops.structural.state_key import decided_by_operands
from ...ops.structural.sweep import sweep
from ...ops.structural.unsweep import unsweep
from ..inline import body_in_place, inline_into
from ..prune import prune
from .across import across, in_tail, of_tail
from .loop_parts import Again, Taped, taken_apart
from .placement import Placement, place, place_open


def checkpoint(graph: Graph, count: bool = False) -> Graph:
    """Rewrite every loop with a memory plan, also in bodies; ``count`` adds calls that count steps."""
    if not limited(graph):
        return graph
    return _Rewriter(_divided(_opened(graph), partial(checkpoint, count=count)), count).rewritten()


def run_again(graph: Graph) -> Graph:
    """The graph whose adjoint sweeps leave kept states that are inputs as they are, so that it can run again.

    The same holds in bodies that take such states: a loop inside keeps the states of the last step until then, too.
    """
    given = set(graph.inputs)

    def leaving(node: Node) -> Node:
        if not any(v in given for v in node.inputs if v.aval.steps is not None):
            return node
        node = with_bodies(node, run_again)
        return replace(node, attrs={**node.attrs, "again": True}) if node.prim is unsweep else node

    return with_nodes(graph, map(leaving, graph.nodes))


def limited(graph: Graph) -> bool:
    """Whether any loop in the graph has a memory plan and saves residuals."""
    return bool(graph.nested) and any(map(_limited, walk(graph)))


def keeping_all(graph: Graph) -> Iterator[Node]:
    """The loops of a treated graph that keep all residuals in spite of their plans."""
    return filter(_limited, walk(graph))


def _limited(node: Node) -> bool:
    loop = loop_of(node) if node.prim.structure is not None else None
    return loop is not None and loop.plan not in (None, ("everything",)) and loop.stacks != [] and loop.length != 0


def _opened(graph: Graph) -> Graph:
    """The graph with the bodies of calls that residuals pass through in place of these calls."""
    while any(map(_passing_stacks, graph.nodes)):
        graph = rebuild(graph, _copied_in)
    return graph


def _copied_in(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
    body = _passing_stacks(node)
    if body is None:
        return None
    return inline_into(b, of_tail(body) if in_tail(node) else body, [env[v] for v in node.inputs])


def _passing_stacks(node: Node) -> Graph | None:
    """The body of a call if residuals pass through it, else None."""
    stacks = any(v.aval.steps is not None for v in (*node.inputs, *node.outputs))
    return body_in_place(node) if stacks else None


def _readers(graph: Graph, loop: LoopNode) -> list[LoopNode]:
    """The loops that read the residuals of a loop step by step; none if anything else reads them."""
    stacks = loop.stacks
    readers: list[LoopNode] = []
    if any(s in graph.outputs for s in stacks):
        return []
    for node in dict.fromkeys(node for s in stacks for node in graph.uses.get(s, ())):
        reader = loop_of(node)
        if reader is None or reader.condition is not None or reader.length != loop.length:
            return []
        consts, carry, _ = reader.layout.operands(reader.operands)
        if any(s in (*consts, *carry) for s in stacks):
            return []
        readers.append(reader)
    return readers


def _divided(graph: Graph, treat: Callable[[Graph], Graph]) -> Graph:
    """Treat loops in the bodies of two loops without a plan, of which the second reads residuals of the first."""
    pairs: dict[Node, tuple[LoopNode, LoopNode]] = {}
    second: set[Node] = set()
    for node in graph.nodes:
        loop = loop_of(node)
        if loop is not None and loop.length and not _limited(node) and limited(loop.body):
            readers = _readers(graph, loop)
            if len(readers) == 1 and readers[0].node not in second:
                pairs[node] = loop, readers[0]
                second.add(readers[0].node)
    if not pairs:
        return graph
    b = Builder()
    env = dict(zip(graph.inputs, b.share_inputs(graph), strict=True))
    tails: dict[Node, tuple[LoopNode, Graph, list[Value], list[Symbol]]] = {}
    for node in graph.nodes:
        b.where, b.replica = node.where, node.replica
        if node in pairs:
            loop, reader = pairs[node]
            outs, tail, xs, stacks = _heads(loop, reader, treat, b, env)
            env.update(zip(outs[0], outs[1], strict=True))
            tails[reader.node] = reader, tail, xs, stacks
        elif node in tails:
            reader, tail, xs, stacks = tails[node]
            consts, carry, _ = reader.layout.operands(reader.operands)
            given = [*(env[v] for v in (*consts, *carry, *xs)), *stacks]
            env.update(zip(node.outputs, _same_loop(b, reader, tail, given, env), strict=True))
        else:
            env.update(zip(node.outputs, b.copy_node(node, [env[v].value for v in node.inputs]), strict=True))
    return b.graph(graph.name, [env[v] for v in graph.outputs])


def _heads(
    loop: LoopNode, reader: LoopNode, treat: Callable[[Graph], Graph], b: Builder, env: Env
) -> tuple[tuple[list[Value], list[Symbol]], Graph, list[Value], list[Symbol]]:
    """Emit the first loop of a pair: its results; then the reader's body, its other xs, and its residuals."""
    body, there = loop.body, reader.body
    made = dict(zip(loop.node.outputs, body.outputs, strict=True))
    xs = reader.layout.operands(reader.operands)[2]
    x_in = reader.layout.operands(there.inputs)[2]
    from_here = [x in loop.stacks for x in xs]
    rest = [not f for f in from_here]
    used = picked(xs, from_here)
    own = [v for v in loop.node.outputs if v not in used]
    head = Graph(body.name, body.inputs, body.nodes, (*(made[v] for v in own), *(made[v] for v in used)))
    at = len(there.inputs) - len(used)
    inputs = (*there.inputs[: -len(xs)], *picked(x_in, rest), *picked(x_in, from_here))
    tail = Graph(there.name, inputs, there.nodes, there.outputs)
    head, tail = across(head, len(own), tail, at, treat)
    flat = _same_loop(b, loop, head, [env[v] for v in loop.operands], env)
    return (own, flat[: len(own)]), tail, picked(xs, rest), flat[len(own) :]


def _same_loop(b: Builder, loop: LoopNode, body: Graph, given: Sequence[Symbol], env: Env) -> list[Symbol]:
    """Emit the loop with another body and without a plan; its results."""
    found = loop.remade(b, body, given, None if loop.count is None else env[loop.count])
    return [x for group in found for x in group]


class _Rewriter:
    """Walks one graph; loops with a memory plan become sweeps where their readers allow it."""

    def __init__(self, graph: Graph, count: bool) -> None:
        self.graph, self.count = graph, count
        self.treat = partial(checkpoint, count=count)
        self.b = Builder()
        self.env = dict(zip(graph.inputs, self.b.share_inputs(graph), strict=True))
        self.loops: dict[Node, Taped] = {}
        self.read: dict[Node, tuple[Taped, LoopNode]] = {}  # by reader
        # By reader: its first step back, and the values that a sweep left to it.
        self.kept: dict[Node, tuple[Graph | None, list[Symbol]]] = {}
        for node in graph.nodes:
            loop = loop_of(node) if _limited(node) else None
            readers = [] if loop is None else _readers(graph, loop)
            if loop is not None and readers and not any(r.node in self.read for r in readers):
                self.loops[node] = taken_apart(loop, readers)
                self.read.update({r.node: (self.loops[node], r) for r in readers})

    def rewritten(self) -> Graph:
        """The whole graph."""
        for node in self.graph.nodes:
            self.b.where, self.b.replica = node.where, node.replica
            if node in self.loops:
                self._loop(self.loops[node])
            elif node in self.read:
                self._reader(*self.read[node])
            else:
                outs = self.b.copy_node(with_bodies(node, self.treat), [self.env[v].value for v in node.inputs])
                self.env.update(zip(node.outputs, outs, strict=True))
        return prune(self.b.graph(self.graph.name, [self.env[v] for v in self.graph.outputs]))

    def _given(self, values: Sequence[Value]) -> list[Symbol]:
        return [self.env[v] for v in values]

    def _loop(self, loop: Taped) -> None:
        """Emit the loop itself: a sweep that keeps states, or a plain loop if no reader goes back."""
        whole, inputs = loop.whole, self._given(loop.whole.node.inputs)
        carry, arrays, _ = loop.parts.results(whole.node.outputs)
        back = [reader for other, reader in self.read.values() if other is loop and self._goes_back(loop, reader)]
        if back and whole.length > 0:
            results = self._sweep(loop, back[0], loop.step, loop.tape, len(arrays), inputs)
        elif back:
            results = self._open_sweep(loop, back[0], loop.step, inputs, whole.condition)
        else:
            results = _same_loop(self.b, whole, self.treat(loop.step), self._given(whole.operands), self.env)
        self.env.update(zip((*carry, *arrays, *loop.once), results, strict=True))

    def _goes_back(self, loop: Taped, reader: LoopNode) -> bool:
        return bool(loop.kept) and reader.reverse != loop.whole.reverse

    def _open_sweep(
        self, loop: Taped, reader: LoopNode, step: Graph, given: Sequence[Symbol], cond: Graph | None
    ) -> list[Symbol]:
        """Emit a sweep whose number of steps is found at run time; its results without the states that it keeps."""
        parts, room = loop.parts, place_open(_plan(loop))[0]
        attrs = {
            "carry": parts.carry,
            "consts": parts.consts,
            "count": self.count,
            "kept": tuple(loop.kept),
            "lists": len(step.outputs) - parts.carry,
            "reverse": loop.whole.reverse,
            "room": room,
            "step": self.treat(step),
            **({} if cond is None else {"cond": cond}),
        }
        hints = [*(v.hint for v in step.outputs), *_names(loop)]
        found = self.b.emit(open_sweep, [x.value for x in given], attrs, hints)
        self.kept[reader.node] = None, found[len(step.outputs) :]
        return found[: len(step.outputs)]

    def _sweep(
        self, loop: Taped, reader: LoopNode, step: Graph, tape: Graph, arrays: int, given: Sequence[Symbol]
    ) -> list[Symbol]:
        """Emit a sweep for a reader; its results without the values that it keeps."""
        parts = loop.parts
        first = Again(loop, reader).first()
        outs = len(step.outputs)
        if limited(tape):
            at = len(Again(loop, reader).consts)
            tape, first = across(tape, outs, first, at, self.treat)
        plan = _placed(loop)
        attrs = {
            "arrays": arrays,
            "carry": parts.carry,
            "consts": parts.consts,
            "count": self.count,
            "forth": plan.forth,
            "kept": tuple(loop.kept),
            "length": loop.whole.length,
            "lists": outs - parts.carry - arrays,
            "reverse": loop.whole.reverse,
            "slots": plan.slots,
            "step": self.treat(step),
            "tape": tape,
        }
        if plan.disk is not None:
            directory, resume = plan.disk
            attrs["disk"] = (directory, resume and attrs["lists"] == 0 and decided_by_operands(tape))
        if plan.mixed:
            attrs["mixed"] = True
        also = [*([] if plan.disk is None else ["disk"]), *(["tapes"] if plan.mixed else [])]
        hints = [*(v.hint for v in step.outputs), *_names(loop), *also, *(v.hint for v in tape.outputs[outs:])]
        found = self.b.emit(sweep, [x.value for x in given], attrs, hints)
        self.kept[reader.node] = first, found[outs:]
        return found[:outs]

    def _reader(self, loop: Taped, reader: LoopNode) -> None:
        """Emit a loop that reads residuals, with code that computes them again."""
        again, n = Again(loop, reader), loop.whole.length
        count = None if reader.count is None else self.env[reader.count]
        consts, carry, xs = (self._given(values) for values in (again.consts, again.carry, again.xs))
        if not self._goes_back(loop, reader):
            states = [self.env[again.f_carry[k]] for k in loop.kept]
            wide = Layout(len(consts), len(states) + len(carry), again.parts.arrays)
            given = [*consts, *states, *carry, *xs]
            found = reader.remade(self.b, self.treat(again.along()), given, count, layout=wide)
            results = [*found[0][len(states) :], *found[1], *found[2]]
        else:
            if reader.node not in self.kept:
                self._sweep_again(loop, reader)
            first, left = self.kept[reader.node]
            plan = _placed(loop) if n > 0 else None
            also = 0 if plan is None else (plan.disk is not None) + plan.mixed
            attrs = {
                "advance": self.treat(again.advance()),
                "again": False,
                "arrays": again.parts.arrays,
                "back": self.treat(again.back()),
                "carry": again.parts.carry,
                "consts": len(consts),
                "count": self.count,
                "kept": len(loop.kept),
                "length": n,
                "residuals": len(left) - len(loop.kept) - also,
                "reverse": loop.whole.reverse,
                "way": place_open(_plan(loop))[1] if plan is None else plan.way,
                **({} if plan is None else {"first": first, "forth": plan.forth, "disk": plan.disk is not None}),
                **({"retape": again.retape()} if plan is not None and plan.mixed else {}),
            }
            given = [*([] if count is None else [count]), *consts, *left, *carry, *xs]
            results = self.b.emit(unsweep, [x.value for x in given], attrs, [v.hint for v in reader.node.outputs])
        self.env.update(zip(reader.node.outputs, results, strict=True))

    def _sweep_again(self, loop: Taped, reader: LoopNode) -> None:
        """Run the steps once more for a further reader."""
        k, inputs = loop.parts.carry, loop.again.inputs
        step = prune(Graph(loop.again.name, inputs, loop.again.nodes, loop.again.outputs[:k]))
        own = [*loop.whole.operands, *loop.once]
        if reader.count is None:
            self._sweep(loop, reader, step, loop.again, 0, self._given(own))
        else:  # by now the number of steps is known
            self._open_sweep(loop, reader, step, self._given([reader.count, *own]), None)


def _plan(loop: Taped) -> tuple[Any, ...]:
    """The memory plan of a loop that was taken apart; such a loop has a plan."""
    assert loop.whole.plan is not None
    return loop.whole.plan


def _placed(loop: Taped) -> Placement:
    """The schedule of a loop; it keeps residuals of single steps only if no loop inside has a plan of its own."""
    memory, n = _plan(loop), loop.whole.length
    if not limited(loop.tape):
        return place(memory, n, _weight(loop, neighbours=memory[0] == "periodic"))
    return place(("snapshots", memory[1]) if memory[0] == "mixed" else memory, n)


def _weight(loop: Taped, *, neighbours: bool) -> int:
    """The size of the residuals of one step, in states; ``neighbours`` says that adjacent steps keep theirs, too."""
    c_in, k_in, x_in = loop.parts.operands(loop.tape.inputs)
    residuals = set(loop.tape.outputs[len(loop.step.outputs) :]).difference(c_in, x_in)
    if neighbours:  # the state at the end of a step is the state at the begin of the next
        ends = loop.parts.results(loop.tape.outputs)[0]
        residuals -= {k for k, end in zip(k_in, ends, strict=True) if end in residuals}
    state: int = sum(k_in[k].aval.nbytes for k in loop.kept)
    return max(-(-sum(v.aval.nbytes for v in residuals) // max(state, 1)), 1)


def _names(loop: Taped) -> list[str]:
    """Names of the dictionaries of kept states."""
    carry = loop.parts.operands(loop.step.inputs)[1]
    return [f"{carry[k].hint or 'state'}_at" for k in loop.kept]
