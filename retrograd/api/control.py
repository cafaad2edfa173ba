"""Loops: scan, fori_loop, while_loop, map, associative_scan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.compiled import Compiled
from ..compiler.drawn import drawn_before
from ..compiler.record_body import (
    Start,
    as_arrays,
    captures_first,
    check_carry,
    check_functions,
    closed,
    decision,
    one_bool,
    operand,
    put,
    recorded_body,
    results_named,
    start_of,
    typed,
    weak_leaves,
    widened,
)
from ..compiler.transform import Transform
from ..errors import CarryError, OptionError, ShapeError
from ..ir.builder import Symbol
from ..ir.graph import Graph
from ..ir.types import Aval
from ..ops.index import getitem
from ..ops.structural.scan import scan as scan_primitive
from ..ops.structural.stack import step_numbers
from ..ops.structural.while_loop import while_loop as while_primitive
from ..tracer.array import Tracer, shadow_of
from ..tracer.outside import trace_here
from ..tracer.python_numbers import number
from ..tracer.tree import children, flatten, unflatten
from .memory import MemoryPlan, plan_of
from .ticking import Marks, Progressing

LOOP = Transform("loop")  # one that is called outside of compiled functions


def scan(
    body: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    *,
    reverse: bool = False,
    memory: MemoryPlan = None,
    progress: Progressing = False,
) -> tuple[Any, Any]:
    """Run ``body(carry, x) -> (carry, y)`` for each ``x`` along the first axis of ``xs``.

    The body is traced once; it may capture traced values, which get gradients.

    Parameters
    ----------
    body : callable
        It returns the next carry and ``y``, which may be None.
    init : tree
        The first carry. A Python number becomes a NumPy scalar, an int one of floats if the body returns floats.
    xs : tree, optional
        Arrays of one length.
    length : int, optional
        The number of steps; needed if ``xs`` is None.
    reverse : bool
        Whether to run from the last ``x`` to the first.
    memory : plan, int or str, optional
        What to keep for a derivative, such as ``rg.Snapshots(8)`` or ``"64 MiB"``; by default everything.
    progress : bool or str
        Whether to report the progress, or the name under which it is reported; see ``rg.progress``.

    Returns
    -------
    tuple
        The last carry, and all ``y`` stacked along a first axis.

    Raises
    ------
    CarryError
        If the body returns no pair, or the carry changes its structure, shapes or dtypes.
    ShapeError, OptionError
        If the lengths in ``xs`` differ, or an option is wrong.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> total, sums = rg.scan(lambda c, x: (c + x, c + x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> float(total), sums
    (6.0, array([1., 3., 6.]))
    """
    check_functions("scan", "scan(body, init, xs) with body(carry, x) -> (carry, y)", body)
    weak, marks = weak_leaves(init), Marks("scan", progress, length_of(flatten(xs)[0], length) if progress else None)
    step = marks.body(body)

    def scanned(init: Any, xs: Any) -> Any:
        return marks.result(_scanned(step, start_of(marks.start(init), weak), xs, length, reverse, memory))

    found: tuple[Any, Any] = (
        Compiled(scanned, Transform("scan"))(as_arrays(init), as_arrays(xs))
        if trace_here() is None
        else scanned(init, xs)
    )
    return found


def _scanned(
    body: Callable[[Any, Any], tuple[Any, Any]], start: Start, xs: Any, length: int | None, reverse: bool, memory: Any
) -> tuple[Any, Any]:
    """``scan`` inside a trace."""
    trace = trace_here()
    assert trace is not None
    items, xs_spec = flatten(xs)
    n = length_of(items, length)
    firsts = [shadow_of(x)[0] if n else np.zeros(np.shape(shadow_of(x))[1:], shadow_of(x).dtype)[()] for x in items]
    recorded = recorded_body(body, "body", [(start.shadows, start.spec), (firsts, xs_spec)], runs=n > 0, hoists=True)
    spec = recorded.out_spec
    if spec.type is not tuple or len(children(spec)) != 2:
        raise CarryError(
            f"the body returns {results_named(recorded)}, not a pair (carry, y)",
            remedy="return carry, y",
        )
    if recorded.statics:
        raise CarryError(
            f"the body returns {results_named(recorded)}, which an array cannot hold",
            remedy="return only arrays and numbers, and None where there is nothing",
        )
    wider = widened(recorded, start, children(spec)[0])
    if wider is not None:
        return _scanned(body, wider, xs, length, reverse, memory)
    check_carry(recorded, start, children(spec)[0])
    k = len(start.carry)
    recorded, drawn = drawn_before(trace, recorded, k + len(items), n)
    drawn = [_in_order(x, reverse) for x in drawn]
    graph = captures_first(typed(recorded.graph, start.avals), k + len(items) + len(drawn))
    attrs = {
        "arrays": len(graph.outputs) - k,
        "body": graph,
        "carry": k,
        "consts": len(recorded.captures),
        "length": n,
        "reverse": reverse,
        **_planned(memory),
    }
    given = [*(operand(trace, x) for x in (*recorded.captures, *start.carry, *items)), *drawn]
    tracers = put(trace, scan_primitive, attrs, given)
    return unflatten(start.spec, tracers[:k]), unflatten(children(spec)[1], tracers[k:])


def _in_order(numbers: tuple[Symbol, Any], reverse: bool) -> tuple[Symbol, Any]:
    """The numbers of all steps, in the order of the rows that the steps read."""
    symbol, example = numbers
    return (getitem(symbol, index=(slice(None, None, -1),)), example[::-1]) if reverse else numbers


def _planned(memory: MemoryPlan, known: bool = True) -> dict[str, Any]:
    """The attribute of a loop with a plan; ``known`` says whether its number of steps is known."""
    plan = plan_of(memory, known)
    return {} if plan is None else {"memory": plan}


def length_of(items: Sequence[Any], length: int | None) -> int:
    """The number of steps over these arrays."""
    for x in items:
        if not np.ndim(shadow_of(x)):
            raise ShapeError(
                "xs of a scan need a first axis of steps",
                remedy="stack the steps of each leaf in one array: np.array(xs)",
            )
    lengths = {np.shape(shadow_of(x))[0] for x in items} | ({length} if length is not None else set())
    if len(lengths) != 1:
        what = f"lengths {sorted(lengths)} differ" if lengths else "neither xs nor length is given"
        raise ShapeError(f"scan: {what}", remedy="give xs of one length, or length=n")
    (n,) = lengths
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise OptionError(f"length={n!r} is not a number of steps", remedy="give length=n, n >= 0")
    return int(n)


def fori_loop(
    n: Any, body: Any, init: Any, *more: Any, memory: MemoryPlan = None, progress: Progressing = False
) -> Any:
    """Run ``n`` steps of ``carry = body(i, carry)`` from ``carry = init``, and return the last carry.

    ``fori_loop(n, body, init)`` counts i = 0, ..., n - 1. ``fori_loop(lower, upper, body, init)`` counts from ``lower``
    to ``upper`` - 1. The body is traced once; it may capture traced values, which get gradients.

    Parameters
    ----------
    n : int
        The number of steps, a Python int or a traced integer; likewise both bounds. Without steps the result is
        ``init``.
    body : callable
        It takes the index, which behaves like the int of ``for i in range(n)``, and the carry, and returns the carry.
    init : tree
        The first carry. A Python number becomes a NumPy scalar, an int one of floats if the body returns floats.
    *more
        The fourth positional argument of the form with two bounds.
    memory : plan, int or str, optional
        What to keep for a derivative, such as ``rg.Snapshots(8)`` or ``"64 MiB"``; by default everything.
    progress : bool or str
        Whether to report the progress, or the name under which it is reported; see ``rg.progress``.

    Returns
    -------
    tree
        The last carry.

    Raises
    ------
    CarryError
        If the carry changes its structure, shapes or dtypes.
    OptionError
        If ``n`` is not an integer.

    Examples
    --------
    >>> import retrograd as rg
    >>> float(rg.fori_loop(4, lambda i, c: c + i * 0.5, 1.0))
    4.0
    >>> float(rg.fori_loop(2, 4, lambda i, c: c * i, 1.0))
    6.0
    """
    if len(more) > 1:
        raise TypeError(f"fori_loop takes 3 or 4 arguments, not {3 + len(more)}")
    lower, n, body, init = (_count(n), body, init, *more) if more else (0, n, body, init)
    lower = number(lower, int)  # whose dtype is not that of the index: range() gives ints
    check_functions("fori_loop", "fori_loop(n, body, init) with body(i, carry) -> carry", body)
    n = _between(lower, _count(n))
    weak, marks = weak_leaves(init), Marks("fori_loop", progress, None if isinstance(n, Tracer) else n)
    step = marks.body(body)

    def counted(init: Any) -> Any:
        return marks.result(_counted(n, lower, step, start_of(marks.start(init), weak), memory))

    return Compiled(counted, LOOP)(as_arrays(init)) if trace_here() is None else counted(init)


def _counted(n: Any, lower: Any, body: Callable[[Any, Any], Any], start: Start, memory: MemoryPlan) -> Any:
    """``fori_loop`` inside a trace: ``n`` steps, counted from ``lower``."""
    trace = trace_here()
    assert trace is not None

    steps = int(shadow_of(n))
    index = flatten(0)[1]
    known = not isinstance(n, Tracer)
    trees = [([0], index), (start.shadows, start.spec)]
    recorded = recorded_body(_counting_from(lower, body), "body", trees, runs=steps > 0, hoists=known)
    wider = widened(recorded, start)
    if wider is not None:
        return _counted(n, lower, body, wider, memory)
    check_carry(recorded, start)
    k, length = len(start.carry), max(steps, 0) if known else -1
    recorded, drawn = drawn_before(trace, recorded, 1 + k, length)
    consts = len(recorded.captures)
    graph = typed(recorded.graph, start.avals)
    (i, *rest), end = graph.inputs, k + len(drawn)
    graph = Graph(graph.name, (*rest[end:], *rest[:k], i, *rest[k:end]), graph.nodes, graph.outputs)
    attrs = {
        "arrays": 0,
        "body": graph,
        "carry": k,
        "consts": consts,
        "length": length,
        "reverse": False,
        **_planned(memory, known),
    }
    count = [] if known else [operand(trace, n)]
    numbers = trace.builder.emit(
        step_numbers, [s.value for s, _ in count], {"aval": Aval((), np.dtype(np.int64), "python", (length,))}
    )
    given = [
        *count,
        *(operand(trace, x) for x in (*recorded.captures, *start.carry)),
        (numbers[0], range(steps)),
        *drawn,
    ]
    return unflatten(start.spec, put(trace, scan_primitive, attrs, given))


def _counting_from(lower: Any, body: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The body of a loop that counts from ``lower``, for one that counts from 0."""
    if type(lower) is int and lower == 0:
        return body

    @functools.wraps(body)
    def step(i: Any, carry: Any) -> Any:
        return body(i + lower, carry)

    return step


def _between(lower: Any, upper: Any) -> Any:
    """The number of steps between two bounds."""
    return upper if type(lower) is int and lower == 0 else number(upper, int) - lower


def _count(n: Any) -> Any:
    """A number of steps, or a bound: a Python int, or a traced integer."""
    value, remedy = shadow_of(n), "give an integer: int(n) if it is known, n.astype(int) if it is traced"
    integer = not np.ndim(value) and (type(value) is int or np.asarray(value).dtype.kind in "iu")
    if integer and not -(2**63) <= value < 2**63:
        integer, remedy = False, "count from a smaller number, and add the rest in the body: the index is an int64"
    if not integer:
        raise OptionError(f"{type(value).__name__} {value!r} is not a number of steps", remedy=remedy)
    return n if isinstance(n, Tracer) and not n.const else int(value)


def while_loop(
    cond: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    *,
    memory: MemoryPlan = None,
    progress: Progressing = False,
) -> Any:
    """Run ``carry = body(carry)`` while ``cond(carry)`` holds, from ``carry = init``, and return the last carry.

    The number of steps is found at run time, in reverse mode too. Both functions are traced once; they may capture
    traced values, which get gradients. Under ``vmap`` each batch element makes its own number of steps.

    Parameters
    ----------
    cond : callable
        It takes the carry and returns one bool or number.
    body : callable
        It takes the carry and returns the next one.
    init : tree
        The first carry. A Python number becomes a NumPy scalar, an int one of floats if the body returns floats.
    memory : plan, int or str, optional
        What to keep for a derivative; by default everything. ``rg.Log()`` keeps about log₂ n states of n steps. A
        number of bytes keeps as many as fit.
    progress : bool or str
        Whether to report the progress, or the name under which it is reported; see ``rg.progress``.

    Returns
    -------
    tree
        The last carry.

    Raises
    ------
    CarryError
        If the carry changes its structure, shapes or dtypes.
    ShapeError
        If ``cond`` does not return one number.
    MemoryBudgetError
        If the budget is too small for any plan.

    Examples
    --------
    >>> import retrograd as rg
    >>> root = lambda a: rg.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), 1.0)
    >>> round(float(rg.grad(root)(2.0)), 12)
    0.353553390593
    """
    check_functions("while_loop", "while_loop(cond, body, init)", cond, body)
    weak, marks = weak_leaves(init), Marks("while_loop", progress, None)
    step = marks.body(body)

    def repeated(init: Any) -> Any:
        return marks.result(_while(cond, step, start_of(marks.start(init), weak), memory))

    return Compiled(repeated, Transform("while_loop"))(as_arrays(init)) if trace_here() is None else repeated(init)


def _while(cond: Callable[[Any], Any], body: Callable[[Any], Any], start: Start, memory: MemoryPlan) -> Any:
    """``while_loop`` inside a trace."""
    trace = trace_here()
    assert trace is not None
    decide = recorded_body(cond, "cond", [(start.shadows, start.spec)])
    one_bool("the condition of a while loop", decide)
    runs = bool(decide.shadows[0]) if decide.shadows else True
    step = recorded_body(body, "body", [(start.shadows, start.spec)], runs=runs)
    wider = widened(step, start)
    if wider is not None:
        return _while(cond, body, wider, memory)
    check_carry(step, start)
    k = len(start.carry)
    (cond_graph, body_graph), captures = closed(
        [(decide.graph, k, decide.captures), (typed(step.graph, start.avals), k, step.captures)]
    )
    attrs = {
        "body": captures_first(body_graph, k),
        "carry": k,
        "cond": captures_first(decision(cond_graph), k),
        "consts": len(captures),
        **_planned(memory, known=False),
    }
    given = [operand(trace, x) for x in (*captures, *start.carry)]
    return unflatten(start.spec, put(trace, while_primitive, attrs, given))
