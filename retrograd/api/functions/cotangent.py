"""FunctionCotangent: the cotangent of a function value, a list of pairs of its inputs and the cotangents there."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import ShapeError, TreeError
from ...tracer.array import shadow_of
from ...tracer.containers import register_container
from ...tracer.tree import flatten, map_leaves, unflatten, written
from .blocks import Block, Blocks, Entry, Pair, arguments, bare, joined
from .closures import Fn, as_mapping, converted, is_inexact
from .resumption import pull


class FunctionCotangent(Blocks):
    """The cotangent of a function value: finitely many pairs of an input and the cotangent of the result there.

    It stands for a function: at each point the sum of the cotangents listed there, and zero elsewhere. So two lists are
    equal if they differ only in their order, in how they divide the cotangents of one point, or in entries that are
    zero. The sum of two is their concatenation.

    ``pairs`` lists them in the order of the calls; the input is bare for one argument and a tuple for several.
    ``blocks`` holds them as they were made: a call under ``rg.vmap`` or in ``rg.scan`` is one block.

    Parameters
    ----------
    pairs : FunctionCotangent or iterable of pairs
        The pairs of input and cotangent.

    Examples
    --------
    >>> import retrograd as rg
    >>> ct = rg.functions.FunctionCotangent([(3.0, 18.0), (9.0, 1.0)]) + rg.functions.FunctionCotangent([(3.0, -8.0)])
    >>> ct.pairs
    ((3.0, 18.0), (9.0, 1.0), (3.0, -8.0))
    >>> ct(3.0), ct(5.0), ct == rg.functions.FunctionCotangent([(9.0, 1.0), (3.0, 10.0), (5.0, 0.0)])
    (10.0, 0.0, True)
    """

    __hash__ = None  # type: ignore[assignment]  # equal ones may hold different lists

    def __init__(self, pairs: FunctionCotangent | Iterable[Any] = ()) -> None:
        if isinstance(pairs, FunctionCotangent):
            self._groups = pairs._groups
            return
        if not isinstance(pairs, Iterable):
            raise TreeError(
                f"{pairs!r} is not a cotangent of a function",
                remedy="give a FunctionCotangent or a list of pairs: [(x, ct), ...]",
            )
        entries = []
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TreeError(
                    f"{pair!r} is not a pair of an input and a cotangent",
                    remedy="give a list of pairs: [(x, ct), ...]",
                )
            entries.append((arguments(pair[0]), pair[1]))
        self._groups = _of_entries(entries)._groups

    @classmethod
    def of_blocks(cls, blocks: Iterable[Block]) -> FunctionCotangent:
        """The cotangent of one function value, from the blocks of its calls in one graph."""
        return cls._of_groups((tuple(blocks),))

    @classmethod
    def _of_groups(cls, groups: Iterable[tuple[Block, ...]]) -> FunctionCotangent:
        made = cls.__new__(cls)
        made._groups = tuple(group for group in groups if group)
        return made

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All (arguments, cotangent), in the order of the calls."""
        found: list[Entry] = []
        for group in self._groups:
            ordered = sorted((item for block in group for item in block.entries()), key=lambda item: item[0])
            found += [entry for _, entry in ordered]
        return tuple(found)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All (input, cotangent), in the order of the calls."""
        return tuple((bare(args), ct) for args, ct in self.entries)

    def __repr__(self) -> str:
        return f"FunctionCotangent([{', '.join(f'({x}, {ct})' for x, ct in self.pairs)}])"

    def __add__(self, other: Any) -> FunctionCotangent:
        if isinstance(other, (int, float)) and other == 0:
            return self
        if not isinstance(other, FunctionCotangent):
            return NotImplemented
        return FunctionCotangent._of_groups((*self._groups, *other._groups))

    __radd__ = __add__

    def __call__(self, *args: Any) -> Any:
        """The value at a point: the sum of the cotangents listed there, zero if there are none."""
        point = canonical(bare(args))
        found = [ct for x, ct in self.pairs if canonical(x) == point]
        if found:
            return summed(found)
        return map_leaves(lambda x: x * 0, self.entries[0][1]) if self.entries else 0.0

    def __eq__(self, other: object) -> bool:
        """Whether both are the same function, apart from the rounding of the sums at each point."""
        if isinstance(other, (int, float)) and other == 0:
            other = FunctionCotangent()
        if not isinstance(other, FunctionCotangent):
            return NotImplemented
        sides: dict[Any, list[tuple[int, Any]]] = {}
        for sign, side in ((1, self), (-1, other)):
            for x, ct in side.pairs:
                sides.setdefault(canonical(x), []).append((sign, ct))
        return all(_cancel(entries) for entries in sides.values())

    def normalized(self) -> FunctionCotangent:
        """The same cotangent with each point once, in the order of first calls, and without zeros."""
        at: dict[Any, list[Entry]] = {}
        for args, ct in self.entries:
            at.setdefault(canonical(bare(args)), []).append((args, ct))
        merged = [(entries[0][0], summed([ct for _, ct in entries])) for entries in at.values()]
        return _of_entries([(args, ct) for args, ct in merged if any(np.any(leaf) for leaf in flatten(ct)[0])])

    def batched(self) -> FunctionCotangent:
        """The same cotangent with pairs of equal shapes in one block, which takes one call to compute with."""
        alike: dict[Any, list[Block]] = {}
        for args, ct in self.entries:
            block = Block(args, ct)
            alike.setdefault(block.shape(), []).append(block)
        made = (block for place, blocks in enumerate(alike.values()) for block in joined(place, blocks))
        return FunctionCotangent.of_blocks(made)

    def stack(self) -> tuple[Any, Any]:
        """Inputs and cotangents as arrays with a first axis over the pairs.

        Returns
        -------
        tuple
            The inputs and the cotangents.

        Raises
        ------
        ShapeError
            If pairs differ in shape.
        """
        if not self.pairs:
            raise ShapeError("a cotangent without pairs cannot be stacked", remedy="check pairs first")
        return _stacked([x for x, _ in self.pairs]), _stacked([ct for _, ct in self.pairs])

    def fold(self, function: Callable[[Any, Any], Any], zero: Any = 0.0) -> Any:
        """The sum of a function over the pairs.

        Every linear function of a cotangent has this form, with a ``function`` that is linear in the cotangent.

        Parameters
        ----------
        function : callable
            It takes an input and a cotangent.
        zero : tree
            The sum if there are no pairs.

        Returns
        -------
        tree
            The sum.
        """
        terms = [function(x, ct) for x, ct in self.pairs]
        return summed(terms) if terms else zero

    def pair(self, function: Callable[..., Any]) -> Any:
        """The sum of ⟨cotangent, function(input)⟩: the derivative of the differentiated result along ``function``.

        Complex numbers are not conjugated, as in all cotangents.

        Parameters
        ----------
        function : callable
            The direction, a function of the same inputs.

        Returns
        -------
        scalar
            The sum.
        """
        return sum((np.sum(ct * y) for y, ct in self.matched(function)), 0.0)

    def pull_into(self, function: Callable[..., Any]) -> dict[str, Any]:
        """The cotangents of what ``function`` captures: the sum over all pairs, each pulled back through it.

        Here the additions are made that a list of pairs postpones.

        Parameters
        ----------
        function : callable
            The function value that this is a cotangent of; ``rg.functions.fn`` says what it captures.

        Returns
        -------
        dict
            A cotangent for the name of each capture.

        Raises
        ------
        ShapeError, TreeError
            If the pairs do not fit the function.

        Examples
        --------
        >>> import retrograd as rg
        >>> def line(a):
        ...     return lambda x: a * x
        >>> ct = rg.functions.FunctionCotangent([(1, 2.0), (3, -1.0)])
        >>> {name: float(slope) for name, slope in ct.pull_into(line(0.5)).items()}
        {'a': -1.0}
        """
        value = converted(function)
        found: dict[str, Any] = as_mapping(unflatten(flatten(value)[1], self.pulled(value)))
        return found

    def pulled(self, value: Fn) -> list[Any]:
        """``pull_into`` leaf by leaf: the cotangents of a function value's captures, None for one that has none."""
        leaves = flatten(value)[0]
        places = [i for i, x in enumerate(leaves) if is_inexact(x)]
        found: list[Any] = [None] * len(leaves)
        if places:
            for i, ct in zip(places, pull(value.template)(value, self.settled()), strict=True):
                found[i] = ct
        return found

    def settled(self) -> FunctionCotangent:
        """The same cotangent without the calls that were not made."""
        return FunctionCotangent._of_groups(tuple(block.settled() for block in group) for group in self._groups)


