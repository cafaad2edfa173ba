"""Transforms of a function from three numbers to one, each with what it must give by plain Python's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import retrograd as rg
from tests.state import oracle
from tests.state.oracle import LANES, TANGENT, Plain

Build = Callable[[Plain], Callable[[Any], Any]]


@dataclass(frozen=True)
class Transform:
    """``build(f)`` is made once and called many times; ``expected`` measures the plain function.

    ``once`` is False where a call runs f more than once: effects of f are then as many.
    """

    build: Build
    expected: Callable[[Plain, Any], Any]
    once: bool = True


def lanes(g: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``g`` of a point, given a function of points."""
    return lambda x: g(x + LANES)


def by_custom_vjp(f: Plain) -> Callable[[Any], Any]:
    """Its pullback reads the state; it is no derivative of f."""
    made = rg.custom_vjp(f)
    made.defvjp(lambda x, *defaults: (f(x), (x, defaults)), lambda res, ct: (ct * f(res[0]) * res[0], *res[1]))
    return made


def by_custom_jvp(f: Plain) -> Callable[[Any], Any]:
    """Its rule reads the state."""
    made = rg.custom_jvp(f)

    @made.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        x, t = primals[0], tangents[0]
        return f(x), np.sum(f(x) * x * t)

    return made


def by_lens(f: Plain, **options: Any) -> Callable[[Any], Any]:
    """Its pullback reads the state."""
    return rg.lens(lambda x: (f(x), lambda ct: ct * f(x) * x), **options)


def scanned(f: Plain) -> Callable[[Any], Any]:
    """The sum of f over two points, by a body that reads the state."""
    return lambda x: rg.scan(lambda c, lane: (c + f(x + lane), c), 0.0, LANES)[0]


def counted(f: Plain) -> Callable[[Any], Any]:
    """The sum of f over two points, by a loop of the graph."""
    return lambda x: rg.fori_loop(2, lambda i, c: c + f(x + LANES[0] + i * (LANES[1] - LANES[0])), 0.0)


def chosen(f: Plain) -> Callable[[Any], Any]:
    """f in the branch that is taken, and in the one that is not."""
    return lambda x: rg.cond(np.sum(x) > -100.0, f, lambda x: 2.0 * f(x), x)


def caught(f: Plain) -> Callable[[Any], Any]:
    """f in a body that may throw."""
    return lambda x: rg.try_catch(lambda: rg.throw_if(np.sum(x) > 100.0, x) or f(x), np.sum)


def awaited(f: Plain) -> Callable[[Any], Any]:
    """f in the body of a loop that makes one step."""
    return lambda x: rg.while_loop(lambda c: c[0] < 1.0, lambda c: (c[0] + 1.0, f(x)), (0.0, 0.0))[1]


def switched(f: Plain) -> Callable[[Any], Any]:
    """f in a branch that is chosen by a traced number."""
    return lambda x: rg.switch(np.argmax(0.0 * x), [f, lambda x: 2.0 * f(x)], x)


def recorded(f: Plain) -> Callable[[Any], Any]:
    """The gradient by a record of operations that run at once."""

    def gradient(x: Any) -> Any:
        with rg.eager.Record() as record:
            t = record.tensor(x)
            return np.asarray(f(t).grad().wrt(t))

    return gradient


def taped(f: Plain) -> Callable[[Any], Any]:
    """The gradient by tensors."""

    def gradient(x: Any) -> Any:
        t = rg.eager.Tensor(x, requires_grad=True)
        f(t).backward()
        return np.asarray(t.grad.data)

    return gradient


value, gradient, hessian, curve = oracle.value, oracle.gradient, oracle.hessian, oracle.curve
slope, of_lanes, sum_of_lanes = oracle.value_and_slope, oracle.OfLanes, partial(oracle.OfLanes, total=True)

MAIN = {
    "jit": Transform(rg.jit, value),
    "grad": Transform(rg.grad, gradient),
    "value_and_grad": Transform(rg.value_and_grad, oracle.value_and_gradient),
    "vmap(grad)": Transform(lambda f: lanes(rg.vmap(rg.grad(f))), of_lanes(gradient)),
    "hessian": Transform(rg.hessian, hessian),
}

