"""Constants outlive their trace as plain arrays; arrays of objects are read by reference, and never written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.state.holders import program
from tests.state.keepers import CACHES, KEEPERS
from tests.state.oracle import POINTS, TANGENT

X = POINTS[0]
CONSTANTS: dict[str, Callable[[], Any]] = {
    "nodes": lambda: np.linspace(0.0, 1.0, 3) ** 2,
    "window": lambda: np.hanning(3) + np.ones(3),
    "mask": lambda: np.arange(3) > 0,
    "order": lambda: np.argsort(np.array([2.0, 0.0, 1.0])),
    "fourier": lambda: np.exp(2j * np.pi * np.arange(3) / 3).real,
    "row of a matrix": lambda: (np.eye(3) + np.outer(np.arange(3), np.ones(3)))[1],
    "solution": lambda: np.linalg.solve(2 * np.eye(3), np.arange(3.0)),
    "number": lambda: np.sum(np.arange(4.0)),
    "written": lambda: written(np.zeros(3)),
    "single precision": lambda: np.ones(3, np.float32) / 3,
    "plain": lambda: 2.5,
}


def written(a: Any) -> Any:
    """The array, with an element set."""
    a[1] = 4.0
    return a


TRACES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda f: rg.jit(f)(X),
    "grad": lambda f: rg.grad(f)(X),
    "vmap(grad)": lambda f: rg.vmap(rg.grad(f))(X[None]),
    "hessian": lambda f: rg.hessian(f)(X),
    "jit(grad)": lambda f: rg.jit(rg.grad(f))(X),
    "grad(checkpoint)": lambda f: rg.grad(rg.checkpoint(f))(X),
    "jvp": lambda f: rg.jvp(f, (X,), (TANGENT,)),
    "vjp": lambda f: rg.vjp(f, X)[1](1.0),
    "scan": lambda f: rg.jit(lambda x: rg.scan(lambda c, t: (c + f(t), c), 0.0, x[None])[0])(X),
    "cond": lambda f: rg.jit(lambda x: rg.cond(x[0] > -9, f, lambda x: 2 * f(x), x))(X),
}
USES: dict[str, Callable[[Any], Any]] = {
    "product": lambda k: k * X,
    "product from the left": lambda k: X * k,
    "function": np.exp,
    "sum": np.sum,
    "method": lambda k: np.asarray(k).sum(),
    "stack": lambda k: np.stack([k * np.ones(3), X]),
    "array": np.asarray,
    "copy": np.array,
    "dot": lambda k: np.dot(np.atleast_1d(k), np.atleast_1d(k)),
    "comparison": lambda k: k > 0.5,
    "shape": np.shape,
    "list": lambda k: np.asarray(k).tolist(),
    "text": lambda k: str(np.asarray(k)),
    "truth": lambda k: bool(np.all(k)),
}
OF_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "element": lambda k: k[1],
    "slice": lambda k: k[1:],
    "iteration": lambda k: [float(v) for v in k],
    "number of an element": lambda k: float(k[1]),
    "list": lambda k: k.tolist(),
    "sum": lambda k: k.sum(),
    "length": len,
    "dtype": lambda k: k.dtype,
    "product": lambda k: k @ X,
    "text": repr,
    "index": lambda k: X[k],
}


def same(found: Any, wanted: Any) -> bool:
    """Of one type, and equal up to rounding."""
    if isinstance(wanted, np.ndarray | np.generic | float):
        return type(found) is type(wanted) and np.allclose(found, wanted, rtol=1e-12)
    return type(found) is type(wanted) and bool(found == wanted)


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("name", CACHES)
def test_plain_numpy_works_on_what_a_trace_left_behind(name: str, trace: str) -> None:
    f, read = CACHES[name](CONSTANTS["nodes"])
    plain, kept = CACHES[name](CONSTANTS["nodes"])
    wanted = plain(X)
    TRACES[trace](f)
    assert same(f(X), wanted)
    for use in USES.values():
        assert same(use(read()), use(kept()))
    for use in [OF_ARRAYS[u] for u in OF_ARRAYS if u != "index"]:
        assert same(use(read()), use(kept()))


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("name", ["lru_cache", "memo_dict", "attribute"])
def test_constants_of_every_kind_are_arrays_afterwards(name: str, constant: str) -> None:
    f, read = CACHES[name](CONSTANTS[constant])
    wanted = CONSTANTS[constant]()
    rg.grad(f)(X)
    for label, use in USES.items():
        assert same(use(read()), use(wanted)), label
    for label, use in OF_ARRAYS.items():
        if np.ndim(wanted) and (label != "index" or constant in {"mask", "order"}):
            assert same(use(read()), use(wanted)), label


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("name", CACHES)
def test_another_trace_takes_a_constant_as_an_array(name: str, trace: str) -> None:
    f, read = CACHES[name](CONSTANTS["nodes"])
    plain, kept = CACHES[name](CONSTANTS["nodes"])
    plain(X)
    TRACES[trace](f)
    other = rg.grad(lambda x: np.sum(read() * x**3))
    for x in POINTS:
        np.testing.assert_allclose(other(x), 3 * kept() * x**2)
        np.testing.assert_allclose(rg.jit(f)(x), plain(x))
        np.testing.assert_allclose(rg.grad(f)(x), 2 * kept() * x)


def test_functions_of_one_code_have_caches_of_their_own() -> None:
    def made(k: float, anew: bool) -> Any:
        @functools.lru_cache
        def nodes() -> Any:
            return k * np.arange(3.0)

        if not anew:
            nodes()
        return lambda x: np.sum(nodes() * x), nodes

    apply = rg.jit(lambda nodes, x: np.sum(nodes() * x))
    for anew in (True, False):
        for k in (1.0, 2.0, 3.0):
            f, nodes = made(k, anew)
            for _ in range(2):
                np.testing.assert_array_equal(rg.grad(f)(X), k * np.arange(3.0))
                np.testing.assert_allclose(apply(nodes, X), k * np.sum(np.arange(3.0) * X))


@pytest.mark.parametrize("name", CACHES)
def test_a_plain_call_first_leaves_a_plain_array(name: str) -> None:
    f, read = CACHES[name](CONSTANTS["nodes"])
    f(X)
    before = read()
    rg.grad(f)(X)
    assert read() is before
    assert type(before) is np.ndarray


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("name", KEEPERS)
def test_a_kept_value_of_an_input_is_a_leak(name: str, trace: str) -> None:
    f, read = KEEPERS[name](lambda x: 2.0 * x)

    def call_and_read() -> None:
        TRACES[trace](f)
        np.asarray(read() * 1.0)

    with pytest.raises(rg.errors.LeakedTracerError):
        call_and_read()


@pytest.mark.parametrize("name", KEEPERS)
def test_a_leak_is_told_again_and_never_used(name: str) -> None:
    f, read = KEEPERS[name](lambda x: 2.0 * x)
    g = rg.jit(f)

    def call_and_read(x: Any) -> None:
        g(x)
        np.asarray(read() * 1.0)

    for x in POINTS:
        with pytest.raises(rg.errors.LeakedTracerError):
            call_and_read(x)


class Simulation:
    """State of a simulation: arrays in attributes and containers."""

    def __init__(self) -> None:
        self.u0 = np.array([1.0, -2.0, 0.5])
        self.table = np.array([0.5, 1.5, -1.0])
        self.P = {"u0": np.array([2.0, 1.0, -1.0]), "t": np.array([3.0, 1.0, 2.0])}
        self.grids = [SimpleNamespace(w=np.array([0.3, -0.2, 0.1]))]
        self.order = np.array([2, 0, 1])
        self.count = np.array(2)

    def arrays(self) -> list[Any]:
        """Those that may be written between calls."""
        return [self.u0, self.table, *self.P.values(), self.grids[0].w]


def simulated(body: str) -> Callable[[Simulation], Callable[[Any], Any]]:
    """A method of the simulation, by its text."""
    return lambda sim: functools.partial(program(f"def f(self, x):\n    {body}")["f"], sim)


FRESH = {
    "copy": "u = self.u0.copy(); u[0] = x[0]; return np.sum(u**2 * x)",
    "product": "u = 2 * self.u0; u[0] = x[0]; u += x; return np.sum(u**2)",
    "sum": "u = self.u0 + 0.0; u[1:] *= x[1:]; return np.sum(u**2)",
    "negative": "u = -self.u0; u[0] = x[0]; return np.sum(u**2)",
    "np.array": "u = np.array(self.u0); u[0] = x[0]; return np.sum(u**2)",
    "astype": "u = self.u0.astype(float); u[0] = x[0]; return np.sum(u**2)",
    "zeros_like": "u = np.zeros_like(self.u0); u[0] = x[0]; return np.sum((u + self.u0) ** 2)",
    "full_like": "u = np.full_like(self.u0, 3.0); u[0] = x[0]; return np.sum(u * self.u0)",
    "sorted": "u = np.sort(self.u0); u[0] = x[0]; return np.sum(u**2)",
    "picked": "u = self.u0[self.order]; u[0] = x[0]; return np.sum(u**2 * self.u0)",
    "masked": "u = self.u0[self.u0 > 0]; u[0] = x[0]; return np.sum(u**2)",
    "item": "u = self.P['u0'].copy(); u[0] = x[0]; return np.sum(u**2)",
    "of a list": "u = self.grids[0].w.copy(); u[0] = x[0]; return np.sum(u**2)",
    "reshaped": "u = self.u0.reshape(3, 1) * 1.0; u[0, 0] = x[0]; return np.sum(u**2)",
    "concatenated": "u = np.concatenate([self.u0, self.P['t']]); u[0] = x[0]; return np.sum(u**2)",
    "plain write": "u = self.u0.copy(); u[0] = 7.0; return np.sum(u**2 * x)",
}
READ = {
    "sorted places": "return np.sum(self.table[np.argsort(x)] * x**2)",
    "mask": "return np.sum(self.table[x > 0]) * x[0]",
    "traced place": "return self.P['t'][np.argmax(x)] * x[1] ** 2",
    "plain place": "i = 1; return self.P['t'][i] * x[1] ** 2",
    "place in a loop": "return sum(self.P['t'][i] * x[i] ** 2 for i in range(3))",
    "place by captured count": "return self.P['t'][self.count] * x[1] ** 2",
    "captured order": "return np.sum(x[self.order] ** 2 * self.u0)",
    "alone": "return np.sum(np.tanh(self.u0)) * x[0]",
    "alone, element": "return np.exp(self.u0[1]) * x[0]",
    "alone, list": "return sum(self.u0.tolist()) * x[0]",
    "alone, float": "return float(self.u0[1]) * x[0]",
    "alone, loop": "return sum(float(v) for v in self.u0) * x[0]",
    "alone, item": "return self.u0[1].item() * x[0]",
    "alias": "w = self.grids[0].w; v = w; return np.sum(v * x**2) + np.sum(v**2) * x[0]",
    "view": "v = self.u0[1:]; return np.sum(v * x[1:] ** 2) + np.sum(v) * x[0]",
    "transposed": "return np.sum(self.u0[None].T * x**2)",
    "computed name": "return np.sum(getattr(self, 'u' + '0') * x**2)",
    "values of a dict": "return sum(np.sum(v * x**2) + np.sum(v**2) * x[0] for v in self.P.values())",
    "unpacked": "a, b = self.P.values(); return np.sum(a * x**2) + np.max(b) * x[0]",
    "argument of a helper": "h = lambda w, x: np.sum(w**2 * x); return h(self.u0, x)",
    "decided": "return np.sum(x**2) if self.u0[0] > 0.7 else np.sum(x)",
    "decided by all": "return np.sum(x**2) if (self.u0 > -5).all() else np.sum(x)",
    "identity": "return np.sum(x**2) * (2.0 if self.u0 is self.u0 and self.u0.shape == x.shape else 1.0)",
    "stacked": "return np.sum(np.stack([self.u0, x]) ** 3)",
    "matrix": "return np.outer(self.u0, self.table)[0] @ x + np.linalg.norm(self.u0) * x[1]",
}


def slopes(f: Callable[[Any], Any], x: Any) -> Any:
    """The gradient by central differences."""
    h = 1e-4
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)])


@pytest.mark.parametrize("name", [*FRESH, *READ])
def test_arrays_of_objects_follow_writes_between_calls(name: str) -> None:
    sim, make = Simulation(), simulated((FRESH | READ)[name])
    f = make(sim)
    value, gradient = rg.jit(f), rg.grad(f)
    lanes = (
        rg.jit(rg.vmap(rg.grad(f))) if name != "mask" else lambda x: gradient(x[0])[None]
    )  # its shapes depend on data
    for step, x in enumerate(POINTS):
        if step:
            for a in sim.arrays():
                a *= -1.25  # noqa: PLW2901 - in place
            sim.order[:] = sim.order[::-1].copy()
            sim.count[...] = step % 3
        kept = [a.copy() for a in sim.arrays()]
        np.testing.assert_allclose(value(x), f(x), rtol=1e-12)
        wanted = slopes(f, x)
        np.testing.assert_allclose(gradient(x), wanted, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(lanes(x[None])[0], wanted, rtol=1e-6, atol=1e-7)
        for a, before in zip(sim.arrays(), kept, strict=True):
            np.testing.assert_array_equal(a, before)


WRITES = {
    "element": "self.u0[0] = x[0]; return np.sum(self.u0 * x)",
    "plain element": "self.u0[0] = 5.0; return np.sum(self.u0 * x)",
    "in place": "self.u0 += x; return np.sum(self.u0)",
    "alias": "w = self.u0; w[0] = x[0]; return np.sum(w)",
    "view": "v = self.u0[1:]; v[0] = x[0]; return np.sum(self.u0)",
    "reshaped view": "v = self.u0.reshape(3, 1); v[0, 0] = x[0]; return np.sum(self.u0)",
    "item": "self.P['u0'][1] = x[0]; return np.sum(self.P['u0'])",
    "of a list": "self.grids[0].w[0] = x[0]; return np.sum(x)",
    "out": "np.multiply(x, 2.0, out=self.u0); return np.sum(self.u0)",
    "copyto": "np.copyto(self.u0, x); return np.sum(self.u0)",
    "fill": "self.u0.fill(x[0]); return np.sum(self.u0)",
    "sort": "self.u0.sort(); return np.sum(self.u0 * x)",
    "masked": "self.u0[x > 0] = 0.0; return np.sum(self.u0 * x)",
    "add.at": "np.add.at(self.u0, [0, 0], x[0]); return np.sum(self.u0)",
    "in a helper": "h = lambda w: w.__setitem__(0, x[0]); h(self.u0); return np.sum(self.u0)",
    "values of a dict": "[v.__setitem__(0, x[0]) for v in self.P.values()]; return np.sum(x)",
}


@pytest.mark.parametrize("trace", ["jit", "grad", "vmap(grad)", "hessian", "jvp"])
@pytest.mark.parametrize("name", WRITES)
def test_writes_into_arrays_of_objects_are_refused(name: str, trace: str) -> None:
    sim = Simulation()
    kept = [a.copy() for a in sim.arrays()]
    with pytest.raises(rg.errors.CapturedWriteError):
        TRACES[trace](simulated(WRITES[name])(sim))
    for a, before in zip(sim.arrays(), kept, strict=True):
        np.testing.assert_array_equal(a, before)
        assert a.flags.writeable


ASKS = [
    "type(x) is np.ndarray",
    "type(x) == np.ndarray",
    "type(x).__name__ == 'ndarray'",
    "x.__class__ is np.ndarray",
    "type(x) in (np.ndarray, list)",
    "{np.ndarray: True}.get(type(x), False)",
    "issubclass(type(x), np.ndarray)",
    "isinstance(x, np.ndarray)",
    "type(x[0]) is np.float64",
    "isinstance(x[0], float)",
    "isinstance(x[0], np.floating)",
    "isinstance(x[0], np.generic)",
    "isinstance(x[0], np.ndarray)",
    "type(x * 2) is np.ndarray",
    "type(x[1:]) is np.ndarray",
    "type(x.copy()) is np.ndarray",
    "type(np.exp(x)) is np.ndarray",
    "type(np.sum(x)) is np.float64",
    "type(x.sum()) is np.float64",
    "type(x @ x) is np.float64",
    "type(x > 0) is np.ndarray",
    "type((x > 0)[0]) is np.bool_",
    "type(np.argmax(x)) is np.int64",
    "type(x.shape) is tuple",
    "type(len(x)) is int",
    "type(x.astype(np.float32)[0]) is np.float32",
    "hasattr(x, '__len__')",
    "hasattr(x, 'shape')",
    "hasattr(x[0], '__len__')",
    "hasattr(x[0], 'shape')",
    "callable(x)",
    "np.isscalar(x[0])",
    "np.isscalar(x)",
    "np.ndim(x[0]) == 0",
    "type(s) is float",
    "type(s) == float",
    "type(s) in (int, float)",
    "isinstance(s, float)",
    "isinstance(s, (int, float))",
    "isinstance(s, np.generic)",
    "isinstance(s, np.ndarray)",
    "hasattr(s, '__len__')",
    "hasattr(s, 'shape')",
    "hasattr(s, 'dtype')",
    "np.isscalar(s)",
    "type(s * 2) is float",
    "type(s + s) is float",
    "type(-s) is float",
    "type(abs(s)) is float",
    "type(s * x[0]) is np.float64",
    "type(np.sin(s)) is np.float64",
    "type(float(x[0])) is float",
    "type(x[0].item()) is float",
    "type(W) is np.ndarray",
    "type(W[0]) is np.float64",
    "type(2 * W) is np.ndarray",
    "type(W.copy()) is np.ndarray",
    "type(np.zeros(3)) is np.ndarray",
    "type(np.zeros(3)[0]) is np.float64",
    "type(np.arange(3)[0]) is np.int64",
    "isinstance(W, np.ndarray)",
    "type(None) is type(None)",
    "type(1) is int",
    "type('a') is str",
    "type(type(x)) is type",
    "type.__name__ == 'type'",
    "kind(x) == 'array' and kind(s) == 'float' and kind(x[0]) == 'number'",
]
FORMS = {
    "in the function": "def f(x, s):\n    return np.sum(x**2) * s * (2.0 if {} else 3.0)",
    "in a helper": (
        "def ask(x, s):\n    return {}\n"  # the parameters have the names of the questions
        "def f(x, s):\n    return np.sum(x**2) * s * (2.0 if ask(x, s) else 3.0)"
    ),
    "in a method": (
        "class C:\n    def ask(self, x, s):\n        return {}\nc = C()\n"
        "def f(x, s):\n    return np.sum(x**2) * s * (2.0 if c.ask(x, s) else 3.0)"
    ),
}
KIND = (
    "import functools\n@functools.singledispatch\ndef kind(v):\n    return 'other'\n"
    "@kind.register(np.ndarray)\ndef _(v):\n    return 'array'\n"
    "@kind.register(np.float64)\ndef _(v):\n    return 'number'\n"
    "@kind.register(float)\ndef _(v):\n    return 'float'\n"
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ask", ASKS)
def test_followed_code_is_told_the_types_of_numpy(ask: str, form: str) -> None:
    f = program(KIND + FORMS[form].format(ask), W=np.array([1.0, 2.0, 3.0]))["f"]
    wanted = f(X, 1.5)
    np.testing.assert_allclose(rg.jit(f)(X, 1.5), wanted)
    np.testing.assert_allclose(rg.value_and_grad(f)(X, 1.5)[0], wanted)
    np.testing.assert_allclose(rg.grad(f)(X, 1.5), 2 * X * wanted / np.sum(X**2))


def test_a_class_that_inherits_is_asked_for_its_type() -> None:
    p = program(
        "class A(float):\n    pass\na = A(2.0)\ndef f(x):\n    return x[0] * (2.0 if type(a) is A else 3.0) * a"
    )
    np.testing.assert_allclose(rg.grad(p["f"])(X), [4.0, 0.0, 0.0])


def test_classes_are_made_by_type_in_followed_code() -> None:
    p = program("def f(x):\n    C = type('C', (), {'k': 2.0})\n    return np.sum(x) * C.k * isinstance(C(), C)")
    np.testing.assert_allclose(rg.grad(p["f"])(X), [2.0, 2.0, 2.0])


def test_a_cache_filled_in_a_loop_body_serves_the_rest_of_the_trace() -> None:
    cache: dict[int, np.ndarray] = {}

    def scratch(n: int) -> np.ndarray:
        if n not in cache:
            cache[n] = np.linspace(0.0, 1.0, n)
        return cache[n].copy()

    def tip(q: Any) -> Any:
        out = scratch(3)
        out[0], out[1] = np.cos(q), np.sin(q)
        return out

    def loss(x: Any) -> Any:
        last, _ = rg.scan(lambda q, _: (q + 0.1 * np.sum(tip(q)), None), x, None, 5)
        return np.sum(tip(last) * cache[3])

    expected = rg.grad(lambda x: loss(x) * 1.0)(1.0)
    cache.clear()
    assert rg.grad(loss)(1.0) == expected == rg.grad(loss)(1.0)
    np.testing.assert_array_equal(cache[3], [0.0, 0.5, 1.0])
    np.testing.assert_allclose(expected, (loss(1.0 + 1e-6) - loss(1.0 - 1e-6)) / 2e-6, rtol=1e-8)


def test_a_cache_holds_arrays_after_a_trace_that_fails() -> None:
    cache: dict[str, Any] = {}

    def f(x: Any) -> Any:
        cache["nodes"] = np.linspace(0.0, 1.0, 3)
        rg.scan(lambda q, _: (q * cache.setdefault("inner", np.arange(2.0)), None), x * np.ones(2), None, 2)
        raise ValueError("the user's own")

    for call in (rg.jit(f), rg.grad(f)):
        cache.clear()
        with pytest.raises(ValueError, match="own"):
            call(1.0)
        np.testing.assert_array_equal(cache["nodes"] * 2, [0.0, 1.0, 2.0])
        np.testing.assert_array_equal(np.add(cache["inner"], 1.0), [1.0, 2.0])
