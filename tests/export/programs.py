"""Programs that are exported and saved: each with the arguments of a call. Importing this file needs retrograd."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.special

import retrograd as rg


class Case(NamedTuple):
    """A compiled function and the arguments of a call."""

    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = MappingProxyType({})


@dataclasses.dataclass
class Params:
    """Weights, in a dataclass."""

    w: Any
    b: Any


class Point(NamedTuple):
    """A point, as a namedtuple."""

    x: Any
    y: Any


PROGRAMS: dict[str, Callable[[], Case]] = {}
TABLE = np.sin(np.arange(12.0)).reshape(3, 4)
LARGE = np.cos(np.arange(300.0)).reshape(20, 15)
TURNED = np.asfortranarray(np.sin(np.arange(30.0)).reshape(5, 6))
GAPS = np.sqrt(np.arange(40.0))[::2]
X = np.array([0.5, -1.0, 2.0])
MATRIX = np.array([[2.0, 0.5], [0.5, 3.0]])


def program(make: Callable[[], Case]) -> Callable[[], Case]:
    PROGRAMS[make.__name__] = make
    return make


def energy(x: Any) -> Any:
    return np.sum(np.sin(x) * x) + np.sum(x[1:] * x[:-1])


@program
def gradient() -> Case:
    return Case(rg.grad(energy), (X,))


@program
def value_and_gradient() -> Case:
    return Case(rg.value_and_grad(energy), (X,))


@program
def gradient_in_two_arguments() -> Case:
    return Case(rg.grad(lambda k, x: k * energy(x), argnums=(0, 1)), (2.0, X))


@program
def with_aux() -> Case:
    return Case(rg.value_and_grad(lambda x: (energy(x), {"cos": np.cos(x), "name": "it's"}), has_aux=True), (X,))


@program
def trees() -> Case:
    def f(p: Any, rest: Any) -> Any:
        return {"out": [p["w"] @ rest[0], (p["b"] * rest[1],)], "none": None}, p["w"]

    return Case(rg.jit(f), ({"w": TABLE, "b": np.float64(2.0)}, [np.ones(4), 3.0]))


@program
def keys_in_another_order() -> Case:
    def f(p: Any) -> Any:
        first, second = p.values()
        return {"z": first * 2.0, "a": second}

    return Case(rg.jit(f), ({"w": X, "b": 1.5},))


@program
def dataclasses_and_namedtuples() -> Case:
    return Case(
        rg.value_and_grad(lambda p, q: np.sum(np.tanh(p.w @ q.x)) + p.b * q.y),
        (Params(TABLE, 0.5), Point(np.ones(4), np.float64(3.0))),
    )


@program
def keywords() -> Case:
    return Case(rg.grad(lambda x, *, scale, n: np.sum(x**n) * scale), (X,), {"scale": 2.0, "n": 3})


@program
def hessian() -> Case:
    return Case(rg.hessian(energy), (X,))


@program
def jacobian() -> Case:
    return Case(rg.jacobian(lambda x: np.cumsum(np.exp(x))), (X,))


@program
def lanes() -> Case:
    return Case(rg.vmap(rg.grad(energy)), (np.arange(12.0).reshape(4, 3),))


@program
def product_with_hessian() -> Case:
    return Case(rg.hvp(energy), (X, np.ones(3)))


@program
def scan() -> Case:
    def f(x: Any) -> Any:
        return np.sum(rg.scan(lambda c, t: (np.sin(c) + t, c * t), x, np.linspace(0.0, 1.0, 20))[1])

    return Case(rg.grad(f), (X,))


@program
def while_loop() -> Case:
    def f(x: Any) -> Any:
        return np.sum(rg.while_loop(lambda c: np.sum(c) < 50.0, lambda c: c * 1.5 + 0.1, x))

    return Case(rg.value_and_grad(f), (X,))


@program
def choice() -> Case:
    return Case(rg.grad(lambda x: rg.cond(np.sum(x) > 1.0, lambda: np.sum(x**2), lambda: np.sum(x))), (X,))


@program
def python_loop() -> Case:
    def f(x: Any) -> Any:
        for _ in range(200):
            x = np.sin(x) + 0.1
        return np.sum(x)

    return Case(rg.grad(f), (X,))


@program
def decision() -> Case:
    def f(x: Any) -> Any:
        return np.sum(x**2) if np.sum(x) > 0 else np.sum(x)

    return Case(rg.grad(f), (X,))


@program
def checkpointed() -> Case:
    def f(x: Any) -> Any:
        return np.sum(rg.fori_loop(60, lambda i, c: np.sin(c) * 1.1, x, memory=rg.Snapshots(4)))

    return Case(rg.grad(f), (np.linspace(0.0, 1.0, 50),))


@program
def within_a_budget() -> Case:
    def f(x: Any) -> Any:
        for _ in range(6):
            x = np.tanh(x * 1.1) + x
        return np.sum(x)

    return Case(rg.grad(f, memory="100 KiB"), (np.linspace(0.0, 1.0, 2000),))


@program
def complex_numbers() -> Case:
    return Case(rg.grad(lambda z: np.real(np.sum(z * np.conj(z) + 1j * z**2))), (X + 1j * X[::-1].copy(),))


@program
def complex_constants() -> Case:
    return Case(rg.jit(lambda z: (z * (2.0 - 0.0j), np.fft.fft(z), abs(z))), (X.astype(complex),))


@program
def single_precision() -> Case:
    return Case(rg.value_and_grad(lambda x: np.sum(np.exp(x) * 0.1)), (X.astype(np.float32),))


@program
def integers_and_bools() -> Case:
    return Case(rg.jit(lambda i, m, x: (i[::-1] + 1, ~m, np.where(m, x, -x), x[i])), (np.arange(3), X > 0, X))


@program
def constants() -> Case:
    return Case(rg.grad(lambda x: np.sum(LARGE @ (x * TABLE.sum())) + np.sum(TURNED) * x[0]), (np.ones(15),))


@program
def constants_in_other_layouts() -> Case:
    return Case(rg.jit(lambda x: (np.sum(TURNED, axis=0) * x, np.exp(GAPS) * x, np.sum(TURNED * x))), (2.0,))


@program
def constants_with_nan() -> Case:
    odd = np.array([np.nan, np.inf, -0.0])
    return Case(rg.jit(lambda x: (x * odd, x + odd)), (X,))


@program
def arguments_in_another_layout() -> Case:
    return Case(rg.grad(lambda a: np.sum(np.exp(a) @ a.T) + np.sum(a.ravel("K")[:2])), (TURNED,))


@program
def mutation() -> Case:
    def f(x: Any) -> Any:
        y = np.zeros(5)
        y[1:4] = x
        y[2:] += x
        x[0] = 7.0
        return np.sum(y**2) + x[0] * x[1]

    return Case(rg.grad(f), (X,))


@program
def several_results() -> Case:
    return Case(rg.jit(lambda x: (x, x.T, np.linalg.eigh(x), x[0, 0], float(2))), (MATRIX,))


@program
def linear_algebra() -> Case:
    return Case(rg.grad(lambda a: np.linalg.slogdet(a)[1] + np.sum(np.linalg.inv(a))), (MATRIX,))


@program
def with_scipy() -> Case:
    def f(x: Any) -> Any:
        return np.sum(scipy.special.gammaln(x)) + np.sum(scipy.linalg.cho_solve((np.eye(3) * 2.0, True), x))

    return Case(rg.grad(f), (np.abs(X),))


@program
def derivative_of_ones_own() -> Case:
    @rg.custom_vjp
    def clipped(x: Any) -> Any:
        return np.clip(x, -1.0, 1.0)

    clipped.defvjp(lambda x: (clipped(x), None), lambda _, ct: (ct,))
    return Case(rg.grad(lambda x: np.sum(clipped(x) ** 2)), (X,))


@program
def derivative_of_ones_own_kept() -> Case:
    @rg.custom_jvp
    def softened(x: Any) -> Any:
        return np.abs(x)

    softened.defjvp(lambda primals, tangents: (softened(primals[0]), tangents[0] * np.tanh(primals[0])))
    return Case(rg.jit(lambda x: np.sum(softened(x) * x)), (X,))


@program
def static_arguments() -> Case:
    return Case(rg.jit(lambda x, n, how: np.sum(x, keepdims=how) ** n, static_argnums=(1,)), (X, 2.5, True))


@program
def requirement() -> Case:
    def f(x: Any) -> Any:
        rg.require(np.sum(x) < 100.0, {"total": np.sum(x), "why": "too {large}"})
        return np.sum(x**3)

    return Case(rg.grad(f), (X,))


@program
def throws_caught() -> Case:
    def body(x: Any) -> Any:
        rg.throw_if(x > 1.0, x * 2.0)
        return x**2

    return Case(rg.grad(lambda x: rg.try_catch(lambda: body(x), lambda p: p * 3.0)), (1.5,))


@program
def requirement_in_a_loop() -> Case:
    def step(c: Any, t: Any) -> Any:
        rg.require(np.sum(c) < 100.0, ("step", t, {"total": np.sum(c), "why": "too {large}"}, [None, 1.5]))
        return c * 1.5, t

    return Case(rg.grad(lambda x: np.sum(rg.scan(step, x, np.arange(4.0))[0])), (X,))


@program
def subgraph_called_twice() -> Case:
    @rg.subgraph
    def layer(x: Any) -> Any:
        return np.tanh(x) + np.sin(x) * np.cos(x)

    return Case(rg.grad(lambda x: np.sum(layer(layer(x)))), (X,))


@program
def numbers_drawn_from_a_seed() -> Case:
    return Case(rg.grad(lambda x: np.sum(x * np.random.default_rng(7).standard_normal(3))), (X,))


@program
def method() -> Case:
    class Spring:
        k = 3.0

        @rg.grad
        def force(self, x: Any) -> Any:
            return self.k * np.sum(x**2)

    return Case(Spring().force, (X,))


@program
def nothing() -> Case:
    return Case(rg.jit(lambda: TABLE * 2.0), ())


@program
def names_that_python_has() -> Case:
    def f(list: Any, computed: Any, example: Any, T: Any) -> Any:
        def stored(x: Any) -> Any:
            return x * T

        return stored(list) * computed + example + TABLE[0, 1]

    return Case(rg.jit(f), (1.0, 2.0, 3.0, 4.0))


@program
def names_that_meet() -> Case:
    def f(a: Any, /, *rest: Any, **named: Any) -> Any:
        return a * rest[0] + named["a"] * named["arg1"]

    return Case(rg.jit(f), (1.0, 2.0), {"a": 3.0, "arg1": 4.0})


@program
def scalars_of_numpy() -> Case:
    return Case(rg.grad(lambda a, b: a * b + np.float32(2.0) * a), (np.float32(3.0), np.float64(2.0)))


@program
def empty_arrays() -> Case:
    return Case(rg.jit(lambda x: (x * 2.0, np.sum(x), [])), (np.zeros((0, 3)),))


@program
def an_argument_that_is_not_read() -> Case:
    return Case(rg.grad(lambda x, unused: np.sum(x**2)), (X, "whatever"))


@program
def implicit_solution() -> Case:
    def f(a: Any) -> Any:
        return rg.while_loop(lambda c: np.abs(c * c - a) > 1e-12, lambda c: 0.5 * (c + a / c), a)

    return Case(rg.grad(f), (2.0,))


@program
def differential_equation() -> Case:
    def f(k: Any) -> Any:
        return np.sum(scipy.integrate.odeint(lambda y, t: -k * y, np.array([1.0, 2.0]), np.linspace(0.0, 1.0, 4)))

    return Case(rg.value_and_grad(f), (0.7,))
