"""What has not changed, or was not read, compiles nothing: the function's body runs in the first call alone."""

from __future__ import annotations

import functools
import gc
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.state.holders import Model, Spring, energy, program
from tests.state.oracle import POINTS

Call = Callable[[int], Any]  # the call of this number
CASES: dict[str, tuple[Callable[[], tuple[Call, Call]], int]] = {}


def case(calls: int = 1) -> Callable[[Any], Any]:
    """Into the table; a case makes its compiled and its plain call, and the first ``calls`` may run the body."""

    def keep(make: Callable[[], tuple[Call, Call]]) -> Callable[[], tuple[Call, Call]]:
        CASES[make.__name__] = make, calls
        return make

    return keep


@contextmanager
def runs_of(name: str) -> Iterator[list[str]]:
    """The runs of the user's functions of this name, which a profiler sees and no traced code can."""
    found: list[str] = []

    def profile(frame: types.FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and frame.f_code.co_name == name and (file == __file__ or file.startswith("<program")):
            found.append(file)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(before)


def x(i: int) -> Any:
    """The argument of a call."""
    return POINTS[i % len(POINTS)]


def of_text(head: str, body: str) -> tuple[Call, Call]:
    """A program of two lines."""
    f = program(f"{head}\ndef body(x):\n    {body}")["body"]
    return again(f)


def again(f: Callable[[Any], Any]) -> tuple[Call, Call]:
    """The same function at each call."""
    g = rg.jit(f)
    return lambda i: g(x(i)), lambda i: f(x(i))


# names whose value is a stand-in while a trace lasts


@case()
def zeros_by_name() -> tuple[Call, Call]:
    return of_text("from numpy import zeros", "z = zeros(3); z[1] = x[0]; return np.sum(z * x)")


@case()
def zeros_by_alias() -> tuple[Call, Call]:
    return of_text("make = np.zeros", "z = make(3); z[1] = x[0]; return np.sum(z * x)")


@case()
def zeros_in_another_module() -> tuple[Call, Call]:
    helpers = types.ModuleType("helpers")
    exec("from numpy import zeros\ndef table(n):\n    return zeros(n)", vars(helpers))

    def body(x: Any) -> Any:
        z = helpers.table(3)
        z[1] = x[0]
        return np.sum(z * x)

    return again(body)


@case()
def module_by_alias() -> tuple[Call, Call]:
    return of_text("import numpy.linalg as la", "return la.norm(x) + la.det(np.outer(x, x) + np.eye(3))")


@case()
def functions_by_name() -> tuple[Call, Call]:
    return of_text("from numpy import exp, sum, arange", "return sum(exp(x) * arange(3))")


@case()
def logsumexp_by_name() -> tuple[Call, Call]:
    return of_text("from scipy.special import logsumexp", "return logsumexp(x)")


@case()
def expit_by_name() -> tuple[Call, Call]:
    return of_text("from scipy.special import expit", "return np.sum(expit(x))")


@case()
def exp_of_math() -> tuple[Call, Call]:
    return of_text("from math import exp, pi", "return exp(x[0]) * pi")


@case()
def module_math() -> tuple[Call, Call]:
    return of_text("import math", "return math.exp(x[0]) * math.pi")


@case()
def float_of_element() -> tuple[Call, Call]:
    return of_text("", "return float(x[0]) ** 2 + abs(x[1]) + round(2.0)")


@case()
def questions_of_type() -> tuple[Call, Call]:
    return of_text("", "return np.sum(x) if isinstance(x, np.ndarray) and hasattr(x, 'shape') else 0.0")


@case()
def asked_for_its_type() -> tuple[Call, Call]:
    return of_text("", "return np.sum(x) if type(x) is np.ndarray and type(x[0]) is np.float64 else 0.0")


@case()
def functions_in_a_dict() -> tuple[Call, Call]:
    return of_text("F = {'sin': np.sin, 'soft': lambda v: v / (1 + v * v)}", "return np.sum(F['sin'](F['soft'](x)))")


@case()
def imports_inside() -> tuple[Call, Call]:
    return of_text("", "import math; from numpy import exp; return np.sum(exp(x)) * math.pi")


@case()
def functions_of_functools() -> tuple[Call, Call]:
    return of_text("from functools import reduce", "return reduce(lambda a, b: a * b, [x[0], x[1], x[2]])")


# what is not read


def loss(p: Any, i: Any) -> Any:
    """A loss that takes what it does not read."""

    def body() -> Any:
        return np.sum(p**2)

    return body()


@case()
def unread_int() -> tuple[Call, Call]:
    g = rg.grad(loss)
    return lambda i: g(x(i), i), lambda i: 2 * x(i)


@case()
def unread_object() -> tuple[Call, Call]:
    g = rg.grad(loss)
    return lambda i: g(x(i), Model()), lambda i: 2 * x(i)


@case()
def unread_text_and_function() -> tuple[Call, Call]:
    g = rg.grad(loss)
    return lambda i: g(x(i), (f"step {i}", lambda: i)), lambda i: 2 * x(i)


@case()
def object_read_in_part() -> tuple[Call, Call]:
    s = SimpleNamespace(k=2.0, log=[], step=0)

    def body(x: Any) -> Any:
        return energy(s.k, x)

    g = rg.jit(body)

    def call(i: int) -> Any:
        s.log.append(i)
        s.step += 1
        return g(x(i))

    return call, lambda i: energy(2.0, x(i))


@case()
def dict_read_in_part() -> tuple[Call, Call]:
    d: dict[str, Any] = {"k": 2.0}

    def body(x: Any) -> Any:
        return energy(d["k"], x) + d.get("l2", 0.0)

    g = rg.jit(body)

    def call(i: int) -> Any:
        d[f"epoch {i}"] = i
        return g(x(i))

    return call, lambda i: energy(2.0, x(i))


@case()
def argument_read_in_part() -> tuple[Call, Call]:
    def body(s: Any, x: Any) -> Any:
        return energy(s.k, x)

    g = rg.jit(body)

    def call(i: int) -> Any:
        s = Model()
        s.hyper["step"] = i
        return g(s, x(i))

    return call, lambda i: energy(2.0, x(i))


# ints that only enter arithmetic: the second value shows that they vary


@case(2)
def int_in_arithmetic() -> tuple[Call, Call]:
    def body(i: Any, x: Any) -> Any:
        return np.sum(x**2) / (1.0 - 0.9 ** (i + 1)) + i * x[0] - np.sqrt(i + 1) * x[1]

    g = rg.jit(body)
    return lambda i: g(i, x(i)), lambda i: body(i, x(i))


@case(2)
def int_in_arithmetic_of_a_gradient() -> tuple[Call, Call]:
    def body(x: Any, i: Any) -> Any:
        return np.sum(x**2) * (0.5 * i)

    g = rg.grad(body)
    return lambda i: g(x(i), i), lambda i: x(i) * i


@case(2)
def int_in_a_tree() -> tuple[Call, Call]:
    def body(state: Any, x: Any) -> Any:
        return np.sum(x) / (state["step"] + 1) + state["bias"]

    g = rg.jit(body)
    return lambda i: g({"step": i, "bias": 0.5}, x(i)), lambda i: body({"step": i, "bias": 0.5}, x(i))


# what is made anew, and equal


@case()
def lambda_made_anew() -> tuple[Call, Call]:
    def body(x: Any, h: Any) -> Any:
        return h(np.sum(x))

    g = rg.jit(body)
    return lambda i: g(x(i), lambda v: 2 * v), lambda i: 2 * np.sum(x(i))


@case()
def lambda_over_an_equal_number() -> tuple[Call, Call]:
    def body(x: Any, h: Any) -> Any:
        return h(np.sum(x))

    g = rg.jit(body)

    def call(i: int) -> Any:
        k = float("2.5")
        return g(x(i), lambda v: k * v)

    return call, lambda i: 2.5 * np.sum(x(i))


@case()
def partial_of_the_function_made_anew() -> tuple[Call, Call]:
    def body(k: float, data: Any, x: Any, *, power: float) -> Any:
        return k * np.sum(data * x) ** power

    given = 2.0, np.arange(3.0)
    return lambda i: rg.jit(functools.partial(body, *given, power=2.0))(x(i)), lambda i: body(*given, x(i), power=2.0)


@case()
def partial_made_anew() -> tuple[Call, Call]:
    def body(x: Any, h: Any) -> Any:
        return h(x=x)

    g = rg.jit(body)
    return lambda i: g(x(i), functools.partial(energy, 2.0)), lambda i: energy(2.0, x(i))


@case()
def method_of_an_equal_instance() -> tuple[Call, Call]:
    def body(x: Any, h: Any) -> Any:
        return h(x)

    g = rg.jit(body)
    return lambda i: g(x(i), Spring(2.0).energy), lambda i: energy(2.0, x(i))


@case()
def equal_instance() -> tuple[Call, Call]:
    def body(x: Any, s: Any) -> Any:
        return s.energy(x)

    g = rg.jit(body)
    return lambda i: g(x(i), Spring(2.0)), lambda i: energy(2.0, x(i))


@case()
def object_that_reads_the_same() -> tuple[Call, Call]:
    def body(x: Any, s: Any) -> Any:
        return s.energy(x) + s.hyper["l2"] * x[0]

    g = rg.jit(body)
    return lambda i: g(x(i), Model()), lambda i: body(x(i), Model())


def body(x: Any) -> Any:
    """A function that is transformed anew at each call."""
    return np.sum(x**3)


@case()
def gradient_made_anew() -> tuple[Call, Call]:
    return lambda i: rg.grad(body)(x(i)), lambda i: 3 * x(i) ** 2


@case()
def jit_made_anew() -> tuple[Call, Call]:
    return lambda i: rg.jit(body)(x(i)), lambda i: body(x(i))


@case()
def hessian_made_anew() -> tuple[Call, Call]:
    return lambda i: rg.hessian(body)(x(i)), lambda i: np.diag(6 * x(i))


@case()
def composition_made_anew() -> tuple[Call, Call]:
    return lambda i: rg.jit(rg.grad(body))(x(i)), lambda i: 3 * x(i) ** 2


@case()
def lanes_made_anew() -> tuple[Call, Call]:
    return lambda i: rg.vmap(rg.grad(body))(np.stack([x(i)])), lambda i: 3 * np.stack([x(i)]) ** 2


@case()
def gradient_of_a_lambda_made_anew() -> tuple[Call, Call]:
    return lambda i: rg.grad(lambda x: 2.0 * body(x))(x(i)), lambda i: 6 * x(i) ** 2


@case()
def gradient_of_a_method_made_anew() -> tuple[Call, Call]:
    class Net:
        def body(self, x: Any) -> Any:
            return np.sum(x**3)

    s = Net()
    return lambda i: rg.grad(s.body)(x(i)), lambda i: 3 * x(i) ** 2


@case()
def equal_values_bound_anew() -> tuple[Call, Call]:
    s = SimpleNamespace(k=2.0, norm="l2", shape=(1, 2))

    def body(x: Any) -> Any:
        return energy(s.k, x) * s.shape[1] if s.norm == "l2" else 0.0

    g = rg.jit(body)

    def call(i: int) -> Any:
        s.k, s.norm, s.shape = float("2.0"), "xl2"[1:], (*[1, 2],)
        return g(x(i))

    return call, lambda i: 2 * energy(2.0, x(i))


# arrays that are bound anew


def trained(holder: Any, read: Callable[[], Any], step: Callable[[Any], object], build: Any = rg.grad) -> Any:
    """A function of a captured array that each call binds anew."""
    del holder

    def body(x: Any) -> Any:
        return np.sum(read() * x**2) + np.sum(np.tanh(read()))

    g = build(body)

    def call(i: int) -> Any:
        step(read() - 0.1)
        return g(x(i))

    return call, lambda i: 2 * read() * x(i)


@case()
def array_in_a_dict() -> tuple[Call, Call]:
    w = {"a": np.ones(3)}
    return trained(w, lambda: w["a"], lambda new: w.__setitem__("a", new))


@case()
def array_in_an_attribute() -> tuple[Call, Call]:
    s = SimpleNamespace(w=np.ones(3))
    return trained(s, lambda: s.w, lambda new: setattr(s, "w", new))


@case()
def array_in_a_list() -> tuple[Call, Call]:
    w = [np.zeros(2), np.ones(3)]
    return trained(w, lambda: w[1], lambda new: w.__setitem__(1, new))


@case()
def array_in_a_global() -> tuple[Call, Call]:
    p = program("K = np.ones(3)\ndef read():\n    return K")
    return trained(p, p["read"], lambda new: p.__setitem__("K", new))


@case()
def array_in_a_closure() -> tuple[Call, Call]:
    w = np.ones(3)

    def put(new: Any) -> None:
        nonlocal w
        w = new

    return trained(None, lambda: w, put)


@case()
def array_written_in_place() -> tuple[Call, Call]:
    s = SimpleNamespace(w=np.ones(3))
    return trained(s, lambda: s.w, lambda new: np.copyto(s.w, new))


@case()
def array_of_a_layer() -> tuple[Call, Call]:
    net = SimpleNamespace(layers=[SimpleNamespace(w=np.ones(3)), SimpleNamespace(w=np.ones(3))])
    return trained(net, lambda: net.layers[1].w, lambda new: setattr(net.layers[1], "w", new))


@case()
def array_of_jit_of_grad() -> tuple[Call, Call]:
    w = {"a": np.ones(3)}
    return trained(w, lambda: w["a"], lambda new: w.__setitem__("a", new), lambda f: rg.jit(rg.grad(f)))


@case()
def array_of_lanes() -> tuple[Call, Call]:
    w = {"a": np.ones(3)}
    return trained(
        w, lambda: w["a"], lambda new: w.__setitem__("a", new), lambda f: lambda x: rg.vmap(rg.grad(f))(x[None])[0]
    )


# state that settles


@case(3)
def memo_that_is_filled() -> tuple[Call, Call]:
    return of_text("memo = {}", "memo.setdefault('k', 2.0); return energy(memo['k'], x)")


@case(3)
def table_that_is_cached() -> tuple[Call, Call]:
    return of_text(
        "import functools\n@functools.lru_cache\ndef table(n):\n    return np.linspace(0.0, 1.0, n)",
        "return np.sum(table(3) * x)",
    )


@case(3)
def attribute_that_is_filled() -> tuple[Call, Call]:
    class Net:
        table: Any = None

        def body(self, x: Any) -> Any:
            if self.table is None:
                self.table = 2.0
            return energy(self.table, x)

    return again(Net().body)


@pytest.mark.parametrize("name", CASES)
def test_later_calls_run_no_body(name: str) -> None:
    make, first = CASES[name]
    call, plain = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(first + 4):
            with runs_of("body") as runs:
                found = call(i)
            np.testing.assert_allclose(found, plain(i), rtol=1e-10)
            assert i < first or not runs, f"call {i} runs the body {len(runs)} times"


def test_cache_info_counts_no_misses_for_what_is_not_read() -> None:
    g = rg.grad(lambda p, i: loss(p, None))
    for i in range(4):
        g(x(i), i)
    assert g.cache_info().misses == 1
    assert g.cache_info().hits == 3


def test_cache_info_counts_misses_for_what_has_changed() -> None:
    s = SimpleNamespace(k=2.0)
    g = rg.jit(lambda x: energy(s.k, x))
    for i in range(3):
        s.k = float(i + 3)
        g(x(i))
    assert g.cache_info().misses == 3


def test_a_gradient_made_anew_meets_what_was_compiled() -> None:
    def f(x: Any) -> Any:
        return np.sum(x**3)

    rg.grad(f)(x(0))
    g = rg.grad(f)
    g(x(1))
    assert g.cache_info().hits >= 1


def test_options_and_argnums_keep_compilations_apart() -> None:
    def f(a: Any, b: Any) -> Any:
        return np.sum(a * b**2)

    a, b = x(0), x(1)
    for _ in range(2):
        np.testing.assert_allclose(rg.grad(f)(a, b), b**2)
        np.testing.assert_allclose(rg.grad(f, 1)(a, b), 2 * a * b)
        np.testing.assert_allclose(rg.value_and_grad(f)(a, b)[1], b**2)
        np.testing.assert_allclose(rg.jit(f)(a, b), f(a, b))


@pytest.mark.filterwarnings("ignore::retrograd.errors.RetraceWarning")
def test_fresh_lambdas_that_differ_are_told_apart() -> None:
    g = rg.jit(lambda x, h: h(np.sum(x)))
    for i in range(4):
        k = float(i)
        np.testing.assert_allclose(g(x(i), lambda v, k=k: k * v), k * np.sum(x(i)))
        np.testing.assert_allclose(g(x(i), lambda v: k + v), k + np.sum(x(i)))  # noqa: B023 - called at once
        np.testing.assert_allclose(g(x(i), lambda v: k - v), k - np.sum(x(i)))  # noqa: B023


def test_fresh_lambdas_die_with_their_callers() -> None:
    g = rg.jit(lambda x, h: h(np.sum(x)))
    refs = []
    for i in range(3):
        h = lambda v: 2 * v  # noqa: E731 - a lambda made anew
        refs.append(weakref.ref(h))
        g(x(i), h)
        del h
    gc.collect()
    assert sum(ref() is not None for ref in refs) <= 1


def test_the_classes_of_a_program_are_the_users_whoever_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """``__main__`` may be a file of an installed package, as under ``python -m pytest`` and in notebooks."""
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/lib/site-packages/notebook/__main__.py", raising=False)
    spring = type("Spring", (), {"__module__": "__main__", "__init__": lambda self, k: setattr(self, "k", k)})
    energy = rg.jit(lambda spring, x: spring.k * x)
    assert [energy(spring(k), 3.0) for k in (1.0, 1.0, 2.0, 1.0)] == [3.0, 3.0, 6.0, 3.0]
    assert energy.cache_info().misses == 2
