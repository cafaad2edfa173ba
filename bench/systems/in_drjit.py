"""Dr.Jit on its LLVM backend: frozen functions of arrays, on all processors; NumPy in and out."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.workload import Call, Workload, leaves, map_leaves, over
from bench.workloads import lorenz

KINDS = {"float64": ("TensorXf64", "Float64"), "float32": ("TensorXf", "Float")}


def with_drjit(workload: Workload) -> Call:
    """A function under `freeze`, which traces the value and its reverse mode once."""
    drjit, arrays = import_module("drjit"), import_module("drjit.llvm.ad")
    function = ROWS[workload.name](drjit, arrays, workload)
    tensor, array = (getattr(arrays, name) for name in KINDS[workload.dtype])
    arguments = map_leaves(lambda x: np.asarray(x, workload.dtype), workload.inputs())
    argnums = (workload.argnums,) if isinstance(workload.argnums, int) else workload.argnums
    shapes = [x.shape for x in leaves([arguments[i] for i in argnums])]

    def both(symbols: Any) -> Any:
        active = leaves([symbols[i] for i in argnums])
        drjit.enable_grad(active)
        value = function(*symbols)
        drjit.backward(value)
        return drjit.detach(value), [drjit.grad(x) for x in active]

    run = both if workload.name in TRACED else drjit.freeze(both)

    def call() -> Any:
        value, gradients = run(map_leaves(lambda x: (tensor if x.ndim > 1 else array)(x), arguments))
        found = [np.asarray(x).reshape(shape) for x, shape in zip(gradients, shapes, strict=True)]
        return np.asarray(value).reshape(()), found

    return call


def named_as_numpy(drjit: Any) -> Any:
    """Dr.Jit's functions under NumPy's names and arguments."""

    def folded(function: Callable[..., Any]) -> Callable[..., Any]:
        def along(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
            found = function(x, axis=axis)
            if not keepdims:
                return found
            shape = list(x.shape)
            shape[axis] = 1
            return drjit.reshape(type(x), found, tuple(shape))

        return along

    return SimpleNamespace(
        **{name: getattr(drjit, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tanh", "erf")},
        sum=folded(drjit.sum),
        max=folded(drjit.max),
        mean=folded(drjit.mean),
    )


def text(drjit: Any, arrays: Any, workload: Workload) -> Callable[..., Any]:
    """The plain-NumPy text."""
    namespace = named_as_numpy(drjit)
    return over(namespace, workload.function, special=namespace)


def rosenbrock(drjit: Any, arrays: Any, _: Workload) -> Callable[..., Any]:
    """Slices as gathers."""

    def run(x: Any) -> Any:
        index = drjit.arange(arrays.UInt32, len(x) - 1)
        before, after = drjit.gather(arrays.Float64, x, index), drjit.gather(arrays.Float64, x, index + 1)
        return drjit.sum(100.0 * (after - before**2) ** 2 + (1.0 - before) ** 2)

    return run


def steps_of_lorenz(drjit: Any, arrays: Any, _: Workload) -> Callable[..., Any]:
    """A symbolic loop, which keeps the states of all steps for the way back."""

    def run(x: Any, y: Any, z: Any, sigma: Any, rho: Any, beta: Any) -> Any:
        def one(k: Any, x: Any, y: Any, z: Any, *p: Any) -> Any:
            return (k + 1, *lorenz.step((x, y, z), p), *p)

        start = (arrays.UInt32(0), x, y, z, sigma, rho, beta)
        state = drjit.while_loop(start, lambda k, *_: k < LORENZ, one, max_iterations=LORENZ)
        return lorenz.norm(state[1:4])

    return run


def steps_of_heat(drjit: Any, arrays: Any, workload: Workload) -> Callable[..., Any]:
    """Rolls as gathers, which need each state in memory; the steps are unrolled."""
    (u,) = workload.inputs()
    places = np.arange(u.size, dtype=np.uint32).reshape(u.shape)
    neighbours = [np.roll(places, shift, axis).ravel() for axis in (0, 1) for shift in (1, -1)]

    def run(u: Any) -> Any:
        around = [arrays.UInt32(index) for index in neighbours]
        v = u.array
        for _ in range(HEAT[workload.name]):
            laplacian = sum(drjit.gather(arrays.Float64, v, index) for index in around) - 4.0 * v
            v = v + 0.1 * (laplacian + 0.01 * v * (1.0 - v**2))
        return drjit.sum(v**2)

    return run


def n_body(drjit: Any, arrays: Any, workload: Workload) -> Callable[..., Any]:
    """The plain-NumPy text, in which the masses are a tensor, too."""
    run = text(drjit, arrays, workload)
    return lambda place, speed, mass: run(place, speed, arrays.TensorXf64(mass))


TRACED = ("heat-64", "layernorm")  # a frozen function cannot record their way back
LORENZ, HEAT = 10_000, {"heat-64": 500}
# Left out are products of matrices, whose kernels LLVM 14 and 15 fail to compile, and other loops over large arrays,
# since each of their steps is a kernel of its own, as in the row of heat.
ROWS: dict[str, Callable[[Any, Any, Workload], Callable[..., Any]]] = {
    **dict.fromkeys(("rosenbrock-2", "rosenbrock-100", "rosenbrock-10000"), rosenbrock),
    **dict.fromkeys(("black-scholes-10000", "black-scholes-100000", "black-scholes-1000000"), text),
    **dict.fromkeys(("scalar-chain", "lorenz-for", "logsumexp", "softmax", "layernorm"), text),
    "lorenz-scan": steps_of_lorenz,
    "heat-64": steps_of_heat,
    "n-body-500": n_body,
}
