"""The contestants: each makes of a workload a call without arguments that returns (value, gradient)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.systems import in_casadi, in_drjit, in_pytensor
from bench.workload import Call, Workload, leaves, map_leaves, over
from bench.written_c import compiler


def square(x: Any) -> Any:
    """What each compiler compiles first: its imports and the start of its back end are not the workload's."""
    return x * x


def value_and_grad(workload: Workload, backend: str | None = None) -> Any:
    """`rg.value_and_grad` of a workload's function."""
    rg = import_module("retrograd")
    rg.value_and_grad(square, backend=backend)(1.0)
    function = workload.in_retrograd(rg) if workload.in_retrograd else workload.function
    return rg.value_and_grad(function, argnums=workload.argnums, backend=backend)


def with_retrograd(workload: Workload) -> Call:
    """`rg.value_and_grad`: NumPy in and out."""
    return partial(value_and_grad(workload), *workload.inputs())


def with_native(workload: Workload) -> Call:
    """The same on the native target."""
    return partial(value_and_grad(workload, "native"), *workload.inputs())


def with_buffered(workload: Workload) -> Call:
    """The native target on arrays that stay: NumPy in and out, as CasADi's buffers."""
    run: Call = value_and_grad(workload, "native").buffered(*workload.inputs()).run
    return run


def with_jax(workload: Workload) -> Call:
    """`jax.jit(jax.value_and_grad)`: NumPy in and out, or arrays on the device, waited for."""
    jax = import_module("jax")
    assert workload.in_jax
    jax.config.update("jax_enable_x64", workload.dtype == "float64")
    jax.jit(jax.value_and_grad(square))(1.0)
    compiled = jax.jit(jax.value_and_grad(workload.in_jax(jax), argnums=workload.argnums))
    arguments = workload.inputs()
    if workload.resident:
        arguments = map_leaves(jax.numpy.asarray, arguments)
        return lambda: jax.block_until_ready(compiled(*arguments))
    single = isinstance(workload.argnums, int)

    def call() -> Any:
        value, gradient = compiled(*arguments)
        return np.asarray(value), np.asarray(gradient) if single else [np.asarray(leaf) for leaf in gradient]

    return call


def with_torch(workload: Workload) -> Call:
    """Eager torch: NumPy in and out, or tensors made once."""
    torch = import_module("torch")
    torch.exp(torch.zeros(1 << 17, dtype=torch.float64))  # a process's first one on threads is sometimes off by 3e-9
    assert workload.in_torch
    function = workload.in_torch(torch)
    arguments = workload.inputs()
    argnums = (workload.argnums,) if isinstance(workload.argnums, int) else workload.argnums

    def enter(leaf: Any, differentiated: bool) -> Any:
        tensor = torch.from_numpy(leaf) if isinstance(leaf, np.ndarray) else torch.tensor(leaf, dtype=torch.float64)
        return tensor.requires_grad_(differentiated)

    def enter_all() -> tuple[list[Any], list[Any]]:
        tensors = [map_leaves(partial(enter, differentiated=i in argnums), tree) for i, tree in enumerate(arguments)]
        return tensors, leaves([tensors[i] for i in argnums])

    tensors, variables = enter_all()

    def call_resident() -> Any:
        value = function(*tensors)
        return value.detach(), torch.autograd.grad(value, variables)

    def call() -> Any:
        tensors, variables = enter_all()
        value = function(*tensors)
        return value.item(), [gradient.numpy() for gradient in torch.autograd.grad(value, variables)]

    return call_resident if workload.resident else call


def with_autograd(workload: Workload) -> Call:
    """HIPS autograd on the text of the plain-NumPy function, with its own `np` and `special`: NumPy in and out."""
    special = import_module("autograd.scipy.special")
    function = over(import_module("autograd.numpy"), workload.function, special=special)
    return partial(import_module("autograd").value_and_grad(function, workload.argnums), *workload.inputs())


def by_hand(workload: Workload) -> Call:
    """The value and gradient that a person wrote."""
    assert workload.by_hand
    return partial(workload.by_hand, *workload.inputs())


def by_hand_in_c(workload: Workload) -> Call:
    """The value and gradient that a person wrote in C."""
    assert workload.in_c
    return partial(workload.in_c, *workload.inputs())


def function_alone(workload: Workload) -> Call:
    """No contestant: the cost of the function without its gradient, in plain NumPy."""
    return partial(workload.function, *workload.inputs())


CONTESTANTS: dict[str, Callable[[Workload], Call]] = {
    "retrograd": with_retrograd,
    "native": with_native,
    "buffered": with_buffered,
    "jax": with_jax,
    "torch": with_torch,
    "autograd": with_autograd,
    "casadi": in_casadi.with_casadi,
    "pytensor": in_pytensor.with_pytensor,
    "drjit": in_drjit.with_drjit,
    "hand": by_hand,
    "c": by_hand_in_c,
    "function": function_alone,
}
COMPILERS = ("retrograd", "native", "jax")
SYSTEMS: dict[str, Mapping[str, Any]] = {  # the rows that each can express
    "casadi": in_casadi.ROWS,
    "pytensor": in_pytensor.ROWS,
    "drjit": in_drjit.ROWS,
}
PACKAGES = ("retrograd", "jax", "torch", "autograd", *SYSTEMS)


def takes_part(contestant: str, workload: Workload) -> bool:
    """Whether the contestant is installed and the workload is written for it."""
    if contestant in PACKAGES and find_spec(contestant) is None:
        return False
    if contestant == "autograd" and workload.writes:
        return False
    if contestant in SYSTEMS and workload.name not in SYSTEMS[contestant]:
        return False
    if contestant in ("native", "buffered", "c", "casadi") and compiler() is None:
        return False
    texts = {"c": workload.in_c, "jax": workload.in_jax, "torch": workload.in_torch, "hand": workload.by_hand}
    return texts.get(contestant, workload.function) is not None
