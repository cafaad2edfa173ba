"""grad and value_and_grad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..errors import IndependentOutputWarning, NonDifferentiableError, NonScalarOutputError, OptionError
from ..passes.differentiate import value_and_grad as value_and_grad_graph
from ..passes.linearize import linearize
from ..passes.simplify import simplify
from ..passes.transpose import transpose
from ..tracer.record import Recorded
from ..tracer.tree import children
from ..tracer.where import user_site, warn
from .compiled import Compiled, Derived, assembler
from .signature import Argnums, Call, wanted


class Gradient(Compiled):
    """``grad`` and ``value_and_grad``."""

    def __init__(self, function: Callable[..., Any], argnums: Argnums, has_aux: bool, value: bool) -> None:
        super().__init__(function, "value_and_grad" if value else "grad")
        self.argnums, self.has_aux, self.value = argnums, has_aux, value

    def prepare(self, call: Call) -> Call:
        wanted(call, self.function, self.argnums)
        return call

    def derive(self, recorded: Recorded, call: Call) -> Derived:
        chosen = wanted(call, self.function, self.argnums)
        self._check_output(recorded)
        active = [*chosen.active, *(False for _ in recorded.captures)]
        simple = simplify(recorded.graph)
        lin = linearize(simple, active)
        if not lin.out_active[0]:
            what = f"the output of {self!r} does not depend on argument {self.argnums!r}: the gradient is zero"
            warn(what, IndependentOutputWarning)
        with_value = self.value
        keep = with_value or self.has_aux
        graph = value_and_grad_graph(simple, active, lin, keep)
        n = len(recorded.graph.outputs) if keep else 0
        results = assembler(recorded.out_spec, recorded.statics)

        def assemble(found: Sequence[Any]) -> Any:
            grads = chosen.tree(found[n:])
            if not keep:
                return grads
            value = results(found[:n])
            if with_value:
                return value, grads
            return grads, value[1]

        stages = {
            "traced": lambda: recorded.graph,
            "linearized": lambda: lin.linear,
            "adjoint": lambda: transpose(lin.linear, len(lin.residuals)),
        }
        return Derived(graph, assemble, stages)

    def _check_output(self, recorded: Recorded) -> None:
        where = user_site()[0]
        if self.has_aux and not (recorded.out_spec.type is tuple and len(children(recorded.out_spec)) == 2):
            raise OptionError(
                f"with has_aux=True the function returns a pair (output, aux), not {recorded.out_spec}", where=where,
                remedy="return output, aux",
            )  # fmt: skip
        head = children(recorded.out_spec)[0] if self.has_aux else recorded.out_spec
        if not head.is_leaf() or 0 in recorded.statics:
            raise NonScalarOutputError(
                f"the function returns {head}, not one number", where=where,
                remedy="return one scalar; pass has_aux=True to return more beside it",
            )  # fmt: skip
        aval = recorded.graph.outputs[0].aval
        if aval.size != 1:
            raise NonScalarOutputError(
                f"the function returns {aval}, which has {aval.size} elements", where=where,
                remedy="reduce it with np.sum or np.mean, or use rg.vjp or rg.jacobian",
            )  # fmt: skip
        if aval.dtype.kind != "f":
            raise NonDifferentiableError(
                f"the function returns {aval}, not a real number", where=where,
                remedy="return a floating-point number; of a complex one, its real part or its modulus",
            )  # fmt: skip


def grad(function: Callable[..., Any] | None = None, argnums: Argnums = 0, *, has_aux: bool = False) -> Any:
    """The gradient of a function with one output element.

    ``argnums``: the differentiated arguments, a position or name, or a tuple of them (the result is then a
    tuple). The gradient has the structure, shapes and dtypes of the argument; integer leaves give None. With
    ``has_aux`` the function returns ``(output, aux)`` and the gradient function ``(gradient, aux)``.

    Raises NonScalarOutputError, NonDifferentiableError, ArgnumsError.

    >>> import numpy as np, retrograd as rg
    >>> rg.grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    if function is None:
        return partial(grad, argnums=argnums, has_aux=has_aux)
    return Gradient(function, argnums, has_aux, value=False)


def value_and_grad(function: Callable[..., Any] | None = None, argnums: Argnums = 0, *, has_aux: bool = False) -> Any:
    """Like ``grad``, returning ``(value, gradient)``; with ``has_aux`` ``((value, aux), gradient)``.

    >>> import numpy as np, retrograd as rg
    >>> value, slope = rg.value_and_grad(np.sin)(0.0)
    >>> float(value), float(slope)
    (0.0, 1.0)
    """
    if function is None:
        return partial(value_and_grad, argnums=argnums, has_aux=has_aux)
    return Gradient(function, argnums, has_aux, value=True)
