"""Reductions over runs of one axis, as by ``np.add.reduceat`` with increasing starts, the first of which is 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.primitive import Primitive, Pull, Push, primitive, pull, push
from ..ir.texts import Arg
from ..ir.types import Aval
from .axes import move_axis
from .batching import Flags, lanes
from .elementwise import cast, eq
from .gather import gather
from .shape import broadcast_to, iota, reshape_to


def _run_shape(x: Aval, starts: Aval, runs: Aval, axis: int) -> Aval:
    if not 0 <= axis < x.ndim or starts.ndim != 1 or runs.shape != (x.shape[axis],):
        raise ValueError(f"{starts} and {runs} are not starts and numbers of runs on axis {axis} of {x}")
    return Aval((*x.shape[:axis], starts.size, *x.shape[axis + 1 :]), x.dtype)


def _spread(r: Symbol, runs: Symbol, axis: int) -> Symbol:
    """Give each element the result of its run."""
    spread: Symbol = gather(r, runs, index=(*(slice(None),) * axis, Arg(1)))
    return spread


def _lanes_of_starts(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, axis: int) -> Any:
    """Lanes are laid end to end along the axis; only the starts may differ from lane to lane."""
    if not flags[1] and not flags[2]:
        return prim(*args, axis=axis + 1)
    x, starts, runs = (lanes(size, a, flag) for a, flag in zip(args, flags, strict=True))
    shape = x.shape[1:]
    x = move_axis(x, 0, axis)
    x = reshape_to(x, (*shape[:axis], size * shape[axis], *shape[axis + 1 :]))
    count = starts.shape[1]
    out = prim(x, _end_to_end(starts, shape[axis]), _end_to_end(runs, count), axis=axis)
    return move_axis(reshape_to(out, (*shape[:axis], size, count, *shape[axis + 1 :])), axis, 0)


def _end_to_end(numbers: Symbol, step: int) -> Symbol:
    """Concatenate the numbers of all lanes; those of lane k are larger by k steps."""
    size = numbers.shape[0]
    lane = numbers.builder.emit(iota, (), {"aval": Aval((size,), np.dtype(np.int64))})[0]
    shifted = numbers + broadcast_to(reshape_to(lane * step, (size, 1)), numbers.shape)
    return reshape_to(shifted, (numbers.size,))


def run_reduction(name: str, ufunc: str, diff: Pull | Push) -> Primitive:
    """A ufunc's ``reduceat``; the operands are the array, the starts, and for each position the number of its run."""
    return primitive(
        name, _run_shape, f"{ufunc}.reduceat({{0}}, {{1}}, axis={{axis}})", diff=(diff, None), batch=_lanes_of_starts
    )


def _extremum_push(t: Symbol, out: Symbol, x: Symbol, starts: Symbol, runs: Symbol, axis: int) -> Symbol:
    hit = cast(eq(x, _spread(out, runs, axis)), aval=x.aval)
    total, count = (run_sum(part, starts, runs, axis=axis) for part in (t * hit, hit))
    tangent: Symbol = total / count
    return tangent


run_sum: Primitive = run_reduction("run_sum", "np.add", pull(lambda ct, x, starts, runs, axis: _spread(ct, runs, axis)))
run_max = run_reduction("run_max", "np.maximum", push(_extremum_push))
run_min = run_reduction("run_min", "np.minimum", push(_extremum_push))
