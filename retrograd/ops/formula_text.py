"""Formulas on parts of arrays: their graphs, in which a length that is an operand is a marker, and their source."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import REGISTRY, TRANSFORMS, JvpMode
from ..ir.texts import literal
from ..ir.types import Aval
from .elementwise import cast
from .masks import putmask
from .shape import broadcast_to, reshape, reshape_to

Window = tuple[str, ...]
MARKERS = {"a": 10007, "b": 10009, "c": 10037, "d": 10039}  # lengths of the graph that stand for letters
LETTERS = {size: letter for letter, size in MARKERS.items()}
VIEWS = frozenset({"broadcast", "permute", "reshape"})
FRONT = '''
def front(part, shape):
    """An array of zeros with a part in front."""
    whole = np.zeros(shape, part.dtype)
    whole[tuple(map(slice, part.shape))] = part
    return whole
'''


@dataclass(frozen=True)
class SliceNumber:
    """An operand that is a number: the length of a letter, or the position of an operand's part along an axis."""

    letter: str = ""
    operand: int = 0  # -1: the array that is written into
    axis: int = 0

    def of(self, operand: int) -> SliceNumber:
        """The position of another operand's part."""
        return self if self.letter else replace(self, operand=operand)


@dataclass(frozen=True)
class Formula:
    """A formula with the parts it reads, and the part that it is written into."""

    graph: Graph
    windows: tuple[Window, ...]
    target: Window

    @property
    def aval(self) -> Aval:
        return self.graph.outputs[0].aval

    @cached_property
    def letters(self) -> list[str]:
        """The letters of all shapes and of the target, in order."""
        values = (*self.graph.inputs, *(node.out for node in self.graph.nodes))
        letters = {LETTERS[n] for value in values for n in value.aval.shape if n in LETTERS}
        return sorted(letters.union(item[0] for item in self.target if item not in ("", "#")))

    @cached_property
    def numbers(self) -> tuple[SliceNumber, ...]:
        """The lengths, then the positions: those of the operands, and of the target."""
        windows = [*enumerate(self.windows), (-1, self.target)]
        at = (
            SliceNumber("", k, axis)
            for k, w in windows
            for axis, item in enumerate(w)
            if item == "#" or item[1:] == ":"
        )
        return (*map(SliceNumber, self.letters), *at)

    def largest(self, shape: Iterable[int], limits: Sequence[int]) -> tuple[int, ...]:
        """A shape of the graph with the largest lengths."""
        limit = dict(zip(self.letters, limits, strict=True))
        return tuple(limit[LETTERS[n]] if n in LETTERS else n for n in shape)

    def shape(self, limits: Sequence[int]) -> tuple[int, ...]:
        """The shape of the value with the largest lengths."""
        return self.largest(self.aval.shape, limits)

    def value(self, limits: Sequence[int]) -> str:
        """The source of the value, with operands from 0 on."""
        (out,) = self.graph.outputs
        text = _Text(self, 0).of(out)
        if not LETTERS.keys().isdisjoint(out.aval.shape):
            return f"front({text}, {self.shape(limits)})"
        made = self.graph.producer.get(out)
        view = out.aval.shape and (made is None or made.prim.name in VIEWS)
        return f"{text}.copy()" if view else text

    def write(self, sign: str) -> str:
        """The source of a write of the value into operand 0."""
        text = _Text(self, 1)
        value = text.stretched(self.graph.outputs[0]) or text.of(self.graph.outputs[0])
        return f"{{0}}[{text.index(-1, self.target)}] {sign}= {value}"

    def scratch(self, limits: Sequence[int]) -> int:
        """The bytes of the two largest results on the way."""
        made = [node.out.aval for node in self.graph.nodes if node.prim.name not in VIEWS | {"const"}]
        sizes = [math.prod(self.largest(aval.shape, limits)) * aval.dtype.itemsize for aval in made]
        return sum(sorted(sizes)[-2:])


