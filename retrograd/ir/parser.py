"""Text to graph, the inverse of the printer."""

from __future__ import annotations

import ast
import math
import re
from types import EllipsisType
from typing import Any

from ..errors import ParseError
from ..where import Where
from .graph import Graph, Node, Value
from .primitive import REGISTRY
from .texts import Arg
from .types import DTYPES, GENERATOR, PYTHON_DTYPES, Aval

HEADER = re.compile(r"graph (?P<name>\S+?)\((?P<inputs>.*)\) \{$")
NODE = re.compile(
    r"(?:(?P<outs>%[^=]*?) = )?(?P<prim>[a-z_A-Z][\w.]*)(?:~(?P<replica>-?\d+))?(?P<ins>(?: %[\w.]+,?)*)"
    r"(?: (?P<attrs>\{.*\}))?(?: : (?P<types>[^#{}]+?))?(?:  # (?P<file>[^#]*)(?::|, line )(?P<line>\d+))?$"
)
TYPE = re.compile(r"(?P<base>[a-z]+\d*)(?P<dims>\[(?:\d+(?:,\d+)*)?\])?(?P<steps>(?:\*(?:\d+|\?))*)$")
NAME = re.compile(r"%(?P<hint>[^\W\d]\w*)(?:\.\d+)?$|%\d+$")
BODY = re.compile(r"[a-z_]\w* = graph ")


def parse(text: str) -> Graph:
    r"""The graph of a text.

    Parameters
    ----------
    text : str
        The text form, as ``to_text`` writes it.

    Returns
    -------
    Graph
        The graph.

    Raises
    ------
    ParseError
        If the text is malformed or names an unknown primitive; the message quotes the line.

    Examples
    --------
    >>> import retrograd as rg
    >>> graph = rg.ir.parse("graph double(%x: f64) {\n  %0 = add %x, %x : f64\n  return %0\n}\n")
    >>> [float(value) for value in rg.ir.evaluate(graph, (2.0,))]
    [4.0]
    """
    reader = _Reader(text)
    graph = reader.graph()
    if reader.rest():
        raise reader.error("text after the closing brace")
    return graph


def parse_type(text: str) -> Aval:
    """The aval of a type as the printer writes it: ``f64[3,2]``, ``f64``, ``float``, ``f32[4]*10``."""
    match = TYPE.match(text)
    steps = tuple(-1 if s == "?" else int(s) for s in match["steps"].split("*")[1:]) if match else ()
    if match and match["dims"] is not None and match["base"] in DTYPES:
        shape = tuple(int(n) for n in match["dims"][1:-1].split(",") if n)
        return Aval(shape, DTYPES[match["base"]], "array", steps or None)
    if match and match["base"] in DTYPES:
        return Aval((), DTYPES[match["base"]], "scalar", steps or None)
    if match and match["dims"] is None and match["base"] in PYTHON_DTYPES:
        return Aval((), PYTHON_DTYPES[match["base"]], "python", steps or None)
    if text == "rng":
        return GENERATOR
    raise ParseError(f"{text!r} is not a type", remedy="write for example f64[3,2], f32[], f64 or float")


