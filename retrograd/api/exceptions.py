"""Throw and catch, and early exits: both paths through a computation are in one graph."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.compiled import Compiled
from ..compiler.example_values import examples
from ..compiler.record_body import LEFT, Escape, check_functions, check_single, results
from ..compiler.signature import is_traced
from ..compiler.transform import Transform
from ..errors import LeakedTracerError, Thrown, UnsupportedError
from ..ir.evaluate import evaluate
from ..ops.elementwise import BOOL, ne
from ..ops.structural.throw import form_of, tree_of
from ..ops.structural.throw import throw_if as primitive
from ..passes.control.catch_throws import catch
from ..passes.inline import inline_into
from ..tracer.array import symbol_in
from ..tracer.outside import trace_here
from ..tracer.record import insert, record
from ..tracer.trace import Trace
from ..tracer.tree import flatten
from ..where import user_site
from .branches import choose

_number = itertools.count(1)


def throw_if(pred: Any, payload: Any = ()) -> None:
    """Leave the enclosing ``try_catch`` if a condition holds.

    Parameters
    ----------
    pred : bool
        The condition.
    payload : tree
        What the handler gets: tuples, lists and dicts of arrays, numbers and strings.

    Raises
    ------
    Thrown
        If it is not caught, when the compiled function runs; it holds the payload.
    ShapeError
        If ``pred`` is not one bool.
    UnsupportedError
        If the payload holds other objects.

    Examples
    --------
    >>> import retrograd as rg
    >>> safe = lambda x: rg.try_catch(lambda: (rg.throw_if(x < 0, x), x**0.5)[1], lambda y: 0.0 * y)
    >>> float(safe(4.0)), float(safe(-4.0))
    (2.0, -0.0)
    """
    check_single("throw_if", "bool", pred, "reduce it with np.any or np.all")
    trace = trace_here()
    if trace is None or trace.runs:
        if pred:
            raise Thrown(payload)
        return
    _emit(trace, pred, payload, 0)


def require(pred: Any, payload: Any = ()) -> None:
    """Throw unless a condition holds: ``throw_if`` with the opposite condition.

    Parameters
    ----------
    pred : bool
        The condition.
    payload : tree
        What the handler gets.

    Raises
    ------
    Thrown
        If it is not caught, when the compiled function runs.
    ShapeError
        If ``pred`` is not one bool.
    UnsupportedError
        If the payload holds other objects than arrays, numbers and strings.

    Examples
    --------
    >>> import retrograd as rg
    >>> rg.require(1 < 2)
    """
    throw_if(np.logical_not(pred), payload)


def _emit(trace: Trace, pred: Any, payload: Any, tag: int) -> None:
    leaves = [x for x in flatten(payload)[0] if is_traced(x)]
    try:
        form = form_of(payload, leaves)
    except TypeError as fault:
        raise UnsupportedError(
            f"a payload cannot contain an object of type {fault}",
            remedy="throw tuples, lists, dicts, arrays, numbers and strings",
        ) from None
    where = trace.builder.where = user_site()[0]
    symbol = symbol_in(trace, pred)
    symbol = symbol if symbol.dtype == BOOL else ne(symbol, 0)
    trace.builder.where = where
    operands = [symbol.value, *(symbol_in(trace, x).value for x in leaves)]
    trace.builder.emit(primitive, operands, {"form": form, "tag": tag})


def try_catch(
    body: Callable[[], Any], handler: Callable[[Any], Any], finally_: Callable[[Any], Any] | None = None
) -> Any:
    """``body()``, or ``handler(payload)`` if ``body`` throws by ``throw_if`` or ``require``.

    Both paths are in one compiled function, also under ``vmap``. A value that the handler does not receive contributes
    exactly zero to derivatives.

    Parameters
    ----------
    body : callable
        A function without arguments. All payloads that it throws must have one structure.
    handler : callable
        It takes the payload and returns the same containers, shapes and dtypes as ``body``.
    finally_ : callable, optional
        A function of the result of either.

    Returns
    -------
    tree
        The result.

    Raises
    ------
    ShapeError, TreeError
        If the results of body and handler differ.
    UnsupportedError
        If a payload holds other objects than arrays, numbers and strings.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> def f(x):
    ...     def body():
    ...         rg.require(abs(x) <= 1, x)
    ...         return np.arcsin(x)
    ...     return rg.try_catch(body, lambda y: 3.0 * y)
    >>> float(rg.grad(f)(0.0)), float(rg.grad(f)(2.0))
    (1.0, 3.0)
    """
    label = "try_catch"
    check_functions(label, "try_catch(body, handler) with body() and handler(payload)", body, handler)
    if finally_ is not None:
        check_functions(label, "try_catch(body, handler, finally_) with finally_(value)", finally_)
    trace = trace_here()
    if trace is None:
        try:
            value = body()
        except Thrown as thrown:
            value = handler(thrown.payload)
    else:
        value = _caught(trace, body, handler, label, 0, concrete=False)
    return value if finally_ is None else finally_(value)


def _caught(
    trace: Trace, body: Callable[[], Any], handler: Callable[[Any], Any], label: str, tag: int, concrete: bool
) -> Any:
    escapes: list[Escape] = []

    def run(_: Any) -> Any:
        try:
            return body()
        except Escape as escape:
            escapes.append(escape)
            return LEFT

    with np.errstate(all="ignore"):  # on the examples, the code after a throw runs too
        recorded = record(run, label, [], [], concrete=concrete, gathers=True)
    found = catch(recorded.graph, tag)
    graph = recorded.graph if found is None else found.graph
    with np.errstate(all="ignore"):
        given = [c.shadow for c in recorded.captures]
        shadows = examples(trace, lambda: evaluate(graph, given), graph.out_avals, recorded.captures)
    values = insert(trace, graph, recorded.captures, shadows, inline_into)
    if found is None:
        if escapes:
            raise Escape(escapes[0].tag, LEFT, trace)
        return results(recorded, values)
    thrown, *rest = values
    n = len(found.payload)
    payload, outs = tree_of(found.form, rest[:n]), results(recorded, rest[n:])
    if escapes:  # where nothing is caught, a throw to further out has ended it
        return handler(payload)
    return choose(label, thrown, [lambda: outs, lambda: handler(payload)], ())


def callcc(body: Callable[[Callable[[Any], Any]], Any]) -> Any:
    """Call ``body(k)``; a call ``k(value)`` inside leaves ``body`` at once, with ``value`` as the result.

    In a branch of ``cond`` or ``switch``, also one in a loop, ``k`` leaves if that branch is taken.

    Parameters
    ----------
    body : callable
        A function of ``k``. The values that ``k`` gets must have the containers, shapes and dtypes of its result.

    Returns
    -------
    tree
        The result of ``body``, or what ``k`` was called with.

    Raises
    ------
    UnsupportedError
        If every step of a loop would leave.
    LeakedTracerError
        If ``k`` is called after ``body`` has ended.

    Examples
    --------
    >>> import retrograd as rg
    >>> f = lambda x: rg.callcc(lambda k: 1 + k(x**2) * 100)
    >>> float(f(3.0)), float(rg.grad(f)(3.0))
    (9.0, 6.0)
    """
    check_functions("callcc", "callcc(body) with body(k)", body)
    trace = trace_here()
    if trace is None:
        return Compiled(lambda: callcc(body), Transform("callcc"))()
    tag = next(_number)
    inside: list[Any] = []  # the trace of the body, while it runs

    def k(value: Any) -> Any:
        here: Any = trace_here()
        if not inside:
            raise LeakedTracerError(
                "the continuation of a callcc is called after its body has ended",
                remedy="call k within body",
            )
        if here is None or here is inside[0]:
            raise Escape(tag, value, inside[0])
        _emit(here, True, value, tag)
        trace = here
        while trace is not inside[0].parent:  # examples must not decide what follows: it may not run
            trace.concrete = trace.runs = False
            trace = trace.parent
        raise Escape(tag, LEFT, here)

    def run() -> Any:
        inside.append(trace_here())
        try:
            return body(k)
        except Escape as escape:
            if escape.tag != tag:
                raise
            if escape.trace is not inside[0]:
                raise UnsupportedError(
                    "a continuation is called in a function that another transform traces",
                    remedy="call it outside of rg.grad, rg.vmap, rg.checkpoint, or make the callcc inside of them",
                ) from None
            return escape.value
        finally:
            inside.clear()

    return _caught(trace, run, lambda value: value, "callcc", tag, concrete=True)
