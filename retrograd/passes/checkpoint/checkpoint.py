"""checkpoint: Graph → Graph in which a loop that saves residuals and the loop that reads them become sweeps.

It comes after all differentiation and after every rewrite that may change a rounding, so that results are bit for
bit those of the graph as it was. What the first loop saved is computed again, step by step, from states that it kept;
draws and calls of host functions are not repeated, their results are saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.printer import to_text
from ...ir.rewrite import Env, rebuild, walk, with_bodies, with_nodes
from ...ops.structural.call import call
from ...ops.structural.flags import picked
from ...ops.structural.loops import Layout, make_scan
from ...ops.structural.open_sweep import open_sweep
from ...ops.structural.scan import scan
from ...ops.structural.sweep import sweep
from ...ops.structural.unsweep import unsweep
from ...ops.structural.while_loop import make_while, while_loop
from ..inline import inline_into
from ..prune import prune
from .across import across, in_tail, of_tail
from .loop_parts import Again, Taped, is_loop, layout, length, operands, taken_apart
from .placement import Placement, place, place_open


def checkpoint(graph: Graph, count: bool = False) -> Graph:
    """Rewrite every loop that has a memory plan, those inside bodies too; ``count`` adds calls that count steps."""
    if not limited(graph):
        return graph
    return _Rewriter(_divided(_opened(graph), partial(checkpoint, count=count)), count).rewritten()


def run_again(graph: Graph) -> Graph:
    """The graph in which ways back that start from inputs leave the kept states as they are, for the next run.

    So do those in bodies which get such states: of a loop inside, those of the last step are kept until then, too.
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
    return any(map(_limited, walk(graph)))


def keeping_all(graph: Graph) -> Iterator[Node]:
    """The loops of a treated graph that keep all residuals in spite of their plans."""
    return filter(_limited, walk(graph))


def _limited(node: Node) -> bool:
    planned = is_loop(node) and node.attrs.get("memory") not in (None, ("everything",))
    return planned and _stacks(node) != [] and length(node) != 0


def _stacks(node: Node) -> list[Value]:
    return layout(node).results(node.outputs)[2]


def _opened(graph: Graph) -> Graph:
    """The graph with calls that residuals pass through copied in."""
    while any(map(_passes_stacks, graph.nodes)):
        graph = rebuild(graph, _copied_in)
    return graph


