"""Every primitive of the registry under every law, on every sample."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import chain, combinations, product

import pytest

from retrograd.ir.primitive import REGISTRY
from retrograd.ops.batching import elementwise
from tests.support import graphs, laws, values
from tests.support.samples import SAMPLES, Sample

over_primitives = pytest.mark.parametrize("name", sorted(name for name, prim in REGISTRY.items() if not prim.final))
HELPED = sorted(
    name
    for name, prim in REGISTRY.items()
    if prim.batch is elementwise and (prim.numpy.helper or prim.numpy.ufunc.startswith("scipy."))
)
over_helped = pytest.mark.parametrize("name", HELPED)
# Decisions of Python, which lanes take together or not at all: tests/control has their laws.
DECISIONS = {"draw", "draws", "exit_if", "flatnonzero", "guard"}
MAPPED = sorted(name for name, prim in REGISTRY.items() if not prim.final and name not in DECISIONS)
over_mapped = pytest.mark.parametrize("name", MAPPED)


def each_sample(name: str, law: Callable[[Sample], None]) -> None:
    """Run a law on all samples of a primitive, and raise all failures together."""
    faults = []
    for sample in SAMPLES.get(name, ()):
        try:
            law(sample)
        except Exception as fault:  # noqa: BLE001 - collected and raised below
            fault.add_note(f"sample: {sample}")
            faults.append(fault)
    if faults:
        raise ExceptionGroup(f"{len(faults)} of {len(SAMPLES[name])} samples of {name} break the law", faults)


def test_every_primitive_has_samples() -> None:
    """Those that other tests declare do not count."""
    program = "import retrograd.ir.primitive as p; print(*(k for k, prim in p.REGISTRY.items() if not prim.final))"
    names = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    missing = [name for name in names if not SAMPLES.get(name)]
    assert names
    assert not missing, "declare(name, ...) is missing in tests/support/samples.py"


@over_primitives
def test_shapes_dtypes_and_kinds_are_those_of_numpy(name: str) -> None:
    each_sample(name, lambda s: laws.shape_rule(s.graph(), s.operands()))


@over_primitives
def test_results_share_memory_as_declared(name: str) -> None:
    each_sample(name, laws.aliasing)


@pytest.mark.sampled(2)
@over_primitives
def test_generated_code_and_text_keep_the_value(name: str) -> None:
    def law(sample: Sample) -> None:
        graph, args = sample.graph(), sample.operands()
        for g, found in [(graph, args), *laws.derivative_graphs(graph, args)]:
            laws.round_trip(g, found)
            laws.emission(g, found)

    each_sample(name, law)


@over_helped
def test_generated_code_keeps_dtypes_beside_constants(name: str) -> None:
    """Constants are plain numbers in the code, whose dtypes must not decide."""

    def law(sample: Sample) -> None:
        graph, args = sample.graph(), sample.operands()
        if any(v.aval.size == 0 for v in graph.inputs):
            return
        for fixed in chain(*(combinations(range(len(args)), k) for k in range(1, len(args)))):
            beside, rest = graphs.with_constants(graph, args, fixed)
            for g, found in [(beside, rest), *laws.derivative_graphs(beside, rest)]:
                laws.emission(g, found)

    each_sample(name, law)


@over_primitives
def test_declared_linearity_holds(name: str) -> None:
    each_sample(name, laws.linearity)


@pytest.mark.sampled(3)
@over_primitives
def test_first_and_second_derivatives_hold_in_both_modes(name: str) -> None:
    def law(sample: Sample) -> None:
        graph, args = sample.graph(), sample.operands()
        laws.derivatives(graph, args, order=2, smooth=sample.smooth)
        every = graphs.inexact(graph)
        for active in product((False, True), repeat=len(args)):
            if sum(active) < sum(every) and all(not on or can for on, can in zip(active, every, strict=True)):
                laws.derivatives(graph, args, active=active, smooth=sample.smooth)

    each_sample(name, law)


@over_mapped
def test_lanes_are_a_loop(name: str) -> None:
    def law(sample: Sample) -> None:
        graph, n = sample.graph(), len(sample.draws)
        cases = [sample.operands(seed) for seed in range(3)]
        for flags in product((False, True), repeat=n):
            if any(flags):
                laws.lanes(graph, flags, cases)
        if n:
            everything = [True] * n
            laws.lanes(graph, everything, cases[:1])
            none, _ = graphs.batched(graph, 0, everything)
            laws.shape_rule(none, [values.no_lanes(x) for x in cases[0]])

    each_sample(name, law)


@pytest.mark.sampled(3)
@over_mapped
def test_lanes_of_lanes_are_loops_and_have_derivatives(name: str) -> None:
    def law(sample: Sample) -> None:
        n = len(sample.draws)
        if not n:
            return
        cases = [sample.operands(seed) for seed in range(4)]
        for flags in {(True,) * n, tuple(i % 2 == 0 for i in range(n))}:
            wide, _ = graphs.batched(sample.graph(), 2, flags)
            pairs = [laws.joined(cases[k : k + 2], flags) for k in (0, 2)]
            laws.lanes(wide, [True] * n, pairs)
            laws.derivatives(wide, pairs[0], smooth=sample.smooth)

    each_sample(name, law)


@pytest.mark.sampled(3)
@over_mapped
def test_lanes_of_derivatives_are_loops(name: str) -> None:
    def law(sample: Sample) -> None:
        graph, n = sample.graph(), len(sample.draws)
        cases = [sample.operands(seed) for seed in range(2)]
        here, there = (laws.derivative_graphs(graph, case, seed) for seed, case in enumerate(cases))
        for (derivative, args), (_, others) in zip(here, there, strict=True):
            both = [args, others]
            point = [i < n for i in range(len(args))]
            for flags in ([True] * len(args), point, [not on for on in point]):
                if any(flags):
                    laws.lanes(derivative, flags, both)

    each_sample(name, law)