class _Reader:
    def __init__(self, text: str) -> None:
        numbered = enumerate(text.splitlines(), 1)
        self.lines = [(n, line.strip()) for n, line in numbered if line.strip() and not line.strip().startswith("#")]
        self.at = 0

    def rest(self) -> bool:
        return self.at < len(self.lines)

    def peek(self) -> str:
        return self.lines[self.at][1] if self.rest() else ""

    def next(self) -> str:
        line = self.peek()
        if not line:
            raise ParseError("the text ends inside a graph", remedy="close every graph with '}'")
        self.at += 1
        return line

    def error(self, what: str) -> ParseError:
        number, line = self.lines[min(max(self.at - 1, 0), len(self.lines) - 1)] if self.lines else (0, "")
        return ParseError(f"line {number}: {what}: {line!r}")

    def graph(self, line: str | None = None) -> Graph:
        match = HEADER.match(line or self.next())
        if not match:
            raise self.error("expected 'graph name(%x: f64[3], ...) {'")
        env: dict[str, Value] = {}
        items = re.findall(r"(%[\w.]+): ([^%]+?)(?:, |$)", match["inputs"])
        if ", ".join(f"{name}: {kind}" for name, kind in items) != match["inputs"]:
            raise self.error("malformed inputs")
        inputs = [self.define(env, *item) for item in items]
        nodes = []
        while not self.peek().startswith("return"):
            nodes.append(self.node(env))
        returned = self.next().removeprefix("return").strip()
        outputs = tuple(self.use(env, name) for name in returned.split(", ") if name)
        if self.next() != "}":
            raise self.error("expected '}'")
        return Graph(match["name"], tuple(inputs), tuple(nodes), outputs)

    def node(self, env: dict[str, Value]) -> Node:
        match = NODE.match(self.next())
        if not match:
            raise self.error("not a node")
        prim = REGISTRY.get(match["prim"])
        if prim is None:
            raise self.error(f"unknown primitive {match['prim']!r}")
        inputs = tuple(self.use(env, name.strip(" ,")) for name in match["ins"].split())
        types = [t for t in (match["types"] or "").split(", ") if t]
        names = [n for n in (match["outs"] or "").split(", ") if n]
        if len(types) != len(names) or (prim.typed and len(types) != 1):
            raise self.error(f"{len(names)} results but {len(types)} types")
        attrs = self.attrs(match["attrs"])
        if prim.typed:
            attrs = {"aval": self.type(types[0]), **attrs}
        while BODY.match(self.peek()):
            name, _, header = self.next().partition(" = ")
            attrs[name] = self.graph(header)
        outputs = tuple(self.define(env, n, t) for n, t in zip(names, types, strict=True))
        where = Where(match["file"], int(match["line"])) if match["line"] else None
        return Node(prim, inputs, attrs, outputs, where, int(match["replica"] or 0))

    def define(self, env: dict[str, Value], name: str, type_text: str) -> Value:
        match = NAME.match(name)
        if not match or name in env:
            raise self.error(f"{name} is not a name, or is defined twice")
        env[name] = Value(self.type(type_text.strip()), match["hint"])
        return env[name]

    def use(self, env: dict[str, Value], name: str) -> Value:
        try:
            return env[name]
        except KeyError:
            raise self.error(f"{name} is used before it is defined") from None

    def type(self, text: str) -> Aval:
        try:
            return parse_type(text)
        except ParseError as fault:
            raise self.error(fault.what) from None

    def attrs(self, text: str | None) -> dict[str, Any]:
        if text is None:
            return {}
        try:
            return attr_values(ast.parse(f"dict({text[1:-1]})", mode="eval").body)
        except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError) as fault:
            raise self.error(f"malformed attributes ({fault})") from None


def attr_values(call: ast.expr) -> dict[str, Any]:
    """The attributes given as keywords of a call; ValueError for anything else."""
    match call:
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=items):
            found = {item.arg: attr_value(item.value) for item in items if item.arg}
            if len(found) == len(items):
                return found
    raise ValueError(f"{ast.unparse(call)} is not a list of attributes")


def attr_value(node: ast.expr) -> Any:
    """The value of an attribute from its text; ValueError for anything but the literals that the printer writes."""
    match node:
        case ast.Constant(value=bool() | int() | float() | complex() | str() | None | EllipsisType() as value):
            return value
        case ast.Name(id=name) if name in DTYPES:
            return DTYPES[name]
        case ast.Name(id=name) if re.fullmatch(r"arg\d+", name):
            return Arg(int(name[3:]))
        case ast.Name(id="nan"):
            return math.nan
        case ast.Name(id="inf"):
            return math.inf
        case ast.Tuple(elts=items):
            return tuple(map(attr_value, items))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -attr_value(operand)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return attr_value(left) + attr_value(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return attr_value(left) - attr_value(right)
        case ast.Call(func=ast.Name(id="complex"), args=[real, imag]):
            return complex(attr_value(real), attr_value(imag))
        case ast.Attribute(value=ast.Name(id="np"), attr="nan" | "inf" as name):
            return math.nan if name == "nan" else math.inf
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if part is None else attr_value(part) for part in (lower, upper, step)))
        case ast.Subscript(value=ast.Name(id="s_"), slice=ast.Tuple(elts=items)):
            return tuple(map(attr_value, items))
    raise ValueError(f"{ast.unparse(node)} is not an attribute")
