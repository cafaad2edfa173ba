"""The signatures of the rules by which graphs are run, differentiated and lowered; a declaration names its rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from .builder import Builder, Symbol
    from .graph import Graph, Node

Evaluate = Callable[["Graph", Sequence[Any]], tuple[Any, ...]]


class RunRule(Protocol):
    """Run a node in the interpreter: the results for operands that are values."""

    def __call__(self, evaluate: Evaluate, node: Node, /, *args: Any) -> Any:
        """``evaluate(graph, args)`` runs a body. With ``multi`` the results are a sequence, else a single value."""


class JvpMode(NamedTuple):
    """How tangents are made; rules of structural primitives hand it on to the transforms of their bodies.

    With ``split`` nothing that gives results may depend on a tangent: a structural node becomes one that also gives
    residuals, and one that is linear in the tangents and reads them. With ``nan_safe`` a zero tangent annihilates.
    """

    split: bool
    nan_safe: bool


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


class LowerRule(Protocol):
    """Replace a node once all differentiation is done."""

    def __call__(self, b: Builder, node: Node, args: list[Symbol], /) -> Sequence[Symbol]:
        """The results, made by other nodes."""
