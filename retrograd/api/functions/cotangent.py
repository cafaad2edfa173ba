"""FunctionCotangent: the cotangent of a function value, a list of pairs of its inputs and the cotangents there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import ShapeError, TreeError
from ...passes.expose import Axis
from ...tracer.array import shadow_of, wrap
from ...tracer.record import enclosing
from ...tracer.tree import flatten, flatten_up_to, map_leaves, register_container, unflatten
from ...tracer.where import user_site
from ..batching import vmap
from ..signature import is_traced
from .closures import Fn, Same, as_mapping, converted, is_inexact
from .domain import canonical
from .resumption import pull

Pair = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class Block:
    """The pairs that one call made, all at once where it stood in a loop or under vmap.

    ``inputs`` is the tuple of arguments, ``cotangent`` has the structure of the result. Leaves that are ``stacked`` and
    all of the cotangent have one leading axis for each Axis in ``place``, which orders pairs as the calls were made.
    ``made`` tells which calls a branch left out, along the first of these axes.
    """

    inputs: tuple[Any, ...]
    cotangent: Any
    place: tuple[int | Axis, ...] = ()
    stacked: tuple[bool, ...] = ()
    made: Any = True

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(a.size for a in self.place if isinstance(a, Axis))

    def pairs(self) -> Iterator[tuple[tuple[int, ...], Pair]]:
        """Its pairs, each with what orders it."""
        if not self.sizes:
            yield tuple(a for a in self.place if isinstance(a, int)), (bare(self.inputs), self.cotangent)
            return
        for index in map(tuple, np.argwhere(self._mask())):
            inputs = self._inputs(lambda x: x[index])  # noqa: B023 - called at once
            steps = iter(index)
            order = tuple(a if isinstance(a, int) else -next(steps) if a.reverse else next(steps) for a in self.place)
            yield order, (bare(inputs), map_leaves(lambda x: x[index], self.cotangent))  # noqa: B023 - called at once

    def flat(self) -> tuple[tuple[Any, ...], Any]:
        """Inputs and cotangent with all leading axes in one, without the calls that were not made."""
        n, kept = len(self.sizes), np.flatnonzero(self._mask())

        def merged(x: Any) -> Any:
            rows = np.reshape(x, (-1, *np.shape(x)[n:]))
            return rows if self.made is True else rows[kept]

        return self._inputs(merged), map_leaves(merged, self.cotangent)

    def settled(self) -> Block:
        """The same without the calls that were not made."""
        if self.made is True or not self.sizes:
            return self if self.made is True else replace(self, made=True)
        inputs, ct = self.flat()
        kept = Axis(int(np.count_nonzero(self._mask())), False)
        return Block(inputs, ct, (*(a for a in self.place if isinstance(a, int)), kept), self.stacked)

    def called(self, function: Callable[..., Any]) -> list[Pair]:
        """Each leaf of the function's results on the inputs, over lanes if these are, with its cotangent."""
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
        """What two single pairs have in common that fit in one block."""
        (xs, inputs), (cts, cotangent) = flatten(self.inputs), flatten(self.cotangent)
        numbers = [(np.shape(shadow_of(x)), np.result_type(shadow_of(x))) if is_traced(x) else Same(x) for x in xs]
        return (inputs, cotangent, *numbers, *(np.shape(shadow_of(c)) for c in cts))

    def _mask(self) -> np.ndarray[Any, Any]:
        """Which calls were made, over all leading axes."""
        made = np.asarray(self.made)
        return np.broadcast_to(made.reshape(made.shape + (1,) * (len(self.sizes) - made.ndim)), self.sizes)

    def _inputs(self, change: Callable[[Any], Any]) -> tuple[Any, ...]:
        leaves, spec = flatten(self.inputs)
        changed: tuple[Any, ...] = unflatten(
            spec, [change(x) if on else x for x, on in zip(leaves, self.stacked, strict=True)]
        )
        return changed


def aligned(out: Any, ct: Any) -> list[Pair]:
    """The leaves of a result with their cotangents; a function among them is called where its cotangent has inputs."""
    leaves, spec = flatten(out)
    found: list[Pair] = []
    for y, c in zip(leaves, flatten_up_to(spec, ct, "the cotangent of a function value"), strict=True):
        if isinstance(c, FunctionCotangent):
            found += [pair for block in c.blocks for pair in block.called(y)]
        elif c is not None:
            found.append((y, _fitting(c, y)))
    return found


