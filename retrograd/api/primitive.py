"""primitive: declare a new operation, in the same form as the operations of the package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy import (
    generic,  # by name: in a trace, np.ndarray goes through interception
    ndarray,  # by name: in a trace, np.ndarray goes through interception
)

from ..codegen.names import harmless
from ..compiler.compiled import Compiled
from ..compiler.transform import Transform
from ..errors import OptionError, ShapeError
from ..ir.builder import Builder, Symbol, attrs_key
from ..ir.evaluate import run_node
from ..ir.primitive import REGISTRY, Primitive, Pull, Push, Unknown
from ..ir.primitive import primitive as declare
from ..ir.types import Aval, aval_of
from ..ops.batching import elementwise
from ..ops.elementwise import cast, function
from ..ops.lane_loops import looped
from ..tracer.array import Tracer, apply, shadow_of, tracers_in
from ..tracer.operands import lifted, record
from ..tracer.ufuncs import as_operand
from ..where import user_frame
from .declared import (
    check_expression,
    check_on_samples,
    check_ufunc,
    derivatives,
    fields_of,
    plain_attributes,
    told,
    unregistered,
)

_declared: dict[str, str | None] = {}  # of each primitive that was declared here: the module that did so


def primitive(
    name: str,
    *,
    emit: str,
    shape: Callable[..., Any] | None = None,
    diff: Sequence[Pull | Push | None] | None = None,
    batch: Callable[..., Any] | None = None,
    ufunc: str = "",
) -> Callable[..., Any]:
    """Declare a primitive for the rest of the process: a function of arrays that is traced as one operation.

    Parameters
    ----------
    name : str
        An identifier that no other primitive has. The module that declared a primitive may declare it again, as a
        notebook does whose cell runs twice; functions compiled before keep the former one.
    emit : str
        NumPy source over operands and attributes, such as ``"np.cbrt({0})"``.
    shape : callable, optional
        It maps the avals of the operands to that of the result. Without it all have one shape and dtype, to which
        operands are broadcast and cast as NumPy does.
    diff : sequence, optional
        For each operand ``rg.pull(rule)`` if the operation is linear in it, else ``rg.push(rule)``, or None if its
        derivative is zero. Rules are written with primitives, also with those that ``rg.primitive`` returned. Without
        ``diff`` a derivative is an error.
    batch : callable, optional
        The batch rule. Without it ``vmap`` adds an axis where the operation acts on each element alone, and elsewhere
        runs one batch element after the other.
    ufunc : str
        The name of a NumPy ufunc that computes the same; it then takes ``out=``.

    Returns
    -------
    callable
        The function, for plain arrays and for traced ones.

    Raises
    ------
    OptionError
        If the name is taken or not an identifier, if ``emit`` is not an expression of NumPy, or if a rule is missing,
        fails, or is not linear in the tangent.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> third_root = rg.primitive(
    ...     "third_root", emit="np.cbrt({0})", diff=[rg.push(lambda t, out, x: t / (3 * out * out))]
    ... )
    >>> float(rg.grad(lambda x: np.sum(third_root(x)))(np.array([8.0]))[0])
    0.08333333333333333
    """
    frame = user_frame(sys._getframe(1))
    module = None if frame is None else frame.f_globals.get("__name__")
    _check_name(name, module)
    for option, rule in (("shape", shape), ("batch", batch)):
        if rule is not None and not callable(rule):
            raise OptionError(f"{option} of {name} is {rule!r}", remedy="give a function, or leave it out")
    count, attributes = fields_of(name, emit)
    check_expression(name, emit, count, attributes)
    if ufunc:
        check_ufunc(name, emit, ufunc, count)
    if diff is None:
        known: Any = tuple(Unknown(f"operand {k} of {name}, which was declared without diff=,") for k in range(count))
    else:
        known = derivatives(name, diff, count)
    shape, batch = (rule and told(name, option, rule) for option, rule in (("shape", shape), ("batch", batch)))
    rule_of_shape = shape or _one_shape
    alone = False
    if shape is None and not attributes:
        alone = check_on_samples(unregistered(name, rule_of_shape, emit, known), count, emit)
    rule_of_lanes = batch or (elementwise if alone else looped)
    REGISTRY.pop(name, None)
    prim = declare(name, rule_of_shape, emit, diff=known, batch=rule_of_lanes, ufunc=ufunc)
    _declared[name] = module

    def operation(*operands: Any, **attrs: Any) -> Any:
        if len(operands) != count:
            raise OptionError(
                f"{name} takes {count} operands, but {len(operands)} were given", remedy=f"it computes {emit}"
            )
        given = [as_operand(x) for x in operands]
        if not tracers_in(given):
            given = lifted(*given)
        return _fitted(prim, given, attrs) if shape is None else _as_they_are(prim, given, attrs)

    compiled: dict[Any, Callable[..., Any]] = {}

    def apart(*operands: Any, **attrs: Any) -> Any:
        """Each choice of attributes is compiled for itself, since attributes are no operands."""
        plain_attributes(name, attrs, attributes, shape is not None)
        if len(operands) == count and any(isinstance(x, Symbol) for x in operands):  # in a rule of another primitive
            return prim(*operands, **attrs)
        key = attrs_key(attrs)
        if key not in compiled:
            compiled[key] = Compiled(_called(name, partial(operation, **attrs)), Transform("primitive"))
        return compiled[key](*operands)

    return _called(name, apart)


def _check_name(name: Any, module: str | None) -> None:
    """OptionError for what is no identifier, and for the name of a primitive that another module declared."""
    if not isinstance(name, str) or not harmless(name):
        raise OptionError(f"{name!r} cannot name a primitive", remedy="choose an identifier in ASCII")
    if name in REGISTRY and _declared.get(name, ...) != module:
        owner = f"a primitive of the module {_declared[name]}" if name in _declared else "a primitive of retrograd"
        raise OptionError(f"the name {name!r} is taken by {owner}", remedy="choose another name")


def _called(name: str, function: Any) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    called: Callable[..., Any] = function
    return called


def _one_shape(*avals: Aval, **_: Any) -> Aval:
    """The shape rule where none is given: one shape and dtype."""
    return function(*avals)


def _fitted(prim: Primitive, given: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """Record the operation on operands that are broadcast and cast as NumPy would; ShapeError if it gives others."""
    shadows = [shadow_of(x) for x in given]
    shape, dtype = np.broadcast_shapes(*map(np.shape, shadows)), np.result_type(*shadows)
    out = _run(prim, shadows, shape, dtype, attrs)
    if np.asarray(out).dtype != dtype and np.can_cast(dtype, np.asarray(out).dtype):  # as integers under np.sin
        dtype = np.asarray(out).dtype
        out = _run(prim, shadows, shape, dtype, attrs)
    wanted = prim.shape(*(Aval(shape, dtype, "array" if shape else "scalar") for _ in given), **attrs)
    _check(prim, aval_of(out), wanted)
    operands = given if shape else [_numpy_scalar(x, dtype) for x in given]
    return record(prim, operands, [dtype] * len(given), out, **attrs)


def _numpy_scalar(x: Any, dtype: Any) -> Any:
    """A Python number as NumPy's, so that the source computes as NumPy does."""
    plain = isinstance(x, Tracer) and not isinstance(x.shadow, (ndarray, generic))
    return apply(cast, [x], aval=Aval((), dtype, "scalar")) if plain else x


def _run(prim: Primitive, shadows: Sequence[Any], shape: tuple[int, ...], dtype: Any, attrs: dict[str, Any]) -> Any:
    operands = [np.array(np.broadcast_to(x, shape), dtype)[()] for x in shadows]
    return _made(prim, operands, attrs)[1]


def _as_they_are(prim: Primitive, given: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """Record the operation on the operands as they are; ShapeError if its shape rule says otherwise than NumPy."""
    said, out = _made(prim, [shadow_of(x) for x in given], attrs)
    _check(prim, aval_of(out), said)
    return apply(prim, given, **attrs)


def _made(prim: Primitive, operands: Sequence[Any], attrs: dict[str, Any]) -> tuple[Aval, Any]:
    """What the shape rule says of the result, and the result."""
    b = Builder()
    made = prim(*(b.input(aval_of(x)) for x in operands), **attrs)
    return made.aval, run_node(b.made[made.value], operands)[0]


def _check(prim: Primitive, found: Aval, wanted: Aval) -> None:
    if found != wanted:
        raise ShapeError(
            f"{prim.name} gives {found}, but its shape rule gives {wanted}",
            remedy="give rg.primitive a shape= that maps the avals of the operands to that of the result",
        )
