"""The history of all records: a tree of steps, in which records with the same operations follow one path."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..compiler.cache import CacheInfo
from ..compiler.executable import Executable
from ..compiler.settings import Settings, config
from ..compiler.stages import run
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph
from ..ir.rewrite import with_nodes
from ..ir.types import Aval
from ..passes.inline import inline_into
from ..passes.pullback_at_results import recall
from ..where import Where
from .operations import Operation

LARGEST = 100_000  # the most steps that are kept; then the history begins anew

Origin = int | np.ndarray[Any, Any] | None


@dataclass(frozen=True, eq=False)
class Adjoint:
    """A compiled gradient with respect to the values at the positions ``targets``.

    ``reads`` lists the arguments of the executable: positions of values, or arrays that an operation captured.
    """

    targets: tuple[int, ...]
    reads: tuple[Origin, ...]
    executable: Executable

    def __call__(self, values: Sequence[Any]) -> dict[int, Any]:
        """Cotangents by position."""
        given = [values[k] if type(k) is int else k for k in self.reads]
        return dict(zip(self.targets, self.executable(*given), strict=True))


@dataclass(eq=False)
class Step:
    """One step of a record, after those ``before`` it: a leaf of this aval, or an operation on earlier values.

    Its values have the positions from ``first`` on. A leaf is a ``variable`` or a constant. ``where`` is the line that
    first took the step.
    """

    before: Step | None = None
    first: int = 0
    aval: Aval | None = None
    variable: bool = False
    operation: Operation | None = None
    operands: tuple[int, ...] = ()
    where: Where | None = None
    following: dict[Hashable, Step] = field(default_factory=dict)
    adjoints: dict[tuple[Settings, int], Adjoint] = field(default_factory=dict)

    def path(self) -> list[Step]:
        """The steps from the first leaf to this one."""
        steps = []
        step: Step | None = self
        while step is not None:
            steps.append(step)
            step = step.before
        return steps[::-1]

    def then(self, key: Hashable, make: Callable[[], Step]) -> Step:
        """The step that follows under a key; ``make`` records it if no record has taken it before."""
        found = self.following.get(key)
        if found is None:
            made = make()
            HISTORY.misses += 1
            HISTORY.size += 1
            return self.following.setdefault(key, made)
        HISTORY.hits += 1
        return found

    def adjoint(self, loss: int, target: int | None = None) -> Adjoint:
        """The gradient of a value with respect to all variables and all targets, those of earlier requests included."""
        key = (config.now(), loss)
        known = self.adjoints.get(key)
        if known is None:
            variables = [s.first for s in self.path() if s.variable and s.aval is not None and s.aval.inexact]
            known = self.adjoints[key] = self._compiled(loss, variables)
        if target is not None and target not in known.targets:
            known = self.adjoints[key] = self._compiled(loss, [*known.targets, target])
        return known

    def _compiled(self, loss: int, targets: Sequence[int]) -> Adjoint:
        HISTORY.misses += 1
        graph, origins, moves = self._unfolded(loss, sorted(targets))
        positions = len(graph.outputs)
        found = recall(
            graph, [v in moves for v in graph.inputs], ["one", *[None] * (positions - 1)], nan_safe=config.nan_safe
        )
        reads = tuple(origins[k] for k in found.reads)
        assert None not in [r for r in reads if not isinstance(r, np.ndarray)]
        return Adjoint(tuple(sorted(targets)), reads, Executable(run(found.graph)))

    def _unfolded(self, loss: int, targets: Sequence[int]) -> tuple[Graph, list[Origin], set[Any]]:
        """All steps as one graph, the meaning of its inputs and results, and the inputs that are moves.

        A move is an input that is added to a target, so that its cotangent is that of the target. A value is a result
        both before and after the addition: both are remembered as the same value, since a move is zero.
        """
        b = Builder()
        inputs: list[Origin] = []
        values: list[Symbol] = []
        unmoved: list[Symbol] = []
        moves = set()

        def entered(aval: Aval, origin: Origin) -> Symbol:
            inputs.append(origin)
            return b.input(aval)

        for step in self.path():
            if step.aval is not None:
                unmoved.append(entered(step.aval, step.first))
            elif step.operation is not None:
                op = step.operation
                captures = op.graph.inputs[len(step.operands) :]
                held = [entered(v.aval, array) for v, array in zip(captures, op.captures, strict=True)]
                unmoved += _applied(b, op.graph, [*(values[k] for k in step.operands), *held], step.where)
            b.where = None
            for k in range(len(values), len(unmoved)):
                if k in targets:
                    move = entered(unmoved[k].aval, None)
                    moves.add(move.value)
                    values.append(unmoved[k] + move)
                else:
                    values.append(unmoved[k])
        n = len(values)
        return b.graph("record", [values[loss], *values, *unmoved]), [*inputs, loss, *range(n), *range(n)], moves


def _applied(b: Builder, graph: Graph, args: Sequence[Symbol], where: Where | None) -> list[Symbol]:
    """The results of an operation's graph, whose nodes get the line of the step."""
    return inline_into(b, with_nodes(graph, (replace(node, where=where) for node in graph.nodes)), args)


class History:
    """The root of all steps, with counts of the steps found, recorded and compiled."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.root = Step()
        self.hits = self.misses = self.size = 0

    def begin(self) -> Step:
        """The place where a new record starts."""
        if self.size > LARGEST:
            self.clear()
        return self.root

    def info(self) -> CacheInfo:
        """Counts of steps found, of steps and gradients made, and of steps kept."""
        return CacheInfo(self.hits, self.misses, self.size)


HISTORY = History()
