"""Blocks: the pairs of an input and a cotangent that calls of a function value made, one block for each call."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...compiler.signature import is_traced
from ...errors import ShapeError, TreeError
from ...passes.control.expose_calls import Axis
from ...tracer.array import shadow_of, wrap
from ...tracer.containers import flatten_up_to
from ...tracer.outside import trace_here
from ...tracer.tree import flatten, map_leaves, unflatten
from ...where import user_site
from ..batching import vmap
from .closures import Same

Pair = tuple[Any, Any]
Entry = tuple[tuple[Any, ...], Any]  # the arguments of a call, and the cotangent of its result


@dataclass(frozen=True, eq=False)
class Block:
    """The pairs that one call made: one pair, or many at once if the call stood in a loop or under vmap.

    ``inputs`` is the tuple of arguments; ``cotangent`` has the structure of the result. The ``stacked`` leaves of the
    inputs and all leaves of the cotangent have one leading axis for each Axis in ``place``, which orders pairs as the
    calls were made. ``made`` tells, along the first of these axes, which calls a branch left out.
    """

    inputs: tuple[Any, ...]
    cotangent: Any
    place: tuple[int | Axis, ...] = ()
    stacked: tuple[bool, ...] = ()
    made: Any = True

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(a.size for a in self.place if isinstance(a, Axis))

    def entries(self) -> Iterator[tuple[tuple[int, ...], Entry]]:
        """Its pairs, each with a key that sorts pairs in the order of the calls."""
        if not self.sizes:
            yield tuple(a for a in self.place if isinstance(a, int)), (self.inputs, self.cotangent)
            return
        for index in map(tuple, np.argwhere(self._mask())):
            at, steps = operator.itemgetter(index), iter(index)
            order = tuple(a if isinstance(a, int) else -next(steps) if a.reverse else next(steps) for a in self.place)
            yield order, (self._inputs(at), map_leaves(at, self.cotangent))

    def flat(self) -> tuple[tuple[Any, ...], Any]:
        """Inputs and cotangent with all leading axes joined into one, and without the calls that were not made."""
        n, kept = len(self.sizes), np.flatnonzero(self._mask())

        def merged(x: Any) -> Any:
            rows = np.reshape(x, (-1, *np.shape(x)[n:]))
            return rows if self.made is True else rows[kept]

        return self._inputs(merged), map_leaves(merged, self.cotangent)

    def settled(self) -> Block:
        """The same block without the calls that were not made."""
        if self.made is True or not self.sizes:
            return self if self.made is True else replace(self, made=True)
        inputs, ct = self.flat()
        kept = Axis(int(np.count_nonzero(self._mask())), False)
        return Block(inputs, ct, (*(a for a in self.place if isinstance(a, int)), kept), self.stacked)

    def called(self, function: Callable[..., Any]) -> list[Pair]:
        """The leaves of the function's results at the inputs, over lanes if there are any, each with its cotangent."""
        if not self.sizes:
            return aligned(function(*map_leaves(_own, self.inputs)), self.cotangent)
        inputs, ct = self.flat()
        leaves, spec = flatten(inputs)

        def one(*lane: Any) -> Any:
            rest = iter(lane)
            filled = [next(rest) if on else x for x, on in zip(leaves, self.stacked, strict=True)]
            return function(*unflatten(spec, filled))

        return aligned(vmap(one)(*(x for x, on in zip(leaves, self.stacked, strict=True) if on)), ct)

    def shape(self) -> Hashable:
        """A key that is equal for two single pairs that fit into one block."""
        (xs, inputs), (cts, cotangent) = flatten(self.inputs), flatten(self.cotangent)
        numbers = [(np.shape(shadow_of(x)), np.result_type(shadow_of(x))) if is_traced(x) else Same(x) for x in xs]
        return (inputs, cotangent, *numbers, *(np.shape(shadow_of(c)) for c in cts))

    def _mask(self) -> np.ndarray[Any, Any]:
        """A mask of the calls that were made, over all leading axes."""
        made = np.asarray(self.made)
        return np.broadcast_to(made.reshape(made.shape + (1,) * (len(self.sizes) - made.ndim)), self.sizes)

    def _inputs(self, change: Callable[[Any], Any]) -> tuple[Any, ...]:
        leaves, spec = flatten(self.inputs)
        changed: tuple[Any, ...] = unflatten(
            spec, [change(x) if on else x for x, on in zip(leaves, self.stacked, strict=True)]
        )
        return changed


