"""Code on numbers alone runs on Python's numbers: the same results as NumPy's, also where Python raises."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as rg
from retrograd.codegen.numpy.plain_numbers import number_texts, regions
from retrograd.codegen.numpy.plain_numbers.number_texts import OPERATORS
from retrograd.compiler.executable import Executable
from retrograd.ir.builder import Builder
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.types import Aval
from tests.fuzz.test_programs import FUZZ

F64 = Aval((), np.dtype(np.float64), "scalar")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-310, 1e308, -1e308, 709.9, math.inf, -math.inf, math.nan]
OTHERS = frozenset({"named", "pow", "logical_not", "logical_and", "logical_or", "invert"})
BITWISE = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor"})
CHOOSING = frozenset({"beta_left", "gamma_left", "mirrored_rise"})  # whose last operand is a choice
TOLD = [name for name, prim in REGISTRY.items() if name in OPERATORS or "numbers" in prim.texts]
CASES = [name for name in TOLD if name not in OTHERS | BITWISE]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest functions run on Python's numbers, too."""
    monkeypatch.setattr(regions, "FEWEST", 0)
    monkeypatch.setattr(regions, "SHORT", 0)


def executable(name: str, arity: int) -> Executable:
    """The code of one primitive on numbers."""
    b = Builder()
    prim = REGISTRY[name]
    if name == "where":
        x, y = b.input(F64), b.input(F64)
        return Executable(b.graph("f", [prim(REGISTRY["lt"](x, y), x, y)]))
    operands = [b.input(F64) for _ in range(arity)]
    if name in CHOOSING:
        operands.append(REGISTRY["lt"](*operands[:2]))
    return Executable(b.graph("f", [prim(*operands)]))


def arity_of(name: str) -> int:
    return len(REGISTRY[name].diff) - (name in CHOOSING)


def result(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, set[type[Warning]]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = function(*args)
    return found, {w.category for w in caught}


@pytest.mark.parametrize("name", CASES)
def test_each_operation_gives_what_numpy_gives(name, always, monkeypatch):
    arity = arity_of(name)
    mine = executable(name, arity)
    assert "float, math" in mine.module.source
    monkeypatch.setattr(regions, "_worthwhile", lambda graph: False)
    numpys = executable(name, arity)
    assert "float, math" not in numpys.module.source
    rng = np.random.default_rng(0)
    drawn = [
        float(x) for x in np.concatenate([rng.normal(size=200), rng.uniform(0, 1, 100), 10 ** rng.uniform(-9, 9, 100)])
    ]
    special = list(itertools.product(SPECIAL, repeat=2 if name == "where" else arity))
    cases = [special[k] for k in rng.permutation(len(special))[: max(len(SPECIAL) ** 2, 400)]]
    cases += [tuple(rng.permutation(drawn)[: len(special[0])]) for _ in drawn]
    for pair in cases:
        args = tuple(map(np.float64, pair))
        (found,), warned = result(mine, args)
        (expected,), told = result(numpys, args)
        assert type(found) is type(expected), pair
        np.testing.assert_array_equal(found, expected, err_msg=str(pair))
        if not math.isfinite(expected):
            assert warned == told, pair


def chain(x, y):
    z = x
    for _ in range(10):
        z = np.sin(z) * y + x * np.exp(-z)
    return z


def test_source_of_a_function_of_numbers(monkeypatch):
    monkeypatch.setattr(number_texts, "rounds_alike", lambda name: True)
    source = rg.grad(chain).source(0.5, 1.2)
    assert "m.sin(" in source
    assert "number(np.exp(" in source
    monkeypatch.setattr(number_texts, "rounds_alike", lambda name: False)
    source = rg.grad(lambda x, y: chain(x, y) + 0.0).source(0.5, 1.2)
    assert "m.sin(" not in source
    assert "number(np.sin(" in source


def test_a_function_that_rounds_otherwise_is_found():
    number_texts.rounds_alike.cache_clear()
    assert not number_texts.rounds_alike("tanh")


def test_results_have_the_types_of_plain_numpy():
    for x in (0.5, np.float64(0.5)):
        found = rg.jit(chain)(x, 1.2)
        assert type(found) is np.float64
        np.testing.assert_allclose(found, chain(x, 1.2), rtol=1e-14)

    def python(x):
        y = x
        for k in range(20):
            y = y * x + 1.0 / (k + y)
        return y, y > 1.0

    value, flag = rg.jit(python)(0.5)
    assert type(value) is float
    assert (value, flag) == python(0.5)
    value, flag = rg.jit(python)(np.float64(0.5))
    assert type(value) is np.float64
    assert type(flag) is np.bool_


def test_a_division_by_zero_goes_on_as_numpy_does():
    def f(x):
        y = np.log(x) + 1.0 / x
        for _ in range(5):
            y = np.tanh(y) + x
        return y

    g = rg.value_and_grad(f)
    (value, slope), warned = result(g, (np.float64(0.0),))
    assert warned == {RuntimeWarning}
    with np.errstate(all="ignore"):
        expected = f(np.float64(0.0))
    np.testing.assert_equal(value, expected)
    assert np.isnan(slope) or np.isinf(slope)
    np.testing.assert_allclose(g(np.float64(2.0))[0], f(2.0), rtol=1e-14)


@pytest.mark.parametrize("exact", [False, True])
def test_integers_wrap_and_floats_round_as_numpys(exact):
    def f(x, k, t):
        n, u = k * k, t * t
        for _ in range(5):
            n, u = n * k - 7, u * t + t
        return np.sin(x) * np.cos(x) + np.exp(x), n, u, n > k, n * x

    args = np.float64(0.3), np.int64(3**20), np.float32(0.7)
    with rg.config(exact=exact):
        g = rg.jit(f)
        for _ in range(2):
            (found, warned), (expected, wanted) = result(g, args), result(f, args)
            assert [(type(x), x) for x in found] == [(type(x), x) for x in expected]
            assert warned == wanted


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "chosen",
    [
        lambda x: np.maximum(x, -0.5),
        lambda x: np.minimum(x, 1.5),
        lambda x: np.where(x < 2.0, x, 1.0),
        np.square,
        np.abs,
    ],
)
def test_what_numpy_makes_of_pythons_numbers_divides_as_numpys(chosen, exact):
    def f(x, y):
        quotient = chosen(x) / chosen(y)
        return quotient, chosen(y), np.isinf(quotient), np.reciprocal(y), np.sin(x), np.cos(x), np.exp(y)

    with rg.config(exact=exact):
        g = rg.jit(f)
        for y in (0.0, 0.5, 0.0):
            (found, warned), (expected, wanted) = result(g, (1.0, y)), result(f, (1.0, y))
            np.testing.assert_array_equal(found, expected)
            assert [type(x) for x in found] == [type(x) for x in expected]
            assert warned == wanted
        assert "f_numbers(float, math" in g.source(1.0, 0.5)


