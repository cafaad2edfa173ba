"""Checkpoint schedules as plain data, the placers that make them, and the model machine that validates them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from ..errors import InternalError

Verb = Literal["advance", "save", "load", "drop", "back", "tape", "reverse", "store", "fetch", "discard"]
Step = tuple[Verb, int, int]
F = TypeVar("F", bound=Callable[..., Any])


class Action(NamedTuple):
    """One step of a schedule over states 0 ... n of a loop of n steps.

    ``advance i j`` runs the plain steps i ... j-1 from the working state; ``save i`` keeps the working state
    i in a slot; ``load i`` makes the kept state i the working one; ``drop i`` frees its slot; ``back i j``
    runs step i (j is i+1) with its residuals and at once its adjoint. ``tape i j`` runs step i and keeps its
    residuals in a slot, ``reverse i j`` runs its adjoint from them and frees the slot. ``store``, ``fetch`` and
    ``discard`` are save, load and drop on disk.
    """

    verb: Verb
    i: int
    j: int


Schedule = Sequence[Step]


@dataclass(frozen=True)
class Placer:
    """A function that makes schedules, or parts of them: it runs here and, as ``source``, in generated modules."""

    function: Callable[..., Any]
    needs: tuple[str, ...]

    @property
    def source(self) -> str:
        """The function as plain Python, without annotations and docstring."""
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body
        assert isinstance(definition, ast.FunctionDef)
        definition.decorator_list = []
        definition.body = definition.body[1:]
        return ast.unparse(_Bare().visit(definition))

    @property
    def sources(self) -> list[str]:
        """The sources of the functions that it calls, and its own."""
        called = [text for name in self.needs for text in PLACERS[name].sources]
        return list(dict.fromkeys([*called, self.source]))


class _Bare(ast.NodeTransformer):
    """Takes annotations away."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None
        return ast.copy_location(ast.Assign([node.target], node.value), node)


PLACERS: dict[str, Placer] = {}


def placer(*needs: Callable[..., Any]) -> Callable[[F], F]:
    """Register a function under its name, with the registered functions that it calls."""

    def add(function: F) -> F:
        PLACERS[function.__name__] = Placer(function, tuple(f.__name__ for f in needs))
        return function

    return add


@dataclass
class Machine:
    """Replays a schedule for ``n`` steps with at most ``slots`` kept states, and counts.

    A kept tape or state weighs 1, or ``tapes`` or ``states[i]``. ``disk`` is the number of slots on disk, ``costs[i]``
    is the cost of advancing over step i. Raises ``InternalError`` at the first action that a real run could
    not carry out.
    """

    n: int
    slots: int
    disk: int = 0
    tapes: int = 1
    states: Sequence[int] = ()
    costs: Sequence[int] = ()
    working: int | None = 0
    kept: set[int] = field(default_factory=set)
    taped: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    adjoint: int = -1  # the state whose cotangent is known; -1 stands for n, before the first back
    advances: int = 0
    tape_steps: int = 0
    cost: int = 0
    writes: int = 0
    reads: int = 0
    peak: int = 0

    def run(self, schedule: Iterable[Step]) -> Machine:
        """Replay all actions, then check that every step was reversed and nothing is left stored."""
        self.adjoint = self.n
        for verb, i, j in schedule:
            getattr(self, f"_{verb}")(i, j)
        if self.adjoint != 0:
            raise InternalError(f"the schedule stops at state {self.adjoint}, not at 0")
        for left in (self.kept, self.taped, self.stored):
            if left:
                raise InternalError(f"states {sorted(left)} are left stored")
        return self

    def _expect(self, ok: bool, what: str) -> None:
        if not ok:
            raise InternalError(f"bad schedule: {what}")

    def _advance(self, i: int, j: int) -> None:
        self._expect(self.working == i and i < j <= self.n, f"advance {i} {j} from state {self.working}")
        self.working = j
        self.advances += j - i
        self.cost += sum(self.costs[i:j])

    def _save(self, i: int, _: int) -> None:
        self._expect(self.working == i and i not in self.kept, f"save {i} at state {self.working}")
        self.kept.add(i)
        self._weigh()

    def _weigh(self) -> None:
        weight = sum(self.states[i] for i in self.kept) if self.states else len(self.kept)
        weight += len(self.taped) * self.tapes
        self.peak = max(self.peak, weight)
        self._expect(weight <= self.slots, f"{weight} states in {self.slots} slots")

    def _load(self, i: int, _: int) -> None:
        self._expect(i in self.kept, f"load {i}, which is not kept")
        self.working = i

    def _drop(self, i: int, _: int) -> None:
        self._expect(i in self.kept, f"drop {i}, which is not kept")
        self.kept.remove(i)

    def _back(self, i: int, j: int) -> None:
        self._expect(self.working == i and j == i + 1 == self.adjoint, f"back {i} with adjoint {self.adjoint}")
        self.working, self.adjoint = None, i
        self.tape_steps += 1

    def _tape(self, i: int, j: int) -> None:
        self._expect(self.working == i and j == i + 1 <= self.n, f"tape {i} at state {self.working}")
        self.taped.add(i)
        self.working = j
        self.tape_steps += 1
        self._weigh()

    def _reverse(self, i: int, j: int) -> None:
        self._expect(i in self.taped and j == i + 1 == self.adjoint, f"reverse {i} with adjoint {self.adjoint}")
        self.taped.remove(i)
        self.working, self.adjoint = None, i

    def _store(self, i: int, _: int) -> None:
        self._expect(self.working == i and i not in self.stored, f"store {i} at state {self.working}")
        self.stored.add(i)
        self.writes += 1
        self._expect(len(self.stored) <= self.disk, f"{len(self.stored)} states in {self.disk} slots on disk")

    def _fetch(self, i: int, _: int) -> None:
        self._expect(i in self.stored, f"fetch {i}, which is not stored")
        self.working = i
        self.reads += 1

    def _discard(self, i: int, _: int) -> None:
        self._expect(i in self.stored, f"discard {i}, which is not stored")
        self.stored.remove(i)


def keep_everything(n: int) -> Schedule:
    """The schedule without recomputation: every state is kept. Needs n slots."""
    forward = [a for i in range(n) for a in (Action("save", i, i), Action("advance", i, i + 1))]
    backward = [
        a for i in reversed(range(n)) for a in (Action("load", i, i), Action("drop", i, i), Action("back", i, i + 1))
    ]
    return (*forward[:-1], *backward)