class _Text:
    """Writes the source of a formula, as a template whose fields are operands; the first array is operand ``first``."""

    def __init__(self, formula: Formula, first: int) -> None:
        self.formula, self.graph = formula, formula.graph
        self.at = {number: first + len(formula.windows) + k for k, number in enumerate(formula.numbers)}
        self.operands = dict(zip(self.graph.inputs, enumerate(formula.windows, first), strict=True))
        self.first = first

    def index(self, operand: int, window: Window) -> str:
        """The index of a part."""
        return ", ".join(self._item(item, SliceNumber("", operand, axis)) for axis, item in enumerate(window))

    def _item(self, item: str, number: SliceNumber) -> str:
        if item in ("", "#"):
            return f"{{{self.at[number]}}}" if item else ":"
        length = f"{{{self.at[SliceNumber(item[0])]}}}"
        if item[1:] != ":":
            return f":{length}"
        start = f"{{{self.at[number]}}}"
        return f"{start}:{start} + {length}"

    def _length(self, found: re.Match[str]) -> str:
        letter = LETTERS.get(int(found[0]))
        return found[0] if letter is None else f"{{{self.at[SliceNumber(letter)]}}}"

    def of(self, value: Value, nested: bool = False) -> str:
        """The source of a value."""
        if value in self.operands:
            k, window = self.operands[value]
            return f"{{{k}}}[{self.index(k - self.first, window)}]" if any(window) else f"{{{k}}}"
        node = self.graph.producer[value]
        if node.prim.name == "const":
            number, aval = literal(node.attrs["value"]), value.aval
            shape = re.sub(r"\d+", self._length, str(aval.shape))
            return f"np.full({shape}, {number}, {literal(aval.dtype)})" if aval.shape else number
        code = node.prim.numpy
        text = code.render(node, [f"<{k}>" for k in range(len(node.inputs))], code.op or code.code)
        text = re.sub(r"\b\d{5}\b", self._length, text)
        text = re.sub(r"<(\d)>", lambda found: self._operand(node, node.inputs[int(found[1])]), text)
        return f"({text})" if nested and code.op else text

    def _operand(self, node: Node, value: Value) -> str:
        """An operand of a node, which NumPy stretches itself if that gives the result its shape."""
        loose = node.prim.numpy.broadcasts and self._fits(node)
        return (self.stretched(value) if loose else "") or self.of(value, True)

    def stretched(self, value: Value) -> str:
        """What NumPy stretches to the value; "" if the value is nothing stretched."""
        made = self.graph.producer.get(value)
        if made is None or made.prim.name not in ("broadcast", "const"):
            return ""
        if made.prim.name == "const":
            return literal(made.attrs["value"])
        (source,) = made.inputs
        inner = self.graph.producer.get(source)
        if inner is not None and inner.prim.name == "reshape" and not inner.inputs[0].aval.shape:
            (source,) = inner.inputs
        return self.of(source, True)

    def _fits(self, node: Node) -> bool:
        """Whether NumPy gives a result its shape also if operands are not stretched before."""
        shapes = [() if self._made_by(v, "const") else self._source(v).aval.shape for v in node.inputs]
        return np.broadcast_shapes(*shapes) == node.out.aval.shape

    def _source(self, value: Value) -> Value:
        made = self.graph.producer.get(value)
        return made.inputs[0] if made is not None and made.prim.name == "broadcast" else value

    def _made_by(self, value: Value, name: str) -> bool:
        made = self.graph.producer.get(value)
        return made is not None and made.prim.name == name


def _part(aval: Aval, window: Window) -> Aval:
    """The aval of a part, with markers for lengths."""
    if len(window) != aval.ndim or not LETTERS.keys().isdisjoint(aval.shape):
        raise ValueError(f"{window} does not describe a part of {aval}")
    items = zip(aval.shape, window, strict=True)
    shape = tuple(MARKERS[item[0]] if item else n for n, item in items if item != "#")
    return Aval(shape, aval.dtype, "array" if shape else "scalar")