SINGLE = {
    "vjp": Transform(lambda f: lambda x: rg.vjp(f, x)[1](1.0)[0], gradient),
    "jvp": Transform(lambda f: lambda x: rg.jvp(f, (x,), (TANGENT,)), slope),
    "linearize": Transform(lambda f: lambda x: rg.linearize(f, x)[1](TANGENT), lambda f, x: gradient(f, x) @ TANGENT),
    "vmap": Transform(lambda f: lanes(rg.vmap(f)), of_lanes(value)),
    "jacobian": Transform(rg.jacobian, gradient, once=False),
    "jacfwd": Transform(rg.jacfwd, gradient),
    "jacrev": Transform(rg.jacrev, gradient),
    "hvp": Transform(lambda f: lambda x: rg.hvp(f)(x, TANGENT), curve),
    "vjp(jit)": Transform(lambda f: lambda x: rg.vjp(rg.jit(f), x)[1](1.0)[0], gradient),
    "checkpoint": Transform(rg.checkpoint, value),
    "subgraph": Transform(rg.subgraph, value),
    "custom_vjp": Transform(lambda f: rg.grad(by_custom_vjp(f)), oracle.scaled, once=False),
    "custom_jvp": Transform(lambda f: rg.grad(by_custom_jvp(f)), oracle.scaled, once=False),
    "lens": Transform(lambda f: rg.grad(by_lens(f)), oracle.scaled, once=False),
    "host lens": Transform(lambda f: rg.grad(by_lens(f, host=True)), oracle.scaled, once=False),
    "value of a lens": Transform(lambda f: rg.jit(by_lens(f)), value, once=False),
    "scan": Transform(scanned, sum_of_lanes(value)),
    "fori_loop": Transform(counted, sum_of_lanes(value)),
    "cond": Transform(chosen, value, once=False),
    "switch": Transform(lambda f: rg.jit(switched(f)), value, once=False),
    "while_loop": Transform(lambda f: rg.jit(awaited(f)), value, once=False),
    "map": Transform(lambda f: lanes(lambda xs: rg.map(f, xs)), of_lanes(value), once=False),
    "callcc": Transform(lambda f: rg.jit(lambda x: rg.callcc(lambda k: 1.0 + k(f(x)))), value),
    "stop_gradient": Transform(
        lambda f: rg.grad(lambda x: rg.stop_gradient(f(x)) * np.sum(x)), lambda f, x: f(x) * np.ones(3)
    ),
    "record": Transform(recorded, gradient),
    "tensor": Transform(taped, gradient),
}

