"""PyTensor: graphs of arrays, compiled by Numba; NumPy in and out, without checks of the arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.workload import Call, Workload, leaves, map_leaves, over
from bench.workloads import heat, lorenz, mixture, stencil


def with_pytensor(workload: Workload) -> Call:
    """`pytensor.function` in the mode NUMBA, which trusts its inputs; results are arrays of its own."""
    pytensor, tensor = import_module("pytensor"), import_module("pytensor.tensor")
    pytensor.config.floatX = workload.dtype
    arguments = map_leaves(np.asarray, workload.inputs())
    symbols = map_leaves(lambda x: tensor.TensorType(x.dtype, x.shape)(), arguments)
    value = ROWS[workload.name](tensor, workload)(*symbols)
    argnums = (workload.argnums,) if isinstance(workload.argnums, int) else workload.argnums
    gradients = pytensor.grad(value, leaves([symbols[i] for i in argnums]))
    results = [pytensor.Out(result, borrow=True) for result in (value, *gradients)]
    function = pytensor.function(leaves(symbols), results, mode="NUMBA", on_unused_input="ignore")
    function.trust_input = True
    return partial(function, *leaves(arguments))


def text(tensor: Any, workload: Workload) -> Callable[..., Any]:
    """The plain-NumPy text with PyTensor in NumPy's place."""
    return over(tensor, workload.function, special=tensor)


def prices(tensor: Any, workload: Workload) -> Callable[..., Any]:
    """The plain-NumPy text; PyTensor's root of a Python number would be in single precision."""
    namespace = SimpleNamespace(
        **{name: getattr(tensor, name) for name in ("log", "exp", "sum")},
        sqrt=lambda x: math.sqrt(x) if isinstance(x, float) else tensor.sqrt(x),
    )
    return over(namespace, workload.function, special=tensor)


def repeated(step: Callable[..., Any], steps: int, start: Sequence[Any], rest: Sequence[Any] = ()) -> list[Any]:
    """The state after as many steps of PyTensor's `scan`."""
    scan = import_module("pytensor").scan
    states = scan(step, outputs_info=list(start), non_sequences=list(rest), n_steps=steps, return_updates=False)
    return [state[-1] for state in (states if isinstance(states, list) else [states])]


def steps_of_lorenz(_: Any, __: Workload, steps: int) -> Callable[..., Any]:
    """A step of scalars under `scan`."""

    def run(x: Any, y: Any, z: Any, sigma: Any, rho: Any, beta: Any) -> Any:
        def one(x: Any, y: Any, z: Any, *p: Any) -> Any:
            return list(lorenz.step((x, y, z), p))

        return lorenz.norm(tuple(repeated(one, steps, (x, y, z), (sigma, rho, beta))))

    return run


def steps_of_heat(tensor: Any, _: Workload, steps: int) -> Callable[..., Any]:
    """The step with PyTensor's `roll` under `scan`."""
    step = over(tensor, heat.step)
    return lambda u: tensor.sum(repeated(step, steps, [u])[0] ** 2)


def steps_of_the_plate(tensor: Any, _: Workload) -> Callable[..., Any]:
    """With `inc_subtensor` in place of a write, under `scan`."""

    def one(u: Any, conductivity: Any) -> Any:
        inner = u[1:-1, 1:-1]
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * inner
        return inner.inc(conductivity * around)

    return lambda u, conductivity: tensor.sum(repeated(one, stencil.STEPS, [u], [conductivity])[0] ** 2)


def likelihood(tensor: Any, _: Workload) -> Callable[..., Any]:
    """With PyTensor's `logsumexp`, and sizes that are known."""

    def run(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> Any:
        diagonals = tensor.exp(q)
        entries = tensor.concatenate((diagonals, l, tensor.zeros((mixture.COMPONENTS, 1))), axis=1)
        factors = entries[:, mixture.PLACES[mu.type.shape[1]]]
        scaled = (x - mu[:, None, :]) @ tensor.swapaxes(factors, 1, 2)
        scores = (alpha + tensor.sum(q, axis=1))[:, None] - 0.5 * tensor.sum(scaled**2, axis=2)
        prior = 0.5 * (tensor.sum(diagonals**2) + tensor.sum(l**2)) - tensor.sum(q)
        return tensor.sum(tensor.logsumexp(scores, axis=0)) - mixture.POINTS * tensor.logsumexp(alpha) + prior

    return run


SAME = (
    *("rosenbrock-2", "rosenbrock-100", "rosenbrock-10000", "scalar-chain", "n-body-500", "rbf-1500"),
    *("logsumexp", "softmax", "layernorm", "attention", "logistic", "k-means"),
    *("mlp-784-128-10", "mlp-784-512-256-10", "mlp-784-1024-1024-10"),
)
ROWS: dict[str, Callable[[Any, Workload], Callable[..., Any]]] = {
    **dict.fromkeys(SAME, text),
    **dict.fromkeys(("black-scholes-10000", "black-scholes-100000", "black-scholes-1000000"), prices),
    "lorenz-scan": partial(steps_of_lorenz, steps=10_000),
    "lorenz-for": partial(steps_of_lorenz, steps=200),
    "heat-64": partial(steps_of_heat, steps=500),
    "heat-512": partial(steps_of_heat, steps=200),
    "stencil": steps_of_the_plate,
    "gmm-10": likelihood,
    "gmm-32": likelihood,
}
