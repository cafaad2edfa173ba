"""Operations by recipes: the same graph as the whole way gives, for operands of all kinds."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import retrograd as rg
from retrograd.tracer import swallowed
from retrograd.tracer.record import record
from retrograd.tracer.repeats import element_access, recipes
from tests.fuzz.programs import programs
from tests.fuzz.test_programs import FUZZ, SEEDS, compiled, inputs

TRACED = [
    2.5,
    3,
    True,
    0.5 - 1.5j,
    np.float64(-0.75),
    np.float32(1.25),
    np.int64(4),
    np.bool_(False),
    np.complex64(1 + 2j),
    np.array(0.5),
    np.array([0.5, -1.5, 2.0]),
    np.array([1.5, 0.25, 3.0], np.float32),
    np.array([[2.0], [0.5]]),
    np.asfortranarray([[2.0, 1.0, 0.0], [0.5, 3.0, -2.0]]),
    np.array([3, 1, 2]),
    np.array([7, 200], np.uint8),
    np.array([True, False, True]),
    np.array([1 + 1j, 2 - 1j, 0.5j]),
]
HUGE = 2**70
PLAIN = [
    *(0.5, -0.0, 0.0, 1e300, float("nan"), float("inf"), 0, 1, 2, -3, 255, HUGE, True, 2j),
    *(np.float64(0.25), np.float64(-0.0), np.float32(0.1), np.int8(3), np.bool_(True)),
    *(np.array([1.0, 2.0, 3.0]), [1, 2, 3], "x"),
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    *(getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")),
    *(getattr(operator, name) for name in ("and_", "or_", "xor", "lshift", "rshift")),
    *(getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne", "getitem")),
    *(np.add, np.multiply, np.maximum, np.power, np.float_power, np.arctan2, np.copysign, np.less, np.logical_and),
    *(np.ldexp, np.heaviside, np.hypot, np.fmod),
]
UNARY: list[Callable[[Any], Any]] = [
    *(operator.neg, operator.pos, operator.invert, abs),
    *(np.sin, np.exp, np.sqrt, np.square, np.abs, np.sign, np.isnan, np.logical_not, np.floor, np.conj, np.positive),
]


def _attempts(calls: list[Callable[[], Any]]) -> Callable[[], list[Any]]:
    """All calls, each twice: their results, or the errors that they raise."""

    def run() -> list[Any]:
        found = []
        for call in calls * 2:
            try:
                found.append(call())
            except Exception as fault:  # noqa: BLE001 - which error it is must be the same, too
                (swallowed._made.get() or []).clear()  # it is caught on purpose
                found.append(f"{type(fault).__name__}: {fault}")
        return found

    return run


def _recorded(calls: Callable[[Any], list[Callable[[], Any]]], *examples: Any) -> tuple[str, list[str]]:
    """The graph of the calls as text, and what is told about each result."""
    told: list[str] = []

    def function(tracers: Any) -> Any:
        results = _attempts(calls(tracers))()
        told.extend(x if isinstance(x, str) else repr(x) for x in results)
        return [x for x in results if not isinstance(x, str)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return str(record(function, "f", examples, [f"x{i}" for i in range(len(examples))]).graph), told


def _holds(monkeypatch: pytest.MonkeyPatch, calls: Callable[[Any], list[Callable[[], Any]]], *examples: Any) -> None:
    found = _recorded(calls, *examples)
    with monkeypatch.context() as whole:
        for module in (recipes, element_access):
            whole.setattr(module, "STOPPED", SimpleNamespace(get=lambda: True))
        expected = _recorded(calls, *examples)
    assert found == expected


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a recipe was followed."""
    count = [0]
    follow = recipes.Recipe.follow

    def counted(self: Any, *args: Any) -> Any:
        count[0] += 1
        return follow(self, *args)

    monkeypatch.setattr(recipes.Recipe, "follow", counted)
    return count


@pytest.mark.costly
@pytest.mark.parametrize("operate", BINARY, ids=lambda f: f.__name__)
def test_operations_of_two_traced_values(operate, monkeypatch, followed):
    for a, b in product(TRACED, TRACED):
        other = np.subtract(a, 0.125) if isinstance(a, np.ndarray) and a.dtype == float else a

        def calls(t: Any) -> list[Callable[[], Any]]:
            x, y, z = t
            return [lambda: operate(x, y), lambda: operate(z, y), lambda: operate(x, x), lambda: operate(x, z)]

        _holds(monkeypatch, calls, a, b, other)
    assert followed[0] or operate in (operator.matmul, operator.getitem)


@pytest.mark.costly
@pytest.mark.parametrize("operate", BINARY, ids=lambda f: f.__name__)
def test_operations_with_numbers(operate, monkeypatch, followed):
    for a in TRACED:

        def calls(t: Any) -> list[Callable[[], Any]]:
            (x,) = t
            made = []
            for c in PLAIN:
                if operate in (operator.pow, operator.lshift) and c is HUGE:
                    continue  # Python would write the number out
                made += [lambda c=c: operate(x, c), lambda c=c: operate(c, x)]
            return made

        _holds(monkeypatch, calls, a)
    assert followed[0] or operate in (operator.matmul, operator.getitem)


