"""What a call of a transformed function gives is what plain Python would give now.

A function is called, its state is changed, it is called again; the change is undone, and it is called twice more. Each
call gives the numbers of plain Python or its exception; or the first call is refused by name.
"""

from __future__ import annotations

import functools
import os
import queue
import random
import secrets
import time
import uuid
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.state import oracle
from tests.state.holders import HOLDERS, program
from tests.state.oracle import POINTS, Now, outcome
from tests.state.transforms import ALL, MAIN, Transform

CASES = [(name, i, way.name) for name, make in HOLDERS.items() for i, way in enumerate(make()[1])]
CALLS = ("the first call", "the call after the change", "the call after the change back", "the last call")
# Holders of every kind, each with its first way, for the transforms that the table of all holders leaves out.
FEW = [
    "global_number",
    "closure",
    "mutable_default",
    "item_of_attribute",
    "array_in_attribute",
    "method_of_captured",
    "property",
    "layers_of_a_net",
    "function_in_dict",
    "two_modules_deep",
    "context_variable",
    "generator_expression",
]
# Calls of these functions change what the next call reads.
WITH_EFFECTS = {
    "attribute_written_and_read",
    "counter_object",
    "generator_object",
    "global_declared_and_written",
    "iterator",
    "lazily_filled_attribute",
    "log_that_grows",
    "nonlocal_counter",
    "numpy_generator_of_object",
    "random_generator_of_object",
    "random_number",
}
DECIDES = {"array_that_decides", "arrays_of_a_dict", "array_without_axes"}  # refused in bodies, which suit all values
DRAWN = {"numpy_generator_of_object"}  # a body of a loop, or of lanes, draws as a plain loop does
MAY_BE_REFUSED = {
    "generator_object",
    "iterator",
    "numpy_generator_of_object",
    "random_generator_of_object",
    "random_number",
    "weak_reference",
}


@functools.cache
def expected(name: str, way: int, call: int, measure: Any) -> Any:
    """What plain Python gives at this call, or its exception."""
    runs = measure.runs if name in DRAWN and isinstance(measure, oracle.OfLanes) else 1
    return outcome(lambda x: measure(Now(HOLDERS[name], way, call, runs), x), POINTS[call])


def agree(found: Any, wanted: Any) -> bool:
    """Equal up to rounding; exceptions by their class."""
    if isinstance(wanted, Exception) or isinstance(found, Exception):
        return isinstance(found, type(wanted)) and not isinstance(found, rg.RetrogradError)
    if isinstance(wanted, tuple):
        return len(found) == len(wanted) and all(map(agree, found, wanted))
    return np.shape(found) == np.shape(wanted) and np.allclose(found, wanted, rtol=1e-6, atol=1e-7, equal_nan=True)


def check(name: str, way: int, transform: Transform) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how a function is run is its compiler's affair here
        wanted = [expected(name, way, call, transform.expected) for call in range(len(POINTS))]
        f, ways = HOLDERS[name]()  # its modules and variables are the ones that are found by name
        g = transform.build(f)
        for call in oracle.history(ways[way], len(POINTS)):
            found = outcome(g, POINTS[call])
            if call == 0 and isinstance(found, rg.errors.UserError) and name in MAY_BE_REFUSED:
                return
            if call == 0 and isinstance(found, rg.errors.ControlFlowError) and name in DECIDES:
                return
            assert agree(found, wanted[call]), f"{CALLS[call]} gives {found!r}; plain Python gives {wanted[call]!r}"


def ids(cases: list[Any]) -> list[str]:
    return [f"{name}-{label}" for name, _, label in cases]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("transform", ["jit", "grad", "vmap(grad)"])
@pytest.mark.parametrize(("name", "way", "label"), CASES, ids=ids(CASES))
def test_every_holder_follows_every_change(name: str, way: int, label: str, transform: str) -> None:
    check(name, way, MAIN[transform])


@pytest.mark.parametrize("transform", ["value_and_grad", "hessian"])
@pytest.mark.parametrize("name", HOLDERS)
def test_every_holder_follows_its_first_change(name: str, transform: str) -> None:
    check(name, 0, MAIN[transform])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("transform", [name for name in ALL if name not in MAIN])
@pytest.mark.parametrize("name", FEW)
def test_every_transform_follows_a_change(name: str, transform: str) -> None:
    check(name, 0, ALL[transform])


def test_few_holders_are_refused() -> None:
    refused = [name for name, make in HOLDERS.items() if isinstance(first_call(make), rg.errors.UserError)]
    assert set(refused) <= MAY_BE_REFUSED


def first_call(make: Any) -> Any:
    """The result of the first compiled call, or its exception."""
    f, ways = make()
    ways[0].before()
    return outcome(rg.jit(f), POINTS[0])


