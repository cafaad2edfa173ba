"""simplify: Graph → Graph by tables of rewrites, both sides of which are functions of symbols."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.builder import Builder, Symbol, attr_key
from ..ir.evaluate import run_node
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import Operand, Primitive
from ..ir.types import Aval
from ..ops.elementwise import add, cast, const, div, eq, ge, gt, le, logical_not, lt, mul, ne, neg, sub, where
from ..ops.index import additem, getitem, setitem
from ..ops.reduce import sum_
from ..ops.shape import broadcast, permute, reshape
from .inline import inline_into
from .prune import prune


class Hole(Operand):
    """A variable of a pattern: it stands for any operand, or for any attribute."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, prim: Primitive, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
        return Match(prim, tuple(operands), attrs)


class Match(Hole):
    """A pattern: an operation on patterns, holes and numbers."""

    __slots__ = ("attrs", "operands", "prim")

    def __init__(self, prim: Primitive, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> None:
        self.prim, self.operands, self.attrs = prim, operands, attrs


class Rule:
    """One rewrite; ``then`` may return None to refuse. Parameters that stand in attributes hold attributes."""

    def __init__(self, when: Callable[..., Any], then: Callable[..., Any]) -> None:
        self.names = list(inspect.signature(when).parameters)
        self.pattern: Match = when(*map(Hole, self.names))
        self.then = then
        self.name = inspect.getsource(when).strip() if when.__name__ != "<lambda>" else _lambda_text(when)

    def apply(self, b: Simplifier, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Symbol | None:
        found: dict[str, Any] = {}
        if not self._operands(b, self.pattern, inputs, found) or not self._attrs(self.pattern, attrs, found):
            return None
        args = [Symbol(b, found[n]) if isinstance(found[n], Value) else found[n] for n in self.names]
        result: Symbol | None = self.then(*args)
        return result

    def _operands(self, b: Builder, pattern: Match, inputs: Sequence[Value], found: dict[str, Any]) -> bool:
        if len(inputs) != len(pattern.operands):
            return False
        for wanted, value in zip(pattern.operands, inputs, strict=True):  # noqa: SIM110 - this is the hot loop
            if not self._value(b, wanted, value, found):
                return False
        return True

    def _value(self, b: Builder, pattern: Any, value: Value, found: dict[str, Any]) -> bool:
        if isinstance(pattern, Match):
            node = b.made.get(value)
            return (
                node is not None
                and node.prim is pattern.prim
                and self._attrs(pattern, node.attrs, found)
                and self._operands(b, pattern, node.inputs, found)
            )
        if isinstance(pattern, Hole):
            return found.setdefault(pattern.name, value) is value
        number = constant_of(b, value)
        return number is not None and number == pattern and attr_key(complex(number)) == attr_key(complex(pattern))

    def _attrs(self, pattern: Match, attrs: Mapping[str, Any], found: dict[str, Any]) -> bool:
        for name, wanted in pattern.attrs.items():
            if isinstance(wanted, Hole):
                if attr_key(found.setdefault(wanted.name, attrs[name])) != attr_key(attrs[name]):
                    return False
            elif attr_key(attrs[name]) != attr_key(wanted):
                return False
        return True


def _lambda_text(function: Callable[..., Any]) -> str:
    return f"line {function.__code__.co_firstlineno}"


def constant_of(b: Builder, value: Value) -> Any:
    """The number that a constant is filled with, or None."""
    node = b.made.get(value)
    if node is None or node.prim is not const or isinstance(node.attrs["value"], tuple):
        return None
    return node.attrs["value"]


def _real(x: Symbol) -> Symbol | None:
    """x itself, but for complex numbers: their product with 1 has the terms 0·inf and 0 - 0."""
    return None if x.dtype.kind == "c" else x


def _negated(x: Symbol) -> Symbol | None:
    return None if x.dtype.kind == "c" else neg(x)


def _composed(x: Symbol, p: tuple[int, ...], q: tuple[int, ...]) -> Any:
    return permute(x, axes=tuple(p[i] for i in q))


def _whole(x: Symbol, i: tuple[Any, ...]) -> Symbol | None:
    return x if all(s == slice(None) for s in i) else None


def _widened(x: Symbol, a: Any, c: Any) -> Symbol | None:
    """x itself where it was cast to a wider type and back."""
    exact = x.aval == c and x.dtype.kind == a.dtype.kind == "f" and x.dtype.itemsize < a.dtype.itemsize
    return x if exact else None


def _padded(x: Symbol, a: Aval, c: Aval) -> Symbol | None:
    """Broadcasting pads with leading axes of length 1 by itself."""
    pads = a.shape == (1,) * (a.ndim - x.ndim) + x.shape
    return broadcast(x, aval=c) if pads else None


def _keeping(x: Symbol, axis: tuple[int, ...], a: Aval) -> Symbol | None:
    """A sum that keeps the axes that a reshape would put back."""
    kept = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
    return sum_(x, axis=axis, keepdims=True) if a.shape == kept else None


# Bit for bit the same, for -0.0, nan and inf too: always on.
EXACT = [
    Rule(lambda x: neg(neg(x)), lambda x: x),
    Rule(lambda x: x * 1, _real),
    Rule(lambda x: 1 * x, _real),
    Rule(lambda x: x / 1, _real),
    Rule(lambda x: x * -1, _negated),
    Rule(lambda x: -1 * x, _negated),
    Rule(lambda x: x - 0, lambda x: x),
    Rule(lambda x: x + -0.0, _real),
    Rule(lambda x: -0.0 + x, _real),
    Rule(lambda x, y: x + -y, lambda x, y: x - y),
    Rule(lambda x, y: -x + y, lambda x, y: y - x),
    Rule(lambda x, y: x - -y, lambda x, y: x + y),
    Rule(lambda x: x**1, _real),
    Rule(lambda c, x: where(c, x, x), lambda c, x: x),
    Rule(lambda c, x, y: where(logical_not(c), x, y), lambda c, x, y: where(c, y, x)),
    Rule(lambda x, p, q: permute(permute(x, axes=p), axes=q), _composed),
    Rule(lambda x, p: permute(x, axes=p), lambda x, p: x if p == tuple(range(len(p))) else None),
    Rule(lambda x, a, c: reshape(reshape(x, aval=a), aval=c), lambda x, a, c: reshape(x, aval=c)),
    Rule(lambda x, i, a: reshape(sum_(x, axis=i, keepdims=False), aval=a), _keeping),
    Rule(lambda x, a: reshape(x, aval=a), lambda x, a: x if x.aval == a else None),
    Rule(lambda x, a, c: broadcast(broadcast(x, aval=a), aval=c), lambda x, a, c: broadcast(x, aval=c)),
    Rule(lambda x, a, c: broadcast(reshape(x, aval=a), aval=c), _padded),
    Rule(lambda x, a: broadcast(x, aval=a), lambda x, a: x if x.aval == a else None),
    Rule(lambda x, a: cast(x, aval=a), lambda x, a: x if x.aval == a else None),
    Rule(lambda x, a, c: cast(cast(x, aval=a), aval=c), _widened),
    Rule(lambda x, i: getitem(x, index=i), _whole),
    Rule(lambda x, v, i: getitem(setitem(x, v, index=i), index=i), lambda x, v, i: v),
    Rule(lambda x, v, i: setitem(x, getitem(x, index=i) + v, index=i), lambda x, v, i: additem(x, v, index=i)),
    Rule(lambda x, v, i: setitem(x, v + getitem(x, index=i), index=i), lambda x, v, i: additem(x, v, index=i)),
    Rule(lambda x, v, i: setitem(x, getitem(x, index=i) - v, index=i), lambda x, v, i: additem(x, -v, index=i)),
]

MOVES = {prim.name for prim in (broadcast, reshape, permute)}
FOLDED = {prim.name for prim in (add, sub, mul, div, neg, lt, le, gt, ge, eq, ne, cast)}


class Simplifier(Builder):
    """A builder that rewrites each node as it is made, so that one walk reaches the normal form."""

    def __init__(self, rules: Sequence[Rule], fired: Counter[str] | None = None) -> None:
        super().__init__()
        self.rules: dict[Primitive, list[Rule]] = {}
        for rule in rules:
            self.rules.setdefault(rule.pattern.prim, []).append(rule)
        self.fired = Counter() if fired is None else fired
        self.bodies: dict[Graph, Graph] = {}

    def emit(
        self, prim: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any], hints: Sequence[str | None] = ()
    ) -> list[Symbol]:
        for rule in self.rules.get(prim, ()):
            result = rule.apply(self, inputs, attrs)
            if result is not None:
                self.fired[rule.name] += 1
                (aval,) = prim.avals([v.aval for v in inputs], attrs)
                return [self.coerce(result, aval)]
        if (prim.name in FOLDED or prim.name in MOVES) and (folded := self._fold(prim, inputs, attrs)) is not None:
            self.fired["fold"] += 1
            return [folded]
        graphs = {name: self._body(g) for name, g in attrs.items() if isinstance(g, Graph)}
        return super().emit(prim, inputs, {**attrs, **graphs} if graphs else attrs, hints)

    def _body(self, graph: Graph) -> Graph:
        """A nested graph in normal form; one that is called in several places stays one."""
        if graph not in self.bodies:
            inner = Simplifier((), self.fired)
            inner.rules, inner.bodies = self.rules, self.bodies
            self.bodies[graph] = _rebuilt(inner, graph)
        return self.bodies[graph]

    def _fold(self, prim: Primitive, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Symbol | None:
        """An operation on numbers filled into constants: exact, as each element is computed alone.

        What would warn or fail is left as it is, to do so when it runs.
        """
        numbers = [constant_of(self, v) for v in inputs]
        if any(n is None for n in numbers):
            return None
        aval = prim.avals([v.aval for v in inputs], attrs)[0]
        if any(a.kind == "python" for a in (aval, *(v.aval for v in inputs))):
            return None
        if prim.name in MOVES:
            return self.constant(numbers[0], aval)
        node = Node(prim, tuple(inputs), attrs, (Value(aval),))
        filled = [np.full((), n, v.aval.dtype) for v, n in zip(inputs, numbers, strict=True)]
        args = [x if v.aval.kind == "array" else x[()] for x, v in zip(filled, inputs, strict=True)]
        try:
            with np.errstate(all="raise", under="ignore"):
                (value,) = run_node(node, args)
        except (ArithmeticError, ValueError):
            return None
        return self.constant(np.asarray(value)[()], aval)


def _rebuilt(b: Simplifier, graph: Graph) -> Graph:
    return prune(b.graph(graph.name, inline_into(b, graph, b.inputs_like(graph.inputs))))


def simplify(graph: Graph, rules: Sequence[Rule] = (), fired: Counter[str] | None = None) -> Graph:
    """The graph in normal form under the EXACT rules and any further ``rules``; firings are counted in ``fired``."""
    return _rebuilt(Simplifier([*EXACT, *rules], fired), graph)
