"""Right uses of the face, and what a type checker knows of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import retrograd as rg

Vector = NDArray[np.float64]
X: Vector = np.ones(3)


@dataclass
class Parameters:
    w: Vector
    b: float


def loss(p: Parameters, x: Vector, scale: float = 1.0) -> float:
    return float(np.sum(p.w * x) * scale + p.b)


def measured(p: Parameters, x: Vector) -> tuple[float, dict[str, int]]:
    return loss(p, x), {"n": x.size}


def doubled(x: Vector) -> Vector:
    return x * 2.0


P = Parameters(X, 1.0)

# the parameters of the function, and the type of its first argument
assert_type(rg.grad(loss)(P, X), Parameters)
assert_type(rg.grad(loss)(P, X, scale=2.0), Parameters)
assert_type(rg.grad(measured, has_aux=True)(P, X), tuple[Parameters, dict[str, int]])
assert_type(rg.grad(loss, argnums=(0, 1))(P, X), tuple[Parameters, Vector])
assert_type(rg.grad(loss, argnums=(0, 2))(P, X, 2.0), tuple[Any, ...])
rg.grad(loss, argnums=1)(P, X, scale=2.0)
rg.grad(loss, argnums="scale")(P, X, scale=2.0)
assert_type(rg.value_and_grad(loss)(P, X), tuple[float, Parameters])
assert_type(rg.value_and_grad(measured, has_aux=True)(P, X), tuple[tuple[float, dict[str, int]], Parameters])
assert_type(rg.value_and_grad(loss, argnums=(0, 1))(P, X), tuple[float, tuple[Parameters, Vector]])
rg.hessian(loss, argnums=1)(P, X)
rg.jacobian(doubled)(X)

# functions as they are
assert_type(rg.jit(loss)(P, x=X, scale=2.0), float)
assert_type(rg.checkpoint(loss)(P, X), float)
assert_type(rg.subgraph(doubled)(X), Vector)
assert_type(rg.vmap(doubled)(X), Vector)
assert_type(rg.jit(rg.grad(loss))(P, X), Parameters)

# derivatives at a point
value, pullback = rg.vjp(loss, P, X)
assert_type(value, float)
assert_type(pullback(1.0), tuple[Parameters, Vector])
_, pulled, aux = rg.vjp(measured, P, X, has_aux=True)
assert_type(aux, dict[str, int])
assert_type(rg.jvp(doubled, (X,), (X,)), tuple[Vector, Vector])
there, linear = rg.linearize(doubled, X)
assert_type(linear(X), Vector)

# control flow
assert_type(rg.cond(True, doubled, doubled, X), Vector)
assert_type(rg.stop_gradient(P), Parameters)
assert_type(rg.fori_loop(3, lambda i, p: p, P), Parameters)
assert_type(rg.while_loop(lambda p: p.b < 3, lambda p: Parameters(p.w, p.b + 1.0), P), Parameters)
last, stacked = rg.scan(lambda c, x: (c, x), P, np.ones((5, 3)))
assert_type(last, Parameters)

# what is compiled can be seen, with the arguments of a call
assert_type(rg.grad(loss).source(P, X), str)
assert_type(rg.jit(doubled).cache_info().hits, int)
rg.grad(loss).graph(P, X, stage="adjoint")


# and goes into files, with the same arguments
def keep(path: Path) -> None:
    rg.grad(loss).export(path / "slope.py", P, X)
    rg.grad(loss).save(path / "slope.rg", P, X)
    rg.load(path / "slope.rg")(P, X)


# lambdas take anything
rg.grad(lambda x: np.sum(x**2))(X)
rg.value_and_grad(lambda x, y: np.sum(x * y), argnums=(0, 1))(X, 2.0)
rg.grad(lambda x: rg.grad(lambda t: t**3)(x) * 2.0)(1.0)


# decorators, of functions and of methods
@rg.grad
def slope(x: Vector, k: int = 2) -> float:
    return float(np.sum(x**k))


assert_type(slope(X, k=3), Vector)


@rg.jit(static_argnames="k")
def power(x: Vector, k: int) -> Vector:
    return x**k


assert_type(power(X, 3), Vector)


class Model:
    w: Vector = X

    @rg.jit
    def forward(self, x: Vector, bias: float = 0.0) -> Vector:
        return self.w * x + bias

    @rg.grad
    def slope(self, x: Vector) -> float:
        return float(np.sum(self.w * x))


assert_type(Model().forward(X, bias=1.0), Vector)
assert_type(Model.forward(Model(), X), Vector)
Model().slope(X)


def train(step: rg.Compiled[[Vector], Vector], along: Callable[[Vector], Vector]) -> Vector:
    return along(step(X))


train(rg.jit(doubled), rg.jit(doubled))