CLOCKS = {
    "perf_counter": "import time\ndef now():\n    return time.perf_counter()",
    "monotonic by name": "from time import monotonic as now",
    "time_ns": "import time\ndef now():\n    return time.time_ns() / 1e9",
    "datetime": "import datetime\ndef now():\n    return datetime.datetime.now().timestamp()",
}


@pytest.mark.parametrize("transform", MAIN)
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_clock_is_read_at_each_call_or_refused(clock: str, transform: str) -> None:
    p = program(CLOCKS[clock] + "\ndef f(x):\n    return now() * np.sum(x**2)")
    g = MAIN[transform].build(p["f"])
    seen = []
    for _ in range(3):
        found = outcome(g, POINTS[0])
        if isinstance(found, rg.errors.UserError) and not seen:
            return
        seen.append(np.ravel(found[0] if isinstance(found, tuple) else found)[0])
        end = p["now"]() + 1e-4
        while p["now"]() < end:
            pass
    assert len(set(seen)) == 3, seen


@pytest.mark.slow
@pytest.mark.parametrize("transform", ALL)
@pytest.mark.parametrize("name", HOLDERS)
def test_every_transform_follows_every_change_of_every_holder(name: str, transform: str) -> None:
    if ALL[transform].once or name not in WITH_EFFECTS:
        for way in range(len(HOLDERS[name]()[1])):
            check(name, way, ALL[transform])


UNREPEATABLE: dict[str, Callable[[], float]] = {
    "noise of the system": lambda: float(os.urandom(2)[0]),
    "secrets": lambda: float(secrets.randbelow(1 << 30)),
    "uuid": lambda: float(uuid.uuid4().int % 1000003),
    "clock": lambda: float(time.perf_counter_ns()),
    "hidden random": random.random,
}


@pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning")
@pytest.mark.parametrize("name", UNREPEATABLE)
def test_what_answers_anew_is_asked_at_each_call(name: str) -> None:
    ask = UNREPEATABLE[name]
    f = rg.jit(lambda x: x * ask())
    assert len({float(f(1.0)) for _ in range(6)}) > 1


@pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning")
def test_objects_of_libraries_are_compared_whole() -> None:
    waiting: queue.Queue[float] = queue.Queue()
    for k in (1.0, 2.0, 3.0):
        waiting.put(k)
    take = rg.jit(lambda x: x * waiting.get())
    assert [float(take(2.0)) for _ in range(3)] == [2.0, 4.0, 6.0]
    polynomial = np.poly1d([1.0, 2.0])
    value = rg.jit(lambda x: x * polynomial(2.0))
    assert float(value(1.0)) == 4.0
    polynomial.coeffs[0] = 5.0
    assert float(value(1.0)) == 12.0


LARGE: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "numbers": (lambda: [float(k) for k in range(200)], lambda t: t.__setitem__(3, -3.0)),
    "a type": (lambda: [1] * 200, lambda t: t.__setitem__(0, 1.5)),
    "rows": (lambda: [[1.0, 2.0]] + [[0.5, float(k)] for k in range(100)], lambda t: t[0].__setitem__(1, 5.0)),
    "grown": (lambda: [1.0] * 64, lambda t: t.append(1.0)),
    "a dict": (lambda: {str(k): float(k) for k in range(100)}, lambda t: t.__setitem__("3", 7.0)),
    "of arrays": (lambda: [np.ones(2) for _ in range(100)], lambda t: t[5].__setitem__(0, 9.0)),
    "just below": (lambda: [1.0] * 63, lambda t: t.__setitem__(62, 4.0)),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_containers_are_compared_at_once(name: str) -> None:
    make, change = LARGE[name]
    table = make()

    def total(x: Any) -> Any:
        rows = table.values() if isinstance(table, dict) else table
        return x * sum(np.sum(np.asarray(row)) for row in rows) + x * len(table)

    f = rg.jit(total)
    for _ in range(2):
        assert f(2.0) == total(2.0)
    assert f.cache_info().misses == 1
    change(table)
    assert f(2.0) == total(2.0)


@pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning")
@pytest.mark.parametrize(
    "transform", [lambda f: rg.jit(rg.jit(f)), lambda f: rg.jit(rg.checkpoint(f))], ids=["jit", "checkpoint"]
)
def test_what_an_inner_function_changes_is_changed_at_each_call(transform: Callable[[Any], Any]) -> None:
    state = SimpleNamespace(n=0)

    def counting(x: Any) -> Any:
        state.n += 1
        return x * state.n

    f = transform(counting)
    for n in (0, 0, 1, 0, 2):
        state.n = n
        assert float(f(2.0)) == 2.0 * (n + 1)
        assert state.n == n + 1
