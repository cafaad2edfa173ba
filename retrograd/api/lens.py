"""Lenses: operations that carry their pullback, and compose. Bind is the chain rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..compiler.compiled import Compiled
from ..compiler.signature import is_traced, name_of
from ..compiler.transform import Transform
from ..compiler.travel import Travelling
from ..errors import OptionError, RecordMismatchError, TreeError
from ..ir.types import aval_of
from ..tracer.array import shadow_of
from ..tracer.tree import flatten, map_leaves, unflatten
from .at_a_point import vjp
from .lens_node import lens_node


def _has_cotangent(tree: Any) -> bool:
    """Whether a tree holds floating-point numbers."""
    return any(is_traced(x) and aval_of(shadow_of(x)).inexact for x in flatten(tree)[0])


def _arguments(source: Any) -> tuple[Any, ...]:
    """A tuple is the list of arguments; anything else is one argument."""
    return source if isinstance(source, tuple) else (source,)


def _source(args: tuple[Any, ...]) -> Any:
    """The inverse: one argument is the source itself, several are a tuple, so that ``f((a, b))`` is ``f(a, b)``."""
    return args[0] if len(args) == 1 else args


@dataclass(frozen=True, eq=False)
class Point:
    """The value of a lens at a source, and its pullback there: ``value, pull = lens.at(x)``.

    ``pull(ct)`` takes a cotangent of the value to one of the source: a tuple of them if the source is a tuple. It is
    a value like any other: call it any number of times, in any order, or drop it together with all that it keeps.
    """

    value: Any
    pull: Callable[[Any], Any]
    source: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.value, self.pull))

    def bind(self, step: Callable[..., Any]) -> Point:
        """The chain rule: continue with another step.

        Parameters
        ----------
        step : Lens or callable
            A lens, or a function that returns ``(value, pullback)``.

        Returns
        -------
        Point
            The value of the step, and both pullbacks in one.
        """
        args = _arguments(self.value)
        value, after = step.at(*args) if isinstance(step, Lens) else step(*args)
        before = self.pull
        return Point(value, lambda ct: before(after(ct)), self.source)

    def zip(self, other: Point) -> Point:
        """Both values as a pair; the pullback adds the cotangents that both send to their common source.

        Parameters
        ----------
        other : Point
            Another point of the same source.

        Returns
        -------
        Point
            The pair.

        Raises
        ------
        RecordMismatchError
            If the sources differ.
        """
        mine, theirs = flatten(self.source), flatten(other.source)
        if mine[1] != theirs[1] or not all(a is b for a, b in zip(mine[0], theirs[0], strict=True)):
            raise RecordMismatchError(
                "the two points have different sources",
                remedy="bind both to one unit: m = rg.lens.unit(a); m.bind(f).zip(m.bind(g))",
            )

        def pull(cts: Any) -> Any:
            first, second = cts
            return _sum(self.pull(first), other.pull(second))

        return Point((self.value, other.value), pull, self.source)


def _sum(x: Any, y: Any) -> Any:
    """The sum of two cotangents of one space, field by field; None adds nothing."""
    (xs, spec), (ys, _) = flatten(x), flatten(y)
    return unflatten(spec, [a + b for a, b in zip(xs, ys, strict=True)])


class Lens(Travelling):
    """A differentiable operation that composes by ``>>``, ``*`` and ``&``; see ``lens``.

    Calling it gives its value, also inside functions that are differentiated or compiled. ``at(*args)`` gives the
    value and the pullback. ``f >> g`` is f and then g; ``f * g`` takes a pair and applies one to each entry; ``f & g``
    applies both to the same source and gives a pair. A tuple is an argument list: ``f(a, b)`` is ``f((a, b))``.
    """

    def __init__(self, operation: Callable[..., Any], name: str) -> None:
        self.__name__ = name
        self.operation = operation
        self._run = Compiled(_named(operation, name), Transform("lens"))

    def parts(self) -> tuple[Any, ...]:
        """See ``Travelling``."""
        return type(self), (self.operation, self.__name__)

    def __repr__(self) -> str:
        return f"<lens {self.__name__}>"

    def __call__(self, *args: Any) -> Any:
        return self._run(*_arguments(_source(args)))

    def at(self, *args: Any) -> Point:
        """The value and the pullback at a source.

        Parameters
        ----------
        *args : tree
            The source. Arguments without floating-point numbers have the cotangent None.

        Returns
        -------
        Point
            ``value, pull = lens.at(x)``.

        Raises
        ------
        NonDifferentiableError
            If no argument has a cotangent.
        """
        source = _source(args)
        args = _arguments(source)
        if not args:
            return Point(self(), lambda ct: (), source)
        chosen = [k for k, x in enumerate(args) if _has_cotangent(x)] or list(range(len(args)))

        def run(*some: Any) -> Any:
            full = list(args)
            for k, x in zip(chosen, some, strict=True):
                full[k] = x
            return self.operation(*full)

        value, pullback = vjp(_named(run, self.__name__), *(args[k] for k in chosen))

        def pull(ct: Any) -> Any:
            found = dict(zip(chosen, pullback(ct), strict=True))
            return tuple(map(found.get, range(len(args)))) if isinstance(source, tuple) else found[0]

        return Point(value, pull, source)

    def __rshift__(self, other: Any) -> Lens:
        other = _lens(other)
        first, then = self.operation, other.operation
        return Lens(lambda *args: then(*_arguments(first(*args))), f"{self.__name__}_then_{other.__name__}")

    def __rrshift__(self, other: Any) -> Lens:
        return _lens(other) >> self

    def __mul__(self, other: Any) -> Lens:
        other = _lens(other)
        left, right = self.operation, other.operation

        def both(*pair: Any) -> Any:
            if len(pair) != 2:
                raise TreeError(
                    f"{self!r} * {other!r} takes a pair, not {len(pair)} values",
                    remedy="products group to the left: (f * g) * h takes ((a, b), c)",
                )
            return left(*_arguments(pair[0])), right(*_arguments(pair[1]))

        return Lens(both, f"{self.__name__}_and_{other.__name__}")

    def __rmul__(self, other: Any) -> Lens:
        return _lens(other) * self

    def __and__(self, other: Any) -> Lens:
        other = _lens(other)
        left, right = self.operation, other.operation
        return Lens(lambda *args: (left(*args), right(*args)), f"{self.__name__}_with_{other.__name__}")

    def __rand__(self, other: Any) -> Lens:
        return _lens(other) & self


def _named(operation: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The operation under another name, which its graphs get, too."""

    def run(*args: Any) -> Any:
        return operation(*args)

    run.__name__ = run.__qualname__ = name
    return run


