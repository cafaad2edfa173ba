"""config: what holds for everything that is compiled from now on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..errors import InternalError, OptionError, UnusedPlanWarning
from ..ir.graph import Graph
from ..ir.parser import parse
from ..ir.primitive import TRANSFORMS
from ..ir.printer import to_text
from ..ir.verify import verify
from ..passes.checkpoint.across import across
from ..passes.checkpoint.checkpoint import checkpoint as checkpoint_pass
from ..passes.checkpoint.checkpoint import keeping_all, run_again
from ..passes.inline import open_calls
from ..passes.lower import lower
from ..passes.own_outputs import own_outputs
from ..passes.patterns import Rule
from ..passes.pipeline import pipeline
from ..passes.prune import prune
from ..passes.remat.search import turns, without_turn
from ..passes.remat.split import apart, in_turn, together
from ..passes.rules import FAST, REASSOCIATE
from ..passes.simplify import simplify as simplify_pass
from ..where import warn
from .counters import Counters, counting
from .memory.budgets import Choosing, within_budget
from .memory.loops import within_budgets
from .memory.shared import budgets_for_loops


class Settings(NamedTuple):
    """All settings; part of the key of whatever is compiled."""

    exact: bool = False
    fast: bool = False
    verify: int = 0
    max_traces: int = 64
    max_nodes: int = 1_000_000
    counters: bool = False
    nan_safe: bool = False
    debug_nans: bool = False
    check_captures: bool = False


OVERRIDES: ContextVar[Settings | None] = ContextVar("retrograd_config", default=None)


class Config:
    """Settings; assign them, or use ``with rg.config(exact=True):`` for a while.

    ``exact``: only rewrites that keep every bit; values then equal plain NumPy's bit for bit.
    ``fast``: also rewrites that may change overflow and nan, such as ``x / x`` to 1.
    ``verify``: 0 checks each graph once, 1 after each pass, 2 also its text form, 3 also prints it.
    ``max_traces``: ways through a function that are compiled for one signature; further ones are interpreted.
    ``max_nodes``: operations in one recording; a longer one is an error that names the line.
    ``counters``: generated code counts the steps of checkpointed loops; ``rg.debug_counters`` turns it on.
    ``nan_safe``: in derivatives zero times infinity is zero; also an option of ``grad`` and ``jit``.
    ``debug_nans``: the first nan or infinity is an error; ``rg.debug_nans`` turns it on.
    ``check_captures``: each call records again, and warns where what was compiled is stale.

    >>> import retrograd as rg
    >>> with rg.config(exact=True):
    ...     rg.config.exact
    True
    >>> rg.config.exact
    False
    """

    exact: bool
    fast: bool
    verify: int
    max_traces: int
    max_nodes: int
    counters: bool
    nan_safe: bool
    debug_nans: bool
    check_captures: bool
    base: Settings

    def __init__(self) -> None:
        object.__setattr__(self, "base", Settings())

    def now(self) -> Settings:
        """The settings in force here."""
        return OVERRIDES.get() or self.base

    def __getattr__(self, name: str) -> Any:
        if name not in Settings._fields:
            raise AttributeError(f"rg.config has no setting {name!r}; it has {', '.join(Settings._fields)}")
        return getattr(self.now(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, "base", _replaced(self.base, {name: value}))

    def __dir__(self) -> tuple[str, ...]:
        return Settings._fields

    def __repr__(self) -> str:
        return f"rg.config({', '.join(f'{name}={value!r}' for name, value in self.now()._asdict().items())})"

    @contextmanager
    def __call__(self, **settings: Any) -> Iterator[Config]:
        """Settings for the block, in this thread or task alone."""
        token = OVERRIDES.set(_replaced(self.now(), settings))
        try:
            yield self
        finally:
            OVERRIDES.reset(token)

    def rules(self) -> list[Rule]:
        """The tables of rewrites that are on beside the exact one."""
        return [*([] if self.exact else REASSOCIATE), *(FAST if self.fast else [])]

    def optimised(self, graph: Graph) -> Graph:
        """The graph after the passes that these settings choose."""
        return without_turn(self.divided(graph))

    def divided(self, graph: Graph) -> Graph:
        """The same, but that the turn of a gradient with a budget is still in it."""
        rules = self.rules()

        def simplify(graph: Graph) -> Graph:
            return simplify_pass(graph, rules)

        planning = (self.opened, self.loops, self.budget, self.checkpoint, self.crossing)
        passes = (prune, lower, simplify, *planning, own_outputs)
        return _warned(pipeline(graph, passes, self.watch if self.verify >= 2 else None, check=self.verify >= 1))

    def optimised_apart(self, head: Graph, outs: int, tail: Graph) -> tuple[Graph, Graph]:
        """The same for two graphs, of which the second begins with the results of the first from ``outs`` on.

        Loops whose residuals go from one to the other follow their plans. The second may run any number of times.
        """
        head, tail = self.settled(head), self.settled(tail)
        head, tail = across(head, outs, tail, 0, lambda graph: self.checkpoint(self.budget(graph)))
        return _warned(verify(own_outputs(head))), verify(own_outputs(run_again(tail)))

    def optimised_within(self, forward: Graph, outs: int, back: Graph) -> tuple[Graph, Graph]:
        """The same for x… → y…, r… and r…, ȳ… → x̄…, which become x… → y…, kept… and x…, kept…, ȳ… → x̄….

        What is kept is what the budget allows that is written at the turn with which the second begins: a call of the
        first and one of the second together stay within it.
        """
        inputs = len(forward.inputs)
        joint = self.opened(together(self.settled(forward), outs, self.settled(back)))

        def divided(graph: Graph) -> tuple[Graph, Graph]:
            head, tail = apart(graph, inputs, outs)
            return own_outputs(head), own_outputs(run_again(tail))

        def finish(graph: Graph) -> Graph:
            head, tail = divided(graph)
            return in_turn(head, outs, tail)

        def within(graph: Graph) -> Graph:
            return within_budgets(graph, lambda graph: finish(self.checkpoint(graph)))

        def planned(graph: Graph) -> Graph:
            return self.checkpoint(within(graph))

        def offer(graph: Graph) -> Choosing:
            return Choosing(planned(graph), finish)

        joint = planned(budgets_for_loops(joint, within, offer))
        head, tail = divided(within_budget(joint, finish))
        return _warned(verify(head)), verify(tail)

    def settled(self, graph: Graph) -> Graph:
        """The graph as it is before loops follow their plans."""
        return self.opened(simplify_pass(lower(prune(graph)), self.rules()))

    def opened(self, graph: Graph) -> Graph:
        """In a gradient with a budget of its own, what functions called by it compute may be computed again, too."""
        return open_calls(graph) if turns(graph) else graph

    def finished(self, graph: Graph) -> Graph:
        """What the rest of the pipeline makes of that."""
        return own_outputs(self.checkpoint(self.budget(graph)))

    def checkpoint(self, graph: Graph) -> Graph:
        """The pass, with statements that count where that is asked for."""
        return checkpoint_pass(graph, self.counters)

    def loops(self, graph: Graph) -> Graph:
        """In a gradient with a budget of its own, plans for its loops, if they need them."""
        return budgets_for_loops(graph, self.budget, self.offer)

    def offer(self, graph: Graph) -> Choosing:
        """What a gradient may keep outside of its loops, which follow their plans."""
        return Choosing(self.checkpoint(self.budget(graph)), own_outputs)

    def crossing(self, graph: Graph) -> Graph:
        """In a gradient with a budget of its own, what fits is kept, and the rest computed again."""
        return within_budget(graph, own_outputs)

    def budget(self, graph: Graph) -> Graph:
        """Plans in place of budgets, for what follows in the pipeline."""
        return within_budgets(graph, lambda planned: own_outputs(self.checkpoint(planned)))

    @contextmanager
    def counting(self) -> Iterator[Counters]:
        """What ``rg.debug_counters`` is."""
        with self(counters=True), counting() as counters:
            yield counters

    def debugging_nans(self) -> AbstractContextManager[Config]:
        """What ``rg.debug_nans`` is."""
        return self(debug_nans=True)

    def watch(self, name: str, graph: Graph, seconds: float) -> None:
        """What the pipeline's hook does at ``verify`` 2 and 3."""
        text = to_text(graph)
        if to_text(parse(text)) != text:
            raise InternalError(f"the text of {graph.name} after {name} does not round trip")
        if self.verify >= 3:
            sys.stderr.write(f"--- {name}: {len(graph.nodes)} nodes, {1e3 * seconds:.2f} ms\n{text}")


def _warned(graph: Graph) -> Graph:
    for where in dict.fromkeys(node.where for node in keeping_all(graph)):
        warn(
            f"the plan of memory for the loop at {where} is not followed: all its residuals are kept, since something "
            "else than a loop reads them; put it on a loop around rg.cond, or use rg.vjp instead of rg.linearize",
            UnusedPlanWarning,
        )
    return graph


def _replaced(settings: Settings, changes: dict[str, Any]) -> Settings:
    for name, value in changes.items():
        if name not in Settings._fields:
            raise OptionError(f"rg.config has no setting {name!r}", remedy=f"it has {', '.join(Settings._fields)}")
        default = Settings._field_defaults[name]
        if type(value) is not type(default) or (name == "verify" and value not in range(4)) or value < 0:
            allowed = "0 to 3" if name == "verify" else "False and True" if default is False else "counts from 0"
            raise OptionError(f"rg.config.{name} = {value!r}", remedy=f"choose from {allowed}")
    return settings._replace(**changes)


config = Config()
TRANSFORMS.register("nan_safe")(lambda: config.nan_safe)
