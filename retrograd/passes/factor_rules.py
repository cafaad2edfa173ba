"""The rewrites that take a power of two out of a sum, where what is left in it is computed anyway."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..ir.builder import Symbol
from ..ops.elementwise import literal_value, mul
from .patterns import NUMBER, Rule
from .rules import NUMPY

LARGEST = 2.0**10  # factor that is taken out


def is_power_of_two(a: float) -> bool:
    """Whether a number, or its negative, is a power of two, which changes no digit of normal numbers."""
    return abs(math.frexp(a)[0]) == 0.5


def _factored(y: Symbol, z: Symbol, number: Symbol, sign: int) -> Symbol | None:
    """(x a) w + sign · b z as c ((x a/c) w ± z), for a power of two b = ± c, if x a/c is in the graph already.

    The adjoints of a (x - w²)² have such terms. Three operations are left of four, and normal numbers keep their bits.
    """
    b = literal_value(number)
    if not y.ndim or y.dtype.kind != "f" or not isinstance(b, float) or not 1 < abs(b) <= LARGEST:
        return None
    if not is_power_of_two(b):
        return None
    for x, a, w in _scaled(y):
        for c in (b, -b):
            known = _multiple(x, a / c)
            if known is not None:
                inner = known * w
                return (inner + z if sign * b == c else inner - z) * c  # type: ignore[no-any-return]  # of symbols
    return None


def _scaled(y: Symbol) -> Iterator[tuple[Symbol, float, Symbol]]:
    """The ways to see y as (x a) w, with a number a."""
    if y.node is None or y.node.prim is not mul:
        return
    factors = [y.builder.symbol(v) for v in y.node.inputs]
    for inner, w in (factors, factors[::-1]):
        if inner.node is not None and inner.node.prim is mul:
            x, n = (inner.builder.symbol(v) for v in inner.node.inputs)
            for number, other in ((n, x), (x, n)):
                a = literal_value(number)
                if isinstance(a, float):
                    yield other, a, w


def _multiple(x: Symbol, a: float) -> Symbol | None:
    """x a, if it is in the graph."""
    number = x.builder.constant(a, x.aval)
    found = x.builder.find(mul, number, x)
    return x.builder.find(mul, x, number) if found is None else found


NUMPY += [
    Rule(lambda y, z, b=NUMBER: y + b * z, lambda y, z, b: _factored(y, z, b, 1)),
    Rule(lambda y, z, b=NUMBER: y + z * b, lambda y, z, b: _factored(y, z, b, 1)),
    Rule(lambda y, z, b=NUMBER: b * z + y, lambda y, z, b: _factored(y, z, b, 1)),
    Rule(lambda y, z, b=NUMBER: z * b + y, lambda y, z, b: _factored(y, z, b, 1)),
    Rule(lambda y, z, b=NUMBER: y - b * z, lambda y, z, b: _factored(y, z, b, -1)),
    Rule(lambda y, z, b=NUMBER: y - z * b, lambda y, z, b: _factored(y, z, b, -1)),
]
