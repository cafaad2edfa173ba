"""Lists of steps: residuals of loops, held by reference. They need only a zero and a sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.builder import Builder, Symbol
from ...ir.graph import Node
from ...ir.primitive import REGISTRY, Primitive, literal, primitive, pull
from ...ir.types import Aval
from ..batching import Flags, lanes


def _zero_code(node: Node) -> str:
    aval = node.out.aval
    text = f"np.zeros({aval.shape}, {literal(aval.dtype)})" if aval.kind == "array" else f"{literal(aval.dtype)}(0)"
    for n in reversed(aval.steps or ()):
        text = f"[{text}] * {n}"
    return text


def _add_code(node: Node) -> str:
    aval = node.out.aval
    depth = len(aval.steps or ())
    text = f"a{depth} + b{depth}" if aval.kind != "array" or aval.shape else f"np.asarray(a{depth} + b{depth})"
    for level in range(depth, 0, -1):
        a, b = (f"a{level - 1}", f"b{level - 1}") if level > 1 else ("{0}", "{1}")
        text = f"[{text} for a{level}, b{level} in zip({a}, {b})]"
    return text


def _same(x: Aval, y: Aval) -> Aval:
    if x.steps is None or (x.shape, x.dtype, x.steps) != (y.shape, y.dtype, y.steps):
        raise ValueError(f"{x} and {y} are no equal lists of steps")
    return x


def _lanes(size: int, x: Symbol, flag: bool) -> Symbol:
    """A list of steps in which each step has a leading axis of lanes."""
    if flag:
        return x
    if x.aval.steps is None:
        return lanes(size, x, False)
    inner = Builder()
    step = _lanes(size, inner.input(x.aval.unstacked()), False)
    attrs = {
        "arrays": 0, "body": inner.graph("lanes", [step]), "carry": 0, "consts": 0, "length": x.aval.steps[0],
        "reverse": False,
    }  # fmt: skip
    return x.builder.emit(REGISTRY["scan"], (x.value,), attrs)[0]


def _add_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    return prim(*(_lanes(size, x, flag) for x, flag in zip(args, flags, strict=True)))


zero_stack = primitive("zero_stack", lambda aval: aval, _zero_code, typed=True)
stack_add = primitive(
    "stack_add", _same, _add_code, joint=True, batch=_add_batch,
    diff=(pull(lambda ct, x, y: ct), pull(lambda ct, x, y: ct)),
)  # fmt: skip
