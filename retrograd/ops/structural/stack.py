"""Lists of steps: residuals of loops, held by reference. They need only a zero and a sum."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Node
from ...ir.primitive import literal, primitive, pull
from ...ir.types import Aval


def _zero_code(node: Node) -> str:
    aval = node.out.aval
    text = f"np.zeros({aval.shape}, {literal(aval.dtype)})" if aval.kind == "array" else f"{literal(aval.dtype)}(0)"
    for n in reversed(aval.steps or ()):
        text = f"[{text}] * {n}"
    return text


def _add_code(node: Node) -> str:
    depth = len(node.out.aval.steps or ())
    text = f"a{depth} + b{depth}"
    for level in range(depth, 0, -1):
        a, b = (f"a{level - 1}", f"b{level - 1}") if level > 1 else ("{0}", "{1}")
        text = f"[{text} for a{level}, b{level} in zip({a}, {b})]"
    return text


def _same(x: Aval, y: Aval) -> Aval:
    if x.steps is None or (x.shape, x.dtype, x.steps) != (y.shape, y.dtype, y.steps):
        raise ValueError(f"{x} and {y} are no equal lists of steps")
    return x


def _add_batch(prim: Any, size: int, args: Any, flags: Any) -> Any:
    if not all(flags):
        raise ValueError("both lists of steps carry lanes: one body made them")
    return prim(*args)


zero_stack = primitive("zero_stack", lambda aval: aval, _zero_code, typed=True)
stack_add = primitive(
    "stack_add", _same, _add_code, joint=True, batch=_add_batch,
    diff=(pull(lambda ct, x, y: ct), pull(lambda ct, x, y: ct)),
)  # fmt: skip
