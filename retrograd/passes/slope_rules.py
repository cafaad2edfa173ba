"""The rewrites of lines with a kink, such as a leaky relu, whose choices cost NumPy a branch for each element."""

from __future__ import annotations

from ..ir.builder import Symbol
from ..ir.primitive import Primitive
from ..ops.elementwise import ge, gt, le, literal_value, lt, to_dtype, where
from ..ops.extrema import maximum
from ..ops.logic import logical_not
from .patterns import NUMBER, Rule
from .rules import NUMPY


def _slope(x: Symbol, number: Symbol) -> float | None:
    """A slope between 0 and 1 of an array of floats."""
    a = literal_value(number)
    return a if x.ndim and x.dtype.kind == "f" and isinstance(a, float) and 0 < a < 1 else None


def _larger(x: Symbol, y: Symbol, a: Symbol) -> Symbol | None:
    """The larger of x and a x: x where it is positive and a x where it is not. Every bit is the same.

    The derivative at a tie is another one, but nothing differentiates what these rules make.
    """
    if _slope(x, a) is None:
        return None
    found: Symbol = maximum(x, y)
    return found


def _weighed(c: Symbol, t: Symbol, number: Symbol) -> Symbol | None:
    """t times 1 or the slope. A zero may have another sign: t + 0 is not -0, and t times 1 may be."""
    a = _slope(t, number)
    if a is None:
        return None
    found: Symbol = t * maximum(to_dtype(c, t.dtype), a)
    return found


def _weighed_below(c: Symbol, t: Symbol, number: Symbol) -> Symbol | None:
    """The same where the condition chooses the slope."""
    return _weighed(logical_not(c), t, number)


def _kinks(above: Primitive, below: Primitive) -> list[Rule]:
    """x above zero and a x below it, with either comparison."""
    return [
        Rule(lambda x, a=NUMBER: where(above(x, 0), x, a * x), lambda x, a: _larger(x, a * x, a)),
        Rule(lambda x, a=NUMBER: where(above(x, 0), x, x * a), lambda x, a: _larger(x, x * a, a)),
        Rule(lambda x, a=NUMBER: where(below(x, 0), a * x, x), lambda x, a: _larger(x, a * x, a)),
        Rule(lambda x, a=NUMBER: where(below(x, 0), x * a, x), lambda x, a: _larger(x, x * a, a)),
    ]


NUMPY += [
    *_kinks(gt, lt),
    *_kinks(ge, le),
    Rule(lambda c, t, a=NUMBER: where(c, t, 0) + a * where(c, 0, t), _weighed),
    Rule(lambda c, t, a=NUMBER: where(c, t, 0) + where(c, 0, t) * a, _weighed),
    Rule(lambda c, t, a=NUMBER: where(c, 0, t) + a * where(c, t, 0), _weighed_below),
    Rule(lambda c, t, a=NUMBER: where(c, 0, t) + where(c, t, 0) * a, _weighed_below),
]
