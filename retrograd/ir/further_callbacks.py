"""The signatures of the rules for lanes, for unused results and for storage."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .builder import Symbol
    from .graph import Node
    from .primitive import Primitive
    from .types import Aval


class BatchRule(Protocol):
    """The node over lanes, a new first axis of the operands whose flag is set."""

    def __call__(self, prim: Primitive, size: int, args: list[Symbol], flags: list[bool], /, **attrs: Any) -> Any:
        """The result, which has lanes; with ``multi`` the results, and for each whether it has lanes."""


class DceRule(Protocol):
    """Drop the unused results of a node."""

    def __call__(self, node: Node, used: list[bool], /) -> tuple[dict[str, Any], list[int], list[int]]:
        """The attributes that remain, and the operands and results, by position."""


class FreshRule(Protocol):
    """The results of a node with several results that share storage with nothing else."""

    def __call__(self, node: Node, /) -> Collection[int]:
        """The positions of these results."""


class ThroughRule(Protocol):
    """A write through a view, which the primitive makes of its first operand."""

    def __call__(
        self, new: Symbol, shape: tuple[int, ...], before: Callable[[], Symbol], /, *rest: Symbol, **attrs: Any
    ) -> Symbol:
        """The contents of that operand, which has this shape, after the view received ``new``.

        ``before()`` gives the contents before; ``rest`` are the further operands.
        """


class ScratchRule(Protocol):
    """The workspace that is allocated while the code of a node runs."""

    def __call__(self, *avals: Aval, **attrs: Any) -> int:
        """The bytes of the workspace."""
