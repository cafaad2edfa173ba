"""The only maker of nodes: equal pure nodes become one, so common subexpressions never arise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy import array, ndarray  # by name: in a trace, np.ndarray goes through interception

from ..errors import InternalError
from ..where import Where
from .graph import Graph, Node, Value
from .primitive import REGISTRY, Operand, Primitive
from .types import Aval


class Symbol(Operand):
    """A value of a graph under construction, with operators: derivative rules are written in symbols."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: Builder, value: Value) -> None:
        self.builder, self.value = builder, value

    @property
    def aval(self) -> Aval:
        return self.value.aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.aval.shape

    @property
    def ndim(self) -> int:
        return len(self.value.aval.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.aval.dtype

    @property
    def size(self) -> int:
        return self.value.aval.size

    @property
    def node(self) -> Node | None:
        """The node that makes the value; None for an input."""
        return self.builder.made.get(self.value)

    @property
    def operands(self) -> list[Symbol]:
        """The operands of that node; none for an input."""
        return [Symbol(self.builder, v) for v in self.node.inputs] if self.node is not None else []

    def bind(self, prim: Primitive, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
        b = self.builder
        values = [x.value for x in operands if isinstance(x, Symbol)]
        if len(values) < len(operands):
            like = next(x for x in reversed(operands) if isinstance(x, Symbol)).aval  # in where(c, 1, y) that is y
            values = [x.value if isinstance(x, Symbol) else b.constant(x, like).value for x in operands]
        outs = b.emit(prim, values, attrs)
        return outs if prim.multi else outs[0]

    def __repr__(self) -> str:
        return f"Symbol({self.value!r})"


class Builder:
    """Makes the nodes of one graph.

    ``where`` and ``replica`` are stamped on every node made; a pass sets them from the node at hand.
    """

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.nodes: list[Node] = []
        self.made: dict[Value, Node] = {}
        self.where: Where | None = None
        self.replica = 0
        self._known: dict[Any, Node] = {}
        self._numbers: dict[tuple[float, Aval, int], Value] = {}  # not symbols, which would be a cycle with this

    def input(self, aval: Aval, hint: str | None = None) -> Symbol:
        """A new input of the graph."""
        self.inputs.append(Value(aval, hint))
        return Symbol(self, self.inputs[-1])

    def symbol(self, value: Value) -> Symbol:
        """A value of this graph, with operators."""
        return Symbol(self, value)

    def inputs_like(self, values: Iterable[Value]) -> list[Symbol]:
        """New inputs with the avals and names of ``values``."""
        return [self.input(v.aval, v.hint) for v in values]

    def share_inputs(self, graph: Graph) -> list[Symbol]:
        """Use the inputs of a graph themselves as inputs here, so that a pass can keep nodes that it leaves alone."""
        self.inputs.extend(graph.inputs)
        return [Symbol(self, v) for v in graph.inputs]

    def keep(self, node: Node) -> tuple[Value, ...]:
        """Take over a node whose operands are values of this builder; return its results, or those of an equal node."""
        if not node.effect:
            key = (node.prim, node.inputs, node.replica, attrs_key(node.attrs) if node.attrs else ())
            known = self._known.setdefault(key, node)
            if known is not node or (node.outputs and node.outputs[0] in self.made):
                return known.outputs
        self.nodes.append(node)
        for out in node.outputs:
            self.made[out] = node
        return node.outputs

    def emit(
        self,
        prim: Primitive,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        hints: Sequence[str | None] = (),
        avals: Sequence[Aval] | None = None,
    ) -> list[Symbol]:
        """Add a node or find an equal one; return its outputs as symbols. Given ``avals`` are not inferred again."""
        inputs = tuple(inputs)
        key = None
        if not (prim.effect or (prim.multi and any(isinstance(a, Graph) and a.effect for a in attrs.values()))):
            key = (prim, inputs, self.replica, attrs_key(attrs) if attrs else ())
            if (node := self._known.get(key)) is not None:
                return [Symbol(self, v) for v in node.outputs]
        if avals is None:
            avals = prim.avals([v.aval for v in inputs], attrs)
        outputs = tuple(map(Value, avals, hints)) if hints else tuple(map(Value, avals))
        if key is not None and attrs and type(attrs) is not Keyed:
            attrs = Keyed(attrs, key[3])
        node = Node(prim, inputs, attrs, outputs, self.where, self.replica)
        self.nodes.append(node)
        if key is not None:
            self._known[key] = node
        for out in outputs:
            self.made[out] = node
        return [Symbol(self, v) for v in outputs]

    def single(
        self, prim: Primitive, inputs: tuple[Value, ...], attrs: Mapping[str, Any], key: Any, aval: Aval
    ) -> Symbol:
        """Add a pure node with one result, or find an equal one; ``key`` is that of the attributes."""
        full = (prim, inputs, self.replica, key)
        node = self._known.get(full)
        if node is None:
            value = Value(aval)
            if attrs and type(attrs) is not Keyed:
                attrs = Keyed(attrs, key)
            node = self._known[full] = Node(prim, inputs, attrs, (value,), self.where, self.replica)
            self.nodes.append(node)
            self.made[value] = node
        return Symbol(self, node.outputs[0])

    def find(self, prim: Primitive, *operands: Symbol) -> Symbol | None:
        """The result of an operation without attributes, if it is in the graph already."""
        node = self._known.get((prim, tuple([x.value for x in operands]), self.replica, ()))
        return None if node is None else Symbol(self, node.outputs[0])

    def copy_node(self, node: Node, inputs: Sequence[Value], **changed: Any) -> list[Symbol]:
        """Rebuild a node of another graph here, with its line, its replica tag and its names.

        If the operands stay the same, the node itself is kept.
        """
        self.where = node.where
        if not changed and tuple(inputs) == node.inputs:  # values are equal only if they are the same object
            return [Symbol(self, v) for v in self.keep(node)]
        self.replica = node.replica
        attrs = {**node.attrs, **changed} if changed else node.attrs
        same = not changed and [v.aval for v in inputs] == [v.aval for v in node.inputs]
        avals = [v.aval for v in node.outputs] if same else None
        symbols = self.emit(node.prim, inputs, attrs, [v.hint for v in node.outputs], avals)
        self.replica = 0
        return symbols

    def constant(self, value: Any, like: Aval | None = None) -> Symbol:
        """A constant node: ``value`` filled into the shape and dtype of ``like``, or a small array."""
        if isinstance(value, ndarray):
            aval = Aval(value.shape, value.dtype)
            if not value.size:
                return self.constant(0, aval)
            return self.emit(REGISTRY["const"], (), {"aval": aval, "value": _nested(value.tolist())})[0]
        if like is None:
            raise InternalError("a constant number needs an aval to be filled into")
        key = (value, like, self.replica) if type(value) is int or (type(value) is float and value) else None
        known = self._numbers.get(key) if key is not None else None  # zeros of floats have a sign
        if known is None:
            attrs = {"aval": like, "value": like.dtype.type(value if type(value) is int else array(value)).item()}
            known = self.single(REGISTRY["const"], (), attrs, attrs_key(attrs), like).value
            if key is not None:
                self._numbers[key] = known
        return Symbol(self, known)

    def zeros(self, aval: Aval) -> Symbol:
        """The zero of an aval, which may be a list of steps."""
        if aval.steps is not None:
            return self.emit(REGISTRY["zero_stack"], (), {"aval": aval})[0]
        return self.constant(0, aval)

    def coerce(self, x: Symbol, aval: Aval) -> Symbol:
        """``x`` with the dtype and kind of ``aval``; the shapes must be equal."""
        if x.aval == aval:
            return x
        if x.shape != aval.shape or x.aval.steps != aval.steps:
            raise InternalError(f"cannot coerce {x.aval} to {aval}")
        return self.emit(REGISTRY["cast"], (x.value,), {"aval": aval})[0]

    def graph(self, name: str, outputs: Iterable[Symbol]) -> Graph:
        """The finished graph."""
        return Graph(name, tuple(self.inputs), tuple(self.nodes), tuple(s.value for s in outputs))


def _nested(items: Any) -> Any:
    return tuple(map(_nested, items)) if isinstance(items, list) else items


class Keyed(dict[str, Any]):
    """Attributes of a node that remember their key, as each pass asks for it; nobody changes them."""

    __slots__ = ("key",)

    def __init__(self, attrs: Mapping[str, Any], key: Any) -> None:
        super().__init__(attrs)
        self.key = key

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, ({**self},)  # the key of a graph is its address


def attrs_key(attrs: Mapping[str, Any]) -> Any:
    """A hashable key of attributes in which ``0.0`` and ``-0.0``, 1 and True stay apart."""
    if type(attrs) is Keyed:
        return attrs.key
    return tuple([(name, attr_key(attrs[name])) for name in attrs])


def attr_key(value: Any) -> Any:
    """A hashable key of one attribute."""
    kind = type(value)
    if kind is tuple:
        return tuple([v if type(v) is int else attr_key(v) for v in value])
    if kind is slice:
        return ("slice", value.start, value.stop, value.step)
    if kind is float or kind is complex:
        return (kind, repr(value))
    return (kind, id(value)) if kind is Graph else (kind, value)
