"""Arguments of compiled functions that are never traced: their numbers are part of the signature, by value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.fixed import Fixed
from ..compiler.signature import Call, is_traced, parameter_names, take_apart
from ..compiler.transform import Transform
from ..errors import ArgnumsError, OptionError
from ..tracer.array import Tracer
from ..tracer.state.values import is_plain
from ..tracer.tree import map_leaves


@dataclass(frozen=True)
class Jit(Transform):
    """``jit`` with static arguments."""

    argnums: tuple[int, ...] = ()
    argnames: tuple[str, ...] = ()

    def take(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        return take_apart(function, *self.fixed(function, args, kwargs))

    def fixed(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, with ``Fixed`` for the numbers in static ones."""
        names = parameter_names(function)
        positions, keywords = set(), set(self.argnames)
        for k in self.argnums:
            if not -max(len(names), len(args)) <= k < max(len(names), len(args)):
                raise ArgnumsError(
                    f"static_argnums names {k}, but {self.describe(function)} has {len(names)} parameters",
                    remedy="give positions from 0; for a method, do not count the instance",
                )
            at = k % max(len(names), len(args))
            positions.add(at)
            keywords.update(names[at : at + 1])
        positions.update(names.index(name) for name in self.argnames if name in names)
        made = [_fixed(x, k) if k in positions else x for k, x in enumerate(args)]
        return tuple(made), {name: _fixed(x, name) if name in keywords else x for name, x in kwargs.items()}


def _fixed(argument: Any, name: int | str) -> Any:
    def fixed(x: Any) -> Any:
        if isinstance(x, (np.ndarray, Tracer)):
            what = "a traced value" if isinstance(x, Tracer) else "an array"
            raise OptionError(
                f"the static argument {name!r} holds {what}",
                remedy="make it a traced argument; static arguments are numbers, strings and other hashable objects",
            )
        return Fixed(x) if is_traced(x) or type(x) in (int, bool) else x

    whole = type(argument) is tuple and is_plain(argument)
    return Fixed(argument) if whole else map_leaves(fixed, argument)


def checked(static_argnums: Any, static_argnames: Any) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Both options as tuples; OptionError for others than ints and names."""
    nums = _tuple(static_argnums, int)
    names = _tuple(static_argnames, str)
    if nums is None or names is None:
        wrong = f"static_argnums={static_argnums!r}" if nums is None else f"static_argnames={static_argnames!r}"
        raise OptionError(wrong, remedy="give positions and names of parameters: static_argnums=1, static_argnames='n'")
    return nums, names


def _tuple(given: Any, kind: type) -> tuple[Any, ...] | None:
    found: Sequence[Any] = () if given is None else [given] if isinstance(given, kind) else given
    if not isinstance(found, (tuple, list)) or not all(isinstance(x, kind) and x is not True for x in found):
        return None
    return tuple(found)
