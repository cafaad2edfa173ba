"""Wrong uses of the face: a type checker finds each line with a comment, and says so where it finds nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import retrograd as rg

Vector = NDArray[np.float64]
X: Vector = np.ones(3)


def loss(x: Vector, k: int = 2) -> float:
    return float(np.sum(x**k))


rg.grad(loss)("text")  # type: ignore[arg-type]
rg.grad(loss)(X, "text")  # type: ignore[arg-type]
rg.grad(loss)(x=X)  # type: ignore[call-arg]
rg.grad(loss)(X, power=3)  # type: ignore[call-arg]
rg.grad(loss)(X).nonsense  # type: ignore[attr-defined]
rg.grad(loss).nonsense  # type: ignore[attr-defined]
rg.grad(loss, argnum=0)  # type: ignore[call-overload]
rg.grad(loss, has_aux=True)(X)  # type: ignore[call-overload]
rg.value_and_grad(loss)(X)[0].shape  # type: ignore[attr-defined]
rg.jit(loss)(X, k="3")  # type: ignore[arg-type]
rg.jit(loss)()  # type: ignore[call-arg]
rg.jit(loss, 3)  # type: ignore[call-overload]
rg.jit(loss).source()  # type: ignore[call-overload]
rg.jit(loss).export("loss.py")  # type: ignore[call-arg]
rg.jit(loss).export(X, X)  # type: ignore[arg-type]
rg.jit(loss)._cache  # type: ignore[attr-defined]
rg.checkpoint(loss)(3, X)  # type: ignore[arg-type]
rg.vjp(loss, X, has_axu=True)  # type: ignore[call-overload]
rg.vjp(loss, X)[1](1.0)[1]  # type: ignore[misc]
rg.while_loop(lambda x: x[0] < 3, lambda x: "text", X)  # type: ignore[arg-type, return-value]
rg.nonsense  # type: ignore[attr-defined]


class Model:
    @rg.jit
    def forward(self, x: Vector) -> Vector:
        return x


Model().forward("text")  # type: ignore[arg-type]