def test_pythons_own_division_by_zero_is_raised():
    def f(x):
        y = x
        for _ in range(20):
            y = y * x + 1.0 / x
        return y

    with pytest.raises(ZeroDivisionError):
        f(0.0)
    with pytest.raises(ZeroDivisionError):
        rg.jit(f)(0.0)


BOOLS = {
    "sum": lambda p, q: p + q,
    "sum of three": lambda p, q: p + q + p,
    "product": lambda p, q: p * q,
    "and": lambda p, q: p & q,
    "or": lambda p, q: p | q,
    "xor": lambda p, q: p ^ q,
    "logical xor": np.logical_xor,
    "larger": np.maximum,
    "smaller": lambda p, q: np.minimum(p, q) + q,
    "less": lambda p, q: (p < q) + p,
    "not": lambda p, q: ~p + q,
    "choice": lambda p, q: np.where(p, q, p) + p,
    "sign": lambda p, q: np.signbit(-1.0 * p) + q,
}


@pytest.mark.parametrize("name", BOOLS)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_bools_stay_bools_in_loops(name, backend):
    of_bools = BOOLS[name]

    def f(x, y):
        b, s = x > 0, x
        for k in range(40):
            b = of_bools(b, y + 0.1 * k > 1.0)
            s = 0.5 * s + of_bools(b, s > y) * 0.25 + np.where(b, 0.5, np.sin(s))
        return s, b

    def loop(x, y):
        def step(k, carry):
            b, s = carry
            b = of_bools(b, y + 0.1 * k > 1.0)
            return b, 0.5 * s + of_bools(b, s > y) * 0.25 + np.where(b, 0.5, np.sin(s))

        b, s = rg.fori_loop(40, step, (x > 0, x))
        return s, b

    for x in (-1.5, 0.0, 2.5):
        for y in (-4.0, 0.0, 0.7):
            expected = f(np.float64(x), np.float64(y))
            for g in (rg.jit(f, backend=backend), rg.jit(loop, backend=backend)):
                found = g(np.float64(x), np.float64(y))
                np.testing.assert_allclose(found[0], expected[0], rtol=1e-14, atol=1e-300)
                assert found[1] == expected[1]
                assert np.asarray(found[1]).dtype == bool


def test_an_overflow_warns_as_numpys_does():
    def f(x):
        y = np.exp(x)
        for _ in range(12):
            y = y * y
        return y

    with pytest.warns(RuntimeWarning, match="overflow"):
        assert rg.jit(f)(np.float64(300.0)) == math.inf


def test_floating_point_errors_are_raised_where_the_user_wants_them():
    def f(x):
        y = np.sqrt(x)
        for _ in range(12):
            y = np.sqrt(y) / x
        return y

    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        rg.jit(f)(np.float64(0.0))


def recurrence(x, a):
    s = 0.0 * a
    for t in range(len(x)):
        s = np.tanh(a * s + x[t]) / (1.0 + s * s)
    return s


