"""restricted: a function of the differentiated leaves, with the other arguments fixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compiler.signature import Argnums, take_apart, wanted
from ..tracer.interception import INTERCEPTION


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