class Blocks:
    """Blocks of pairs in groups; the calls of one group were recorded together."""

    _groups: tuple[tuple[Block, ...], ...] = ()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """One block for each call: one pair, or many with leading axes."""
        return tuple(block for group in self._groups for block in group)

    def matched(self, function: Callable[..., Any]) -> list[Pair]:
        """The leaves of the function's results at the points, call by call, each with its cotangent."""
        return [pair for block in self.blocks for pair in block.called(function)]


def aligned(out: Any, ct: Any) -> list[Pair]:
    """The leaves of a result with their cotangents; a function among them is called if its cotangent has inputs."""
    leaves, spec = flatten(out)
    found: list[Pair] = []
    for y, c in zip(leaves, flatten_up_to(spec, ct, "the cotangent of a function value"), strict=True):
        if isinstance(c, Blocks):
            found += c.matched(y)
        elif c is not None:
            found.append((y, _fitting(c, y)))
    return found


def _fitting(ct: Any, y: Any) -> Any:
    """A cotangent for this value; TreeError or ShapeError if it does not fit."""
    if not flatten(ct)[1].is_leaf():
        raise TreeError(
            f"a cotangent {flatten(ct)[1]} is given for one result",
            remedy="give each pair a cotangent with the containers of the function's result",
        )
    value, given = shadow_of(y), np.asarray(shadow_of(ct))
    if np.shape(value) != given.shape or (given.dtype.kind == "c" and np.asarray(value).dtype.kind != "c"):
        raise ShapeError(
            f"a cotangent of shape {given.shape} and dtype {given.dtype} is given for a result of shape "
            f"{np.shape(value)} and dtype {np.asarray(value).dtype}",
            remedy="give each pair a cotangent of the function's result at its input",
        )
    return ct


def _own(x: Any) -> Any:
    """An input that a function may write into: the write stays in the trace, or in a copy."""
    if not isinstance(x, np.ndarray):
        return x
    trace = trace_here()
    return np.array(x) if trace is None else wrap(trace, trace.capture(x), np.array(x), user_site()[0])


def bare(inputs: tuple[Any, ...]) -> Any:
    """The inputs as the user writes them: one argument is bare, several are a tuple."""
    return inputs[0] if len(inputs) == 1 else inputs


def arguments(x: Any) -> tuple[Any, ...]:
    """The inverse of ``bare``."""
    return x if type(x) is tuple else (x,)


def joined(place: int, blocks: Sequence[Block]) -> list[Block]:
    """Join single pairs of one shape into one block; pairs without numbers to stack stay as they are."""
    on = tuple(is_traced(x) for x in flatten(blocks[0].inputs)[0])
    if len(blocks) == 1 or not any(on):
        return [replace(block, place=(place, i), stacked=(False,) * len(on)) for i, block in enumerate(blocks)]
    columns = zip(*(flatten(block.inputs)[0] for block in blocks), strict=True)
    inputs = [np.stack(column) if f else column[0] for column, f in zip(columns, on, strict=True)]
    cts = [np.stack(column) for column in zip(*(flatten(block.cotangent)[0] for block in blocks), strict=True)]
    ct = unflatten(flatten(blocks[0].cotangent)[1], cts)
    return [Block(unflatten(flatten(blocks[0].inputs)[1], inputs), ct, (place, Axis(len(blocks), False)), on)]