def _fitting(ct: Any, y: Any) -> Any:
    """A cotangent for this value; TreeError or ShapeError where it is none."""
    if not flatten(ct)[1].is_leaf():
        raise TreeError(
            f"a cotangent {flatten(ct)[1]} is given for one result", where=user_site()[0],
            remedy="give each pair a cotangent with the containers of the function's result",
        )  # fmt: skip
    value, given = shadow_of(y), np.asarray(shadow_of(ct))
    if np.shape(value) != given.shape or (given.dtype.kind == "c" and np.asarray(value).dtype.kind != "c"):
        raise ShapeError(
            f"a cotangent of shape {given.shape} and dtype {given.dtype} is given for a result of shape "
            f"{np.shape(value)} and dtype {np.asarray(value).dtype}", where=user_site()[0],
            remedy="give each pair a cotangent of the function's result at its input",
        )  # fmt: skip
    return ct


def _own(x: Any) -> Any:
    """An input that a function may write into: what it writes stays in the trace, or in a copy."""
    if not isinstance(x, np.ndarray):
        return x
    trace = enclosing()
    return np.array(x) if trace is None else wrap(trace, trace.capture(x), np.array(x), user_site()[0])


def bare(inputs: tuple[Any, ...]) -> Any:
    """One argument stands for itself, several for a tuple."""
    return inputs[0] if len(inputs) == 1 else inputs


def arguments(x: Any) -> tuple[Any, ...]:
    """The inverse of ``bare``."""
    return x if type(x) is tuple else (x,)


def joined(place: int, blocks: Sequence[Block]) -> list[Block]:
    """Single pairs of one shape as one block; left as they are where they have no numbers to stack."""
    on = tuple(is_traced(x) for x in flatten(blocks[0].inputs)[0])
    if len(blocks) == 1 or not any(on):
        return [replace(block, place=(place, i), stacked=(False,) * len(on)) for i, block in enumerate(blocks)]
    columns = zip(*(flatten(block.inputs)[0] for block in blocks), strict=True)
    inputs = [np.stack(column) if f else column[0] for column, f in zip(columns, on, strict=True)]
    cts = [np.stack(column) for column in zip(*(flatten(block.cotangent)[0] for block in blocks), strict=True)]
    ct = unflatten(flatten(blocks[0].cotangent)[1], cts)
    return [Block(unflatten(flatten(blocks[0].inputs)[1], inputs), ct, (place, Axis(len(blocks), False)), on)]


