"""Recipes: the nodes that an operation has created are created directly for further operands of the same types.

The first time, an operation takes the complete procedure: lists, complex numbers, bounds, dtypes. If the result is one
node of its operands, perhaps cast or broadcast before, this is a recipe for further operands of the same types,
dtypes and shapes. Every exception takes the complete procedure again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ...ir.builder import attrs_key
from ...ir.graph import Node, Value
from ...ir.primitive import Primitive
from ...ir.types import Aval
from ...where import user_site
from ..array import Tracer
from ..mutation import read
from ..trace import CURRENT, STOPPED, Storage, Trace
from .comparing import COMPARING, Recordable

Run = Callable[..., Any]
MOST = 1_024  # recipes of one operation
# numbers that are no traced ones: what stands for them in a key; None for the number itself
NUMBERS: dict[type, Any] = {int: None, float: (float,), np.float64: (np.float64,), np.float32: (np.float32,)}
MISSING: Any = object()


class Change(NamedTuple):
    """A cast or a broadcast of an operand."""

    prim: Primitive
    attrs: Any
    avals: tuple[Aval, ...]


class Ingredient(NamedTuple):
    """An operand of the node: which argument it comes from, as what constant if that is a number, and its changes."""

    source: int
    constant: Aval | None
    changes: tuple[Change, ...]


class Recipe(NamedTuple):
    """The node that an operation puts into the graph, with the key of its attributes, and the kind of its example.

    ``sources`` are the arguments that its operands are, if they are that without changes.
    """

    kind: Any
    node: Change
    key: Any
    ingredients: tuple[Ingredient, ...]
    sources: tuple[int, ...] | None

    def follow(self, trace: Trace, operands: Sequence[Any], shadow: Any) -> Tracer:
        """The traced value of the node for these operands."""
        trace.asked += 1
        b = trace.builder
        b.where, hint = user_site(3)
        values = []
        if self.sources is not None:
            for source in self.sources:
                x = operands[source]
                values.append((x.storage.symbol if x.parent is None else read(x)).value)
        else:
            for source, constant, changes in self.ingredients:
                x = operands[source]
                if constant is not None:
                    value = b.constant(x, constant).value
                else:
                    value = (x.storage.symbol if x.parent is None else read(x)).value
                for prim, attrs, avals in changes:
                    value = b.emit(prim, (value,), attrs, (), avals)[0].value
                values.append(value)
        prim, attrs, (aval,) = self.node
        symbol = b.single(prim, tuple(values), attrs, self.key, aval)
        if symbol.value.hint is None:
            symbol.value.hint = hint
        return Tracer(trace, shadow, Storage(symbol), None, None, b.where)


def by_recipe(
    run: Run, plain: Run, what: Recordable | None = None, *, by_value: bool = False, in_order: bool = False
) -> Run:
    """An operation on positional operands, by its recipes; ``plain`` is the operation on plain values.

    With ``what``, it is one step where steps are compared, else it makes each of its own. With ``by_value``, the
    numbers among its operands decide what is recorded; with ``in_order``, arrays have recipes only if they are
    C-ordered.
    """
    recipes: dict[Any, Recipe | None] = {}
    of_numbers = {int: None} if by_value else NUMBERS

    def call(*operands: Any) -> Any:
        trace = CURRENT.get()
        if trace is None or trace.asked >= trace.quick or STOPPED.get():
            watch = None if what is None else COMPARING.get()
            if watch is None or what is None or not watch.watches:
                return run(*operands)
            return watch.step(watch, call, what, operands, {})
        kinds: list[Any] = []
        examples = []
        for x in operands:
            kind = type(x)
            if kind is Tracer:
                if x.home is not trace or x.storage.symbol is None:
                    return run(*operands)
                shadow = x.shadow
                kind = type(shadow)
                if kind is not ndarray:
                    if by_value and kind is float:  # whether its power asks depends on more than types
                        return run(*operands)
                    kinds.append(kind)
                elif in_order and not shadow.flags.c_contiguous:
                    return run(*operands)
                else:
                    kinds.append((shadow.shape, shadow.dtype))
                examples.append(shadow)
                continue
            if kind not in of_numbers:
                return run(*operands)
            kinds.append(of_numbers[kind] or x)
            examples.append(x)
        key = tuple(kinds)
        recipe = recipes.get(key, MISSING)
        if recipe is MISSING:
            if len(recipes) >= MOST:
                recipes.clear()
            return _learn(recipes, key, run, trace, operands)
        if recipe is None:
            return run(*operands)
        try:
            shadow = plain(*examples)
        except Exception:  # noqa: BLE001 - the whole way raises it again, and takes note of it
            return run(*operands)
        kind = type(shadow)
        if (kind if kind is not ndarray else (shadow.shape, shadow.dtype)) != recipe.kind:
            return run(*operands)
        return recipe.follow(trace, operands, shadow)

    return call


def _kind(x: Any) -> Any:
    """What decides about the recording of an operation on this example; the types of numbers say their dtypes."""
    return (x.shape, x.dtype) if type(x) is ndarray else type(x)


def _learn(recipes: dict[Any, Recipe | None], key: Any, run: Run, trace: Trace, operands: Sequence[Any]) -> Any:
    """What the operation makes, the whole way; its recipe, or that there is none, goes into ``recipes``."""
    trace.builder.where = user_site(3)[0]
    given = [read(x).value if type(x) is Tracer else x for x in operands]
    traced = [v for v in given if isinstance(v, Value)]
    start = len(trace.builder.nodes)
    found = run(*operands)
    if len(set(traced)) == len(traced):  # x * x looks as x * y
        recipes[key] = _recipe(trace, found, given, trace.builder.nodes[start:])
    return found


def _recipe(trace: Trace, found: Any, given: Sequence[Any], new: Sequence[Node]) -> Recipe | None:
    """The recipe that these new nodes are an example of."""
    if type(found) is not Tracer or found.home is not trace or found.parent is not None or found.storage.version:
        return None
    symbol = found.storage.symbol
    node = trace.builder.made.get(symbol.value) if symbol is not None else None
    if node is None or len(node.outputs) != 1 or any(node.out is x for x in given) or node.effect:
        return None
    used = {node}
    ingredients = [each for v in node.inputs if (each := _ingredient(trace, v, given, used)) is not None]
    if len(ingredients) < len(node.inputs) or not used.issuperset(new):
        return None
    sources = {each.source for each in ingredients}
    if not all(k in sources or type(x) is int for k, x in enumerate(given)):  # the key has the ints themselves
        return None  # one operand is what another becomes: a cast of it that was there already
    as_given = all(each.constant is None and not each.changes for each in ingredients)
    order = tuple([each.source for each in ingredients]) if as_given else None
    return Recipe(_kind(found.shadow), _change(node), attrs_key(node.attrs), tuple(ingredients), order)


def _ingredient(trace: Trace, value: Value, given: Sequence[Any], used: set[Node]) -> Ingredient | None:
    """How an operand of the node comes from the arguments; None if it does not."""
    changes: list[Change] = []
    while (source := next((k for k, x in enumerate(given) if x is value), None)) is None:
        node = trace.builder.made.get(value)
        if node is None or node.prim.effect or len(node.outputs) != 1 or len(node.inputs) > 1:
            return None
        used.add(node)
        if not node.inputs:
            number = _number(node, given)
            return None if number is None else Ingredient(number, node.attrs["aval"], tuple(reversed(changes)))
        changes.append(_change(node))
        (value,) = node.inputs
    return Ingredient(source, None, tuple(reversed(changes)))


def _number(node: Node, given: Sequence[Any]) -> int | None:
    """The argument that a constant is."""
    if node.prim.name != "const":
        return None
    numbers = [k for k, x in enumerate(given) if not isinstance(x, Value)]
    value, aval = node.attrs["value"], node.attrs["aval"]
    if len(numbers) != 1 or isinstance(value, tuple):
        return None
    try:
        return numbers[0] if aval.dtype.type(given[numbers[0]]) == value else None
    except OverflowError:  # -1 as an unsigned number, which ``np.where`` takes for the largest
        return None


def _change(node: Node) -> Change:
    return Change(node.prim, node.attrs, tuple([v.aval for v in node.outputs]))