def _copied_in(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
    if not _passes_stacks(node):
        return None
    body: Graph = node.attrs["body"]
    return inline_into(b, of_tail(body) if in_tail(node) else body, [env[v] for v in node.inputs])


def _passes_stacks(node: Node) -> bool:
    return node.prim is call and any(v.aval.steps is not None for v in (*node.inputs, *node.outputs))


def _readers(graph: Graph, loop: Node) -> list[Node]:
    """The scans that read the residuals of a loop step by step; none if anything else reads them."""
    stacks = _stacks(loop)
    readers = list(dict.fromkeys(node for s in stacks for node in graph.uses.get(s, ())))
    if any(s in graph.outputs for s in stacks):
        return []
    for node in readers:
        if node.prim is not scan or length(node) != length(loop):
            return []
        consts, carry, _ = layout(node).operands(operands(node))
        if any(s in (*consts, *carry) for s in stacks):
            return []
    return readers


def _divided(graph: Graph, treat: Callable[[Graph], Graph]) -> Graph:
    """Treat loops inside the bodies of two loops without a plan, of which the second reads the first's residuals."""
    pairs: dict[Node, Node] = {}
    for node in graph.nodes:
        if is_loop(node) and length(node) and not _limited(node) and limited(node.attrs["body"]):
            readers = _readers(graph, node)
            if len(readers) == 1 and readers[0] not in pairs.values():
                pairs[node] = readers[0]
    if not pairs:
        return graph
    b = Builder()
    env = dict(zip(graph.inputs, b.share_inputs(graph), strict=True))
    tails: dict[Node, tuple[Graph, list[Value], list[Symbol]]] = {}
    for node in graph.nodes:
        b.where, b.replica = node.where, node.replica
        if node in pairs:
            outs, tail, xs, stacks = _heads(node, pairs[node], treat, b, env)
            env.update(zip(outs[0], outs[1], strict=True))
            tails[pairs[node]] = tail, xs, stacks
        elif node in tails:
            tail, xs, stacks = tails[node]
            consts, carry, _ = layout(node).operands(operands(node))
            given = [*(env[v] for v in (*consts, *carry, *xs)), *stacks]
            env.update(zip(node.outputs, _same_loop(b, node, tail, given, env), strict=True))
        else:
            env.update(zip(node.outputs, b.copy_node(node, [env[v].value for v in node.inputs]), strict=True))
    return b.graph(graph.name, [env[v] for v in graph.outputs])


def _heads(
    node: Node, reader: Node, treat: Callable[[Graph], Graph], b: Builder, env: Env
) -> tuple[tuple[list[Value], list[Symbol]], Graph, list[Value], list[Symbol]]:
    """The first loop of a pair: its results, and the reader's body, its other xs and its residuals."""
    body, there = node.attrs["body"], reader.attrs["body"]
    stacks = _stacks(node)
    made = dict(zip(node.outputs, body.outputs, strict=True))
    xs = layout(reader).operands(operands(reader))[2]
    x_in = layout(reader).operands(there.inputs)[2]
    from_here = [x in stacks for x in xs]
    rest = [not f for f in from_here]
    used = picked(xs, from_here)
    own = [v for v in node.outputs if v not in used]
    head = Graph(body.name, body.inputs, body.nodes, (*(made[v] for v in own), *(made[v] for v in used)))
    at = len(there.inputs) - len(used)
    inputs = (*there.inputs[: -len(xs)], *picked(x_in, rest), *picked(x_in, from_here))
    tail = Graph(there.name, inputs, there.nodes, there.outputs)
    head, tail = across(head, len(own), tail, at, treat)
    flat = _same_loop(b, node, head, [env[v] for v in operands(node)], env)
    return (own, flat[: len(own)]), tail, picked(xs, rest), flat[len(own) :]


def _same_loop(b: Builder, node: Node, body: Graph, given: Sequence[Symbol], env: Env) -> list[Symbol]:
    """A loop like ``node`` with another body, and without a plan; its results."""
    if node.prim is while_loop:
        found = make_while(b, node.attrs["cond"], body, layout(node), given)
    else:
        n, count = length(node), env[node.inputs[0]] if length(node) < 0 else None
        found = make_scan(b, body, layout(node), given, n, node.attrs["reverse"], count)
    return [x for group in found for x in group]


class _Rewriter:
    """Walks one graph; loops with a memory plan become sweeps where their readers allow it."""

    def __init__(self, graph: Graph, count: bool) -> None:
        self.graph, self.count = graph, count
        self.treat = partial(checkpoint, count=count)
        self.b = Builder()
        self.env = dict(zip(graph.inputs, self.b.share_inputs(graph), strict=True))
        self.loops: dict[Node, Taped] = {}
        self.read: dict[Node, Taped] = {}
        # By reader: its first step back, and what a sweep left it.
        self.kept: dict[Node, tuple[Graph | None, list[Symbol]]] = {}
        for node in graph.nodes:
            readers = _readers(graph, node) if _limited(node) else []
            if readers and not any(r in self.read for r in readers):
                self.loops[node] = taken_apart(node, readers)
                self.read.update(dict.fromkeys(readers, self.loops[node]))

    def rewritten(self) -> Graph:
        """The whole graph."""
        for node in self.graph.nodes:
            self.b.where, self.b.replica = node.where, node.replica
            if node in self.loops:
                self._loop(self.loops[node])
            elif node in self.read:
                self._reader(self.read[node], node)
            else:
                outs = self.b.copy_node(with_bodies(node, self.treat), [self.env[v].value for v in node.inputs])
                self.env.update(zip(node.outputs, outs, strict=True))
        return prune(self.b.graph(self.graph.name, [self.env[v] for v in self.graph.outputs]))

    def _given(self, values: Sequence[Value]) -> list[Symbol]:
        return [self.env[v] for v in values]

    def _loop(self, loop: Taped) -> None:
        """The loop itself: a sweep that keeps states, or a plain loop if no reader goes back."""
        node, parts = loop.node, loop.parts
        carry, arrays, _ = parts.results(node.outputs)
        back = [r for r, other in self.read.items() if other is loop and self._goes_back(loop, r)]
        if back and length(node) > 0:
            results = self._sweep(loop, back[0], loop.step, loop.tape, len(arrays), self._given(node.inputs))
        elif back:
            results = self._open_sweep(loop, back[0], loop.step, self._given(node.inputs), node.attrs.get("cond"))
        else:
            results = _same_loop(self.b, node, self.treat(loop.step), self._given(operands(node)), self.env)
        self.env.update(zip((*carry, *arrays, *loop.once), results, strict=True))

    def _goes_back(self, loop: Taped, reader: Node) -> bool:
        return bool(loop.kept) and reader.attrs["reverse"] != loop.node.attrs.get("reverse", False)

    def _open_sweep(
        self, loop: Taped, reader: Node, step: Graph, given: Sequence[Symbol], cond: Graph | None
    ) -> list[Symbol]:
        """Emit a sweep of a number of steps that is found at run time; its results without the states that it keeps."""
        parts, room = loop.parts, place_open(loop.node.attrs["memory"])[0]
        attrs = {
            "carry": parts.carry,
            "consts": parts.consts,
            "count": self.count,
            "kept": tuple(loop.kept),
            "lists": len(step.outputs) - parts.carry,
            "reverse": loop.node.attrs.get("reverse", False),
            "room": room,
            "step": self.treat(step),
            **({} if cond is None else {"cond": cond}),
        }
        hints = [*(v.hint for v in step.outputs), *_names(loop)]
        found = self.b.emit(open_sweep, [x.value for x in given], attrs, hints)
        self.kept[reader] = None, found[len(step.outputs) :]
        return found[: len(step.outputs)]

    def _sweep(
        self, loop: Taped, reader: Node, step: Graph, tape: Graph, arrays: int, given: Sequence[Symbol]
    ) -> list[Symbol]:
        """Emit a sweep for a reader; its results without what it keeps."""
        node, parts = loop.node, loop.parts
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
            "length": node.attrs["length"],
            "lists": outs - parts.carry - arrays,
            "reverse": node.attrs["reverse"],
            "slots": plan.slots,
            "step": self.treat(step),
            "tape": tape,
        }
        if plan.disk is not None:
            directory, resume = plan.disk
            text = to_text(step) + str(node.attrs["memory"]) if resume and attrs["lists"] == 0 else ""
            attrs["disk"] = (directory, text and blake2b(text.encode(), digest_size=12).hexdigest())
        if plan.mixed:
            attrs["mixed"] = True
        also = [*([] if plan.disk is None else ["disk"]), *(["tapes"] if plan.mixed else [])]
        hints = [*(v.hint for v in step.outputs), *_names(loop), *also, *(v.hint for v in tape.outputs[outs:])]
        found = self.b.emit(sweep, [x.value for x in given], attrs, hints)
        self.kept[reader] = first, found[outs:]
        return found[:outs]

    def _reader(self, loop: Taped, reader: Node) -> None:
        """A loop that reads residuals, which are computed again."""
        again, n, reverse = Again(loop, reader), length(loop.node), loop.node.attrs.get("reverse", False)
        count = [self.env[reader.inputs[0]]] if n < 0 else []
        consts, carry, xs = (self._given(values) for values in (again.consts, again.carry, again.xs))
        if not self._goes_back(loop, reader):
            states = [self.env[again.f_carry[k]] for k in loop.kept]
            wide = Layout(len(consts), len(states) + len(carry), again.parts.arrays)
            given = [*consts, *states, *carry, *xs]
            found = make_scan(
                self.b, self.treat(again.along()), wide, given, n, reader.attrs["reverse"], count[0] if count else None
            )
            results = [*found[0][len(states) :], *found[1], *found[2]]
        else:
            if reader not in self.kept:
                self._sweep_again(loop, reader)
            first, left = self.kept[reader]
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
                "reverse": reverse,
                "way": place_open(loop.node.attrs["memory"])[1] if plan is None else plan.way,
                **({} if plan is None else {"first": first, "forth": plan.forth, "disk": plan.disk is not None}),
                **({"retape": again.retape()} if plan is not None and plan.mixed else {}),
            }
            given = [*count, *consts, *left, *carry, *xs]
            results = self.b.emit(unsweep, [x.value for x in given], attrs, [v.hint for v in reader.outputs])
        self.env.update(zip(reader.outputs, results, strict=True))

    def _sweep_again(self, loop: Taped, reader: Node) -> None:
        """The steps run once more for a further reader."""
        k, inputs = loop.parts.carry, loop.again.inputs
        step = prune(Graph(loop.again.name, inputs, loop.again.nodes, loop.again.outputs[:k]))
        if length(loop.node) > 0:
            self._sweep(loop, reader, step, loop.again, 0, self._given([*loop.node.inputs, *loop.once]))
        else:  # how many steps there are is known by now
            given = self._given([reader.inputs[0], *operands(loop.node), *loop.once])
            self._open_sweep(loop, reader, step, given, None)