class FunctionCotangent:
    """The cotangent of a function value: finitely many pairs of an input and the cotangent of the result there.

    It stands for the function that is, at each point, the sum of the cotangents listed there, and zero elsewhere. So a
    list that is permuted, that has entries of one point merged or zero entries left out, is an equal one. The sum of
    two is their concatenation.

    ``pairs`` lists them in the order of the calls; the input is bare for one argument and a tuple for several.
    ``blocks`` holds them as they were made: a call under ``rg.vmap`` or in ``rg.scan`` is one block.

    >>> import retrograd as rg
    >>> ct = rg.FunctionCotangent([(3.0, 18.0), (9.0, 1.0)]) + rg.FunctionCotangent([(3.0, -8.0)])
    >>> ct.pairs
    ((3.0, 18.0), (9.0, 1.0), (3.0, -8.0))
    >>> ct(3.0), ct(5.0), ct == rg.FunctionCotangent([(9.0, 1.0), (3.0, 10.0), (5.0, 0.0)])
    (10.0, 0.0, True)
    """

    __hash__ = None  # type: ignore[assignment]  # equal ones may hold different lists

    def __init__(self, pairs: FunctionCotangent | Iterable[Any] = ()) -> None:
        self._groups: tuple[tuple[Block, ...], ...]
        if isinstance(pairs, FunctionCotangent):
            self._groups = pairs._groups
            return
        if not isinstance(pairs, Iterable):
            raise TreeError(
                f"{pairs!r} is no cotangent of a function", where=user_site()[0],
                remedy="give a FunctionCotangent or a list of pairs: [(x, ct), ...]",
            )  # fmt: skip
        blocks = []
        for i, pair in enumerate(pairs):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TreeError(
                    f"{pair!r} is no pair of an input and a cotangent", where=user_site()[0],
                    remedy="give a list of pairs: [(x, ct), ...]",
                )  # fmt: skip
            inputs = arguments(pair[0])
            blocks.append(Block(inputs, pair[1], (i,), (False,) * len(flatten(inputs)[0])))
        self._groups = (tuple(blocks),) if blocks else ()

    @classmethod
    def of_blocks(cls, blocks: Iterable[Block]) -> FunctionCotangent:
        """The cotangent of one function value, out of what its calls in one graph made."""
        made = cls()
        made._groups = (tuple(blocks),)
        return made

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What each call made: one pair, or many with leading axes."""
        return tuple(itertools.chain.from_iterable(self._groups))

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """All (input, cotangent), in the order of the calls."""
        found: list[Pair] = []
        for group in self._groups:
            ordered = sorted((item for block in group for item in block.pairs()), key=lambda item: item[0])
            found += [pair for _, pair in ordered]
        return tuple(found)

    def __repr__(self) -> str:
        return f"FunctionCotangent([{', '.join(f'({x}, {ct})' for x, ct in self.pairs)}])"

    def __add__(self, other: Any) -> FunctionCotangent:
        if isinstance(other, (int, float)) and other == 0:
            return self
        if not isinstance(other, FunctionCotangent):
            return NotImplemented
        made = FunctionCotangent()
        made._groups = (*self._groups, *other._groups)
        return made

    __radd__ = __add__

    def __call__(self, *args: Any) -> Any:
        """The value at a point: the sum of the cotangents listed there, zero if there are none."""
        point = canonical(args)
        found = [ct for x, ct in self.pairs if canonical(arguments(x)) == point]
        if found:
            return summed(found)
        return map_leaves(lambda x: x * 0, self.pairs[0][1]) if self.pairs else 0.0

    def __eq__(self, other: object) -> bool:
        """Whether both are the same function, up to the rounding of the sums at each point."""
        if isinstance(other, (int, float)) and other == 0:
            other = FunctionCotangent()
        if not isinstance(other, FunctionCotangent):
            return NotImplemented
        sides: dict[Any, list[tuple[int, Any]]] = {}
        for sign, side in ((1, self), (-1, other)):
            for x, ct in side.pairs:
                sides.setdefault(canonical(arguments(x)), []).append((sign, ct))
        return all(_cancel(entries) for entries in sides.values())

    def normalized(self) -> FunctionCotangent:
        """The same with each point once, in the order of first calls, and without zeros."""
        at: dict[Any, list[Pair]] = {}
        for x, ct in self.pairs:
            at.setdefault(canonical(arguments(x)), []).append((x, ct))
        merged = [(entries[0][0], summed([ct for _, ct in entries])) for entries in at.values()]
        return FunctionCotangent([(x, ct) for x, ct in merged if any(np.any(leaf) for leaf in flatten(ct)[0])])

    def batched(self) -> FunctionCotangent:
        """The same, with pairs of equal shapes in one block: what computes with it makes one call for each block."""
        alike: dict[Any, list[Block]] = {}
        for x, ct in self.pairs:
            block = Block(arguments(x), ct)
            alike.setdefault(block.shape(), []).append(block)
        made = (block for place, blocks in enumerate(alike.values()) for block in joined(place, blocks))
        return FunctionCotangent.of_blocks(made)

    def stack(self) -> tuple[Any, Any]:
        """Inputs and cotangents as arrays, with a first axis over the pairs. ShapeError where they differ in shape."""
        if not self.pairs:
            raise ShapeError(
                "a cotangent without pairs has no shapes to stack", where=user_site()[0], remedy="look at pairs first"
            )
        return _stacked([x for x, _ in self.pairs]), _stacked([ct for _, ct in self.pairs])

    def fold(self, function: Callable[[Any, Any], Any], zero: Any = 0.0) -> Any:
        """The sum of ``function(input, cotangent)`` over the pairs; ``zero`` if there are none.

        All that can be made of a function cotangent has this form, with a function that is additive in the cotangent.
        """
        terms = [function(x, ct) for x, ct in self.pairs]
        return summed(terms) if terms else zero

    def pair(self, function: Callable[..., Any]) -> Any:
        """The sum of ⟨cotangent, function(input)⟩: the derivative, along ``function``, of what this is a gradient of.

        Complex numbers are not conjugated, as in all cotangents.
        """
        return sum((np.sum(ct * y) for y, ct in self.matched(function)), 0.0)

    def pull_into(self, function: Callable[..., Any]) -> dict[str, Any]:
        """The cotangents of what ``function`` captures, by name: each pair is pulled back through it, and summed.

        ``function`` is the function value that this is a cotangent of; see ``rg.fn`` for what counts as captured.
        This is where the additions that the list of pairs suspends are done. Raises ShapeError, TreeError.

        >>> import retrograd as rg
        >>> def line(a):
        ...     return lambda x: a * x
        >>> {name: float(ct) for name, ct in rg.FunctionCotangent([(1, 2.0), (3, -1.0)]).pull_into(line(0.5)).items()}
        {'a': -1.0}
        """
        value = converted(function)
        found: dict[str, Any] = as_mapping(unflatten(flatten(value)[1], self.pulled(value)))
        return found

    def pulled(self, value: Fn) -> list[Any]:
        """``pull_into`` leaf by leaf: the cotangents of the captures of a function value, None where there is none."""
        leaves = flatten(value)[0]
        places = [i for i, x in enumerate(leaves) if is_inexact(x)]
        found: list[Any] = [None] * len(leaves)
        if places:
            for i, ct in zip(places, pull(value.template)(value, self.settled()), strict=True):
                found[i] = ct
        return found

    def matched(self, function: Callable[..., Any]) -> list[Pair]:
        """Each leaf of the function's results at the points, call by call, with its cotangent."""
        return [pair for block in self.blocks for pair in block.called(function)]

    def settled(self) -> FunctionCotangent:
        """The same without the calls that were not made."""
        made = FunctionCotangent()
        made._groups = tuple(tuple(block.settled() for block in group) for group in self._groups)
        return made


