"""The law of structural primitives: what is declared of their bodies is what the interpreter does with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from retrograd.ir import Aval, Graph, Node, evaluate
from retrograd.ir.builder import Builder
from retrograd.ir.evaluate import Left, run_node
from retrograd.ir.loop_node import loop_of
from retrograd.ir.structure import Body, Runs, Structure
from retrograd.ops.structural.loops import step_of

from . import values

AS_THEY_ARE = ("consts",)
COLLECTED = ("arrays", "stacks", "lists")


@dataclass(frozen=True)
class Run:
    """One run of a body: what it got and what it gave, by group."""

    body: Body
    graph: Graph
    given: dict[str, list[Any]]
    found: dict[str, list[Any]]


def structural_nodes(graph: Graph, args: Sequence[Any]) -> Iterator[tuple[Node, list[Any]]]:
    """The structural nodes that run in a graph and in its bodies, each with operands of one run."""
    met: dict[Node, list[Any]] = {}

    def watch(node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
        if node.prim.structure is not None:
            met.setdefault(node, list(operands))

    evaluate(graph, args, watch)
    yield from met.items()


def as_declared(node: Node, args: Sequence[Any]) -> None:
    """Bodies, how often they run, what they get and give, and what becomes of it are as declared."""
    declared = node.prim.structure
    assert declared is not None, f"{node.prim.name} has graphs among its attributes, and declares none"
    assert sorted(map(id, _graphs(node))) == sorted(id(graph) for _, graph in declared.parts(node)), "other bodies"
    types(declared, node)
    runs, results = _observed(declared, node, args)
    numbers(declared, node, args, runs)
    operands = declared.of_operands(node, args)
    carry = operands.get("carry")
    for run in runs:
        for name in AS_THEY_ARE:
            if name in run.given:
                values.assert_same_bits(run.given[name], operands[name])
        if "carry" in run.given:
            values.assert_same_bits(run.given["carry"], carry)
        carry = run.found.get("carry", carry)
    rows(declared, node, operands, runs)
    outcome(declared, node, results, runs, carry)


def _graphs(node: Node) -> list[Graph]:
    return [graph for _, graph in node.graphs]


def _observed(declared: Structure, node: Node, args: Sequence[Any]) -> tuple[list[Run], list[Any] | None]:
    """The runs of declared bodies, and the results; None where the node leaves the graph."""
    body_of = {graph: body for body, graph in declared.parts(node)}
    runs: list[Run] = []

    def run(graph: Graph, given: Sequence[Any]) -> tuple[Any, ...]:
        found = evaluate(graph, given)
        if graph in body_of:
            body = body_of[graph]
            inputs, outputs = declared.of_inputs(node, body, list(given)), declared.of_outputs(node, body, list(found))
            runs.append(Run(body, graph, inputs, outputs))
        return found

    try:
        return runs, list(run_node(node, args, run))
    except Left:
        return runs, None


def types(declared: Structure, node: Node) -> None:
    """Inputs and outputs of bodies have the types of the operands and results that they are fed by and feed."""
    for body, graph in declared.parts(node):
        if body.runs is Runs.NEVER:
            continue
        inputs = declared.of_inputs(node, body, graph.inputs)
        names = [name for name, own in inputs.items() for _ in own]
        for name, value, at in zip(names, graph.inputs, declared.sources(node, body, graph), strict=True):
            if at is not None:
                aval = node.inputs[at].aval
                assert value.aval == (step_of(aval) if name == "xs" else aval), f"{body.name} takes {name}: {value}"
        outputs = declared.of_outputs(node, body, graph.outputs)
        names = [name for name, own in outputs.items() for _ in own]
        for name, value, at in zip(names, graph.outputs, declared.targets(node, body, graph), strict=True):
            if at is not None:
                aval = node.outputs[at].aval
                assert value.aval == aval or (name in COLLECTED and _collects(aval, value.aval)), f"{body.name}: {name}"


def _collects(many: Aval, one: Aval) -> bool:
    """Whether results of a step are collected in a value of another type."""
    steps = step_of(many) if many.steps is not None or many.shape else None
    return steps is not None and (steps.shape, steps.dtype, steps.steps) == (one.shape, one.dtype, one.steps)


def numbers(declared: Structure, node: Node, args: Sequence[Any], runs: Sequence[Run]) -> None:
    """Each body runs as often as is declared."""
    count = {graph: sum(run.graph is graph for run in runs) for _, graph in declared.parts(node)}
    for body, graph in declared.parts(node):
        times = declared.times(node, body)
        assert times < 0 or count[graph] == times, f"{body.name} runs {count[graph]} times, not {times}"
        assert body.runs is not Runs.AT_MOST_ONCE or count[graph] <= 1
    if branches := declared.branches(node):
        (choice,) = declared.of_operands(node, args)["choice"]
        assert [run.graph for run in runs] == [branches[min(max(int(choice), 0), len(branches) - 1)]]
    if (condition := declared.condition(node)) is not None:
        steps = sum("carry" in run.found for run in runs)
        assert count[condition] == steps + 1
        decisions = [run.found["decision"] for run in runs if run.graph is condition]
        assert [bool(go) for (go,) in decisions] == [True] * steps + [False]
    given = declared.of_operands(node, args).get("count")
    loop = loop_of(node)
    if given and loop is not None:
        assert count[loop.body] == max(int(given[0]), 0)


def rows(declared: Structure, node: Node, operands: dict[str, list[Any]], runs: Sequence[Run]) -> None:
    """Each step gets its row of every operand that goes step by step; steps of a loop come in its order."""
    loop = loop_of(node)
    xs = operands.get("xs", [])
    if not xs:
        return
    for k, run in enumerate(run for run in runs if "xs" in run.given):
        n = len(xs[0])
        at = [n - 1 - k if loop.reverse else k] if loop is not None else range(n)
        assert any(_same(run.given["xs"], [x[t] for x in xs]) for t in at), f"step {k} gets other rows"


def outcome(
    declared: Structure, node: Node, results: list[Any] | None, runs: Sequence[Run], carry: list[Any] | None
) -> None:
    """Results are what bodies gave."""
    if results is None:
        assert [run.body.runs for run in runs] == [Runs.AT_MOST_ONCE]
        return
    assert not any(run.body.runs is Runs.AT_MOST_ONCE for run in runs)
    by_group, loop = declared.of_results(node, results), loop_of(node)
    avals = declared.of_results(node, [v.aval for v in node.outputs])
    for name in set(by_group) & {"carry", "results", *COLLECTED}:
        values.assert_has_avals(by_group[name], avals[name])
    if "carry" in by_group:
        assert carry is not None
        values.assert_same_bits(by_group["carry"], carry)
    gave = [run for run in runs if "results" in run.found]
    if gave:
        values.assert_same_bits(by_group["results"], gave[-1].found["results"])
    for name in COLLECTED:
        steps = [run.found[name] for run in runs if name in run.found]
        for k, store in enumerate(by_group.get(name, ())):
            assert len(store) == len(steps)
            orders = [1 if not loop.reverse else -1] if loop is not None else [1, -1]
            assert any(_same(list(store), [step[k] for step in steps[::order]]) for order in orders), f"{name} {k}"


def _same(found: list[Any], expected: list[Any]) -> bool:
    try:
        values.assert_same_bits(found, expected)
    except AssertionError:
        return False
    return True


def remade(node: Node, args: Sequence[Any]) -> None:
    """A loop that is made again from its own parts is the same node."""
    loop = loop_of(node)
    if loop is None:
        return
    b = Builder()
    given = b.inputs_like(node.inputs)
    count, rest = (None, given) if loop.count is None else (given[0], given[1:])
    carry, arrays, stacks = loop.remade(b, loop.body, rest, count, plan=loop.plan)
    graph = b.graph("again", [*carry, *arrays, *stacks])
    (again,) = graph.nodes
    assert (again.prim, dict(again.attrs)) == (node.prim, dict(node.attrs))
    assert [v.aval for v in again.outputs] == [v.aval for v in node.outputs]
    assert loop.node.inputs == ((loop.count, *loop.operands) if loop.count is not None else loop.operands)
    assert loop.stacks == loop.layout.results(node.outputs)[2]
    values.assert_same_bits(list(evaluate(graph, args)), list(run_node(node, args)))