def _placed(loop: Taped) -> Placement:
    """The schedule of a loop; residuals of single steps are kept only where no loop inside has a plan of its own."""
    memory, n = loop.node.attrs["memory"], length(loop.node)
    if not limited(loop.tape):
        return place(memory, n, _weight(loop, neighbours=memory[0] == "periodic"))
    return place(("snapshots", memory[1]) if memory[0] == "mixed" else memory, n)


def _weight(loop: Taped, *, neighbours: bool) -> int:
    """How many states the residuals of one step weigh, beside ``neighbours`` that keep theirs or alone."""
    c_in, k_in, x_in = loop.parts.operands(loop.tape.inputs)
    residuals = set(loop.tape.outputs[len(loop.step.outputs) :]).difference(c_in, x_in)
    if neighbours:  # a state that a step ends in is the one that the next step begins with
        ends = loop.parts.results(loop.tape.outputs)[0]
        residuals -= {k for k, end in zip(k_in, ends, strict=True) if end in residuals}
    state: int = sum(k_in[k].aval.nbytes for k in loop.kept)
    return max(-(-sum(v.aval.nbytes for v in residuals) // max(state, 1)), 1)


def _names(loop: Taped) -> list[str]:
    """Names of the dictionaries of kept states."""
    carry = loop.parts.operands(loop.step.inputs)[1]
    return [f"{carry[k].hint or 'state'}_at" for k in loop.kept]
