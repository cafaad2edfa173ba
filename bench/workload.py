"""What a workload states: inputs, the plain-NumPy function, and the same for each contestant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

Function = Callable[..., Any]
Call = Callable[[], Any]  # returns (value, gradient)
Gradient = Any  # one tree of arrays for an int argnums, a tuple of them for a tuple


@dataclass(frozen=True)
class Workload:
    """One row of the benchmark.

    `function` is what a user of NumPy writes: retrograd and autograd differentiate that very text, and it is timed
    alone as the cost of the function. `in_jax` and `in_torch` take their package and return the function as its users
    write it, on the same arguments. `by_hand` takes the arguments and returns (value, gradient). What is None is left
    out of the row. `in_c` is the same as `by_hand` in frozen C.
    """

    name: str
    title: str
    dtype: str
    inputs: Callable[[], tuple[Any, ...]]
    function: Function
    argnums: int | tuple[int, ...] = 0
    in_retrograd: Callable[[Any], Function] | None = None  # where its users write rg.scan; None: `function` itself
    in_jax: Callable[[Any], Function] | None = None
    in_torch: Callable[[Any], Function] | None = None
    by_hand: Callable[..., tuple[Any, Gradient]] | None = None
    in_c: Callable[..., tuple[Any, Gradient]] | None = None
    writes: bool = False  # whether `function` writes into arrays
    resident: bool = False  # jax and torch keep arguments and gradients as arrays of their own, not NumPy's

    @property
    def rtol(self) -> float:
        """How far arrays may differ in norm: in float32 a relu's mask at an entry near zero hangs on the rounding."""
        return 1e-9 if np.dtype(self.dtype) == np.float64 else 5e-3


def leaves(tree: Any) -> list[Any]:
    """The arrays and numbers in nested tuples, lists and dicts, in order."""
    if isinstance(tree, dict):
        tree = [tree[key] for key in sorted(tree)]
    if isinstance(tree, (tuple, list)):
        return [leaf for branch in tree for leaf in leaves(branch)]
    return [tree]


def map_leaves(function: Function, tree: Any) -> Any:
    """The same tree with `function` applied to each array and number in it."""
    if isinstance(tree, dict):
        return {key: map_leaves(function, branch) for key, branch in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)([map_leaves(function, branch) for branch in tree])
    return function(tree)


def over(namespace: ModuleType, function: Function, **others: ModuleType) -> Function:
    """The same function, and the functions of its module that it calls, with `namespace` in the place of `np`.

    `others` stand in the places of the globals of their names.
    """
    assert isinstance(function, FunctionType)
    scope: dict[str, Any] = dict(function.__globals__, np=namespace, **others)
    for name, value in function.__globals__.items():
        if isinstance(value, FunctionType) and value.__globals__ is function.__globals__:
            scope[name] = FunctionType(value.__code__, scope, name, value.__defaults__, value.__closure__)
    twin: Function = FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    return twin
