"""Branches: cond and switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.drawn import drawn_alike
from ..compiler.record_body import (
    check_functions,
    check_single,
    closed,
    common,
    left,
    operand,
    put,
    recorded_body,
    results,
    returning_zeros,
    strong,
    typed,
)
from ..compiler.signature import is_traced
from ..errors import OptionError, UnsupportedError
from ..ops.elementwise import BOOL, ge, ne
from ..ops.structural.cond import cond as primitive
from ..tracer.array import Tracer, shadow_of, symbol_in
from ..tracer.outside import trace_here
from ..tracer.tree import flatten, map_leaves


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """``true_fn(*operands)`` if ``pred`` holds, else ``false_fn(*operands)``; only the chosen function runs.

    If ``pred`` is traced, both functions are traced. Under ``vmap`` each batch element chooses for itself.

    Parameters
    ----------
    pred : bool or number
        One value that decides.
    true_fn, false_fn : callable
        They must return the same containers, shapes and dtypes. They may capture traced values, which get gradients.
    *operands : tree
        The arguments of the chosen function.

    Returns
    -------
    tree
        The result of the chosen function.

    Raises
    ------
    ShapeError
        If ``pred`` is not one value, or the results differ in shape or dtype.
    TreeError
        If the results differ in their structure.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> f = lambda x: rg.cond(x > 0, np.log, lambda x: -x, x)
    >>> float(rg.grad(f)(2.0)), float(rg.grad(f)(-3.0))
    (0.5, -1.0)
    """
    check_functions("cond", "cond(pred, true_fn, false_fn, *operands)", true_fn, false_fn)
    return choose("cond", pred, [false_fn, true_fn], operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``; only the chosen function runs.

    Parameters
    ----------
    index : int
        One integer. Below 0 it chooses the first branch, and if it is too large the last.
    branches : sequence of callables
        They must return the same containers, shapes and dtypes. They may capture traced values, which get gradients.
    *operands : tree
        The arguments of the chosen function.

    Returns
    -------
    tree
        The result of the chosen function.

    Raises
    ------
    OptionError
        If there are no branches, or ``index`` is not an integer.
    ShapeError, TreeError
        If the results of the branches differ.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> float(rg.switch(1, [np.sin, np.cos, np.exp], 0.0))
    1.0
    """
    if not isinstance(branches, (list, tuple)) or not branches:
        raise OptionError("switch needs a list of functions", remedy="write switch(i, [f, g], x)")
    check_functions("switch", "switch(index, [f, g, ...], *operands)", *branches)
    if np.asarray(shadow_of(index)).dtype.kind not in "iu":
        raise OptionError(
            f"the index of a switch is {shadow_of(index)!r}, not an integer",
            remedy="give an integer: i.astype(int)",
        )
    return choose("switch", index, branches, operands)


def choose(label: str, index: Any, functions: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """The results of one of the functions, chosen by a traced number when the compiled function runs."""
    check_single(label, "number", index, "choose elements with np.where, or use rg.vmap")
    trace = trace_here()
    at = _number(label, shadow_of(index), len(functions))
    if trace is None or len(functions) == 1 or not isinstance(index, Tracer) or index.const:
        return map_leaves(_own, functions[at](*map_leaves(_apart, operands)))
    trees = [flatten(x) for x in operands]
    bodies = [
        recorded_body(f, f"branch{k}", trees, k == at, may_leave=True, hoists=True) for k, f in enumerate(functions)
    ]
    staying = [r for r in bodies if not left(r)]
    if not staying:
        raise UnsupportedError(
            f"every branch of a {label} calls a continuation",
            remedy="call it once, with the chosen value: k(rg.cond(p, f, g))",
        )
    avals = common(label, staying)
    leaves = [x for group, _ in trees for x in group if is_traced(x) or type(x) is int]
    bodies, drawn = drawn_alike(label, trace, bodies, len(leaves))
    entering = len(leaves) + len(drawn)
    ends = [(returning_zeros if left(r) else typed)(r.graph, avals) for r in bodies]
    graphs, captures = closed([(graph, entering, r.captures) for graph, r in zip(ends, bodies, strict=True)])
    chooser = symbol_in(trace, index)
    if len(functions) == 2 and chooser.dtype != BOOL:
        chooser = ge(chooser, 1) if label == "switch" else ne(chooser, 0)
    given = [(chooser, np.bool_(at) if chooser.dtype == BOOL else np.int64(at))]
    given += [*(operand(trace, x) for x in leaves), *drawn, *(operand(trace, x) for x in captures)]
    attrs = {f"branch{k}": graph for k, graph in enumerate(graphs)}
    return results(staying[0], put(trace, primitive, attrs, given))


def _apart(x: Any) -> Any:
    """A copy of an array, so that a write into it changes no other array."""
    return x.copy() if isinstance(x, (Tracer, np.ndarray)) and isinstance(shadow_of(x), np.ndarray) else x


def _own(x: Any) -> Any:
    """A result in memory of its own, with the type that a traced choice would give it."""
    return strong(x) if isinstance(x, (bool, int, float, complex)) else _apart(x)


def _number(label: str, value: Any, n: int) -> int:
    return min(max(int(value), 0), n - 1) if label == "switch" else int(bool(value))
