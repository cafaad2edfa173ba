"""The derivatives that JAX and autograd find, by calls that cost one compilation a program."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import autograd
import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np

from tests.oracles.program import Program, looped


class Derivatives(NamedTuple):
    """A value, the gradients in all arguments, and the derivatives of both along a direction."""

    value: Any
    gradients: tuple[Any, ...]
    slope: Any
    curvature: tuple[Any, ...]


# Nearly all the time goes into compiling programs that run once: this makes it six times shorter.
QUICKLY = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}

Finder = Callable[[tuple[Any, ...], tuple[Any, ...]], Derivatives]


@cache
def by_jax(program: Program) -> Finder:
    """What JAX finds, forward over reverse."""
    both = jax.value_and_grad(program.scalar(jnp, jax.lax.scan), program.argnums)

    derivatives = jax.jit(partial(jax.jvp, both), compiler_options=QUICKLY)

    def find(args: tuple[Any, ...], tangents: tuple[Any, ...]) -> Derivatives:
        found = derivatives(_arrays(args), _arrays(tangents))
        (value, gradients), (slope, curvature) = jax.tree.map(np.asarray, found)
        return Derivatives(value, gradients, slope, curvature)

    return find


@cache
def pushed_by_jax(program: Program) -> Callable[[tuple[Any, ...], tuple[Any, ...]], Any]:
    """The results of a program as JAX finds them, and their derivatives along a direction."""
    run = program.bound(jnp, jax.lax.scan)
    pushed = jax.jit(partial(jax.jvp, run), compiler_options=QUICKLY)
    return lambda args, tangents: jax.tree.map(np.asarray, pushed(_arrays(args), _arrays(tangents)))


def third_by_jax(program: Program) -> Callable[[tuple[Any, ...], tuple[Any, ...]], Any]:
    """The gradients of the second derivative along a direction as JAX finds them."""
    function = program.scalar(jnp, jax.lax.scan)

    def slope(args: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        return jax.jvp(function, args, tangents)[1]

    def curvature(args: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        return jax.jvp(lambda *point: slope(point, tangents), args, tangents)[1]

    third = jax.jit(jax.grad(curvature), compiler_options=QUICKLY)
    return lambda args, tangents: jax.tree.map(np.asarray, third(_arrays(args), _arrays(tangents)))


def _arrays(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(jnp.asarray, values))


def by_autograd(program: Program) -> Finder:
    """What autograd finds, reverse over reverse; of the first order alone where it has no more."""
    function = program.scalar(anp, _autograd_scan)
    gradients = autograd.grad(function, program.argnums)

    def find(args: tuple[Any, ...], tangents: tuple[Any, ...]) -> Derivatives:
        def along(*point: Any) -> Any:
            return anp.real(sum(anp.sum(g * v) for g, v in zip(gradients(*point), tangents, strict=True)))

        curvature = autograd.grad(along, program.argnums)(*args) if program.autograd > 1 else ()
        return Derivatives(function(*args), gradients(*args), along(*args), curvature)

    return find


_autograd_scan = partial(looped, anp)


def basis(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The unit tangents of real arguments, in order."""
    found = []
    for k, x in enumerate(args):
        for i in range(np.size(x)):
            unit = [np.zeros(np.shape(y)) for y in args]
            unit[k].flat[i] = 1.0
            found.append(tuple(unit))
    return found
