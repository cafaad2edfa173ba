"""Operands for the patterns of rules: graphs of any shapes that a rule matches, often square or with axes of one."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from retrograd.ir import Aval, Graph
from retrograd.ir.builder import Builder, Symbol
from retrograd.passes.patterns import Hole, Match, Number, Rule

from .graphs import op

Shape = tuple[int, ...]
LENGTHS = [
    [2, 3],
    [3],
    [1, 3],
    [4],
    [3, 70],
    [9, 130],
    [16, 130],
    [1, 9],
    [9, 300],
    [20, 64],
    [20],
    [2, 300],
    [70, 130],
]
NUMBERS = [0.5, 2.0, -1.0, 0.2, 3.0, 1.5, -2.0, 4.0, 0.0]
LARGEST = 40_000
SAME_SHAPE = frozenset({"mul", "add", "sub", "div", "neg", "square", "log", "exp", "logaddexp", "power"})


class MisfitError(Exception):
    """The choices made so far fit no graph."""


class Operands:
    """Makes operands from the result of a pattern to its variables; a variable that occurs twice has one value."""

    def __init__(self, r: random.Random, dtype: str) -> None:
        self.r, self.dtype, self.b = r, np.dtype(dtype), Builder()
        self.lengths = r.choice(LENGTHS)
        self.found: dict[str, Any] = {}

    def shape(self) -> Shape:
        """Any shape of up to three axes."""
        return tuple(self.length() for _ in range(self.r.choice([0, 1, 1, 2, 2, 2, 3])))

    def length(self) -> int:
        return self.r.choice(self.lengths)

    def value(self, pattern: Any, shape: Shape) -> Symbol:
        """A value of this shape that the pattern matches."""
        if np.prod(shape) > LARGEST:
            raise MisfitError
        if isinstance(pattern, Match):
            return self.result(pattern, shape)
        if not isinstance(pattern, Hole):
            return self.b.constant(pattern, self.aval(shape))
        if pattern.name not in self.found:
            number = isinstance(pattern, Number)
            self.found[pattern.name] = self.number(shape) if number else self.operand(shape)
        return self.fitting(self.found[pattern.name], shape)

    def result(self, pattern: Match, shape: Shape) -> Symbol:
        """The operation of a pattern, with a result of this shape."""
        if pattern.prim.name in SAME_SHAPE:
            found: Symbol = pattern.prim(*(self.value(p, shape) for p in pattern.operands))
            return found
        return MAKERS[pattern.prim.name](self, pattern, shape)

    def attribute(self, pattern: Match, name: str, choose: Callable[[], Any]) -> Any:
        """The value of an attribute: as the pattern has it, as chosen before, or as chosen now."""
        wanted = pattern.attrs[name]
        return self.found.setdefault(wanted.name, choose()) if isinstance(wanted, Hole) else wanted

    def aval(self, shape: Shape) -> Aval:
        return Aval(shape, self.dtype)

    def number(self, shape: Shape) -> Symbol:
        return self.b.constant(self.r.choice(NUMBERS), self.aval(shape))

    def fitting(self, x: Symbol, shape: Shape) -> Symbol:
        if x.shape != shape:
            raise MisfitError
        return x

    def operand(self, shape: Shape) -> Symbol:
        """An argument, or what rules look into: stretched values, symmetric and scaled matrices, triangles."""
        chance = self.r.random()
        if len(shape) == 2 and chance < 0.3:
            return self.r.choice([self.symmetric, self.triangle, self.scaled])(shape)
        if shape and chance < 0.5:
            return self.stretched(self.b.input(self.aval(self.narrow(shape))), shape)
        return self.number(shape) if chance > 0.95 else self.b.input(self.aval(shape))

    def narrow(self, shape: Shape) -> Shape:
        """A shape that is stretched to this one."""
        found = tuple(1 if self.r.random() < 0.5 else n for n in shape)
        return found[self.r.randint(0, len(found)) :] if self.r.random() < 0.5 else found

    def stretched(self, x: Symbol, shape: Shape) -> Symbol:
        return x if x.shape == shape else op("broadcast", x, aval=self.aval(shape))

    def symmetric(self, shape: Shape) -> Symbol:
        if shape[0] != shape[1]:
            return self.b.input(self.aval(shape))
        x = self.b.input(self.aval(shape))
        return op("add", x, op("permute", x, axes=(1, 0)))

    def triangle(self, shape: Shape) -> Symbol:
        return op(self.r.choice(["tril", "triu"]), self.b.input(self.aval(shape)), k=self.r.choice([-1, 0, 1]))

    def scaled(self, shape: Shape) -> Symbol:
        column, row = (self.b.input(self.aval(part)) for part in ((shape[0], 1), (1, shape[1])))
        scales = op("mul", self.stretched(column, shape), self.stretched(row, shape))
        return op("mul", scales, self.b.input(self.aval(shape)))

    def regular(self, pattern: Any, n: int) -> Symbol:
        """A positive definite matrix, a triangle, or any other matrix that can be inverted."""
        if isinstance(pattern, Match):
            return self.result(pattern, (n, n))
        if pattern.name not in self.found:
            x = self.b.input(self.aval((n, n)))
            part = self.r.choice([lambda x: x, lambda x: op("tril", x, k=0), lambda x: op("triu", x, k=0)])(x)
            eye = op("diag", self.b.constant(4.0 * n + 8.0, self.aval((n,))), offset=0)
            self.found[pattern.name] = op("add", part, eye)
        return self.fitting(self.found[pattern.name], (n, n))


def _applied(p: Match, *operands: Symbol, **attrs: Any) -> Symbol:
    found: Symbol = p.prim(*operands, **attrs)
    return found


def _folded(o: Operands, p: Match, shape: Shape) -> Symbol:
    keepdims = o.attribute(p, "keepdims", lambda: o.r.random() < 0.5)
    ndim = len(shape) if keepdims else len(shape) + o.r.choice([1, 1, 2])
    places = [k for k in range(ndim) if not keepdims or shape[k] == 1]
    if not places or ndim > 3:
        raise MisfitError
    count = o.r.randint(1, len(places)) if keepdims else ndim - len(shape)
    axis = o.attribute(p, "axis", lambda: tuple(sorted(o.r.sample(places, count))))
    left = iter(shape)
    whole = tuple(o.length() if k in axis else (shape[k] if keepdims else next(left)) for k in range(ndim))
    return _applied(p, o.value(p.operands[0], whole), axis=axis, keepdims=keepdims)


def _broadcast(o: Operands, p: Match, shape: Shape) -> Symbol:
    narrow = o.narrow(shape)
    if narrow == shape:
        raise MisfitError
    aval = o.attribute(p, "aval", lambda: o.aval(shape))
    return _applied(p, o.value(p.operands[0], narrow), aval=aval)


def _reshape(o: Operands, p: Match, shape: Shape) -> Symbol:
    long = [n for n in shape if n != 1]
    o.r.shuffle(long)
    for _ in range(o.r.randint(0, 3 - len(long))):
        long.insert(o.r.randint(0, len(long)), 1)
    aval = o.attribute(p, "aval", lambda: o.aval(shape))
    return _applied(p, o.value(p.operands[0], tuple(long)), aval=aval)


def _cast(o: Operands, p: Match, shape: Shape) -> Symbol:
    aval = o.attribute(p, "aval", lambda: o.aval(shape))
    return _applied(p, o.value(p.operands[0], shape), aval=aval)


def _permute(o: Operands, p: Match, shape: Shape) -> Symbol:
    axes = o.attribute(p, "axes", lambda: tuple(o.r.sample(range(len(shape)), len(shape))))
    if sorted(axes) != list(range(len(shape))):
        raise MisfitError
    before = tuple(shape[axes.index(k)] for k in range(len(shape)))
    return _applied(p, o.value(p.operands[0], before), axes=axes)


def _matmul(o: Operands, p: Match, shape: Shape) -> Symbol:
    k = o.length()
    one_axis = [((shape[0], k), (k,)), ((k,), (k, shape[0]))] if len(shape) == 1 else [((k,), (k,))]
    whole = ((*shape[:-1], k), (*shape[:-2], k, *shape[-1:]))
    left, right = whole if len(shape) > 1 else o.r.choice(one_axis)
    return _applied(p, o.value(p.operands[0], left), o.value(p.operands[1], right))


def _written(o: Operands, p: Match, shape: Shape) -> Symbol:
    def index() -> Any:
        bounds = [sorted((o.r.randint(0, n), o.r.randint(0, n))) for n in shape]
        parts = [o.r.choice([slice(None), slice(*b), slice(*b, 2), 0, -1]) for b in bounds]
        return tuple(parts[: o.r.randint(0, len(parts))])

    if len(p.operands) != 2:
        raise MisfitError
    at = o.attribute(p, "index", index)
    place = np.empty(shape)[at].shape
    return _applied(p, o.value(p.operands[0], shape), o.value(p.operands[1], place), index=at)


def _solved(o: Operands, p: Match, shape: Shape) -> Symbol:
    if len(shape) not in (1, 2):
        raise MisfitError
    usual = {"lower": True, "unit": False, "checked": False}
    flags = {name: o.attribute(p, name, partial(bool, flag)) for name, flag in usual.items() if name in p.attrs}
    return _applied(p, o.regular(p.operands[0], shape[0]), o.value(p.operands[1], shape), **flags)


def _of_regular(o: Operands, p: Match, shape: Shape) -> Symbol:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise MisfitError
    return _applied(p, o.regular(p.operands[0], shape[0]))


def _diagonal(o: Operands, p: Match, shape: Shape) -> Symbol:
    offset = o.attribute(p, "offset", lambda: 0)
    return _applied(p, o.value(p.operands[0], (*shape, *shape[-1:])), offset=offset)


MAKERS: dict[str, Callable[[Operands, Match, Shape], Symbol]] = {
    **dict.fromkeys(("sum", "max", "min"), _folded),
    **dict.fromkeys(("setitem", "additem"), _written),
    **dict.fromkeys(("solve", "solve_triangular"), _solved),
    **dict.fromkeys(("inv", "cholesky"), _of_regular),
    "broadcast": _broadcast,
    "reshape": _reshape,
    "cast": _cast,
    "permute": _permute,
    "matmul": _matmul,
    "diagonal": _diagonal,
}


def has_operands(pattern: Any) -> bool:
    """Whether operands can be made for a pattern: it consists of operations that this file knows."""
    if not isinstance(pattern, Match):
        return True
    known = pattern.prim.name in SAME_SHAPE or pattern.prim.name in MAKERS
    written = pattern.prim.name not in ("setitem", "additem") or len(pattern.operands) == 2
    return known and written and all(map(has_operands, pattern.operands))


def matched(rule: Rule, r: random.Random, dtype: str) -> Graph | None:
    """A graph whose results are a match of the rule and what the rule makes of it; None if it refuses."""
    operands = Operands(r, dtype)
    old = operands.result(rule.pattern, operands.shape())
    if old.node is None or old.node.prim is not rule.pattern.prim:
        return None
    new = rule.apply(operands.b, old.node.inputs, old.node.attrs)
    return None if new is None else operands.b.graph("matched", [old, operands.b.coerce(new, old.aval)])