def _of_entries(entries: Iterable[Entry]) -> FunctionCotangent:
    blocks = [Block(args, ct, (i,), (False,) * len(flatten(args)[0])) for i, (args, ct) in enumerate(entries)]
    return FunctionCotangent.of_blocks(blocks)


def _take_apart(ct: FunctionCotangent) -> tuple[list[Any], Any]:
    shape = tuple(tuple((block.place, block.stacked) for block in group) for group in ct._groups)
    return [(block.inputs, block.cotangent, block.made) for block in ct.blocks], shape


def _put_together(shape: Any, children: Any) -> FunctionCotangent:
    rest = iter(children)
    return FunctionCotangent._of_groups(tuple(_block(next(rest), where) for where in group) for group in shape)


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
            f"cotangents {written(spec)} and {written(other)} of one point cannot be added",
            remedy="give all pairs cotangents of the function's result",
        )
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
            "pairs of different structures or shapes cannot be stacked",
            remedy="loop over pairs, or use fold",
        )
    return unflatten(spec, [np.stack(column) for column in zip(*(leaves for leaves, _ in columns), strict=True)])


def canonical(x: Any) -> Hashable:
    """A key that is equal for equal inputs: numbers by shape and value, whatever their type, others by equality."""
    leaves, spec = flatten(x)
    return (spec, *map(_key, leaves))


def _key(x: Any) -> Hashable:
    if isinstance(x, (str, bytes)) or callable(x):
        return (type(x), x)
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        return (type(x), id(x))
    values = array.astype(np.complex128) + 0.0  # which is +0.0 where it was -0.0
    if array.dtype.kind in "iu" and not np.array_equal(values.real.astype(array.dtype), array):
        return (array.shape, array.dtype, array.tobytes())
    return (array.shape, values.tobytes())
