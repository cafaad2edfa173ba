"""Operations that act on each element alone. Operands have equal shapes: broadcasting is a node of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.graph import Node, Value
from ..ir.primitive import JvpMode, Primitive, Pull, Push, primitive, pull, push
from ..ir.texts import literal
from ..ir.types import Aval
from .batching import elementwise

BOOL = np.dtype(bool)


def same_shape(*avals: Aval) -> tuple[int, ...]:
    """The common shape; ValueError if the shapes differ."""
    shape = avals[0].shape
    for aval in avals:
        if aval.shape != shape or aval.steps is not None:
            raise ValueError(f"shapes {', '.join(str(a) for a in avals)} differ")
    return shape


def same_dtype(*avals: Aval) -> np.dtype[Any]:
    """The common dtype; ValueError if the dtypes differ."""
    dtype = avals[0].dtype
    for aval in avals:
        if aval.dtype is not dtype and aval.dtype != dtype:
            raise ValueError(f"dtypes of {', '.join(str(a) for a in avals)} differ")
    return dtype


def result(shape: tuple[int, ...], dtype: np.dtype[Any], avals: tuple[Aval, ...]) -> Aval:
    """NumPy's kind of an operator's result: 0-d operands give a scalar, Python numbers a Python number."""
    if shape:
        first = avals[0]
        return first if first.kind == "array" and first.dtype is dtype else Aval(shape, dtype)
    return Aval(shape, dtype, "python" if all(a.kind == "python" for a in avals) else "scalar")


def arithmetic(*avals: Aval) -> Aval:
    """The shape rule of ``+``: one dtype in and out."""
    return result(same_shape(*avals), same_dtype(*avals), avals)


def function(*avals: Aval) -> Aval:
    """The shape rule of ``np.sin``: a Python number gives a NumPy scalar."""
    aval = arithmetic(*avals)
    return Aval((), aval.dtype, "scalar") if aval.kind == "python" else aval


def predicate(*avals: Aval) -> Aval:
    """The shape rule of ``<``."""
    return result(same_shape(*avals), BOOL, avals)


def unary(name: str, ufunc: str, diff: Pull | Push | None = None, *, op: str = "", **fields: Any) -> Primitive:
    """A NumPy ufunc of one operand."""
    shape = fields.pop("shape", arithmetic if op else function)
    code = fields.pop("code", op or ufunc + "({0})")
    return primitive(name, shape, code, op=op, ufunc=ufunc, diff=(diff,), batch=elementwise, cheap=True, **fields)


def binary(
    name: str, ufunc: str, x: Pull | Push | None = None, y: Pull | Push | None = None, *, op: Any = "", **fields: Any
) -> Primitive:
    """A NumPy ufunc of two operands."""
    shape = fields.pop("shape", arithmetic if op else function)
    code = op or ufunc + "({0}, {1})"
    return primitive(name, shape, code, op=op, ufunc=ufunc, diff=(x, y), batch=elementwise, cheap=True, **fields)


def literal_value(x: Symbol) -> Any:
    """The number that a constant is filled with, or None."""
    return constant_of(x.builder, x.value)


def constant_of(b: Builder, value: Value) -> Any:
    """The number that fills a constant of a graph under construction, or None."""
    node = b.made.get(value)
    if node is None or node.prim is not const or isinstance(node.attrs["value"], tuple):
        return None
    return node.attrs["value"]


def _add_jvp(b: Builder, node: Node, args: Any, tans: Any, mode: JvpMode) -> Any:
    tx, ty = tans
    tangent = tx if ty is None else ty if tx is None else tx + ty
    return b.copy_node(node, [x.value for x in args]), [tangent]


def _sub_jvp(b: Builder, node: Node, args: Any, tans: Any, mode: JvpMode) -> Any:
    tx, ty = tans
    tangent = tx if ty is None else -ty if tx is None else tx - ty
    return b.copy_node(node, [x.value for x in args]), [tangent]


def _const_shape(aval: Aval, value: Any) -> Aval:
    if isinstance(value, tuple) and np.shape(value) != aval.shape:
        raise ValueError(f"an array of shape {np.shape(value)} is not of the type {aval}")
    return aval


def _const_code(node: Node) -> str:
    aval, value = node.attrs["aval"], node.attrs["value"]
    text = literal(value)
    if aval.kind != "array":
        return text if aval.kind == "python" else f"{literal(aval.dtype)}({text})"
    if isinstance(value, tuple):
        return f"np.array({text}, {literal(aval.dtype)})"
    shape = aval.shape[0] if aval.ndim == 1 else aval.shape
    dtype = "" if aval.dtype == np.float64 else f", {literal(aval.dtype)}"
    if text in {"0.0", "0", "0j", "False"}:
        return f"np.zeros({shape}{dtype})"
    return f"np.ones({shape}{dtype})" if value == 1 else f"np.full({shape}, {text}, {literal(aval.dtype)})"


const: Primitive = primitive("const", _const_shape, _const_code, typed=True, cheap=True, order="C")


def _cast_code(node: Node) -> str:
    before, after = node.inputs[0].aval, node.out.aval
    x = "{0}.real" if before.dtype.kind == "c" and after.dtype.kind in "fiu" else "{0}"  # NumPy drops it with a warning
    if after.kind == "python":
        return {"f": "float", "c": "complex", "b": "bool"}.get(after.dtype.kind, "int") + f"({x})"
    if after.kind == "scalar":
        return literal(after.dtype) + (f"({x})" if before.kind != "array" else f"({x}[()])")
    return (f"{x}.astype(" if before.kind == "array" else f"np.asarray({x}, ") + f"{literal(after.dtype)})"


def _cast_shape(x: Aval, aval: Aval) -> Aval:
    if x.shape != aval.shape or x.steps != aval.steps:
        raise ValueError(f"{x} cannot be cast to {aval}")
    return aval


def _cast_batch(prim: Primitive, size: int, args: Any, flags: Any, aval: Aval) -> Any:
    return cast(args[0], aval=Aval((size, *aval.shape), aval.dtype))


cast: Primitive = primitive(
    "cast",
    _cast_shape,
    _cast_code,
    typed=True,
    cheap=True,
    batch=_cast_batch,
    order="K",
    diff=(pull(lambda ct, x, aval: cast(ct, aval=x.aval)),),
)


def to_dtype(x: Symbol, dtype: np.dtype[Any]) -> Symbol:
    """Cast ``x``, which keeps its kind."""
    out: Symbol = x if x.dtype == dtype else cast(x, aval=Aval(x.shape, dtype, x.aval.kind))
    return out


add = binary("add", "np.add", pull(lambda ct, x, y: ct), pull(lambda ct, x, y: ct), op="{0} + {1}", jvp=_add_jvp)
sub = binary("sub", "np.subtract", pull(lambda ct, x, y: ct), pull(lambda ct, x, y: -ct), op="{0} - {1}", jvp=_sub_jvp)
mul = binary("mul", "np.multiply", pull(lambda ct, x, y: ct * y), pull(lambda ct, x, y: x * ct), op="{0} * {1}")
div = binary(
    "div", "np.divide", pull(lambda ct, x, y: ct / y), push(lambda t, out, x, y: -(t * out / y)), op="{0} / {1}"
)
neg = unary("neg", "np.negative", pull(lambda ct, x: -ct), op="-{0}")
square: Primitive = unary("square", "np.square", push(lambda t, out, x: t * x * 2))


def _comparison(name: str, ufunc: str, sign: str) -> Primitive:
    """A ufunc that compares; the operator between NumPy's complex numbers takes nan for a number."""

    def code(node: Node) -> str:
        return f"{ufunc}({{0}}, {{1}})" if node.inputs[0].aval.dtype.kind == "c" else f"{{0}} {sign} {{1}}"

    return binary(name, ufunc, op=code, shape=predicate)


lt: Primitive = _comparison("lt", "np.less", "<")
le = _comparison("le", "np.less_equal", "<=")
gt: Primitive = _comparison("gt", "np.greater", ">")
ge = _comparison("ge", "np.greater_equal", ">=")
eq: Primitive = binary("eq", "np.equal", op="{0} == {1}", shape=predicate)
ne = binary("ne", "np.not_equal", op="{0} != {1}", shape=predicate)


def _where_shape(c: Aval, x: Aval, y: Aval) -> Aval:
    same_shape(c, x, y)
    if c.dtype != BOOL or x.dtype != y.dtype:
        raise ValueError(f"where wants a bool and two equal dtypes, not {c}, {x}, {y}")
    return Aval(x.shape, x.dtype)


where: Primitive = primitive(
    "where",
    _where_shape,
    "np.where({0}, {1}, {2})",
    loose=(0, 1, 2),
    batch=elementwise,
    cheap=True,
    joint=True,
    order="K",
    diff=(None, pull(lambda ct, c, x, y: where(c, ct, 0)), pull(lambda ct, c, x, y: where(c, 0, ct))),
)
