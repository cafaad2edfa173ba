"""vmap: a function applied to a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..compiler.compilation import Derived
from ..compiler.compiled import Compiled
from ..compiler.record_body import made_up
from ..compiler.recording import form_of, results_of
from ..compiler.signature import Call
from ..compiler.transform import Transform
from ..errors import OptionError, ShapeError, TreeError
from ..ir.builder import Builder
from ..ir.graph import Graph
from ..ir.rewrite import with_nodes
from ..ir.types import Aval
from ..ops.axes import move_axis
from ..ops.batching import lanes
from ..ops.structural.guard import guard
from ..passes.batch import batch_into
from ..passes.hoist_draws import drawn_in, hoist_draws
from ..tracer.array import shadow_of
from ..tracer.containers import prefix_leaves
from ..tracer.record import Recorded
from ..tracer.tree import children


@dataclass(frozen=True)
class Batched(Transform):
    """``vmap``."""

    in_axes: Any = 0
    out_axes: Any = 0
    axis_size: int | None = None
    shares_draws: bool = False

    def accept(self, function: Any) -> None:
        super().accept(function)
        if self.axis_size is not None and not (is_axis(self.axis_size) and self.axis_size >= 0):
            raise OptionError(
                f"axis_size={self.axis_size!r} is not a number of batch elements",
                remedy="give an int from 0 on, or leave it out",
            )

    def axes(self, call: Call) -> list[int | None]:
        """The axis of lanes of each traced leaf, non-negative."""
        args_spec, kwargs_spec = children(call.spec)
        prefix = tuple(self.in_axes) if isinstance(self.in_axes, list) else self.in_axes
        if isinstance(prefix, dict):
            raise TreeError(
                f"in_axes={prefix} has no entry for each argument",
                remedy=f"for a single one, in_axes=({prefix},)",
            )
        spread = prefix_leaves(prefix, args_spec, "in_axes") if args_spec.num_leaves else []
        spread += [0] * kwargs_spec.num_leaves
        found: list[int | None] = []
        for i, x in zip(call.traced, call.values(), strict=True):
            axis, ndim = spread[i], np.ndim(shadow_of(x))
            if axis is not None and not (is_axis(axis) and -ndim <= axis < ndim):
                raise ShapeError(
                    f"in_axes gives axis {axis!r} for an argument with {ndim} axes",
                    remedy="in_axes=None shares an argument among the batch elements",
                )
            found.append(None if axis is None else axis % ndim)
        return found

    def size(self, call: Call) -> int:
        """The number of lanes."""
        shapes = [np.shape(shadow_of(x)) for x in call.values()]
        sizes = {shape[axis] for shape, axis in zip(shapes, self.axes(call), strict=True) if axis is not None}
        if self.axis_size is not None:
            sizes.add(int(self.axis_size))
        if len(sizes) != 1:
            what = f"have different lengths {sorted(sizes)}" if sizes else "are all shared"
            given = "" if self.axis_size is None else f", with axis_size={self.axis_size}"
            remedy = "map equal lengths" if sizes else "map an argument, or give the batch size by axis_size"
            raise ShapeError(f"the mapped axes {what}{given}", remedy=remedy)
        return int(sizes.pop())

    def examples(self, call: Call) -> list[Any]:
        self.size(call)
        return [
            x if axis is None else _first_lane(shadow_of(x), axis)
            for x, axis in zip(call.values(), self.axes(call), strict=True)
        ]

    def record(self, function: Callable[..., Any], call: Call) -> tuple[Recorded, Derived]:
        with nullcontext() if self.size(call) else made_up():
            return super().record(function, call)

    def derive(self, function: Callable[..., Any], recorded: Recorded, call: Call) -> Derived:
        axes, size = self.axes(call), self.size(call)
        graph, b = recorded.graph, Builder()
        drawn = [] if self.shares_draws else drawn_in(graph)
        inputs = []
        for value, axis in zip(recorded.graph.inputs, [*axes, *(None for _ in recorded.captures)], strict=True):
            if axis is None:
                inputs.append(b.input(value.aval, value.hint))
            else:
                shape = list(value.aval.shape)
                shape.insert(axis, size)
                inputs.append(move_axis(b.input(Aval(tuple(shape), value.aval.dtype), value.hint), axis, 0))
        flags = [axis is not None for axis in axes] + [False] * len(recorded.captures)
        if drawn:  # one lane after the other, as in a Python loop over the lanes
            known, n = dict(zip(graph.inputs, inputs, strict=True)), len(axes)
            numbers = [row for one in drawn for row in one.emit(known.pop(one.generator), size)]
            graph = hoist_draws(graph, drawn, n)
            rest = list(known.values())
            inputs = [*rest[:n], *numbers, *rest[n:]]
            flags = [*flags[:n], *(True for _ in numbers), *(False for _ in rest[n:])]
        outs, on = batch_into(b, graph, size, inputs, flags)
        out_axes = self._out_axes(recorded)
        results = []
        for out, flag, axis in zip(outs, on, out_axes, strict=True):
            if axis is None and flag:
                raise ShapeError(
                    "out_axes=None for an output that differs between batch elements",
                    remedy="give the batch axis of this output",
                )
            ndim = out.ndim + (not flag)
            if axis is not None and not (is_axis(axis) and -ndim <= axis < ndim):
                raise ShapeError(
                    f"out_axes gives axis {axis!r} for an output with {ndim} axes",
                    remedy=f"give an axis from {-ndim} to {ndim - 1}",
                )
            results.append(out if axis is None else move_axis(lanes(size, out, flag), 0, axis % ndim))
        runs = size or self.shares_draws
        made = [out if runs or axis is None else b.zeros(out.aval) for out, axis in zip(results, out_axes, strict=True)]
        graph = b.graph(f"{recorded.graph.name}_vmap", made)
        graph = graph if runs else _decisions(graph)
        return Derived(graph, results_of(recorded), form_of(recorded))

    def _out_axes(self, recorded: Recorded) -> Sequence[int | None]:
        spread = prefix_leaves(self.out_axes, recorded.out_spec, "out_axes")
        return [axis for i, axis in enumerate(spread) if i not in recorded.statics]


def over_basis(function: Callable[..., Any]) -> Callable[..., Any]:
    """``vmap`` over tangents or cotangents of one evaluation: random numbers are drawn once for all of them."""
    return Compiled(function, Batched("vmap", shares_draws=True))


def is_axis(axis: Any) -> bool:
    """Whether an option is an int, as axes are."""
    return isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)


def _decisions(graph: Graph) -> Graph:
    """The graph with Python's decisions and its outputs alone: without lanes, nothing is thrown or drawn."""
    live, kept = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if node.prim is guard or not live.isdisjoint(node.outputs):
            kept.append(node)
            live.update(node.inputs)
    return with_nodes(graph, reversed(kept))