def part_shape(aval: Aval, window: Window) -> tuple[int, ...]:
    """The shape of a part, with markers for lengths."""
    return _part(aval, window).shape


def in_front(window: Window) -> Window:
    """Where a part is that fills the front of an array of its own."""
    return tuple(item.rstrip(":") for item in window if item != "#")


def zeros_of(aval: Aval, window: Window) -> str:
    """The formula of zeros that fill a part."""
    shape = "".join(f", {LETTERS.get(n, n)}" for n in part_shape(aval, window))
    return f"const(0.0, {aval.dtype.char!r}{shape})"


@lru_cache(maxsize=4096)
def formula_of(text: str, avals: tuple[Aval, ...], windows: tuple[Window, ...], target: Window = ()) -> Formula:
    """Read a formula on parts of arrays of these avals."""
    b = Builder()
    env = {f"x{k}": b.input(_part(aval, w)) for k, (aval, w) in enumerate(zip(avals, windows, strict=True))}
    graph = b.graph("formula", [read(b, text, env, MARKERS)])
    if any(node.prim.numpy.statement for node in graph.nodes):
        raise ValueError(f"{text} has a statement")
    sizes = {n for node in graph.nodes for n in node.out.aval.shape} - LETTERS.keys()
    if any(n and n % marker == 0 for n in sizes for marker in LETTERS):
        raise ValueError(f"{text} has axes whose sizes are products of lengths")
    return Formula(graph, windows, target)


