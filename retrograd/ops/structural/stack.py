"""Lists of steps: residuals of loops, held by reference. They have only a zero, a sum, and sometimes a length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.builder import Builder, Symbol
from ...ir.graph import Node
from ...ir.primitive import REGISTRY, Primitive, primitive, pull
from ...ir.texts import literal
from ...ir.types import Aval
from ..batching import Flags, lanes
from ..further_reductions import max_


def _zero_code(node: Node) -> str:
    aval = node.out.aval
    text = f"np.zeros({aval.shape}, {literal(aval.dtype)})" if aval.kind == "array" else f"{literal(aval.dtype)}(0)"
    for n in reversed(aval.steps or ()):
        text = "[]" if n < 0 else f"[{text}] * {n}"
    return text


def _add_code(node: Node) -> str:
    aval = node.out.aval
    depth = len(aval.steps or ())
    text = f"a{depth} + b{depth}" if aval.kind != "array" or aval.shape else f"np.asarray(a{depth} + b{depth})"
    for level in range(depth, 0, -1):
        a, b = (f"a{level - 1}", f"b{level - 1}") if level > 1 else ("{0}", "{1}")
        text = f"[{text} for a{level}, b{level} in zip({a}, {b})]"
        if (aval.steps or ())[level - 1] < 0:  # the zero of a list of unknown length is empty
            text = f"{text} + {a}[len({b}):] + {b}[len({a}):]"
    return text


def _same(x: Aval, y: Aval) -> Aval:
    if x.steps is None or (x.shape, x.dtype, x.steps) != (y.shape, y.dtype, y.steps):
        raise ValueError(f"{x} and {y} are not equal lists of steps")
    return x


def stack_lanes(size: int, x: Symbol, flag: bool) -> Symbol:
    """A list of steps in which each step has a leading axis of lanes."""
    if flag:
        return x
    if x.aval.steps is None:
        return lanes(size, x, False)
    inner = Builder()
    step = stack_lanes(size, inner.input(x.aval.unstacked()), False)
    attrs = {
        "arrays": 0,
        "body": inner.graph("lanes", [step]),
        "carry": 0,
        "consts": 0,
        "length": x.aval.steps[0],
        "reverse": False,
    }
    count = stack_length(x) if x.aval.steps[0] < 0 else []
    return x.builder.emit(REGISTRY["scan"], [s.value for s in (*count, x)], attrs)[0]


def _add_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    return prim(*(stack_lanes(size, x, flag) for x, flag in zip(args, flags, strict=True)))


def _length_shape(x: Aval) -> tuple[Aval]:
    if x.steps is None:
        raise ValueError(f"{x} is not a list of steps")
    return (Aval((), np.dtype(np.int64), "python"),)


def _steps_shape(*count: Aval, aval: Aval) -> tuple[Aval]:
    known = aval.steps is not None and len(aval.steps) == 1 and (aval.steps[0] < 0) == bool(count)
    if not known or any(n.shape or n.dtype.kind not in "iu" for n in count):
        raise ValueError(f"{', '.join(map(str, count))} and {aval} do not count steps")
    return (aval,)


def _steps_run(evaluate: Any, node: Node, *count: Any) -> list[Any]:
    return [list(range(int(count[0]) if count else node.attrs["aval"].steps[0]))]


def _steps_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, aval: Aval) -> Any:
    most = (
        max_(args[0], axis=(0,), keepdims=False) if size else args[0].builder.zeros(Aval((), args[0].dtype, "scalar"))
    )
    return prim(most, aval=aval), [False]


def zero_of(aval: Aval) -> Any:
    """A zero that takes no memory."""
    zero = aval.dtype.type(0)
    made: Any = np.broadcast_to(zero, aval.shape) if aval.kind == "array" else zero
    for n in reversed(aval.steps or ()):
        made = [made] * max(n, 0)
    return made


stack_length: Primitive = primitive(
    "stack_length",
    _length_shape,
    "len({0})",
    multi=True,
    run=lambda evaluate, node, x: [len(x)],
    batch=lambda prim, size, args, flags: (prim(args[0]), [False]),
)
# the numbers of the steps: 0, 1, ...; the type or an operand says how many
step_numbers: Primitive = primitive(
    "step_numbers",
    _steps_shape,
    multi=True,
    typed=True,
    cheap=True,
    run=_steps_run,
    batch=_steps_batch,
)
zero_stack = primitive("zero_stack", lambda aval: aval, _zero_code, typed=True)
# a value that a branch which was not taken would have left: it is never read, and takes no memory
absent: Primitive = primitive(
    "absent",
    lambda aval: (aval,),
    typed=True,
    multi=True,
    run=lambda evaluate, node: [zero_of(node.out.aval)],
)
stack_add = primitive(
    "stack_add",
    _same,
    _add_code,
    joint=True,
    batch=_add_batch,
    diff=(pull(lambda ct, x, y: ct), pull(lambda ct, x, y: ct)),
)
