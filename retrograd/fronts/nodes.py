"""Nodes of the graph that tensors build as they are computed, and the walk backwards through it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..api.config import Settings, config
from ..ir.types import Aval, aval_of
from ..passes.recall import recall
from ..runtime.cache import Cache
from ..runtime.executable import Executable
from .operations import Operation, recorded

LARGEST = 10_000  # operations that are kept, each with its shapes and dtypes; then they are recorded anew

_number = itertools.count(1)
_known: Cache[EagerOperation] = Cache()


class Node:
    """One operation of the past. ``next_functions`` are the nodes of its operands, and which result of them it took.

    ``name`` tells the operation. A node has a greater ``number`` than the nodes of its operands.
    """

    __slots__ = ("name", "next_functions", "number")

    def __init__(self, name: str, next_functions: tuple[tuple[Node | None, int], ...]) -> None:
        self.name, self.next_functions = name, next_functions
        self.number = next(_number)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def backward(self, cts: Sequence[Any]) -> Sequence[Any]:
        """Cotangents of the operands, None where there is none; in ``cts`` None is a zero cotangent."""
        raise NotImplementedError


def walk_back(start: Node, index: int, ct: Any) -> None:
    """Send a cotangent of the result ``index`` of a node back to everything that it was computed from.

    The youngest node comes first, so that all cotangents of a node have arrived when its turn comes.
    """
    waiting = [(-start.number, start)]
    arrived: dict[Node, dict[int, Any]] = {start: {index: ct}}
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
    """The compiled adjoint of an operation by its active operands.

    ``reads`` are positions in (operands..., captures..., results...).
    """

    active: tuple[bool, ...]
    reads: tuple[int, ...]
    executable: Executable


class EagerOperation:
    """A recorded operation with the adjoints that were compiled of it."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.avals = operation.graph.out_avals
        self._pullbacks: dict[tuple[Settings, tuple[bool, ...]], Pullback] = {}

    def pullback(self, active: tuple[bool, ...]) -> Pullback:
        """The adjoint by these operands, compiled at the first request."""
        key = (config.now(), active)
        found = self._pullbacks.get(key)
        if found is None:
            graph = self.operation.graph
            flags = [*active, *(False for _ in self.operation.captures)]
            seeds = ["given" if a.inexact else None for a in self.avals]
            made = recall(graph, flags, seeds)
            found = Pullback(active, made.reads, Executable(config.optimised(made.graph)))
            found = self._pullbacks.setdefault(key, found)
        return found


def eager_operation(key: Hashable, name: str, call: Callable[..., Any], given: Sequence[Any]) -> EagerOperation:
    """The operation of a request, recorded where it is new."""
    if len(_known.entries) > LARGEST:
        _known.entries.clear()
    return _known.get(key, lambda: EagerOperation(recorded(name, call, given)))


class OperationNode(Node):
    """A NumPy operation: its adjoint and the values that this reads."""

    __slots__ = ("_avals", "_kept", "_pullback")

    def __init__(
        self, name: str, operands: tuple[tuple[Node | None, int], ...], pullback: Pullback, kept: list[Any],
        avals: Sequence[Aval],
    ) -> None:  # fmt: skip
        super().__init__(name, operands)
        self._pullback, self._kept, self._avals = pullback, kept, avals

    def backward(self, cts: Sequence[Any]) -> Sequence[Any]:
        given = [
            np.zeros(aval.shape, aval.dtype)[()] if k >= len(cts) or cts[k] is None else cts[k]
            for k, aval in enumerate(self._avals)
            if aval.inexact
        ]
        found = iter(self._pullback.executable(*self._kept, *given))
        return [next(found) if on else None for on in self._pullback.active]


def aval_key(x: Any) -> Any:
    """What an operand's type is, quickly."""
    if type(x) is np.ndarray:
        return x.shape, x.dtype
    return type(x)


def turned(ct: Any) -> Any:
    """A cotangent between our convention and torch's, whose gradients of complex numbers are the conjugates of ours."""
    return ct.conj() if np.iscomplexobj(ct) else ct


def inexact(x: Any) -> bool:
    """Whether a value has cotangents."""
    return aval_of(x).inexact
