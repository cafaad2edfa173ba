"""Nodes of the graph that tensors build as they are computed, and the walk backwards through it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.executable import Executable
from ..compiler.settings import config
from ..compiler.stages import run
from ..ir.types import aval_of
from ..passes.pullback_at_results import recall
from .operations import Operation

_number = itertools.count(1)


class PastNode:
    """One past operation. ``next_functions`` are the nodes of its operands, each with the number of the result it took.

    ``name`` is the name of the operation. A node has a greater ``number`` than the nodes of its operands.
    """

    __slots__ = ("name", "next_functions", "number")

    def __init__(self, name: str, next_functions: tuple[tuple[PastNode | None, int], ...]) -> None:
        self.name, self.next_functions = name, next_functions
        self.number = next(_number)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def backward(self, cts: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of the operands, None if there is none; None in ``cts`` is a zero cotangent."""
        raise NotImplementedError


def walk_back(start: PastNode, index: int, ct: Any) -> None:
    """Send a cotangent of the result ``index`` of a node back to all values from which it was computed.

    The youngest node comes first, so that all cotangents of a node have arrived when its turn comes.
    """
    waiting = [(-start.number, start)]
    arrived: dict[PastNode, dict[int, Any]] = {start: {index: ct}}
    while waiting:
        node = heapq.heappop(waiting)[1]
        own = arrived.pop(node)
        cts = [own.get(k) for k in range(max(own) + 1)]
        for (before, k), found in zip(node.next_functions, node.backward(cts), strict=True):
            if before is None or found is None:
                continue
            if before not in arrived:
                arrived[before] = {}
                heapq.heappush(waiting, (-before.number, before))
            at = arrived[before]
            at[k] = np.add(at[k], found) if k in at else found


@dataclass(frozen=True, eq=False)
class Pullback:
    """The compiled adjoint of an operation with respect to its active operands.

    ``reads`` are positions in (operands..., captures..., results...).
    """

    active: tuple[bool, ...]
    reads: tuple[int, ...]
    executable: Executable


def pullback(operation: Operation, active: tuple[bool, ...]) -> Pullback:
    """The adjoint of an operation with respect to these operands, compiled at the first request."""
    return operation.graph.once(("pullback", config.now(), active), lambda: _compiled(operation, active))


def _compiled(operation: Operation, active: tuple[bool, ...]) -> Pullback:
    graph = operation.graph
    flags = [*active, *(False for _ in operation.captures)]
    made = recall(graph, flags, ["given" if a.inexact else None for a in operation.avals], nan_safe=config.nan_safe)
    return Pullback(active, made.reads, Executable(run(made.graph)))


class OperationNode(PastNode):
    """A NumPy operation: its adjoint, and the values that the adjoint reads."""

    __slots__ = ("_avals", "_kept", "_pullback")

    def __init__(
        self,
        operation: Operation,
        operands: tuple[tuple[PastNode | None, int], ...],
        found: Pullback,
        values: Sequence[Any],
    ) -> None:
        super().__init__(operation.graph.name, operands)
        self._pullback, self._avals = found, operation.avals
        self._kept = [values[k] for k in found.reads]

    def backward(self, cts: Sequence[Any]) -> Sequence[Any]:
        given = [
            np.zeros(aval.shape, aval.dtype)[()] if k >= len(cts) or cts[k] is None else cts[k]
            for k, aval in enumerate(self._avals)
            if aval.inexact
        ]
        found = iter(self._pullback.executable(*self._kept, *given))
        return [next(found) if on else None for on in self._pullback.active]


def turned(ct: Any) -> Any:
    """Convert a cotangent to or from torch's convention, whose gradients of complex numbers are conjugates of ours."""
    return ct.conj() if np.iscomplexobj(ct) else ct


def inexact(x: Any) -> bool:
    """Whether a value has cotangents."""
    return aval_of(x).inexact
