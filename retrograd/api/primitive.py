"""primitive: declare an operation of one's own, as the package declares its operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..codegen.names import harmless
from ..compiler.compiled import Compiled
from ..compiler.transform import Transform
from ..errors import OptionError
from ..ir.primitive import REGISTRY, Pull, Push
from ..ir.primitive import primitive as declare
from ..ops.batching import elementwise
from ..ops.elementwise import function
from ..tracer.array import apply


def primitive(
    name: str,
    *,
    emit: str,
    shape: Callable[..., Any] = function,
    diff: Sequence[Pull | Push | None] = (),
    batch: Callable[..., Any] | None = elementwise,
    ufunc: str = "",
) -> Callable[..., Any]:
    """Declare a primitive for the rest of the process: a function of arrays that is traced as one operation.

    ``emit`` is NumPy source over operands and attributes: ``"np.cbrt({0})"``. ``shape`` maps the operands' avals to the
    result's; by default all have one shape and dtype. ``diff`` holds for each operand ``rg.pull(rule)`` if the
    operation is linear in it, else ``rg.push(rule)`` or None; rules are written with primitives. ``batch`` is by
    default the rule of an elementwise operation; None refuses ``vmap``. ``ufunc`` names a NumPy ufunc that computes the
    same, which then takes ``out=``. Raises OptionError for a name that is taken or not an identifier.

    >>> import numpy as np, retrograd as rg
    >>> third_root = rg.primitive(
    ...     "third_root", emit="np.cbrt({0})", diff=[rg.push(lambda t, out, x: t / (3 * out * out))]
    ... )
    >>> float(rg.grad(lambda x: np.sum(third_root(x)))(np.array([8.0]))[0])
    0.08333333333333333
    """
    if name in REGISTRY or not harmless(name):
        raise OptionError(f"{name!r} cannot name a primitive", remedy="choose a new identifier in ASCII")
    prim = declare(name, shape, emit, diff=tuple(diff), batch=batch, ufunc=ufunc)

    def operation(*operands: Any, **attrs: Any) -> Any:
        return apply(prim, operands, **attrs)

    operation.__name__ = operation.__qualname__ = name
    return Compiled(operation, Transform("primitive"))
