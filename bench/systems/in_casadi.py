"""CasADi: graphs of scalars or of matrices, C through gcc; in double precision, called through its buffers."""

from __future__ import annotations

import contextlib
import ctypes
import tempfile
from collections.abc import Callable
from functools import partial, reduce
from importlib import import_module
from typing import Any

import numpy as np

from bench.workload import Call, Workload, over
from bench.workloads import gravity, lorenz, mixture, options, scalar_chain, stencil
from bench.written_c import compiler

FLAGS = ["-O3", "-march=native", "-fopenmp"]
SCALARS = 100  # up to so many numbers a graph of scalars is the faster one, and gcc takes it
Graph = tuple[list[Any], list[Any]]  # symbols of the arguments, and the value with its gradients


def with_casadi(workload: Workload) -> Call:
    """`casadi.Function` with its C compiler: NumPy in and out; what comes out lies in the same arrays at each call."""
    casadi = import_module("casadi")
    arguments = [np.asarray(x, np.float64) for x in workload.inputs()]
    symbols, outputs = ROWS[workload.name](casadi, workload, arguments)
    settings = {
        "jit": True,
        "compiler": "shell",
        "jit_options": {"compiler": compiler(), "flags": FLAGS, "linker_flags": ["-fopenmp"], "verbose": False},
    }
    with contextlib.suppress(OSError):
        ctypes.CDLL("libgomp.so.1")  # stays, since its threads outlive the library that CasADi unloads
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with contextlib.chdir(folder.name):  # it writes C into the folder
        function = casadi.Function("row", symbols, [casadi.densify(output) for output in outputs], settings)
    buffer, run = function.buffer()
    argnums = (workload.argnums,) if isinstance(workload.argnums, int) else workload.argnums
    results = [np.empty(()), *(np.empty(arguments[i].shape) for i in argnums)]
    for i, argument in enumerate(arguments):
        buffer.set_arg(i, memoryview(argument.reshape(-1)))
    for i, result in enumerate(results):
        buffer.set_res(i, memoryview(result.reshape(-1)))

    def call(_alive: Any = (arguments, function, buffer, folder)) -> Any:  # the buffer has their addresses alone
        run()
        return results

    return call


def differentiated(casadi: Any, workload: Workload, symbols: list[Any], value: Any) -> Graph:
    """The value with its gradient in the symbols that the row names."""
    argnums = (workload.argnums,) if isinstance(workload.argnums, int) else workload.argnums
    return symbols, [value, *(casadi.gradient(value, symbols[i]) for i in argnums)]


def rosenbrock(casadi: Any, workload: Workload, arguments: list[Any]) -> Graph:
    """Of scalars where they are few, else of vectors."""
    n = len(arguments[0])
    x = casadi.SX.sym("x", n) if n <= SCALARS else casadi.MX.sym("x", n)
    value = 100.0 * casadi.sumsqr(x[1:] - x[:-1] ** 2) + casadi.sumsqr(1.0 - x[:-1])
    return differentiated(casadi, workload, [x], value)


def chain(casadi: Any, workload: Workload, _: list[Any]) -> Graph:
    """The plain-NumPy text with CasADi in NumPy's place."""
    symbols = [casadi.SX.sym("x"), casadi.SX.sym("y")]
    return differentiated(casadi, workload, symbols, over(casadi, scalar_chain.chain)(*symbols))


def lorenz_steps(casadi: Any, workload: Workload, _: list[Any], steps: int) -> Graph:
    """A step of scalars under `fold`; the parameters are part of the state, which spares a matrix of them."""
    s = casadi.SX.sym("s", 6)
    numbers = [s[i] for i in range(6)]
    after = (*lorenz.step(tuple(numbers[:3]), tuple(numbers[3:])), *numbers[3:])
    loop = casadi.Function("step", [s], [casadi.vertcat(*after)]).fold(steps)
    symbols = [casadi.MX.sym(name) for name in ("x", "y", "z", "sigma", "rho", "beta")]
    value = casadi.sumsqr(loop(casadi.vertcat(*symbols))[:3])
    return differentiated(casadi, workload, symbols, value)


def prices(casadi: Any, _: Workload, arguments: list[Any]) -> Graph:
    """One option's price and gradient, mapped over the options on all processors."""
    one = [casadi.SX.sym(name) for name in ("spot", "strike", "time", "volatility")]
    price = over(Namespace(casadi), options.prices, special=casadi)(*one)
    mapped = casadi.Function("option", one, [price, casadi.gradient(price, one[0]), casadi.gradient(price, one[3])])
    symbols = [casadi.MX.sym(symbol.name(), 1, len(arguments[0])) for symbol in one]
    each, delta, vega = mapped.map(len(arguments[0]), "openmp")(*symbols)
    return symbols, [casadi.sum2(each), delta, vega]


class Namespace:
    """CasADi's functions under NumPy's names, where a sum of a scalar is the scalar."""

    def __init__(self, casadi: Any) -> None:
        self.log, self.exp, self.sqrt = casadi.log, casadi.exp, casadi.sqrt

    @staticmethod
    def sum(x: Any) -> Any:
        return x


def rolled(casadi: Any, u: Any) -> Any:
    """The four neighbours of each place on a torus, summed."""
    across = casadi.horzcat(u[:, -1], u[:, :-1]) + casadi.horzcat(u[:, 1:], u[:, 0])
    return across + casadi.vertcat(u[-1, :], u[:-1, :]) + casadi.vertcat(u[1:, :], u[0, :])


