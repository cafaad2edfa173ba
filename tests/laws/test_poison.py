"""Storage is dead when the plan says so: with every threshold at zero and the dead filled with nan, no bit changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrograd.codegen.numpy import bodies, emitter
from retrograd.codegen.numpy.absorb import absorb
from retrograd.codegen.numpy.module import emit_module
from retrograd.ir import Aval, Graph, Value, evaluate
from retrograd.ir.builder import Builder
from retrograd.ir.modules import scope_for
from retrograd.ir.plan import Plan
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.target import Module
from retrograd.passes import place_buffers as placing
from retrograd.passes.differentiate import value_and_grad
from retrograd.passes.inline import inline_into
from retrograd.passes.linearize import linearize
from tests.passes.test_random_storage import ARGUMENTS, loop_program, program
from tests.support import graphs, laws, values
from tests.support.graphs import op
from tests.support.random_graphs import Example, random_graphs
from tests.support.samples import SAMPLES
from tests.support.stages import pipeline

seeds = st.integers(0, 2**32)
POISON = {"f": np.nan, "c": complex(np.nan, np.nan), "i": 77, "u": 77, "b": True}


class Poisoning(bodies.BodyEmitter):
    """An emitter that fills dead storage in place of forgetting it."""

    def free(self, names: Any) -> None:
        for value in names:
            if value in self.name:
                self.line(f"poison({self.name[value]})")


def poison(x: Any) -> None:
    if isinstance(x, np.ndarray) and x.flags.writeable:
        x[...] = POISON[x.dtype.kind]


def poisoned(graph: Graph) -> Plan:
    """The plan of a graph in which what dies after a node is all storage that nothing holds any longer."""
    placer = placing._BufferPlacer(graph, ordered=True)
    plan = placer.plan()
    born: dict[Value, list[Value]] = {}
    dies: list[tuple[Value, ...]] = []
    for i, node in enumerate(graph.nodes):
        for out in node.outputs:
            born.setdefault(placer.root(out), []).append(out)
        touched = dict.fromkeys(placer.root(v) for v in (*node.inputs, *node.outputs))
        dead = [r for r in touched if r in placer.owned and all(plan.last_use[v] <= i for v in born.get(r, [r]))]
        dies.append(tuple(born[r][-1] for r in dead))
    return replace(plan, dies=tuple(dies), bodies={body: poisoned(body) for body in plan.bodies})


def poisoning_source(graph: Graph) -> Module:
    """Generated code that reuses storage of any size and poisons what is dead."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placing, "REUSE", 0)
        patch.setattr(placing, "POOL", 0)
        patch.setattr(emitter, "EMITTER_CLASSES", [Poisoning])
        return emit_module(poisoned(absorb(graph)))


def run(graph: Graph, args: list[Any]) -> list[Any]:
    module = poisoning_source(graph)
    scope: dict[str, Any] = {**scope_for(module.source), "poison": poison}
    exec(module.source, scope)
    found = scope[module.function](*args)
    return [found] if len(graph.outputs) == 1 else list(found)


def assert_unharmed(graph: Graph, args: list[Any]) -> None:
    graph = pipeline(graph)
    kept = values.snapshot(args)
    with np.errstate(all="ignore"):
        expected = evaluate(graph, args)
        found = run(graph, args)
    values.assert_same_bits(found, list(expected))
    values.assert_same_bits(args, kept)


@given(seeds)
def test_programs_with_views_and_writes(seed: int) -> None:
    graph = program(seed)
    assert_unharmed(graph, [ARGUMENTS[v.aval.shape] for v in graph.inputs])


@given(seeds)
def test_gradients_of_loops(seed: int) -> None:
    graph = loop_program(seed)
    gradient = value_and_grad(graph, [True, True], linearize(graph, [True, True], nan_safe=False))
    assert_unharmed(gradient, [ARGUMENTS[v.aval.shape] for v in graph.inputs])


@given(random_graphs())
def test_small_programs_and_their_derivatives(example: Example) -> None:
    assert_unharmed(example.graph, example.args)
    for derivative, args in laws.derivative_graphs(example.graph, example.args):
        assert_unharmed(derivative, args)


# What calls functions of the user's, and what gives a range, which is no storage.
LEFT_OUT = {"host", "step_numbers"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", sorted(n for n, prim in REGISTRY.items() if not prim.effect and n not in LEFT_OUT))
def test_every_primitive_and_its_derivatives(name: str) -> None:
    for sample in SAMPLES.get(name, ()):
        graph, args = around(sample.graph()), sample.operands()
        if any(v.aval.dtype.kind == "c" and v.aval.size == 1 for v in graph.inputs):
            continue  # NumPy multiplies single complex numbers in place with another rounding
        assert_unharmed(graph, args)
        for derivative, more in laws.derivative_graphs(graph, args):
            assert_unharmed(derivative, more)


def around(graph: Graph) -> Graph:
    """The graph on copies that nothing else holds, so that the first of its operations may take their storage."""
    b = Builder()
    operands = []
    for x in b.inputs_like(graph.inputs):
        b.replica += 1
        own = x.aval.kind == "array" and x.aval.steps is None
        operands.append(b.emit(REGISTRY["copy"], (x.value,), {})[0] if own else x)
    b.replica = 0
    return b.graph(graph.name, inline_into(b, graph, operands))


X = Aval((8,), np.dtype(float))


def test_a_plan_that_forgets_a_reader_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.built(lambda x: op("sin", x) * op("cos", op("sin", x)), X)
    source = poisoning_source(graph).source
    assert source.count("poison(") >= 1
    args = [np.linspace(0.0, 1.0, 8)]
    assert_unharmed(graph, args)
    before = placing._BufferPlacer.__init__

    def forgetful(self: Any, graph: Graph, ordered: bool) -> None:
        before(self, graph, ordered)
        self.last[graph.nodes[0].out] = 1

    monkeypatch.setattr(placing._BufferPlacer, "__init__", forgetful)
    with pytest.raises(AssertionError):
        assert_unharmed(graph, args)