def _take_apart(ct: FunctionCotangent) -> tuple[list[Any], Any]:
    shape = tuple(tuple((block.place, block.stacked) for block in group) for group in ct._groups)
    return [(block.inputs, block.cotangent, block.made) for block in ct.blocks], shape


def _put_together(shape: Any, children: Any) -> FunctionCotangent:
    rest = iter(children)
    made = FunctionCotangent()
    made._groups = tuple(tuple(_block(next(rest), where) for where in group) for group in shape)
    return made


def _block(parts: tuple[Any, Any, Any], where: tuple[Any, Any]) -> Block:
    return Block(parts[0], parts[1], *where, parts[2])


register_container(FunctionCotangent, _take_apart, _put_together)


def summed(terms: Sequence[Any]) -> Any:
    """The sum of equal trees; cotangents of functions are concatenated."""
    total = terms[0]
    for term in terms[1:]:
        total = _plus(total, term)
    return total


def _plus(x: Any, y: Any) -> Any:
    if isinstance(x, FunctionCotangent):
        return x + y
    (mine, spec), (theirs, other) = flatten(x), flatten(y)
    if spec != other:
        raise TreeError(
            f"cotangents {spec} and {other} of one point cannot be added", where=user_site()[0],
            remedy="give all pairs cotangents of the function's result",
        )  # fmt: skip
    return unflatten(spec, [a + b for a, b in zip(mine, theirs, strict=True)])


def _cancel(entries: Sequence[tuple[int, Any]]) -> bool:
    """Whether cotangents, each with a sign, add up to zero within the rounding of their sum."""
    if any(isinstance(ct, FunctionCotangent) for _, ct in entries):
        plus, minus = (sum((ct for s, ct in entries if s == sign), FunctionCotangent()) for sign in (1, -1))
        return plus == minus
    columns = [flatten(ct)[0] for _, ct in entries]
    if len({len(column) for column in columns}) != 1:
        return False
    for leaves in zip(*columns, strict=True):
        values = [np.asarray(x) for x in leaves]
        if len({v.shape for v in values}) != 1:
            return False
        signs = [sign for sign, _ in entries]
        total = sum(sign * v.astype(np.result_type(v, np.float32)) for sign, v in zip(signs, values, strict=True))
        eps = max(np.finfo(v.dtype).eps if v.dtype.kind in "fc" else 0.0 for v in values)
        if not np.all(np.abs(total) <= 2 * len(values) * eps * sum(np.abs(v) for v in values)):
            return False
    return True


def _stacked(trees: Sequence[Any]) -> Any:
    columns = [flatten(tree) for tree in trees]
    spec = columns[0][1]
    shapes = [[np.shape(shadow_of(x)) for x in leaves] for leaves, _ in columns]
    if any(other != spec for _, other in columns) or any(s != shapes[0] for s in shapes):
        raise ShapeError(
            "pairs of different structures or shapes do not stack", where=user_site()[0],
            remedy="go through pairs, or fold them",
        )  # fmt: skip
    return unflatten(spec, [np.stack(column) for column in zip(*(leaves for leaves, _ in columns), strict=True)])
