"""vjp: the value at a point, and the pullback there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..compiler.compilation import Derived
from ..compiler.compiled import Compiled
from ..compiler.later import Later, Run
from ..compiler.members import leaf_avals, members
from ..compiler.memory.loops import with_default
from ..compiler.recording import results_of
from ..compiler.settings import config
from ..compiler.signature import Argnums, Call, Wanted, wanted
from ..compiler.transform import Transform
from ..errors import OptionError
from ..passes.checkpoint.checkpoint import limited
from ..passes.control.expose_calls import at_rest
from ..passes.linearize import linearize as linearize_graph
from ..passes.pullback import pullback as pullback_graph
from ..tracer.containers import flatten_up_to
from ..tracer.record import Recorded
from ..tracer.tree import Spec, children, flatten, unflatten, written
from .functions.blocks import aligned
from .functions.cotangent import FunctionCotangent
from .functions.observed import FunctionCall, Observed, checked_form, observe, take_functions
from .gradients import before_derivatives
from .memory import MemoryPlan, plan_of


def split_aux(recorded: Recorded, has_aux: bool) -> tuple[Spec, int]:
    """The structure of the differentiated output, and how many results it has."""
    if not has_aux:
        return recorded.out_spec, len(recorded.graph.outputs)
    if not (recorded.out_spec.type is tuple and len(children(recorded.out_spec)) == 2):
        raise OptionError(
            f"with has_aux=True the function returns a pair (output, aux), not {written(recorded.out_spec)}",
            remedy="return output, aux",
        )
    head = children(recorded.out_spec)[0]
    return head, sum(1 for i in range(head.num_leaves) if i not in recorded.statics)


def vjp(
    function: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    fns: str = "captures",
    memory: MemoryPlan = None,
    backend: str | None = None,
) -> Any:
    """The value at a point, and the pullback there; ``derivative_docstrings`` has its parameters."""
    made = Vjp("vjp", has_aux=has_aux, fns=checked_form(fns), memory=plan_of(memory), backend=backend)
    try:
        return Compiled(function, made)(*primals)
    except FunctionResult:
        return _vjp_to_functions(function, primals, has_aux, partial(vjp, fns=fns, memory=memory, backend=backend))


class FunctionResult(Exception):  # noqa: N818 - a signal, not an error
    """A function that is pulled back returns functions."""


@dataclass(frozen=True)
class Vjp(Transform):
    """``vjp``; with ``argnums`` by these arguments alone."""

    has_aux: bool = False
    fns: str = "captures"
    memory: tuple[Any, ...] | None = None
    argnums: Argnums | None = None

    def take(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        chosen = tuple(range(len(args))) if self.argnums is None else self.argnums
        return take_functions(function, args, kwargs, chosen, self.fns)

    def check(self, function: Callable[..., Any], call: Call) -> None:
        chosen_of(function, call, self.argnums)

    def derive(self, function: Callable[..., Any], recorded: Recorded, call: Call) -> Derived:
        chosen = chosen_of(function, call, self.argnums)
        head, n = split_aux(recorded, self.has_aux)
        if any(callable(x) for i, x in recorded.statics.items() if i < head.num_leaves):
            raise FunctionResult
        seen = observe(call, recorded.graph)
        budget = self.memory[1] if self.memory is not None and self.memory[0] == "bytes" else None
        graph = before_derivatives(seen.graph)
        graph = graph if budget is not None else with_default(graph, self.memory)
        active = [*chosen.active, *(False for _ in recorded.captures), *(True for _ in range(seen.deltas))]
        lin = linearize_graph(graph, active, nan_safe=config.nan_safe)
        seeded = [aval.inexact and i < n for i, aval in enumerate(graph.out_avals)]
        forward = at_rest(lin.forward, seen.deltas)
        joined = budget is not None or limited(forward)
        later = Later(forward, pullback_graph(lin, seeded), len(graph.outputs), joined, budget)
        count, has_aux = len(recorded.graph.outputs), self.has_aux
        avals, results = leaf_avals(recorded, head), results_of(recorded)

        def assemble(found: Sequence[Any], run: Run) -> Any:
            tree = results(found[:count])

            def pullback(ct: Any) -> tuple[Any, ...]:
                grads = run(members(head, ct, avals, "the cotangent"))
                own = len(grads) - seen.deltas
                return tuple(seen.cotangents(chosen.tree(grads[:own]), found[count:], grads[own:]))

            return (tree[0], pullback, tree[1]) if has_aux else (tree, pullback)

        return Derived(forward, assemble, lin=lin, later=later)


def chosen_of(function: Callable[..., Any], call: Call, argnums: Argnums | None = None) -> Wanted:
    """What is differentiated: every argument, unless some are chosen."""
    chosen = tuple(range(len(children(children(call.spec)[0])))) if argnums is None else argnums
    return wanted(call, function, chosen, Observed, empty=isinstance(call, FunctionCall))


def _vjp_to_functions(
    function: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, pulled_back: Callable[..., Any]
) -> Any:
    """``vjp`` if results are functions: pull a pair (x, ct) of a result back through ``function(*primals)(x)``."""
    out = function(*primals)
    results, spec = flatten(out[0] if has_aux else out)

    def pullback(ct: Any) -> Any:
        parts = flatten_up_to(spec, ct, "the cotangent")
        parts = [FunctionCotangent(c) if callable(y) else c for y, c in zip(results, parts, strict=True)]
        given = unflatten(spec, parts)
        cts: list[Any] = []

        def evaluated(*args: Any) -> list[Any]:
            again = function(*args)
            matched = aligned(again[0] if has_aux else again, given)
            cts[:] = [c for _, c in matched]
            return [y for y, _ in matched]

        _, pull = pulled_back(evaluated, *primals)
        return pull(cts)

    return (out[0], pullback, out[1]) if has_aux else (out, pullback)
