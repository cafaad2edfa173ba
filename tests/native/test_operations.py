"""Each operation that C has computes what NumPy computes, on samples and on special values, within what it declares."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from retrograd.codegen.native.c_texts import text_of
from retrograd.codegen.native.decided_places import WRITES
from retrograd.codegen.native.element_form import PRODUCTS
from retrograd.codegen.native.elements import VIEWS
from retrograd.ir import Aval, Graph, evaluate
from retrograd.ir.primitive import REGISTRY
from tests.support import values
from tests.support.graphs import one_node
from tests.support.native import as_kernels, far_off, needs_compiler, results, taken, units
from tests.support.samples import SAMPLES

pytestmark = needs_compiler
DESCRIBED = sorted(name for name, prim in REGISTRY.items() if "native" in prim.texts)
ELEMENTWISE = [name for name in DESCRIBED if REGISTRY[name].texts["native"].c]
FLOATS = [np.dtype(np.float64), np.dtype(np.float32)]
SUMS = 64.0  # units that a sum of a sample may be off
ANGLES = 1e13  # up to which sines are C's
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.2e-308, 1e300, -1e300, 709.7]


def samples() -> Iterator[tuple[str, Graph, list[Any]]]:
    for name in sorted({*DESCRIBED, *VIEWS, *PRODUCTS, *WRITES}):
        for sample in SAMPLES.get(name, ()):
            if taken(sample.graph()):
                yield str(sample), sample.graph(), sample.operands()


def test_how_much_is_in_c() -> None:
    folds = [name for name in DESCRIBED if REGISTRY[name].texts["native"].fold]
    assert len(ELEMENTWISE) >= 75
    assert len(folds) >= 8
    assert len(VIEWS) >= 18


def test_samples_have_the_values_and_types_of_numpy() -> None:
    found = list(samples())
    assert {graph.nodes[-1].prim.name for _, graph, _ in found} >= {*DESCRIBED, *VIEWS} - {"step_numbers", "subitem"}
    faults = []
    for (title, graph, args), function in zip(found, as_kernels([graph for _, graph, _ in found]), strict=True):
        text = text_of(graph.nodes[-1])
        with np.errstate(all="ignore"):
            expected = evaluate(graph, args)
        got = results(function, graph, args)
        limit = 0.0 if text is None else text.ulp if text.fold is None else SUMS
        limit = SUMS if graph.nodes[-1].prim.name in PRODUCTS else limit
        try:
            values.assert_has_avals(got, graph.out_avals)
            away = max(units(a, b) for a, b in zip(got, expected, strict=True))
            assert away <= limit, f"{away} units from NumPy, {limit} are declared"
            assert not values.shares(got, args)
        except AssertionError as fault:
            fault.add_note(title)
            faults.append(fault)
    if faults:
        raise ExceptionGroup(f"{len(faults)} samples", faults)


def special(dtype: np.dtype[Any], n: int) -> list[np.ndarray[Any, Any]]:
    """Operands that meet each special value with each other, and many more numbers."""
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        points = np.array(SPECIAL).astype(dtype)
    grid = [x.reshape(-1) for x in np.meshgrid(*[points] * n)]
    more = [rng.normal(size=1500) * 10.0 ** rng.uniform(-6, 2, 1500) for _ in range(n)]
    return [np.concatenate([a, b.astype(dtype)]) for a, b in zip(grid, more, strict=True)]


def test_special_values_are_those_of_numpy() -> None:
    cases = []
    for name in ELEMENTWISE:
        prim = REGISTRY[name]
        arity, attrs = len(SAMPLES[name][0].operands()), SAMPLES[name][0].graph().nodes[-1].attrs
        for dtype in FLOATS[: 1 + (name != "float_power")] if "f" in text_kinds(name) else ():
            operands = special(dtype, arity if name != "where" else 2)
            if REGISTRY[name].texts["native"].beyond:  # else NumPy computes the kernel
                operands = [x[~((np.abs(x) > ANGLES) & np.isfinite(x))] for x in operands]
            if name == "where":
                operands = [operands[0] > 0, *operands]
            graph = one_node(prim, [Aval(x.shape, x.dtype) for x in operands], attrs)
            if taken(graph):
                cases.append((f"{name} {dtype}", graph, operands))
    assert len(cases) > 90
    found = far_off(cases)
    assert not found, found


ATTRS: list[tuple[str, dict[str, Any]]] = [
    *(("clip", {"low": low, "high": high}) for low, high in product([-0.5, 0.25, np.inf, -np.inf, np.nan], repeat=2)),
    *(
        ("nan_to_num", {"nan": nan, "posinf": high, "neginf": low})
        for nan, high, low in product([0.0, 2.5, np.nan], [None, 1.5, np.nan], [None, -1.5, np.inf])
    ),
]


def test_special_attributes_are_those_of_numpy() -> None:
    """Bounds that cross, infinite ones and nan."""
    cases = [
        (f"{name} {dtype} {attrs}", one_node(REGISTRY[name], [Aval(x.shape, dtype)], attrs), [x])
        for name, attrs in ATTRS
        for dtype in FLOATS
        for x in special(dtype, 1)
    ]
    n = np.arange(-4, 5)
    cases += [
        (f"clip {bounds}", one_node(REGISTRY["clip"], [Aval(n.shape, n.dtype)], bounds), [n])
        for bounds in ({"low": -2, "high": 2}, {"low": 3, "high": -1})
    ]
    found = far_off(cases)
    assert not found, found


def text_kinds(name: str) -> str:
    kinds: str = REGISTRY[name].texts["native"].kinds
    return kinds


def test_a_text_that_is_wrong_is_found() -> None:
    assert units(np.array([1.0, np.nan]), np.array([1.0, np.inf])) == float("inf")
    assert units(np.array([1.0]), np.array([1.0 + 2**-50])) == 4.0
    assert units(np.array([True]), np.array([False])) == float("inf")
    assert units(np.array([0.0]), np.array([-0.0])) == float("inf")


OWN = sorted(name for name in ELEMENTWISE if REGISTRY[name].texts["native"].ulp)


@pytest.mark.parametrize("name", OWN)
def test_an_element_has_the_same_bits_at_every_position_and_length(name: str) -> None:
    rng = np.random.default_rng(1)
    x = np.abs(rng.normal(size=67)) + 0.1
    prim = REGISTRY[name]
    arity = len(SAMPLES[name][0].operands())
    lengths = [*range(1, 35), 64, 67]
    graphs = [one_node(prim, [Aval((n,), x.dtype)] * arity, {}) for n in lengths]
    whole, *rest = (
        results(function, graph, [x[: graph.inputs[0].aval.size]] * arity)[0]
        for graph, function in reversed(list(zip(graphs, as_kernels(graphs), strict=True)))
    )
    for part in rest:
        assert np.array_equal(part, whole[: len(part)], equal_nan=True)


@pytest.mark.parametrize("name", ["exp", "expm1", "tanh"])
def test_functions_of_single_numbers_are_exact_to_three_units(name: str) -> None:
    x = np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)
    graph = one_node(REGISTRY[name], [Aval(x.shape, x.dtype)], {})
    (function,) = as_kernels([graph])
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
        expected = exact.astype(np.float32)
    found = function(x)
    plain = np.isfinite(expected)
    np.testing.assert_array_equal(found[~plain], expected[~plain])
    assert np.max(np.abs(found[plain] - exact[plain]) / np.spacing(np.abs(expected[plain]))) <= 3
