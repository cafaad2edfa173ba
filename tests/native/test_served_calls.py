"""Calls that C serves from the arguments to the results: they give what other calls give, and notice what changes."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler import call_patterns
from retrograd.compiler.compiled import UNSERVED
from retrograd.compiler.paths import Paths
from retrograd.errors import UnsupportedError
from tests.support import values
from tests.support.native import needs_compiler

pytestmark = needs_compiler
X = np.random.default_rng(0).normal(size=7)
SCALE = 2.0
WEIGHTS = np.linspace(0.5, 1.5, 7)


def plain(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def compiled() -> Any:
    """A compiled function with a memory of its own."""
    return rg.jit(lambda x: np.sum(np.sin(x) * x), backend="native")


def scaled(x: Any) -> Any:
    return SCALE * np.sum(WEIGHTS * np.sin(x))


def servers(f: Any) -> list[Any]:
    """What serves calls of a function in C, the newest first."""
    return [serve for serve in f._servers if type(serve).__name__ == "builtin_function_or_method"]


def server(f: Any) -> Any:
    """The newest."""
    return servers(f)[0]


def served(f: Any, *args: Any) -> Any:
    """The result of a call that must be served in C, which the compiled function gives, too."""
    (found,) = [x for serve in servers(f) if (x := serve(f, args, {})) is not UNSERVED]
    values.assert_same_bits([*flat(found)], [*flat(f(*args))])
    return found


def flat(x: Any) -> Any:
    parts = [*x.values()] if isinstance(x, dict) else x
    return [leaf for part in parts for leaf in flat(part)] if isinstance(parts, (tuple, list)) else [x]


RESULTS = {
    "one array": (lambda x, y: np.sin(x) * y, (X, 2.0)),
    "one number": (lambda x, y: np.sum(x) * y, (X, 2.0)),
    "a pair": (lambda x, y: (x * y, np.sum(x)), (X, X)),
    "turned": (lambda x, y: (y * y, (x + y, y + 1.0), x * 2.0), (2.0, 0.5)),
    "one in a pair": (lambda x, y: (x * y + x,), (X, X)),
    "one in a dict": (lambda x, y: {"a": x * y + x}, (X, X)),
    "one number in a list": (lambda x, y: [np.sum(x * y)], (X, X)),
    "a dict": (lambda x, y: {"b": [x * y, y + 1.0], "a": np.sum(x)}, (X, X)),
    "NumPy's scalars": (lambda x, y: (x * y, np.sin(y) * x), (np.float64(2.0), np.float64(0.5))),
    "single precision": (lambda x, y: x * y + x, (np.float32(2.0), X.astype(np.float32))),
    "arrays without axes": (lambda x, y: x * y + np.sin(x), (np.array(2.0), np.array([3]))),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_those_of_the_first_call(name: str) -> None:
    function, args = RESULTS[name]
    f = rg.jit(function, backend="native")
    first = f(*args)
    again = served(f, *args)
    assert type(again) is type(first)
    assert repr(again) == repr(first) == repr(f(*args))


class Refusing:
    """A container that takes arrays alone."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a + 0, b + 0


rg.register_container(Refusing, lambda x: ((x.a, x.b), None), lambda _, parts: Refusing(*parts))


def test_containers_that_refuse_placeholders_get_results() -> None:
    f = rg.jit(lambda x: Refusing(np.sin(x) * x, np.sum(x)), backend="native")
    for found in (f(X), f(X), server(f)(f, (X,), {})):
        assert type(found) is Refusing
        np.testing.assert_allclose(found.a, np.sin(X) * X, rtol=1e-14)
        np.testing.assert_allclose(found.b, np.sum(X), rtol=1e-14)


def test_faults_of_what_makes_a_server_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what puts placeholders together may fail, as it may be a user's code."""

    def fails(*_: Any) -> Any:
        raise RuntimeError("a fault")

    monkeypatch.setattr(call_patterns, "_order", fails)
    with pytest.raises(RuntimeError, match="a fault"):
        compiled()(X)