PAIRS = {
    "jit(grad)": Transform(lambda f: rg.jit(rg.grad(f)), gradient),
    "jit(value_and_grad)": Transform(lambda f: rg.jit(rg.value_and_grad(f)), oracle.value_and_gradient),
    "jit(jit)": Transform(lambda f: rg.jit(rg.jit(f)), value),
    "jit(vmap)": Transform(lambda f: lanes(rg.jit(rg.vmap(f))), of_lanes(value)),
    "jit(jvp)": Transform(lambda f: rg.jit(lambda x: rg.jvp(f, (x,), (TANGENT,))), slope),
    "jit(vjp)": Transform(lambda f: rg.jit(lambda x: rg.vjp(f, x)[1](1.0)[0]), gradient),
    "jit(checkpoint)": Transform(lambda f: rg.jit(rg.checkpoint(f)), value),
    "jit(subgraph)": Transform(lambda f: rg.jit(rg.subgraph(inline=0)(f)), value),
    "jit(hessian)": Transform(lambda f: rg.jit(rg.hessian(f)), hessian),
    "jit(hvp)": Transform(lambda f: rg.jit(lambda x: rg.hvp(f)(x, TANGENT)), curve),
    "jit(linearize)": Transform(
        lambda f: rg.jit(lambda x: rg.linearize(f, x)[1](TANGENT)), lambda f, x: gradient(f, x) @ TANGENT
    ),
    "jit(scan)": Transform(lambda f: rg.jit(scanned(f)), sum_of_lanes(value)),
    "jit(fori_loop)": Transform(lambda f: rg.jit(counted(f)), sum_of_lanes(value)),
    "jit(cond)": Transform(lambda f: rg.jit(chosen(f)), value, once=False),
    "jit(try_catch)": Transform(lambda f: rg.jit(caught(f)), value),
    "grad(jit)": Transform(lambda f: rg.grad(rg.jit(f)), gradient),
    "grad(grad)": Transform(lambda f: rg.grad(lambda x: rg.grad(f)(x) @ TANGENT), curve),
    "grad(vmap)": Transform(lambda f: rg.grad(lambda x: np.sum(rg.vmap(f)(x + LANES))), sum_of_lanes(gradient)),
    "grad(checkpoint)": Transform(lambda f: rg.grad(rg.checkpoint(f)), gradient),
    "grad(subgraph)": Transform(lambda f: rg.grad(rg.subgraph(inline=0)(f)), gradient),
    "grad(jvp)": Transform(lambda f: rg.grad(lambda x: rg.jvp(f, (x,), (TANGENT,))[1]), curve),
    "grad(vjp)": Transform(lambda f: rg.grad(lambda x: rg.vjp(f, x)[1](1.0)[0] @ TANGENT), curve),
    "grad(scan)": Transform(lambda f: rg.grad(scanned(f)), sum_of_lanes(gradient)),
    "grad(fori_loop)": Transform(lambda f: rg.grad(counted(f)), sum_of_lanes(gradient)),
    "grad(cond)": Transform(lambda f: rg.grad(chosen(f)), gradient, once=False),
    "grad(try_catch)": Transform(lambda f: rg.grad(caught(f)), gradient),
    "vmap(jit)": Transform(lambda f: lanes(rg.vmap(rg.jit(f))), of_lanes(value)),
    "vmap(vmap)": Transform(lambda f: lambda x: rg.vmap(rg.vmap(f))(np.stack([x + LANES] * 2))[1], of_lanes(value, 2)),
    "vmap(hessian)": Transform(lambda f: lanes(rg.vmap(rg.hessian(f))), of_lanes(hessian)),
    "vmap(checkpoint)": Transform(lambda f: lanes(rg.vmap(rg.checkpoint(f))), of_lanes(value)),
    "vmap(subgraph)": Transform(lambda f: lanes(rg.vmap(rg.subgraph(inline=0)(f))), of_lanes(value)),
    "vmap(vjp)": Transform(lambda f: lanes(rg.vmap(lambda x: rg.vjp(f, x)[1](1.0)[0])), of_lanes(gradient)),
    "vmap(jvp)": Transform(
        lambda f: lanes(rg.vmap(lambda x: rg.jvp(f, (x,), (TANGENT,))[1])),
        of_lanes(lambda f, x: gradient(f, x) @ TANGENT),
    ),
    "vmap(hvp)": Transform(lambda f: lanes(rg.vmap(lambda x: rg.hvp(f)(x, TANGENT))), of_lanes(curve)),
    "hessian(jit)": Transform(lambda f: rg.hessian(rg.jit(f)), hessian),
    "hessian(checkpoint)": Transform(lambda f: rg.hessian(rg.checkpoint(f)), hessian),
    "hessian(subgraph)": Transform(lambda f: rg.hessian(rg.subgraph(inline=0)(f)), hessian),
    "hvp(jit)": Transform(lambda f: lambda x: rg.hvp(rg.jit(f))(x, TANGENT), curve),
    "jacobian(grad)": Transform(lambda f: rg.jacobian(rg.grad(f)), hessian, once=False),
    "jacfwd(grad)": Transform(lambda f: rg.jacfwd(rg.grad(f)), hessian),
    "jacrev(jit)": Transform(lambda f: rg.jacrev(rg.jit(f)), gradient),
    "jacrev(vmap)": Transform(lambda f: rg.jacrev(lambda x: rg.vmap(f)(x + LANES)), of_lanes(gradient)),
    "jvp(grad)": Transform(lambda f: lambda x: rg.jvp(rg.grad(f), (x,), (TANGENT,)), oracle.gradient_and_curve),
    "jvp(jit)": Transform(lambda f: lambda x: rg.jvp(rg.jit(f), (x,), (TANGENT,)), slope),
    "jvp(checkpoint)": Transform(lambda f: lambda x: rg.jvp(rg.checkpoint(f), (x,), (TANGENT,)), slope),
    "vjp(grad)": Transform(lambda f: lambda x: rg.vjp(rg.grad(f), x)[1](TANGENT)[0], curve),
    "vjp(vmap)": Transform(
        lambda f: lambda x: rg.vjp(lambda x: rg.vmap(f)(x + LANES), x)[1](np.ones(2))[0], sum_of_lanes(gradient)
    ),
    "vjp(checkpoint)": Transform(lambda f: lambda x: rg.vjp(rg.checkpoint(f), x)[1](1.0)[0], gradient),
    "linearize(jit)": Transform(
        lambda f: lambda x: rg.linearize(rg.jit(f), x)[1](TANGENT), lambda f, x: gradient(f, x) @ TANGENT
    ),
    "linearize(grad)": Transform(lambda f: lambda x: rg.linearize(rg.grad(f), x)[1](TANGENT), curve),
    "checkpoint(jit)": Transform(lambda f: rg.checkpoint(rg.jit(f)), value),
    "checkpoint(grad)": Transform(lambda f: rg.checkpoint(rg.grad(f)), gradient),
    "jit(custom_vjp)": Transform(lambda f: rg.jit(rg.grad(by_custom_vjp(f))), oracle.scaled, once=False),
    "jit(custom_jvp)": Transform(lambda f: rg.jit(rg.grad(by_custom_jvp(f))), oracle.scaled, once=False),
    "jit(lens)": Transform(lambda f: rg.jit(rg.grad(by_lens(f))), oracle.scaled, once=False),
    "vmap(custom_vjp)": Transform(
        lambda f: lanes(rg.vmap(rg.grad(by_custom_vjp(f)))), of_lanes(oracle.scaled), once=False
    ),
    "subgraph(grad)": Transform(lambda f: rg.jit(rg.subgraph(inline=0)(rg.grad(f))), gradient),
}

ALL = MAIN | SINGLE | PAIRS
