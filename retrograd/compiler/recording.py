"""The trace of a call of the user's function: one per signature and path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..tracer.record import Recorded, record
from ..tracer.trace import CURRENT
from ..tracer.tree import Spec, unflatten
from .garbage import unhurried
from .settings import config
from .signature import Call, name_of


def record_call(function: Callable[..., Any], call: Call, examples: Sequence[Any]) -> Recorded:
    """Run a function on traced values that stand for the arguments of a call."""
    with unhurried:
        return record(
            partial(call.applied, function),
            name_of(function),
            examples,
            call.hints,
            max_nodes=config.max_nodes,
            gathers=CURRENT.get() is not None,  # what happens in the function stays there
        )


def form_of(recorded: Recorded) -> Any:
    """A key that is equal for recordings with equal ``results_of``."""
    return recorded.out_spec, recorded.statics


def results_of(recorded: Recorded) -> Callable[[Sequence[Any]], Any]:
    """Results in the structure that the function returned, static ones included."""
    return assembler(recorded.out_spec, recorded.statics)


def assembler(spec: Spec, statics: dict[int, Any]) -> Callable[[Sequence[Any]], Any]:
    """From a flat list of results to the tree ``spec`` with ``statics`` at their places."""
    if spec.is_leaf() and not statics:
        return _only
    n = spec.num_leaves

    def assemble(results: Sequence[Any]) -> Any:
        rest = iter(results)
        return unflatten(spec, [statics[i] if i in statics else next(rest) for i in range(n)])

    return assemble


def _only(results: Sequence[Any]) -> Any:
    return results[0]