def _first_lane(x: Any, axis: int) -> Any:
    if x.shape[axis]:
        return np.moveaxis(x, axis, 0)[0]
    return np.zeros(x.shape[:axis] + x.shape[axis + 1 :], x.dtype)[()]


def vmap(
    function: Callable[..., Any] | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
    backend: str | None = None,
) -> Any:
    """Map a function over an axis of its arguments, in one array program.

    Parameters
    ----------
    function : callable, optional
        The function of one batch element. Without it, the result is a decorator.
    in_axes : int, None or tree
        The axis of each argument that is mapped; None for an argument that all batch elements share. A tree gives the
        axes of leaves.
    out_axes : int or tree
        Where the batch axis stands in the results.
    axis_size : int, optional
        The number of batch elements; needed if no argument is mapped.
    backend : "numpy" or "native", optional
        Where the compiled code runs, in place of ``rg.config.backend``. In the trace of another function, that
        function decides.

    Returns
    -------
    Compiled
        A function of the batched arguments.

    Raises
    ------
    ShapeError
        If the sizes of the mapped axes differ.
    TreeError
        If ``in_axes`` or ``out_axes`` do not fit the structure.
    OptionError
        If an axis is not an integer, or no argument is mapped and ``axis_size`` is missing.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.vmap(lambda x, y: x @ y, in_axes=(0, None))(np.ones((2, 3)), np.ones(3))
    array([3., 3.])
    """
    mapped = Batched("vmap", in_axes=in_axes, out_axes=out_axes, axis_size=axis_size, backend=backend)
    return partial(Compiled, transform=mapped) if function is None else Compiled(function, mapped)