def _lens(x: Any) -> Lens:
    if isinstance(x, Lens):
        return x
    raise OptionError(
        f"{x!r} is not a lens",
        remedy="write rg.lens.of(f) for a plain function, and @rg.lens for one that returns (value, pullback)",
    )


class Lenses:
    """Make a lens, a differentiable operation that is given as a value and its pullback.

    The decorated function is traced and compiled with the rest. If it cannot be traced (plain NumPy that branches,
    SciPy, a library), it becomes a call back to Python, a ``host`` node of the graph, and runs again for its pullback.

    Parameters
    ----------
    function : callable, optional
        It returns ``(value, pullback)``. ``pullback(ct)`` returns the cotangent of the one argument, or a tuple for
        several; None stands for zero. Without it, the result is a decorator.
    host : bool, optional
        True always makes the call back to Python, False never.

    Returns
    -------
    Lens
        Called, it gives the value. Lenses compose by ``>>``, ``*`` and ``&``.

    Raises
    ------
    CapturedTracerError
        If the function captures a traced value, which would get no derivative.
    ShapeError, TreeError
        If cotangents do not fit the arguments.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> @rg.lens
    ... def cube(x):
    ...     return x**3, lambda ct: 3 * x**2 * ct
    >>> value, pull = (cube >> rg.lens.of(np.sin)).at(2.0)
    >>> print(round(float(value), 6), round(float(pull(1.0)), 6))  # sin x³, 3x² cos x³
    0.989358 -1.746000
    >>> float(rg.grad(lambda x: cube(x) + x)(2.0))
    13.0
    """

    def __call__(self, function: Callable[..., Any] | None = None, *, host: bool | None = None) -> Any:
        if function is None:
            return functools.partial(self, host=host)
        if host not in (None, True, False):
            raise OptionError(f"host={host!r}", remedy="use True, False or None")
        name = name_of(function, "lens")
        return functools.update_wrapper(Lens(lens_node(function, host), name), function, updated=())

    def of(self, function: Callable[..., Any]) -> Lens:
        """A plain NumPy function as a lens; its pullback is what ``rg.vjp`` makes.

        Parameters
        ----------
        function : callable
            The function.

        Returns
        -------
        Lens
            The lens.
        """
        return Lens(function, name_of(function))

    def unit(self, *source: Any) -> Point:
        """A source with the identity as pullback: ``rg.lens.unit(a).bind(f)`` is ``f.at(a)``.

        Parameters
        ----------
        *source : tree
            The source; several arguments are a tuple.

        Returns
        -------
        Point
            The point.
        """
        value = _source(source)
        return Point(value, lambda ct: ct, value)

    def zip(self, first: Point, second: Point) -> Point:
        """Both values as a pair: ``first.zip(second)``.

        Parameters
        ----------
        first, second : Point
            Two points of one source.

        Returns
        -------
        Point
            The pair; its pullback adds the cotangents of the source.
        """
        return first.zip(second)

    @property
    def id(self) -> Lens:
        """The source itself."""
        return Lens(lambda *args: _source(args), "id")

    def copy(self, n: int) -> Lens:
        """The source n times; the pullback adds the n cotangents.

        Parameters
        ----------
        n : int
            The number of copies.

        Returns
        -------
        Lens
            The lens.
        """
        return Lens(lambda *args: (_source(args),) * n, f"copy{n}")

    @property
    def add(self) -> Lens:
        """The sum of a pair of equal structure, field by field; the pullback copies the cotangent."""
        return Lens(_sum, "add")

    @property
    def swap(self) -> Lens:
        """A pair in the other order."""
        return Lens(lambda a, b: (b, a), "swap")

    def proj(self, i: int) -> Lens:
        """One entry of a tuple; the cotangents of the others are zero.

        Parameters
        ----------
        i : int
            The position of the entry.

        Returns
        -------
        Lens
            The lens.
        """
        return Lens(lambda *args: args[i], f"proj{i}")

    @property
    def drop(self) -> Lens:
        """The empty tuple; the cotangent of the source is zero."""
        return Lens(lambda *args: (), "drop")

    def const(self, c: Any) -> Lens:
        """A constant for any source; the cotangent of the source is zero.

        Parameters
        ----------
        c : tree
            The constant.

        Returns
        -------
        Lens
            The lens.
        """
        return Lens(lambda *args: map_leaves(_number, c), "const")


def _number(x: Any) -> Any:
    """A Python integer as a float: an integer would be a static result, but values of lenses have cotangents."""
    return float(x) if type(x) is int else x


lens = Lenses()