@pytest.mark.parametrize("operate", UNARY, ids=lambda f: f.__name__)
def test_operations_of_one(operate, monkeypatch):
    for a in TRACED:
        _holds(monkeypatch, lambda t: [lambda: operate(t[0]), lambda: operate(t[1])], a, a)


def test_views_and_arrays_that_were_written_into(monkeypatch):
    def calls(t):
        x, y = t
        z = np.zeros(3)
        z[1] = y
        view = z[:2]
        grid = x.reshape(3, 1)

        def write():
            z[0] = z[1] * 2.0
            return z * 1.0

        return [lambda: z * 2.0, write, lambda: view * 2.0, lambda: grid * view, lambda: x[0] * z[0], lambda: z[-1]]

    _holds(monkeypatch, calls, np.array([1.0, 2.0, 3.0]), 0.5)


@given(programs(), SEEDS)
@settings(FUZZ, max_examples=40)
def test_random_programs_have_the_same_graph(source, seed):
    function = compiled(source)

    def graph() -> str:
        return str(record(lambda t: function(*t), "f", inputs(seed), ["x", "w"]).graph)

    graph()  # on Python 3.12 a first recording may find names of variables that later ones do not
    found = graph()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(recipes, "STOPPED", SimpleNamespace(get=lambda: True))
        assert graph() == found


def test_a_recipe_is_not_taken_from_equal_operands():
    def f(x, y):
        return x * x + x * y + y * y

    x, y = np.array([1.0, 2.0]), np.array([3.0, -4.0])
    np.testing.assert_array_equal(rg.jit(f)(x, y), f(x, y))


def test_errors_come_from_the_whole_way():
    def f(x):
        y = [x / d for d in (2.0, 4.0, 0.0)]
        return sum(y)

    with pytest.raises(ZeroDivisionError):
        rg.jit(f)(3.0)

    with pytest.raises(rg.errors.TraceLengthError), rg.config(max_nodes=50):
        rg.trace(lambda x: sum(x * float(k) for k in range(100)))(3.0)


def test_no_grad_goes_the_whole_way():
    def f(x):
        y = x * 2.0
        with rg.no_grad():
            z = x * 2.0 + x * 3.0
        return y * z + x * 3.0

    assert rg.grad(f)(1.0) == 2.0 * 5.0 + 3.0


INDICES = [0, 1, -1, 5, -7, True, np.int64(1), (0, 1), (1, -1), (2, 0), (0, 7), (), (1,), (0, True), (0, ...), slice(1)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128", "bool"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (), (2, 2, 2), (1, 0)])
def test_elements_are_read_and_written(shape, dtype, monkeypatch):
    array = (np.arange(np.prod(shape)).reshape(shape) + 1).astype(dtype)

    def put(x: Any, index: Any, value: Any) -> Any:
        x[index] = value
        return x

    def calls(t: Any) -> list[Callable[[], Any]]:
        x, number, single = t
        own = x.copy()
        view, row = own[...], own[:1] if own.ndim else own
        zeros = np.zeros(shape, dtype)
        found = []
        for index in INDICES:
            found += [lambda index=index: x[index], lambda index=index: row[index], lambda index=index: own[index]]
            for value in (number, single, 2.0, single * 2, x):
                found += [
                    lambda index=index, value=value, a=a: put(a, index, value) for a in (own, view, row, zeros, x)
                ]
            found.append(lambda index=index: view[index])
        return found

    _holds(monkeypatch, calls, array, 1.5, np.float32(0.5))


def test_numbers_have_no_elements(monkeypatch):
    def put(x: Any, value: Any) -> None:
        x[0] = value

    def calls(t: Any) -> list[Callable[[], Any]]:
        x, y = t
        return [lambda: x[0], lambda: put(x, y), lambda: put(x, 1.0), lambda: put(y, x), lambda: y[0], lambda: y[()]]

    _holds(monkeypatch, calls, 1.5, np.float64(0.5))


DERIVED: dict[str, Callable[[Any], Any]] = {
    "a cast": lambda k: k.astype(float),
    "a product with a float": lambda k: 1.0 * k,
    "a complex one": lambda k: k.astype(complex),
    "a broadcast": lambda k: np.broadcast_to(k, (2, 3)),
    "a cast and a broadcast": lambda k: k + np.zeros((2, 3)),
    "a NumPy number": lambda k: np.float64(k[0]),
}
KINDS = [np.array([1, 2, 3]), np.array([True, False, True]), np.array([1.5, 2.5, 0.5], np.float32)]


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("operate", BINARY, ids=lambda f: f.__name__)
def test_an_operand_that_another_becomes_is_not_taken_for_it(operate, derived):
    """What an operand is cast or broadcast to was there already, as the other operand; later calls have others."""
    make = DERIVED[derived]
    for k, swapped in product(KINDS, (False, True)):

        def operation(a: Any, b: Any, swapped: bool = swapped) -> Any:
            return operate(b, a) if swapped else operate(a, b)

        y = make(k) * 3 + 1
        try:
            expected, _ = operation(y, k), operation(make(k), k)
        except (TypeError, ValueError, IndexError):  # NumPy refuses it
            continue
        rg.jit(lambda k, operation=operation: operation(make(k), k))(k)
        np.testing.assert_allclose(rg.jit(operation)(y, k), expected, rtol=1e-12)
