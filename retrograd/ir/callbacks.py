"""The signatures of the rules of primitives; a primitive has the rules that its declaration names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .builder import Builder, Symbol
    from .graph import Graph, Node
    from .primitive import JvpMode, Primitive
    from .types import Aval

Evaluate = Callable[["Graph", Sequence[Any]], tuple[Any, ...]]


class RunRule(Protocol):
    """Run a node in the interpreter: the results for operands that are values."""

    def __call__(self, evaluate: Evaluate, node: Node, /, *args: Any) -> Any:
        """``evaluate(graph, args)`` runs a body. With ``multi`` the results are a sequence, else a single value."""


class JvpRule(Protocol):
    """Emit a node and its tangents."""

    def __call__(
        self, b: Builder, node: Node, args: list[Symbol], tans: list[Symbol | None], mode: JvpMode, /
    ) -> tuple[Sequence[Symbol], Sequence[Symbol | None]]:
        """The results and their tangents, of which None is zero; some operand has a tangent."""


class TransposeRule(Protocol):
    """The cotangents of the operands in which the node is linear."""

    def __call__(
        self, b: Builder, node: Node, operands: list[Any], cts: list[Symbol | None], /
    ) -> Sequence[Symbol | None]:
        """One cotangent per operand, None for zero. An operand that is a Symbol is known; others have only avals."""


class BatchRule(Protocol):
    """The node over lanes, a new first axis of the operands whose flag is set."""

    def __call__(self, prim: Primitive, size: int, args: list[Symbol], flags: list[bool], /, **attrs: Any) -> Any:
        """The result, which has lanes; with ``multi`` the results, and for each whether it has lanes."""


class DceRule(Protocol):
    """Drop the unused results of a node."""

    def __call__(self, node: Node, used: list[bool], /) -> tuple[dict[str, Any], list[int], list[int]]:
        """The attributes that remain, and the operands and results, by position."""


class LowerRule(Protocol):
    """Replace a node once all differentiation is done."""

    def __call__(self, b: Builder, node: Node, args: list[Symbol], /) -> Sequence[Symbol]:
        """The results, made by other nodes."""


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