def read(b: Builder, text: str, env: dict[str, Symbol], lengths: dict[str, int]) -> Symbol:
    """The value of a formula in a graph under construction."""

    def made(tree: ast.expr) -> Any:
        match tree:
            case ast.Name(id=name):
                return env[name] if name in env else lengths[name]
            case ast.Constant(value=value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -made(operand)
            case ast.Tuple(elts=items):
                return tuple(map(made, items))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                return _applied(b, name, [*map(made, args)], {k.arg: made(k.value) for k in keywords if k.arg})
        raise InternalError(f"{ast.unparse(tree)} does not belong to a formula")

    found: Symbol = made(ast.parse(text, mode="eval").body)
    return found


def _applied(b: Builder, name: str, args: list[Any], attrs: dict[str, Any]) -> Any:
    if name == "const":
        value, dtype, *shape = args
        return b.constant(float(value), Aval(tuple(shape), np.dtype(dtype), "array" if shape else "scalar"))
    if name == "cast":
        x, dtype = args
        return cast(x, aval=Aval(x.shape, np.dtype(dtype), "array" if x.shape else "scalar"))
    if name == "broadcast":
        return broadcast_to(args[0], tuple(args[1:]))
    if name == "reshape":
        return reshape_to(args[0], tuple(args[1:]))
    return REGISTRY[name](*args, **attrs)


def text_of(graph: Graph, names: dict[Value, str]) -> str:
    """The text of a graph with one result; of its values, those in ``names`` have names."""

    def lengths(shape: Iterable[int]) -> str:
        return "".join(f", {LETTERS.get(n, n)}" for n in shape)

    def text(value: Value) -> str:
        if value in names:
            return names[value]
        node = graph.producer[value]
        source = node
        while source.prim is reshape and (made := graph.producer.get(source.inputs[0])) and made.prim is reshape:
            source = made
        if source.prim is reshape and source.inputs[0].aval.shape == value.aval.shape:
            return text(source.inputs[0])
        operands = [*map(text, node.inputs if source is node else source.inputs)]
        args, name, aval = ", ".join(operands), node.prim.name, value.aval
        if node.prim is putmask:  # a statement, which is no part of an expression
            return f"where({operands[1]}, broadcast({operands[2]}{lengths(aval.shape)}), {operands[0]})"
        if name == "const":
            return f"const({node.attrs['value']!r}, {aval.dtype.char!r}{lengths(aval.shape)})"
        if name in ("broadcast", "reshape"):
            return f"{name}({args}{lengths(aval.shape)})"
        if name == "cast":
            return f"cast({args}, {aval.dtype.char!r})"
        return f"{name}({', '.join([args, *(f'{key}={literal(attr)}' for key, attr in node.attrs.items())])})"

    return text(graph.outputs[0])


@lru_cache(maxsize=4096)
def derived(
    text: str, avals: tuple[Aval, ...], windows: tuple[Window, ...], i: int, nan_safe: bool
) -> tuple[str, tuple[int, ...]]:
    """The tangent of a formula as a formula of the i-th array's tangent and of other arrays, and which these are."""
    graph = formula_of(text, avals, windows).graph
    b = Builder()
    args = b.inputs_like(graph.inputs)
    t = b.input(graph.inputs[i].aval)
    tans = [t if k == i else None for k in range(len(args))]
    _, (dot,) = TRANSFORMS.jvp(b, graph, args, tans, JvpMode(split=False, nan_safe=nan_safe))
    return ("", ()) if dot is None else _renamed(b, dot, graph.outputs[0].aval, t, args)


@lru_cache(maxsize=4096)
def turned(text: str, avals: tuple[Aval, ...], windows: tuple[Window, ...]) -> tuple[str, tuple[int, ...], Window]:
    """The cotangent of a formula's first array, in which it is linear.

    It is a formula of the value's cotangent and of other arrays; also given are which these are, and which part of an
    array the value's cotangent is.
    """
    graph = formula_of(text, avals, windows).graph
    (out,) = graph.outputs
    b = Builder()
    args = b.inputs_like(graph.inputs)
    ct = b.input(out.aval)
    (found,) = TRANSFORMS.transpose(b, graph, [None, *args[1:]], [ct])
    aval = graph.inputs[0].aval
    formula, read = _renamed(b, b.zeros(aval) if found is None else found, aval, ct, args)
    return formula, read, tuple(LETTERS.get(n, "") for n in out.aval.shape)


@lru_cache(maxsize=4096)
def batched(
    text: str, avals: tuple[Aval, ...], windows: tuple[Window, ...], flags: tuple[bool, ...], size: int
) -> str | None:
    """A formula on arrays of which some have lanes along a first axis, as its value then has; None if there is none."""
    graph = formula_of(text, avals, windows).graph
    b = Builder()
    args = [
        b.input(Aval((size, *v.aval.shape), v.aval.dtype) if flag else v.aval)
        for v, flag in zip(graph.inputs, flags, strict=True)
    ]
    (found,), _ = TRANSFORMS.batch(b, graph, size, args, flags)
    found = broadcast_to(found, (size, *graph.outputs[0].aval.shape))
    names = {x.value: f"x{k}" for k, x in enumerate(args)}
    wide = tuple(Aval((size, *a.shape), a.dtype) if flag else a for a, flag in zip(avals, flags, strict=True))
    try:
        text = text_of(b.graph("formula", [found]), names)
        formula_of(text, wide, tuple(("", *w) if flag else w for w, flag in zip(windows, flags, strict=True)))
    except (InternalError, KeyError, TypeError, ValueError):
        return None
    return text


def _renamed(b: Builder, found: Symbol, aval: Aval, x: Symbol, others: Sequence[Symbol]) -> tuple[str, tuple[int, ...]]:
    """The text of a result; ``x`` is its first array, and those of the others that it reads are its further ones."""
    graph: Graph = TRANSFORMS.prune(b.graph("formula", [broadcast_to(found, aval.shape)]))
    used = {v for node in graph.nodes for v in node.inputs} | set(graph.outputs)
    read = tuple(k for k, other in enumerate(others) if other.value in used)
    names = {x.value: "x0"} | {others[k].value: f"x{n}" for n, k in enumerate(read, 1)}
    return text_of(graph, names), read