@pytest.mark.parametrize("n", [100, 3000])
@pytest.mark.parametrize("layout", ["plain", "strided", "reversed"])
def test_loops_over_rows_of_numbers(n, layout):
    rng = np.random.default_rng(n)
    x = rng.normal(size=2 * n)
    x = {"plain": x[:n].copy(), "strided": x[::2], "reversed": x[:n][::-1]}[layout]
    g = rg.value_and_grad(recurrence, argnums=(0, 1))
    assert "math" in g.source(x, 0.5)
    value, (dx, da) = g(x, 0.5)
    np.testing.assert_allclose(value, recurrence(x, 0.5), rtol=1e-13)
    h = 1e-6
    np.testing.assert_allclose(da, (recurrence(x, 0.5 + h) - recurrence(x, 0.5 - h)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(dx[0], rg.grad(lambda x0: recurrence(np.append(x0, x[1:]), 0.5))(x[:1])[0], rtol=1e-10)
    with rg.config(exact=True):
        assert rg.value_and_grad(recurrence, argnums=(0, 1))(x, 0.5)[0] == recurrence(x, 0.5)
    x[3] = np.nan
    assert np.isnan(g(x, 0.5)[0])
    x[3] = np.inf
    np.testing.assert_allclose(g(x, 0.5)[0], recurrence(x, 0.5), rtol=1e-13)


def test_names_of_the_user_stay_apart():
    def f(number, m, math, float):
        for _ in range(30):
            number = np.sin(number) * m + math / (2.0 + float * float)
        return number

    args = (0.5, 0.25, 1.5, 2.0)
    np.testing.assert_allclose(rg.jit(f)(*args), f(*args), rtol=1e-14)
    np.testing.assert_allclose(rg.grad(f)(*args), rg.jvp(lambda x: f(x, *args[1:]), (0.5,), (1.0,))[1], rtol=1e-12)


def test_checkpointed_is_the_same_to_the_last_bit():
    def f(x, plan=None):
        step = lambda s, _: (np.tanh(s) * 0.9 + np.exp(-s) * x / (1.0 + s * s), None)  # noqa: E731
        return rg.scan(step, x, None, length=200, memory=plan)[0]

    plain = rg.value_and_grad(f)(0.7)
    for plan in (rg.Snapshots(5), rg.Log(), rg.Periodic()):
        assert rg.value_and_grad(lambda x, plan=plan: f(x, plan))(0.7) == plain


def test_second_derivatives_and_modes_agree():
    x, y = 0.5, 1.2
    first, second = rg.grad(chain)(x, y), rg.grad(rg.grad(chain))(x, y)
    np.testing.assert_allclose(first, rg.jvp(lambda x: chain(x, y), (x,), (1.0,))[1], rtol=1e-12)
    h = 1e-5
    np.testing.assert_allclose(second, (rg.grad(chain)(x + h, y) - rg.grad(chain)(x - h, y)) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(rg.vmap(rg.grad(chain), in_axes=(0, None))(np.array([x, 0.7]), y)[0], first, rtol=1e-12)


STEPS = [
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} / {1}",
    "-{0}",
    "abs({0})",
    "{0} // {1}",
    "{0} % {1}",
    "np.sin({0})",
    "np.exp({0})",
    "np.log({0})",
    "np.sqrt({0})",
    "np.arcsin({0})",
    "np.power({0}, {1})",
    "np.power({0}, 2.5)",
    "np.maximum({0}, {1})",
    "np.minimum({0}, 0.5)",
    "np.where({0} > {1}, {0}, 0.25)",
    "np.floor({0})",
    "np.arctan2({0}, {1})",
    "np.copysign({0}, {1})",
    "np.expm1({0})",
    "{0} ** 2",
    "1.0 / {0}",
]


@st.composite
def functions(draw: Any) -> str:
    """The source of a function of two numbers."""
    names = ["x", "y"]
    lines = []
    for k in range(draw(st.integers(3, 30))):
        text = draw(st.sampled_from(STEPS)).format(draw(st.sampled_from(names)), draw(st.sampled_from(names)))
        lines.append(f"v{k} = {text}")
        names.append(f"v{k}")
    return "\n    ".join(["def f(x, y):", *lines, f"return {names[-1]} + 0.5 * {draw(st.sampled_from(names))}"])


@given(functions(), st.floats(-3, 3), st.sampled_from(SPECIAL))
@settings(FUZZ, max_examples=60)
def test_random_functions_give_numpys_bits(source, x, y):
    scope: dict[str, Any] = {"np": np}
    exec(source, scope)
    f = scope["f"]
    args = np.float64(x), np.float64(y)
    with warnings.catch_warnings(), rg.config(exact=True):
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(rg.jit(f)(*args), f(*args), err_msg=source)
        np.testing.assert_array_equal(rg.jit(f)(*args), f(*args), err_msg=source)