def heat(casadi: Any, workload: Workload, arguments: list[Any], steps: int) -> Graph:
    """A step of matrices under `fold`."""
    u = casadi.MX.sym("u", *arguments[0].shape)
    after = u + 0.1 * (rolled(casadi, u) - 4.0 * u + 0.01 * u * (1.0 - u**2))
    loop = casadi.Function("step", [u], [after]).fold(steps)
    return differentiated(casadi, workload, [u], casadi.sumsqr(loop(u)))


def plate(casadi: Any, workload: Workload, arguments: list[Any]) -> Graph:
    """A step of matrices, called once for each step; matrices are stored by columns, so all are transposed."""
    u = casadi.MX.sym("u", *arguments[0].shape)
    conductivity = casadi.MX.sym("conductivity", *arguments[1].shape)
    inner = u[1:-1, 1:-1]
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * inner
    middle = casadi.horzcat(u[1:-1, 0], inner + conductivity * around, u[1:-1, -1])
    step = casadi.Function("step", [u, conductivity], [casadi.vertcat(u[0, :], middle, u[-1, :])])
    last = reduce(lambda v, _: step(v, conductivity), range(stencil.STEPS), u)
    return differentiated(casadi, workload, [u, conductivity], casadi.sumsqr(last))


def log_sum_exp(casadi: Any, _: Workload, arguments: list[Any]) -> Graph:
    """One row of scalars and its gradient, mapped over the rows on all processors."""
    rows, columns = arguments[0].shape
    x = casadi.SX.sym("x", columns)
    top = casadi.mmax(x)
    value = casadi.log(casadi.sum1(casadi.exp(x - top))) + top
    symbols = [casadi.MX.sym("x", columns, rows)]
    values, gradient = casadi.Function("one", [x], [value, casadi.gradient(value, x)]).map(rows, "openmp")(*symbols)
    return symbols, [casadi.sum2(values), gradient]


def n_body(casadi: Any, workload: Workload, arguments: list[Any]) -> Graph:
    """Matrices of pairs, coordinate by coordinate, in a step that is called once for each step."""
    n = len(arguments[2])
    place, speed = casadi.MX.sym("place", 3, n), casadi.MX.sym("speed", 3, n)
    mass = casadi.MX.sym("mass", n)
    apart = [casadi.repmat(x.T, 1, n) - casadi.repmat(x, n, 1) for x in casadi.vertsplit(place)]
    weights = (sum(x * x for x in apart) + gravity.SOFTENING) ** -1.5
    pulled = casadi.vertcat(*(casadi.mtimes(mass.T, x * weights) for x in apart))
    faster = speed + gravity.H * pulled
    step = casadi.Function("step", [place, speed, mass], [place + gravity.H * faster, faster])
    now = (place, speed)
    for _ in range(gravity.STEPS):
        now = step(*now, mass)
    value = 0.5 * casadi.mtimes(casadi.sum1(now[1] ** 2), mass)
    return differentiated(casadi, workload, [place, speed, mass], value)


def likelihood(casadi: Any, workload: Workload, arguments: list[Any]) -> Graph:
    """Component by component, all points at once; the arrays are transposed."""
    symbols = [
        casadi.MX.sym(name, *reversed(array.shape)) if array.ndim == 2 else casadi.MX.sym(name, len(array))
        for name, array in zip(("alpha", "mu", "q", "l", "x"), arguments, strict=True)
    ]
    alpha, mu, q, l, x = symbols
    d, points = x.shape
    by_columns = [int(place) for place in mixture.PLACES[d].T.ravel()]
    scores = []
    for k in range(mixture.COMPONENTS):
        entries = casadi.vertcat(casadi.exp(q[:, k]), l[:, k], 0.0)
        factor = casadi.reshape(entries[by_columns], d, d)
        scaled = casadi.mtimes(factor, x - casadi.repmat(mu[:, k], 1, points))
        scores.append(alpha[k] + casadi.sum1(q[:, k]) - 0.5 * casadi.sum1(scaled**2))
    top = reduce(casadi.fmax, scores)
    mixed = casadi.log(sum(casadi.exp(score - top) for score in scores)) + top
    prior = 0.5 * (casadi.sumsqr(casadi.exp(q)) + casadi.sumsqr(l)) - casadi.sum1(casadi.sum2(q))
    value = casadi.sum2(mixed) - points * casadi.logsumexp(alpha) + prior
    return differentiated(casadi, workload, symbols, value)


ROWS: dict[str, Callable[[Any, Workload, list[Any]], Graph]] = {
    **{f"rosenbrock-{n}": rosenbrock for n in (2, 100, 10_000)},
    "scalar-chain": chain,
    "lorenz-scan": partial(lorenz_steps, steps=10_000),
    "lorenz-for": partial(lorenz_steps, steps=200),
    **{f"black-scholes-{size}": prices for size in (10_000, 100_000, 1_000_000)},
    "heat-64": partial(heat, steps=500),
    "heat-512": partial(heat, steps=200),
    "stencil": plate,
    "logsumexp": log_sum_exp,
    "n-body-500": n_body,
    "gmm-10": likelihood,
    "gmm-32": likelihood,
}
