"""grad and value_and_grad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..compiler.compilation import Derived
from ..compiler.compiled import Compiled
from ..compiler.recording import assembler, form_of
from ..compiler.settings import config
from ..compiler.signature import Argnums, Call, Wanted, wanted
from ..compiler.transform import Transform
from ..errors import IndependentOutputWarning, NonDifferentiableError, NonScalarOutputError, OptionError
from ..ir.graph import Graph
from ..ir.primitive import TRANSFORMS
from ..passes.differentiate import value_and_grad as value_and_grad_graph
from ..passes.linearize import linearize
from ..passes.rules import BEFORE
from ..passes.simplify import simplify
from ..passes.transpose import transpose
from ..tracer.record import Recorded
from ..tracer.tree import children, written
from ..where import user_site, warn


def before_derivatives(graph: Graph) -> Graph:
    """The graph after the rewrites that apply in front of derivatives."""
    if config.exact:
        return simplify(graph)
    graph = TRANSFORMS.hoist_invariants(simplify(graph, BEFORE))
    return simplify(TRANSFORMS.rows_apart(graph) if config.backend == "native" else TRANSFORMS.join_parts(graph))


@dataclass(frozen=True)
class Gradient(Transform):
    """``grad`` and ``value_and_grad``."""

    argnums: Argnums = 0
    has_aux: bool = False
    fns: str = "captures"
    value: bool = False
    memory: int | None = None

    def take(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        call: Call = TRANSFORMS.take_functions(function, args, kwargs, self.argnums, self.fns)
        return call

    def check(self, function: Callable[..., Any], call: Call) -> None:
        self.wanted(function, call)

    def wanted(self, function: Callable[..., Any], call: Call) -> Wanted:
        return wanted(call, function, self.argnums, call.apart, empty=call.apart is not None)

    def derive(self, function: Callable[..., Any], recorded: Recorded, call: Call) -> Derived:
        chosen, seen = self.wanted(function, call), TRANSFORMS.observe(call, recorded.graph)
        self.check_output(recorded)
        active = [*chosen.active, *(False for _ in recorded.captures), *(True for _ in range(seen.deltas))]
        graph = seen.graph
        if self.memory is not None:  # this budget holds, and none of a derivative inside
            graph = TRANSFORMS.without_turn(graph)
        simple = before_derivatives(graph)
        lin = linearize(simple, active, nan_safe=config.nan_safe)
        if not lin.out_active[0] and (any(active) or self.fns == "pairs"):  # a function may capture nothing
            output = f"the output of {self.describe(function)}"
            warn(
                f"{output} does not depend on argument {self.argnums!r}: the gradient is zero", IndependentOutputWarning
            )
        keep = self.value or self.has_aux or bool(seen.sites)
        graph = value_and_grad_graph(simple, active, lin, keep, {"budget": self.memory})
        if seen.deltas:
            graph = TRANSFORMS.at_rest(graph, seen.deltas)
        n, end = (len(recorded.graph.outputs), len(simple.outputs)) if keep else (0, 0)
        many, plain = isinstance(self.argnums, (tuple, list)), call.apart is None

        def tree(found: Sequence[Any]) -> Any:
            return chosen.tree(found[n:]) if plain else _with_functions(many, chosen, seen, found[n:end], found[end:])

        graphs = {"linearized": lambda: lin.linear, "adjoint": lambda: transpose(lin.linear, len(lin.residuals))}
        return Derived(graph, self.assembler_of(recorded, n, tree), form_of(recorded) if plain else None, graphs, lin)

    def assembler_of(self, recorded: Recorded, n: int, tree: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
        """From ``n`` results of the function and what ``tree`` makes the gradients of to the user's result."""
        results, with_value, with_aux = assembler(recorded.out_spec, recorded.statics), self.value, self.has_aux

        def assemble(found: Sequence[Any]) -> Any:
            if with_value:
                return results(found[:n]), tree(found)
            return (tree(found), results(found[:n])[1]) if with_aux else tree(found)

        return assemble

    def check_output(self, recorded: Recorded) -> None:
        where = user_site()[0]
        if self.has_aux and not (recorded.out_spec.type is tuple and len(children(recorded.out_spec)) == 2):
            raise OptionError(
                f"with has_aux=True the function returns a pair (output, aux), not {written(recorded.out_spec)}",
                where=where,
                remedy="return output, aux",
            )
        head = children(recorded.out_spec)[0] if self.has_aux else recorded.out_spec
        if not head.is_leaf() or 0 in recorded.statics:
            raise NonScalarOutputError(
                f"the function returns {written(head)}, not one number",
                where=where,
                remedy="return one scalar; pass has_aux=True to return more values",
            )
        aval = recorded.graph.outputs[0].aval
        if aval.size != 1:
            raise NonScalarOutputError(
                f"the function returns {aval}, which has {aval.size} elements",
                where=where,
                remedy="reduce it with np.sum or np.mean, or use rg.vjp or rg.jacobian",
            )
        if aval.dtype.kind != "f":
            raise NonDifferentiableError(
                f"the function returns {aval}, not a real number",
                where=where,
                remedy="return a floating-point number, or the real part or modulus of a complex one",
            )


def _with_functions(many: bool, chosen: Wanted, seen: Any, args: Sequence[Any], grads: Sequence[Any]) -> Any:
    """The gradients, some of which are for function values; ``many`` distinguishes a tuple of them from one."""
    own = len(grads) - seen.deltas
    tree = chosen.tree(grads[:own])
    found = tuple(seen.cotangents(tree if many else [tree], args, grads[own:]))
    return found if many else found[0]


def grad(
    function: Callable[..., Any] | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: str | None = None,
) -> Any:
    """The gradient of a function with one output element; ``core_docstrings`` has its parameters."""
    return _derived("grad", function, argnums, has_aux, fns, nan_safe, memory, backend)


def value_and_grad(
    function: Callable[..., Any] | None = None,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: str | None = None,
) -> Any:
    """Value and gradient of a function with one output element; ``core_docstrings`` has its parameters."""
    return _derived("value_and_grad", function, argnums, has_aux, fns, nan_safe, memory, backend)


def _derived(
    label: str, function: Any, argnums: Argnums, aux: bool, fns: str, nan_safe: bool, memory: Any, backend: str | None
) -> Any:
    chosen, value = TRANSFORMS.checked_argnums(label, argnums), label == "value_and_grad"
    budget, form = None if memory is None else TRANSFORMS.bytes_of(memory), TRANSFORMS.checked_form(fns)
    transform = Gradient(label, nan_safe, chosen, aux, form, value, budget, backend=backend)
    return partial(Compiled, transform=transform) if function is None else Compiled(function, transform)
