"""Chosen arguments: a check of ``argnums``, and the function of the differentiated leaves, with the others fixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.signature import Argnums, take_apart, wanted
from ..errors import ArgnumsError
from ..ir.primitive import TRANSFORMS
from ..tracer.interception import INTERCEPTION


@TRANSFORMS.register("checked_argnums")
def checked_argnums(label: str, argnums: Any) -> Argnums:
    """Positions and names, several as a tuple; ArgnumsError for anything else, such as the arguments themselves."""
    several = isinstance(argnums, (list, tuple))
    for k in argnums if several else (argnums,):
        if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer, str)):
            raise ArgnumsError(
                f"argnums of {label} is of type {type(k).__name__}, not a position or a name",
                remedy=f"write {label}(f)(x): the result takes the arguments of f; argnums=(0, 1) chooses among them",
            )
    return tuple(argnums) if several else argnums


def restricted(
    function: Callable[..., Any], argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], list[Any], Callable[[list[Any]], Any]]:
    """The function of its differentiated leaves alone, these leaves, and the function that makes gradients a tree."""
    call = take_apart(function, args, kwargs)
    meant = INTERCEPTION.meaning(function)
    chosen = wanted(call, function, argnums)
    at = [k for k, on in enumerate(chosen.active) if on]
    values = call.values()

    def of_leaves(*leaves: Any) -> Any:
        full = list(values)
        for k, leaf in zip(at, leaves, strict=True):
            full[k] = leaf
        return call.applied(meant, full)

    return of_leaves, [values[k] for k in at], chosen.tree


def by_complex(along_one: Any, along_i: Any) -> Any:
    """The derivative by complex numbers z = a + ib, of what has these derivatives along 1 and i: ∂/∂a - i ∂/∂b.

    Of complex results it is half of that, which is f' where f is holomorphic.
    """
    twice = along_one - 1j * along_i
    return 0.5 * twice if np.iscomplexobj(along_one) else twice
