"""A choice by number among several arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Builder
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull
from ..ir.types import Aval
from .batching import elementwise
from .elementwise import eq, same_dtype, same_shape, where


def _choose_shape(number: Aval, *choices: Aval) -> Aval:
    if number.dtype.kind not in "iu" or not choices:
        raise ValueError(f"{number} does not choose")
    shape = same_shape(number, *choices)
    return Aval(shape, same_dtype(*choices), "array" if shape else "scalar")


def _choose_transpose(b: Builder, node: Node, operands: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    number, (ct,) = operands[0], cts
    if ct is None:
        return [None] * len(operands)
    return [None, *(where(eq(number, k), ct, 0) for k in range(len(operands) - 1))]


def _choose_code(node: Node) -> str:
    choices = ", ".join(f"{{{k}}}" for k in range(1, len(node.inputs)))
    return f"np.choose({{0}}, ({choices}{',' if len(node.inputs) == 2 else ''}))"


choose: Primitive = primitive(
    "choose",
    _choose_shape,
    _choose_code,
    names="choose",
    joint=True,
    batch=elementwise,
    diff=(None, pull(lambda ct, *operands: None)),
    transpose=_choose_transpose,
)
