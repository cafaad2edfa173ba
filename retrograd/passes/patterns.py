"""Rewrite patterns: ordinary functions of symbols, run on holes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ir.builder import Builder, Symbol, attr_key
from ..ir.graph import Value
from ..ir.primitive import TRANSFORMS, Operand, Primitive
from ..ops.elementwise import const, constant_of


class Hole(Operand):
    """A variable of a pattern, which stands for any operand or any attribute."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def bind(self, prim: Primitive, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
        return Match(prim, tuple(operands), attrs)


class Number(Hole):
    """A variable of a pattern, which stands for the number that fills a constant."""

    __slots__ = ()


NUMBER = object()  # the default of a parameter that is a Number: ``lambda x, a=NUMBER: …``


class Match(Hole):
    """A pattern: an operation on patterns, holes and numbers."""

    __slots__ = ("attrs", "operands", "prim")

    def __init__(self, prim: Primitive, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> None:
        self.prim, self.operands, self.attrs = prim, operands, attrs

    def __str__(self) -> str:
        return f"{self.prim.name}({', '.join(map(str, (*self.operands, *self.attrs.values())))})"


class Rule:
    """One rewrite; ``then`` may return None to refuse. A parameter that stands for an attribute gets the attribute."""

    def __init__(self, when: Callable[..., Any], then: Callable[..., Symbol | None]) -> None:
        parameters = inspect.signature(when).parameters
        self.names = list(parameters)
        holes = [Number(p.name) if p.default is NUMBER else Hole(p.name) for p in parameters.values()]
        self.pattern: Match = when(*holes)
        self.then = then
        self.name = str(self.pattern)
        self.wanted = [_producer(p) for p in self.pattern.operands]

    def may_match(self, makers: Sequence[Primitive | None]) -> bool:
        """Whether operands made by these primitives can match; a hole takes any."""
        if len(makers) != len(self.wanted):
            return False
        return all(prim is None or prim is maker for prim, maker in zip(self.wanted, makers, strict=True))

    def apply(self, b: Builder, inputs: Sequence[Value], attrs: Mapping[str, Any]) -> Symbol | None:
        found: dict[str, Any] = {}
        if not self._operands(b, self.pattern, inputs, found) or not self._attrs(self.pattern, attrs, found):
            return None
        args = [Symbol(b, x) if isinstance(x, Value) else x for x in map(found.__getitem__, self.names)]
        try:
            return self.then(*args)
        except Exception as fault:
            TRANSFORMS.blame(fault, self.then, self.name)
            raise

    def _operands(self, b: Builder, pattern: Match, inputs: Sequence[Value], found: dict[str, Any]) -> bool:
        if len(inputs) != len(pattern.operands):
            return False
        for wanted, value in zip(pattern.operands, inputs, strict=True):
            if type(wanted) is Hole:  # this is the hot loop
                if found.setdefault(wanted.name, value) is not value:
                    return False
            elif not self._value(b, wanted, value, found):
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
        if isinstance(pattern, Number):
            return constant_of(b, value) is not None and found.setdefault(pattern.name, value) is value
        number = constant_of(b, value)
        return number is not None and number == pattern and attr_key(complex(number)) == attr_key(complex(pattern))

    def _attrs(self, pattern: Match, attrs: Mapping[str, Any], found: dict[str, Any]) -> bool:
        for name, wanted in pattern.attrs.items():
            if isinstance(wanted, Hole):
                if name not in attrs:
                    return False
                known = found.setdefault(wanted.name, attrs[name])
                if known is not attrs[name] and attr_key(known) != attr_key(attrs[name]):
                    return False
            elif attr_key(attrs.get(name)) != attr_key(wanted):
                return False
        return True


def _producer(pattern: Any) -> Primitive | None:
    """The primitive that must have made an operand; None if any may."""
    if isinstance(pattern, Match):
        return pattern.prim
    return const if isinstance(pattern, Number) or not isinstance(pattern, Hole) else None
