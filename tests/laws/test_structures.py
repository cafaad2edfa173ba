"""Every structural primitive of the registry is made as it declares, on every sample and in checkpointed programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy.plain_numbers.regions import with_numbers
from retrograd.ir import Graph, Node
from retrograd.ir.loop_node import loop_of
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.structure import Body, Group, Runs, Structure
from retrograd.passes.fuse import Policy, fuse
from tests.support.samples import SAMPLES
from tests.support.structures import as_declared, remade, structural_nodes

from .test_planted_faults import planted

STRUCTURAL = sorted(name for name, prim in REGISTRY.items() if prim.structure is not None)
PLANS = [rg.Snapshots(1), rg.Snapshots(3, mixed=True), rg.Periodic(2), rg.Log(), None]
W, H, XS = (np.random.default_rng(3).normal(size=shape) for shape in ((3, 3), (3,), (7, 3)))


def recurrent(plan: Any, *, reverse: bool) -> Callable[..., Any]:
    def run(w: Any, h: Any, xs: Any) -> Any:
        last, ys = rg.scan(lambda c, x: (np.tanh(w @ c + x), c * x), h, xs, reverse=reverse, memory=plan)
        return np.sum(last**2) + np.sum(np.sin(ys))

    return run


def growing(plan: Any) -> Callable[..., Any]:
    def run(w: Any, h: Any, xs: Any) -> Any:
        last = rg.while_loop(lambda c: np.sum(c**2) < 50.0, lambda c: 1.5 * c + np.sin(w @ c), h, memory=plan)
        return np.sum(last * xs[0])

    return run


def counted(plan: Any) -> Callable[..., Any]:
    def run(w: Any, h: Any, xs: Any) -> Any:
        n = np.sum(xs > -9.0)
        return np.sum(rg.fori_loop(n, lambda i, c: np.tanh(w @ c) + 0.1 * i, h, memory=plan))

    return run


@cache
def nodes_of(name: str) -> list[tuple[Node, list[Any]]]:
    """Nodes of a primitive with operands: from its samples, else from programs that the last passes have changed."""
    found = [(sample.graph().nodes[-1], sample.operands()) for sample in SAMPLES.get(name, ())]
    if name == "exit_if":  # of which no sample leaves
        found += [(replace(node, attrs={**node.attrs, "expected": True}), args) for node, args in found]
    return found or [(node, args) for node, args in checkpointed() if node.prim.name == name]


@cache
def checkpointed() -> list[tuple[Node, list[Any]]]:
    """The structural nodes of checkpointed gradients."""
    programs = [recurrent(plan, reverse=reverse) for plan in PLANS for reverse in (False, True)]
    programs += [program(plan) for plan in (rg.Snapshots(2), rg.Log(), None) for program in (growing, counted)]
    graphs = [rg.grad(program, argnums=(0, 1)).graph(W, 0.1 * H, XS) for program in programs]
    found = [found for graph in graphs for found in structural_nodes(graph, [W, 0.1 * H, XS])]
    found += structural_nodes(with_numbers(rg.grad(on_numbers).graph(0.5)), [0.5])
    return [*found, *structural_nodes(fuse(rg.grad(growing(None)).graph(W, H, XS), SINES), [W, H, XS])]


SINES = Policy(takes=lambda node: node.prim.name in {"sin", "cos", "mul", "add"})


def on_numbers(x: Any) -> Any:
    """A loop over a number."""
    return rg.fori_loop(0, 30, lambda k, y: np.sin(x * y) + k / (1.0 + y * y), x)


@pytest.mark.parametrize("name", STRUCTURAL)
def test_a_primitive_does_with_its_bodies_what_it_declares(name: str) -> None:
    nodes = nodes_of(name)
    assert nodes, f"no sample and no program has a {name}"
    for node, args in nodes:
        as_declared(node, args)


def test_a_checkpointed_program_does_what_it_declares() -> None:
    for node, args in checkpointed():
        as_declared(node, args)


@pytest.mark.parametrize("name", [name for name in STRUCTURAL if REGISTRY[name].structure.loop])
def test_a_loop_made_again_from_its_parts_is_the_same(name: str) -> None:
    for node, args in nodes_of(name):
        remade(node, args)


def test_who_has_graphs_declares_a_structure_and_nobody_else_does() -> None:
    with_graphs = {name for name, own in SAMPLES.items() for s in own for x in s.attrs.values() if isinstance(x, Graph)}
    assert with_graphs <= set(STRUCTURAL)
    assert {name for name in STRUCTURAL if not REGISTRY[name].final} == with_graphs


def test_loops_are_those_that_take_plans() -> None:
    assert {name for name in STRUCTURAL if REGISTRY[name].structure.loop} == {"scan", "while_loop"}
    assert all(loop_of(node) is None for node, _ in nodes_of("call"))


def other(name: str, /, **fields: Any) -> Structure:
    """The structure of a primitive with other fields; of its first body those that a Body has."""
    structure = REGISTRY[name].structure
    of_body = {field: x for field, x in fields.items() if field in Body.__dataclass_fields__}
    rest = {field: x for field, x in fields.items() if field not in of_body}
    first, *more = structure.bodies
    return (
        replace(structure, bodies=(replace(first, **of_body), *more), **rest) if of_body else replace(structure, **rest)
    )


def faults() -> Iterator[tuple[str, Structure]]:
    scan, custom = REGISTRY["scan"].structure, REGISTRY["custom_jvp"].structure
    yield "scan", other("scan", takes=("carry", "consts", "xs"))
    yield "scan", other("scan", takes=("consts", "xs", "carry"))
    yield "scan", other("scan", gives=("arrays", "carry", "stacks"))
    yield "scan", other("scan", times=lambda a: a["length"] + 1)
    yield "scan", other("scan", runs=Runs.ONCE)
    yield "scan", replace(scan, operands=scan.operands[1:])
    yield "scan", other("scan", results=(Group("carry", "carry"), Group("stacks", "arrays"), Group("arrays")))
    yield "while_loop", replace(REGISTRY["while_loop"].structure, bodies=REGISTRY["while_loop"].structure.bodies[:1])
    yield "while_loop", other("while_loop", takes=("carry", "consts"))
    yield "cond", other("cond", operands=(Group("consts"), Group("choice", 1)))
    yield "cond", other("cond", name="case")
    yield "call", other("call", runs=Runs.NEVER)
    yield "call", other("call", name="function")
    yield "region", other("region", runs=Runs.AT_MOST_ONCE)
    yield "custom_jvp", replace(custom, bodies=(custom.bodies[0], Body("rule", Runs.ONCE)))
    yield "custom_vjp", replace(REGISTRY["custom_vjp"].structure, bodies=custom.bodies)
    yield "exit_if", other("exit_if", runs=Runs.NEVER)
    yield "ode", other("ode", takes=("consts", "time", "state"))
    yield "sweep", other("sweep", times="length")
    yield "sweep", other("sweep", takes=("carry", "consts", "xs"))
    yield "unsweep", other("unsweep", times="length")
    yield "open_sweep", other("open_sweep", takes=("carry", "consts", "xs"))


@pytest.mark.parametrize(("name", "structure"), list(faults()))
def test_a_wrong_structure_breaks_the_law(name: str, structure: Structure) -> None:
    assert not breaks(name)
    with planted(name, structure=structure):
        assert breaks(name)


def once_more(evaluate: Any, node: Node, *args: Any) -> Any:
    body = node.prim.structure.body(node)
    evaluate(body, args)
    return evaluate(body, args)


def both(evaluate: Any, node: Node, choice: Any, *args: Any) -> Any:
    found = [evaluate(branch, args) for branch in node.prim.structure.branches(node)]
    return found[min(max(int(choice), 0), len(found) - 1)]


def fresh_starts(evaluate: Any, node: Node, *args: Any) -> Any:
    """A loop whose every step begins with the first carry."""
    loop = loop_of(node)
    run, k = RUN, loop.layout.consts + loop.layout.carry
    return run(lambda graph, given: evaluate(graph, [*args[:k], *given[k:]]), node, *args)


RUN = REGISTRY["scan"].run


@pytest.mark.parametrize(("name", "run"), [("call", once_more), ("cond", both), ("scan", fresh_starts)])
def test_a_run_that_does_other_things_with_bodies_breaks_the_law(name: str, run: Any) -> None:
    with planted(name, run=run):
        assert breaks(name)


def breaks(name: str) -> bool:
    """Whether some node of a primitive breaks the law."""
    for node, args in nodes_of(name):
        try:
            as_declared(node, args)
        except Exception:  # noqa: BLE001 - a fault may show in any way
            return True
    return False