def test_derivatives_in_the_structure_of_the_arguments() -> None:
    f = rg.value_and_grad(lambda x, y: np.sum(x * np.sin(y)), argnums=(0, 1), backend="native")
    expected = rg.value_and_grad(lambda x, y: np.sum(x * np.sin(y)), argnums=(0, 1))(X, 0.3)
    f(X, 0.3)
    value, (slope, other) = served(f, X, 0.3)
    for a, b in zip((value, slope, other), flat(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


class Sub(np.ndarray):
    pass


OTHERS = {
    "a longer array": (np.ones(8),),
    "a matrix": (np.ones((7, 1)),),
    "a strided array": (np.ones(14)[::2],),
    "integers": (np.arange(7),),
    "single precision": (np.ones(7, np.float32),),
    "an unaligned array": (np.frombuffer(b"\0" * 57, np.float64, 7, 1),),
    "a number": (1.5,),
    "an array without axes": (np.array(1.5),),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_arguments_are_left_to_the_general_way(name: str) -> None:
    f = compiled()
    f(X)
    (x,) = OTHERS[name]
    serve = server(f)
    assert serve(f, (x,), {}) is UNSERVED
    np.testing.assert_allclose(f(x), plain(x), rtol=1e-6 if x is not X and np.asarray(x).itemsize == 4 else 1e-13)
    served(f, X)
    assert serve(f, (X,), {"x": X}) is UNSERVED
    assert serve(f, (), {}) is UNSERVED
    assert serve(f, (X, X), {}) is UNSERVED
    np.testing.assert_allclose(f(x=X), plain(X), rtol=1e-13)


@pytest.mark.parametrize("x", [np.ones(7, ">f8"), np.ones(7).view(Sub)])
def test_arrays_that_nothing_takes_are_refused(x: Any) -> None:
    f = compiled()
    f(X)
    assert server(f)(f, (x,), {}) is UNSERVED
    with pytest.raises(UnsupportedError):
        f(x)


@pytest.mark.parametrize(("x", "other"), [(2.0, np.float64(2.0)), (np.float64(2.0), 2.0), (2.0, np.array(2.0))])
def test_kinds_of_numbers_are_told_apart(x: Any, other: Any) -> None:
    f = rg.jit(lambda x: x * 3.0 + 1.0, backend="native")
    f(x)
    assert server(f)(f, (other,), {}) is UNSERVED
    assert [type(f(a)) for a in (x, other, x)] == [type(a * 3.0) for a in (x, other, x)]


def test_unpickled_arrays_are_served() -> None:
    """Their dtype is equal to NumPy's own, but another object."""
    f, x = compiled(), np.linspace(0.0, 1.0, 9)
    expected, other = f(x), pickle.loads(pickle.dumps(x))
    assert other.dtype is not x.dtype
    assert served(f, other) == expected
    assert server(f)(f, (other.astype(">f8"),), {}) is UNSERVED
    assert server(f)(f, (other.astype("f4"),), {}) is UNSERVED


def test_what_was_read_is_checked() -> None:
    f = rg.value_and_grad(scaled, backend="native")
    f(X)
    scope = globals()
    try:
        for scale, weights in [(3.0, WEIGHTS), (3.0, 2 * WEIGHTS), (float("3.0"), 2 * WEIGHTS), (2.0, np.ones(7))]:
            scope.update(SCALE=scale, WEIGHTS=weights)
            for _ in range(2):
                np.testing.assert_allclose(f(X)[1], scale * weights * np.cos(X), rtol=1e-13)
        scope["WEIGHTS"][0] = 5.0
        np.testing.assert_allclose(f(X)[1], 2.0 * scope["WEIGHTS"] * np.cos(X), rtol=1e-13)
        scope["WEIGHTS"] = 2.0
        np.testing.assert_allclose(f(X)[1], 4.0 * np.cos(X), rtol=1e-13)
    finally:
        scope.update(SCALE=2.0, WEIGHTS=np.linspace(0.5, 1.5, 7))


def test_plain_reads_are_checked_in_c() -> None:
    scope: dict[str, Any] = {"np": np, "K": 2.0}
    exec("def f(x): return h(x) * K\ndef h(x): return np.sum(x * x)\n", scope)
    f = rg.jit(scope["f"], backend="native")
    assert f(X) == pytest.approx(2.0 * np.sum(X * X))
    served(f, X)
    scope["K"] = 3.0
    assert server(f)(f, (X,), {}) is UNSERVED
    assert f(X) == pytest.approx(3.0 * np.sum(X * X))
    served(f, X)
    exec("def h(x): return np.sum(x)\n", scope)
    assert f(X) == pytest.approx(3.0 * np.sum(X))
    del scope["K"]
    with pytest.raises(NameError):
        f(X)
    scope["K"] = 4.0
    assert f(X) == pytest.approx(4.0 * np.sum(X))
    scope["h"].__code__ = (lambda x: np.max(x) * 1.0).__code__
    assert f(X) == pytest.approx(4.0 * np.max(X))
    scope["f"].__code__ = (lambda x: np.min(x) * 1.0).__code__
    assert f(X) == pytest.approx(np.min(X))


def test_traces_and_settings_have_their_own_ways() -> None:
    f = compiled()
    f(X)
    np.testing.assert_allclose(rg.grad(lambda x: f(x) * 2.0)(X), 2 * (np.cos(X) * X + np.sin(X)), rtol=1e-13)
    serve = server(f)
    with rg.config(exact=True):
        assert serve(f, (X,), {}) is UNSERVED
        assert f(X) == plain(X)
    served(f, X)
    try:
        rg.config.exact = True
        assert serve(f, (X,), {}) is UNSERVED
        assert f(X) == plain(X)
    finally:
        rg.config.exact = False


def test_served_calls_are_counted_and_forgotten() -> None:
    f = rg.jit(lambda x: np.sum(np.cos(x) * x), backend="native")
    f(X)
    hits = f.cache_info().hits
    for _ in range(3):
        f(X)
    assert f.cache_info().hits == hits + 3
    serve = server(f)
    assert not any(isinstance(x, Paths) for x in serve.__self__)  # they live as long as they are in the cache
    f._cache.clear()
    assert serve(f, (X,), {}) is UNSERVED
    f(X)
    served(f, X)


def test_many_shapes_have_few_servers() -> None:
    f = rg.jit(lambda x: np.sum(np.cos(x) * x), backend="native")
    for n in [*range(1, 12), 3, 5]:
        x = np.linspace(0.0, 1.0, n)
        for _ in range(2):
            assert f(x) == pytest.approx(np.sum(np.cos(x) * x), rel=1e-14)
    assert len(servers(f)) == 8


def test_methods_are_served_for_each_instance() -> None:
    class Model:
        def __init__(self, k: float) -> None:
            self.k = k

        @rg.value_and_grad(argnums=0, backend="native")
        def loss(self, x: Any) -> Any:
            return self.k * np.sum(x * x)

    a, b = Model(2.0), Model(3.0)
    for _ in range(3):
        for model in (a, b):
            np.testing.assert_allclose(model.loss(X)[1], 2 * model.k * X, rtol=1e-14)
    a.k = 5.0
    np.testing.assert_allclose(a.loss(X)[1], 10 * X, rtol=1e-14)


def test_a_call_that_a_kernel_gives_up_is_right() -> None:
    f = rg.jit(lambda x: np.sin(x) + np.cos(x), backend="native")
    f(X)
    far = np.where(np.arange(7) == 3, 1e300, X)
    np.testing.assert_allclose(f(far), np.sin(far) + np.cos(far), rtol=1e-13)
    assert np.isnan(f(np.full(7, np.nan))).all()


def test_nothing_is_lost_over_many_calls() -> None:
    f = rg.value_and_grad(lambda x, y: np.sum(x * np.sin(y)), argnums=(0, 1), backend="native")
    args = (np.ones(3), 0.5)
    f(*args)
    first = served(f, *args)
    counts = [sys.getrefcount(x) for x in (*args, f, first[0])]
    for _ in range(100):
        f(*args)
        server(f)(f, (np.ones(4), 0.5), {})
    assert [sys.getrefcount(x) for x in (*args, f, first[0])] == counts


def last(x: Any) -> Any:
    try:
        return x[5]
    except IndexError:
        return np.sum(x)


def inverse(a: Any) -> Any:
    try:
        return np.sum(np.linalg.inv(a))
    except np.linalg.LinAlgError:
        return np.sum(a) * 2.0


@pytest.mark.parametrize("use", [rg.jit, rg.grad, rg.value_and_grad, rg.hessian])
def test_functions_that_catch_errors_are_interpreted_from_the_first_call(use: Any) -> None:
    for f, args in ((last, (np.ones(3), X, np.ones(3))), (inverse, (np.zeros((2, 2)), np.eye(2), np.zeros((2, 2))))):
        in_c, plainly = use(f, backend="native"), use(f)
        for x in args:
            values.assert_close([in_c(x)], [plainly(x)], 1e-14)


def test_calls_that_c_takes_are_like_others() -> None:
    """The type of a compiled function changes with its first served call; nobody else sees a difference."""
    f = compiled()
    before, text = type(f), repr(f)
    expected = f(X)
    f(X)
    assert isinstance(f, rg.Compiled)
    assert issubclass(type(f), before)
    assert type(f).__call__ is not before.__call__
    assert (repr(f), type(f).__name__, type(f).__module__) == (text, before.__name__, before.__module__)
    for found in (f(X), f(x=X), f(*[X]), before.__call__(f, X)):
        values.assert_same_bits([found], [expected])
    with pytest.raises(TypeError, match="argument"):
        f(X, X)
    with pytest.raises(TypeError, match="argument"):
        f(y=X)
    np.testing.assert_allclose(f(X[:3]), plain(X[:3]), rtol=1e-14)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_all_calls_are_counted(backend: str) -> None:
    f = rg.jit(plain, backend=backend)
    f(X)
    f(x=X)
    before = f.cache_info()
    for _ in range(7):
        f(X)
        f(x=X)
    after = f.cache_info()
    assert (after.hits - before.hits, after.misses, after.size) == (14, before.misses, before.size)


def of_a_module(x: Any) -> Any:
    return np.sum(np.cos(x) * x)


module_level = rg.grad(of_a_module, backend="native")


def test_functions_that_c_serves_are_copied_pickled_and_bound() -> None:
    first = module_level(X)
    module_level(X)
    again = pickle.loads(pickle.dumps(module_level))
    assert type(again) is rg.Compiled
    values.assert_same_bits([again(X)], [first])
    assert copy.copy(module_level) is module_level

    class Scaled:
        def __init__(self, by: float) -> None:
            self.by = by

        @rg.jit
        def value(self, x: Any) -> Any:
            return self.by * np.sum(np.sin(x))

    with rg.config(backend="native"):
        for by in (2.0, 3.0):
            one = Scaled(by)
            for _ in range(3):
                np.testing.assert_allclose(one.value(X), by * np.sum(np.sin(X)), rtol=1e-14)


class Asked:
    """A server that knows no call, and notes them."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, list[str]]] = []

    def __call__(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.calls.append((len(args), [*kwargs]))
        return UNSERVED


def test_a_server_may_raise_and_leaves_no_error_behind() -> None:
    f = compiled()
    f(X)
    f(X)

    def broken(*call: Any) -> Any:
        raise ZeroDivisionError("a server")

    f._servers.insert(0, broken)
    with pytest.raises(ZeroDivisionError, match="a server"):
        f(X)
    f._servers.remove(broken)
    f._servers.insert(0, Asked())
    np.testing.assert_allclose(f(X), plain(X), rtol=1e-14)


def test_keywords_of_one_call_do_not_reach_another() -> None:
    f, asked = compiled(), Asked()
    f(X)
    f(X)
    f._servers.insert(0, asked)
    f(x=X)
    f(X)
    assert asked.calls == [(0, ["x"]), (1, [])]


def test_threads_call_what_c_serves() -> None:
    f, found = compiled(), []
    expected = f(X)
    threads = [threading.Thread(target=lambda: found.extend(f(X) for _ in range(500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2000
    assert all(x == expected for x in found)


def test_compiled_functions_that_c_serves_are_freed() -> None:
    def made() -> Any:
        f = compiled()
        for _ in range(3):
            f(X)
        return weakref.ref(f)

    refs = [made() for _ in range(3)]
    gc.collect()
    assert [ref() for ref in refs] == [None] * 3
