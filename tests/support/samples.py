"""Samples of every primitive.

A new primitive needs one line: ``declare("cosh", unary())``. The laws in ``tests/laws`` do the rest.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from retrograd.ir import Aval
from retrograd.ops.structural.host import Host

from . import control_samples, implicit_samples, linalg_samples, special_samples
from .graphs import built, op
from .sampling import (
    SAMPLES,
    SHAPES,
    Sample,
    Shape,
    a,
    along,
    ascending,
    between,
    binary,
    case,
    casts,
    constants,
    declare,
    distinct,
    formula,
    gappy,
    indexed,
    ints,
    loop,
    nonzero,
    normal,
    number,
    off_integers,
    picked,
    places,
    positive,
    reductions,
    retyped,
    runs,
    sliced,
    small,
    some,
    steps,
    unary,
    within,
)  # fmt: skip

__all__ = ["SAMPLES", "Sample", "control_samples", "implicit_samples", "linalg_samples", "special_samples"]

s_ = np.s_

READS: list[tuple[Shape, tuple[Any, ...]]] = [
    ((5,), s_[1:4,]), ((5,), s_[::-1,]), ((5,), s_[2,]), ((5,), s_[-1,]), ((5,), s_[4:0:-2,]), ((5,), s_[3:3,]),
    ((2, 3), s_[1,]), ((2, 3), s_[:, 1]), ((2, 3), s_[1, 2]), ((2, 3), s_[:, ::2]), ((2, 3), s_[...,]),
    ((2, 3), s_[..., 0]), ((2, 3), s_[None, :, 1:]), ((2, 3), s_[:, None, 0]), ((2, 3, 2), s_[1, ..., 0]),
    ((0, 3), s_[:, 1]), ((0,), s_[:0,]), ((), s_[()]), ((), s_[None,]), ((2, 3), s_[()]), ((2, 3), s_[-1, -2:]),
]  # fmt: skip
GATHERS: list[tuple[Any, ...]] = [
    ((5,), s_[...,], ints(5, (3,))), ((5,), s_[...,], ints(5, (2, 2))), ((5,), s_[...,], ints(5, (0,))),
    ((4, 3), s_[...,], ints(4, (5,))), ((4, 3), s_[:, ...], ints(3, (2,))),
    ((4, 3), s_[..., ...], ints(4, (3,)), ints(3, (3,))),
    ((4, 3), s_[..., ...], ints(4, (2, 1)), ints(3, (3,))), ((4, 3), s_[..., 1:], ints(4, (2,))),
    ((4, 3, 2), s_[..., :, ...], ints(4, (3,)), ints(2, (3,))),
    ((4, 3, 2), s_[:, ..., ...], ints(3, (2,)), ints(2, (2,))),
    ((4, 3, 2), s_[1:, ...], ints(3, (2, 2))), ((4, 3, 2), s_[0, :, ...], ints(2, (3,))),
    ((4, 3, 2), s_[0, ...], ints(3, (2,))),
    ((4, 3, 2), s_[:, 1, ...], ints(2, (3,))), ((5,), s_[...,], ints(5, (), low=-5)),
    ((4, 3), s_[..., None, ...], ints(4, (2,)), ints(3, (2,))),
    ((4, 3), s_[None, ...], ints(4, (2,))), ((4, 3), s_[..., ::-1], ints(4, (2,), low=-4)),
    ((5,), s_[...,], ints(5, (3,), dtype=np.int32)),
    ((4, 3), s_[:, ...], ints(3, ())), ((3, 4, 2), s_[..., 1:, 0], ints(3, (2,))),
    ((4, 0), s_[...,], ints(4, (2,))), ((0, 3), s_[:, ...], ints(3, (2,))), ((0, 3), s_[...,], ints(1, (0,))),
]  # fmt: skip

SLICES: list[tuple[Shape, int, int, int, str]] = [  # shape, axis, size, step, kind of the start
    ((7,), 0, 3, 1, "scalar"), ((7,), 0, 3, 2, "python"), ((5,), 0, 1, 3, "scalar"), ((3,), 0, 3, 1, "python"),
    ((6, 3), 0, 2, 1, "scalar"), ((2, 6), 1, 3, 2, "python"), ((2, 6, 3), 1, 4, 1, "scalar"),
    ((0, 5), 1, 2, 1, "python"),
]  # fmt: skip

declare("const", constants())
declare("iota", *(case(aval=Aval((n,), np.dtype(t))) for n, t in ((0, "l"), (1, "l"), (4, "l"), (3, "d"), (3, "i"))))
declare("cast", casts())
declare("stop_gradient", unary(dtypes="df"), smooth=False)
declare("copy", *(case(a(s, t)) for t in "dfl" for s in (*SHAPES, "scalar")))
declare("owned", *(case(a(s, t)) for t in "dfl" for s in SHAPES))

declare("add", binary(dtypes="dfDl"), case(a((3,), "?"), a((3,), "?")))
declare("sub", binary(dtypes="dfDl"))
declare("mul", binary(dtypes="dfDl"), case(a((3,), "?"), a((3,), "?")))
declare("div", binary(y=nonzero))
declare("neg", unary(dtypes="dfDl"))
declare("power", binary(positive), binary(small, small, dtypes="l"))
declare("pow", binary(positive), *(case(a(k, "d", positive), a(k, "d", positive)) for k in ("scalar", "python")))
declare("float_power", binary(positive, dtypes="dD"))
declare("square", unary(dtypes="dfDl"))
declare("sqrt", unary(positive, dtypes="dfDF"))
declare("cbrt", unary(nonzero, dtypes="df"))
declare("reciprocal", unary(nonzero, dtypes="dfD"))
for _name in ("exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh", "tanh", "arctan", "arcsinh"):
    declare(_name, unary())
for _name in ("log", "log2", "log10", "log1p"):
    declare(_name, unary(positive))
declare("tan", unary(between(-1.0, 1.0)))
for _name in ("arcsin", "arccos", "arctanh"):
    declare(_name, unary(between(-0.7, 0.7)))
declare("arccosh", unary(between(1.3, 3.0)), unary(between(-3.0, -1.3), dtypes="D"))
for _name in ("deg2rad", "rad2deg"):
    declare(_name, unary(dtypes="df"))
for _name in ("annihilating_mul", "annihilating_div"):
    declare(_name, binary(nonzero, nonzero, dtypes="dfD"))
for _name in ("arctan2", "hypot", "logaddexp", "logaddexp2"):
    declare(_name, binary(nonzero, nonzero, dtypes="df"))
declare("sinc", unary(nonzero), unary(between(-0.2, 0.2), dtypes="dD"))
declare("i0", unary(dtypes="df"), unary(between(20.0, 21.0), dtypes="d"))
for _coefficients in ((2.0, -1.0), (0.5, 0.0, -1.5, 3.0)):
    declare("polynomial", unary(dtypes="dfD", coefficients=_coefficients))
for _n in (0, 1, 2):
    declare("bessel_i", unary(dtypes="df", n=_n))

declare("abs", unary(nonzero, dtypes="dfDFl"))
declare("sign", unary(nonzero, dtypes="dfDl"))
declare("conj", unary(dtypes="DFd"))
declare("real", unary(dtypes="DF"))
declare("imag", unary(dtypes="DF"))
for _name in ("set_real", "set_imag"):
    declare(_name, *(case(a(s, z), a(s, x)) for z, x in ("Dd", "Ff") for s in SHAPES))

for _name in ("maximum", "minimum", "fmax", "fmin"):
    declare(
        _name, binary(distinct, between(2.0, 3.0), dtypes="dfl"), binary(dtypes="d"), case(a((3,), "D"), a((3,), "D")),
    )  # fmt: skip
declare("heaviside", binary(nonzero, dtypes="df"))
declare("clip", unary(off_integers, dtypes="df", low=-1.0, high=1.0), unary(dtypes="l", low=-1, high=1))
for _name in ("floor", "ceil", "trunc"):
    declare(_name, unary(off_integers, dtypes="dfl"))
declare("rint", unary(off_integers, dtypes="df"))
declare("round", unary(off_integers, dtypes="dfDl", decimals=0), unary(off_integers, dtypes="l", decimals=-1))
declare("round", unary(dtypes="df", decimals=1), smooth=False)
for _name in ("floor_divide", "remainder", "fmod"):
    declare(_name, binary(between(2.4, 2.5), between(0.98, 1.0), dtypes="df"), binary(positive, positive, dtypes="l"))
    declare(_name, binary(between(-2.5, -2.4), between(0.98, 1.0), dtypes="d"))
for _name in ("isfinite", "isinf", "isnan"):
    declare(_name, unary(dtypes="dfDl"))
declare("isclose", binary(small, small, dtypes="dfDl", rtol=1e-5, atol=1e-8, equal_nan=False))
declare("nan_to_num", unary(dtypes="df", nan=0.0, posinf=None, neginf=-1.0))
declare("signbit", unary(nonzero, dtypes="df"))
declare("copysign", binary(nonzero, nonzero, dtypes="df"))
declare("nextafter", binary(normal, between(2.0, 3.0), dtypes="df"))
declare("spacing", unary(positive, dtypes="df"))
declare("ldexp", *(case(a(s, t), a(s, n)) for t, n in ("dl", "di", "fi") for s in (*SHAPES, "scalar")))
for _name in ("exponent", "mantissa", "fraction"):
    declare(_name, unary(between(1.2, 1.8), dtypes="df"))

for _name in ("lt", "le", "gt", "ge"):
    declare(_name, binary(small, small, dtypes="dfl?"))
for _name in ("eq", "ne"):
    declare(_name, binary(small, small, dtypes="dfl?D"))
for _name in ("logical_and", "logical_or", "logical_xor"):
    declare(_name, binary(small, small, dtypes="?dl"))
declare("logical_not", unary(small, dtypes="?dl"))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    declare(_name, binary(dtypes="li"), case(a((3,), "?"), a((3,), "?")))
declare("invert", unary(dtypes="li"), case(a((3,), "?")))
for _name in ("left_shift", "right_shift"):
    declare(_name, binary(normal, positive, dtypes="li"))
declare("bitwise_count", unary(dtypes="li"))
for _name in ("gcd", "lcm"):
    declare(_name, binary(positive, positive, dtypes="li"))
declare(
    "putmask",
    *(case(a(s, t), a(s, "?"), a("scalar", t)) for t in "dfD" for s in SHAPES[1:]),
    case(a((3,)), a((3,), "?"), a("python")), case(a((3,)), a((3,), "?"), a(())),
    case(a((3,), "l"), a((3,), "?"), a("scalar", "l")),
)  # fmt: skip
declare(
    "where",
    *(case(a(s, "?"), a(s, t), a(s, t)) for t in "dfD" for s in (*SHAPES, "scalar")),
    case(a((), "?"), a("python"), a("scalar")), case(a("scalar", "?"), a(()), a("python")),
    case(a((3,), "?"), a((3,), "l"), a((3,), "l")),
)  # fmt: skip

declare("sum", reductions(dtypes="dfDl"))
declare("max", reductions(distinct, dtypes="dfl", empty=False))
declare("min", reductions(distinct, dtypes="dfl", empty=False))
declare("argmax", along(distinct, dtypes="dfl"), along(small, dtypes="l"))
declare("argmin", along(distinct, dtypes="dfl"), along(small, dtypes="l"))

for _shape, _width, _axis in (((5,), 3, 0), ((4,), 4, 0), ((3,), 1, 0), ((2, 4), 2, 1), ((4, 2), 3, 0), ((2,), 0, 0)):
    declare("windows", *(case(a(_shape, t), width=_width, axis=_axis) for t in "dfDl"))
for _shape, _axis in (((3, 3), 0), ((1, 4), 0), ((2, 3, 2), 1), ((2, 3, 2), 0), ((3, 0), 0)):
    declare("overlap_add", *(case(a(_shape, t), axis=_axis) for t in "dfDl"))
declare("exact_sum", *(case(a((_size,), "d")) for _size in (0, 1, 5)))
declare(
    "broadcast",
    retyped([
        ((3,), (2, 3)), ((), (2,)), ((1, 3), (2, 3)), ((2, 1), (2, 3)), ((1,), (0,)), ((2, 1), (3, 2, 4)),
        ((1, 1), (1, 3)),
        ((2, 3), (2, 3)), ("scalar", (2, 2)), ("python", (3,)), ((), (0, 2)), ((1, 2, 1), (2, 2, 2)), ((0,), (2, 0)),
        ("scalar", ()),
    ]),
)  # fmt: skip
declare(
    "reshape",
    retyped([
        ((2, 3), (3, 2)), ((6,), (2, 3)), ((2, 3), (6,)), ((), (1, 1)), ((1, 1), ()), ((0, 3), (2, 0)),
        ("scalar", (1,)),
        ("python", (1, 1)), ((2, 1, 3), (2, 3)), ((2, 3), (2, 3)), ("scalar", ()),
    ]),
)  # fmt: skip
declare(
    "permute",
    *(
        case(a(shape, t), axes=axes) for t in "df"
        for shape, axes in (((2, 3), (1, 0)), ((2, 3), (0, 1)), ((3,), (0,)), ((), ()), ((2, 3, 4), (2, 0, 1)), ((0,
            2), (1, 0)))
    ),
    case(a((2, 3), "D"), axes=(1, 0)),
)  # fmt: skip
declare(
    "concatenate",
    case(a((2,)), a((3,)), axis=0), case(a((2,)), axis=0), case(a((2, 2)), a((2, 1)), a((2, 3)), axis=1),
    case(a((0, 2)), a((1, 2)), axis=0), case(a((2,), "f"), a((1,), "f"), axis=0),
    case(a((2,), "l"), a((1,), "l"), axis=0),
    case(a((1, 2, 2)), a((1, 2, 2)), axis=1), case(a((1,), "D"), a((2,), "D"), axis=0), case(a((0,)), a((0,)), axis=0),
)  # fmt: skip

AT: list[tuple[Any, ...]] = [  # indices that hold ints as operands
    ((4,), s_[...,], number()), ((4,), s_[...,], number("python")), ((4, 3), s_[...,], number()),
    ((2, 4), s_[:, ...], number()),
    ((4, 4), s_[..., ...], number(), number("python")), ((2, 4, 3), s_[1, ..., ::-1], number()),
    ((4, 3, 4), s_[..., 1:, ...], number(), number()),
    ((4, 2), s_[None, ...], number()), ((4, 2), s_[..., None, :0], number()),
]  # fmt: skip
ONCE: list[tuple[Any, ...]] = [
    ((5,), s_[...,], some(5, 3)), ((4, 3), s_[...,], some(4, 4)), ((2, 4), s_[:, ...], some(4, 2)),
    ((4, 2, 3), s_[..., :, ...], some(4, 2), some(3, 2)), ((4,), s_[...,], ints(4, ())),
    ((2, 4), s_[1, ...], some(4, 3)),
]  # fmt: skip

declare(
    "array",
    case(a("scalar"), a("scalar"), a("scalar")), case(a("python"), a("scalar")), case(a("python")),
    case(a(()), a("python")),
    *(case(a("scalar", t), a("scalar", t)) for t in "fDl"),
)  # fmt: skip
declare(
    "roll",
    *(case(a(s, t), axis=k, shift=n) for t in "df" for s, k, n in (((3,), 0, 1), ((2, 3), 1, 2), ((4, 1), 0, 3), ((2,
        3, 2), 1, 1), ((2, 0), 0, 1))),
    case(a((3,), "D"), axis=0, shift=1), case(a((3,), "l"), axis=0, shift=1),
)  # fmt: skip
for _name in ("tril", "triu"):
    declare(
        _name, *(case(a(s, t), k=k) for t in "dfD" for s, k in (((3, 3), 0), ((2, 4), 1), ((2, 3, 2), -1), ((0, 2),
            0))),
    )  # fmt: skip

declare(
    "convolve",
    *(case(a((m,), t), a((n,), t), mode=mode) for t in "dfD" for m, n,
        mode in ((4, 2, "full"), (2, 3, "full"), (5, 3, "valid"), (2, 2, "valid"), (1, 1, "full"))),
    case(a((4,), "l"), a((2,), "l"), mode="valid"),
)  # fmt: skip
declare(
    "choose",
    *(case(ints(3, s), *(a(s, t) for _ in range(3)), ) for t in "dfD" for s in ((3,), (2, 3), (0,), (1,))),
    case(number("scalar", 2, low=0), a("scalar"), a("scalar")),
    case(ints(2, (2,), dtype=np.int32), a((2,), "l"), a((2,), "l")),
)  # fmt: skip
declare(
    "diagonal",
    *(case(a(s, t), offset=k) for t in "df" for s, k in (((3, 3), 0), ((3, 2), -1), ((2, 3, 4), 1), ((0, 2), 0), ((2,
        2), 5), ((2, 1, 2), 0))),
    case(a((2, 2), "D"), offset=0),
)  # fmt: skip
declare("diag", *(case(a((n,), t), offset=k) for t in "dfD" for n, k in ((3, 0), (2, 1), (2, -2), (0, 0), (1, 0))))
declare("vecdot", *(case(a(s, t), a(s, t)) for t in "dfl" for s in ((3,), (2, 3), (2, 1, 3), (0, 2), (2, 0))))
declare(
    "outer_product", *(case(a((n,), t), a((m,), t)) for t in "df" for n, m in ((3, 2), (1, 4), (4, 1), (0, 2), (2, 0)))
)
declare("cross", *(case(a(s, t), a(s, t)) for t in "dfDl" for s in ((3,), (2, 3), (2, 1, 3), (0, 3))))

declare("getitem", indexed(*READS), indexed(((4,), s_[1:3,]), dtypes="l"), picked(*AT))
for _name in ("setitem", "additem"):
    declare(
        _name, indexed(*READS, write=True), *(case(a((3,)), a(k), index=s_[1,]) for k in ("scalar", "python")),
        picked(*AT, write=True),
    )  # fmt: skip
for _name in ("slice_at", "set_slice", "add_slice"):
    declare(_name, *(sliced(*s, write=_name != "slice_at") for s in SLICES))
for _starts in product((False, True), repeat=2):
    for _name, _lead in product(("dot_within", "add_within"), ((), (2,), (2, 0), (2, 3))):
        declare(_name, *(within(_lead, t, _starts, update=_name == "add_within") for t in "df"))
_sum = ", axis=(0,), keepdims=False)"
_ratio, _square = "mul(x0, broadcast(tanh(x1), a))", [(6, 6), (6, 6)]
declare(
    "value_within",
    *(formula("sum(mul(x0, x1)" + _sum, [(7,), (6,)], [("a",), ("a:",)], 2, dtype=t) for t in "df"),
    formula("matmul(x0, x1)", [(6, 5), (4, 2)], [("a:", "b"), ("b", "")], 3),
    formula(_ratio, _square, [("a:", "#"), ("#", "#")], 5),
    formula("mul(x0, const(2.0, 'd', a))", [(5, 6)], [("#", "a:")], 3),
    formula("max(x0" + _sum, [(7,)], [("a",)], 1),
    formula("x0", [(4, 5)], [("a", "")], 1),
)
declare(
    "write_within",
    *(
        formula(_ratio, [(6, 6), *_square], [("a:", "#"), ("#", "#")], 7, ("a:", "#"), sign, t)
        for sign in ("", "+", "-") for t in "df"
    ),
    formula("mul(broadcast(reshape(x0, a, 1), a, b), broadcast(x1, a, b))", [(7, 6), (4,), (4,)], [("a",), ("b",)],
        4, ("a:", "b:"), "-"),
    formula("matmul(x0, x1)", [(4, 2), (6, 5), (4, 2)], [("a:", "b"), ("b", "")], 3, ("a", ""), "+"),
    formula("sum(sin(x0)" + _sum, [(4,), (6,)], [("a:",)], 3, ("#",), "-"),
)  # fmt: skip
declare("gather", picked(*GATHERS), picked(*ONCE, unique=True))
for _name in ("scatter", "scatter_add"):
    declare(_name, picked(*GATHERS, write=True), picked(*ONCE, write=True, unique=True))

declare(
    "matmul",
    *(
        case(a(p, t), a(q, t)) for t in "dfD"
        for p, q in (
            ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((1, 1), (1, 1)), ((2, 0), (0, 3)),
            ((0, 2), (2, 3)),
            ((5, 2, 3), (5, 3, 2)), ((2, 1, 2, 3), (2, 1, 3, 2)), ((0,), (0,)), ((2, 3), (3, 0)),
            ((0, 2, 3), (0, 3, 2)),
        )
    ),
)  # fmt: skip

declare("zero_stack", *(case(aval=Aval(s, np.dtype(t), k, n)) for s, t, k, n in (
    ((2,), "d", "array", (3,)), ((), "d", "scalar", (2,)), ((2, 2), "f", "array", (2, 3)), ((), "d", "array", (2,)),
    ((1,), "d", "array", (0,)),
)))  # fmt: skip
declare(
    "stack_add",
    case(steps(3, a((2,))), steps(3, a((2,)))), case(steps(2, a("scalar")), steps(2, a("scalar"))),
    case(steps(2, steps(3, a((2,)))), steps(2, steps(3, a((2,))))),
    case(steps(2, a((3,), "f")), steps(2, a((3,), "f"))),
)  # fmt: skip


def _inner(w: Any, c: Any, x: Any) -> Any:
    """A body whose body is a loop: c becomes tanh(w c + x) twice."""
    inner = built(
        lambda v, k, y: [k.builder.coerce(op("tanh", v * k + y), k.aval)], w.aval, c.aval, x.aval, name="inner"
    )
    operands = [w, c, op("broadcast", x, aval=Aval((2, *x.shape), x.dtype))]
    (out,) = op(
        "scan", *operands, arrays=0, body=inner, carry=1, consts=1, length=2, reverse=False
    )  # fmt: skip
    return [out], [out * w], [op("sin", out)]


declare(
    "scan",
    loop(lambda c, x: ([op("tanh", c * x)], [c + x], []), carry=[a((2,))], xs=[a((3, 2))]),
    loop(lambda w, c, x: ([op("sin", w * c) + x], [c * c, w * x], []), consts=[a((2,))], carry=[a((2,))],
        xs=[a((3, 2))], reverse=True),
    loop(lambda w, c: ([op("tanh", w @ c)], [], []), consts=[a((2, 2))], carry=[a((2,))], length=4),
    loop(lambda c, x: ([c * x], [op("exp", c)], []), carry=[a("scalar")], xs=[a((4,))], length=4),
    loop(lambda c, x: ([c + x * x], [c * x], [op("sin", c), x * c]), carry=[a((2,))], xs=[a((3, 2))]),
    loop(lambda x: ([], [op("cos", x) * x], []), xs=[a((3, 2))]),
    loop(lambda w, x: ([], [w * x], []), consts=[a("scalar")], xs=[a((2,))], length=2),
    loop(lambda p, q, x: ([q, p * x], [p - q], []), carry=[a("scalar"), a("scalar")], xs=[a((5,))], length=5,
        reverse=True),
    loop(lambda c, x: ([c * x], [c], []), carry=[a((2,))], xs=[a((1, 2))], length=1),
    loop(lambda c, x: ([c * x], [c + x], []), carry=[a("scalar")], xs=[a((0,))], length=0),
    loop(lambda c: ([op("sin", c)], [], []), carry=[a(())], length=3),
    loop(lambda c, x: ([c + x], [c], [c]), carry=[a((2,), "f")], xs=[a((3, 2), "f")]),
    loop(lambda c, x: ([op("sin", c * x)], [c], [c]), carry=[a((2,))], xs=[steps(3, a((2,)))]),
    loop(lambda n, c, x: ([n + 1, c * x], [n], []), carry=[a("scalar", "l"), a("scalar")], xs=[a((3,))]),
    loop(lambda c, x: ([c], [c * x], []), carry=[a((2,))], xs=[a((3, 2))]),
    *control_samples.COUNTED,
    loop(_inner, consts=[a((2,))], carry=[a((2,))], xs=[a((3, 2))]),
    loop(_inner, consts=[a((2,))], carry=[a((2,))], xs=[a((3, 2))], reverse=True),
    loop(lambda c, x: ([op("setitem", c, op("sin", x), index=s_[1,])], [op("getitem", c, index=s_[::-1,])], []),
        carry=[a((3,))], xs=[a((2,))], length=2),
)  # fmt: skip

# --- reductions, cumulative operations, sorting ------------------------------------------------------------


RUNS: list[tuple[Shape, int, tuple[int, ...]]] = [
    ((5,), 0, (0, 2, 3)), ((4, 3), 0, (0, 1)), ((2, 4), 1, (0, 2, 3)), ((2, 3, 2), 1, (0, 2)), ((3,), 0, (0,)),
    ((0, 3), 1, (0, 1)),
]  # fmt: skip
RECURRENCES: list[tuple[Shape, int]] = [
    ((3,), 0), ((2, 3), 1), ((3, 2), 0), ((2, 4, 2), 1), ((1,), 0), ((2, 1), 1), ((0,), 0), ((40,), 0), ((2, 43), 1),
    ((3, 0), 0),
]  # fmt: skip

declare("prod", reductions(dtypes="dfDl"), reductions(small))
declare("nanmax", reductions(distinct, empty=False), case(a((2, 3), domain=gappy), axis=(1,), keepdims=False))
declare("nanmin", reductions(distinct, empty=False), case(a((2, 3), domain=gappy), axis=(0,), keepdims=True))
declare("count", reductions(small, dtypes="?"))
declare("root", unary(positive, dtypes="df"))
for _name in ("any", "all"):
    declare(_name, reductions(small, dtypes="dl?D"))
for _reverse in (False, True):
    declare("cumsum", along(dtypes="dfDl", reverse=_reverse))
    declare("cumprod", along(dtypes="dfDl", reverse=_reverse), along(small, reverse=_reverse))
    for _name in ("cummax", "cummin"):
        declare(_name, along(distinct, dtypes="dfl", reverse=_reverse))
        declare(_name, along(small, reverse=_reverse), smooth=False)
    for _shape, _axis in RECURRENCES:
        _short = tuple(max(n - 1, 0) if i == _axis else n for i, n in enumerate(_shape))
        for _dtype in "dfD" if len(_shape) == 2 else "d":
            _draws = a(_short, _dtype, between(-0.9, 0.9)), a(_shape, _dtype)
            declare("recurrence", case(*_draws, axis=_axis, reverse=_reverse))
for _stable in (False, True):
    declare("argsort", along(distinct, dtypes="dfl", stable=_stable))
    declare("sort", along(distinct, dtypes="dflD", stable=_stable))
    declare("sort", along(small, stable=_stable), smooth=False)
declare("partition", along(distinct, kth=0), *(case(a((2, 9), t, distinct), axis=1, kth=(2, 5)) for t in "df"))
declare("argpartition", along(distinct, kth=0), case(a((2, 9), "d", distinct), axis=1, kth=(2, 5)))
declare(
    "lexsort", case(ints(3, (5,)), axis=0), case(ints(3, (5,)), a((5,)), axis=0),
    case(ints(2, (2, 4)), ints(2, (2, 4)), axis=1),
)  # fmt: skip
PLACES: list[tuple[Shape, int, int]] = [
    ((5,), 0, 3), ((5,), 0, 5), ((3, 4), 1, 2), ((3, 4), 0, 2), ((2, 3, 2), 1, 2), ((2, 0, 2), 2, 1), ((3,), 0, 0),
    ((3, 2), 0, 1),
]  # fmt: skip
for _shape, _axis, _count in PLACES:
    _part = (*_shape[:_axis], _count, *_shape[_axis + 1 :])
    _index = places(_shape[_axis], _part, _axis)
    declare("take_along", *(case(a(_shape, t), _index, axis=_axis) for t in "dfDl"))
    declare("add_along", *(case(a(_shape, t), a(_part, t), _index, axis=_axis) for t in "dfDl"))
declare(
    "searchsorted",
    *(
        case(a((5,), t, ascending), a(s, t, small), side=side)
        for side in ("left", "right") for t in "dl" for s in ((3,), (2, 2), (), (0,), "scalar")
    ),
)  # fmt: skip
for _right in (False, True):
    for _shape in ((3,), (2, 2), ()):
        declare("digitize", *(case(a(_shape, t, small), a((4,), t, ascending), right=_right) for t in "dl"))
declare("nanargmax", *(case(a((2, 4), t, gappy), axis=k) for t in "df" for k in (0, 1)))
declare("nanargmin", *(case(a((2, 4), t, gappy), axis=k) for t in "df" for k in (0, 1)))
_levels = between(0.1, 0.3)
declare(
    "quantile_at", *(case(a((4,), t, distinct), a("scalar", t, _levels), axis=0, weak=False) for t in "df"),
    *(case(a((2, 4), "d", distinct), a(s, "d", _levels), axis=k, weak=False) for s in ((), (1,), (2,)) for k in (0, 1)),
    case(a((3,), "f", distinct), a((2,), "d", _levels), axis=0, weak=False),
    case(a((3,), "f", distinct), a("scalar", "d", _levels), axis=0, weak=False),
    *(case(a((3,), t, distinct), a("python", "d", _levels), axis=0, weak=True) for t in "fd"),
    case(a((3, 2), "f", distinct), a("python", "d", _levels), axis=1, weak=True),
)  # fmt: skip
declare("median", along(distinct), case(a((2, 4), "d", distinct), axis=1))
declare("nanmedian", *(case(a((2, 4), t, gappy), axis=axis) for t in "df" for axis in (0, 1)))
declare("quantile", along(distinct, q=0.3, method="linear"), along(distinct, q=(0.25, 0.9), method="linear"))
declare(
    "nanquantile", along(distinct, q=0.3), case(a((2, 4), "d", gappy), axis=1, q=0.7),
    case(a((3,), "d", gappy), axis=0, q=1.0),
)  # fmt: skip
for _name in (
    "lower", "higher", "nearest", "midpoint", "hazen", "weibull", "median_unbiased", "inverted_cdf",
    "averaged_inverted_cdf", "closest_observation",
):  # fmt: skip
    declare("quantile", *(case(a((2, 7), "d", distinct), axis=1, q=q, method=_name) for q in (0.0, (0.1, 0.6), (1.0,))))
for _shape, _axis, _starts in RUNS:
    declare("run_sum", *(runs(_shape, _axis, _starts, t) for t in "dfDl"))
    declare("run_max", *(runs(_shape, _axis, _starts, t, distinct) for t in "df"))
    declare("run_min", *(runs(_shape, _axis, _starts, t, distinct) for t in "df"))
    declare("run_min", runs(_shape, _axis, _starts, "d", small), smooth=False)

# --- functions stored as graphs ----------------------------------------------------------------------------

V = Aval((3,), np.dtype(float))
S = Aval((), np.dtype(float), "scalar")

declare(
    "call",
    case(a((3,)), body=built(lambda x: op("sin", x) * x, V)),
    case(a((3,)), a((3,)), body=built(lambda x, y: [x * y, op("tanh", x + y)], V, V)),
    case(a("scalar"), a((3,)), body=built(lambda s, x: [op("sum", x, axis=(0,), keepdims=False) * s, op("cos", s), x],
        S, V)),
    case(a((3,), "f"), body=built(lambda x: op("exp", x), Aval((3,), np.dtype(np.float32)))),
    case(a((3,)), a((3,)), body=built(lambda x, y: [x * y, op("cos", y)], V, V), closed=True),
)  # fmt: skip
# Of a marked call only results are differentiated: the derivative in its arguments is refused, so these are integers.
declare(
    "applied",
    case(ints(5, (3,)), a((3,)), args=1, axes=0, call=0, key=1, nth=0),
    case(ints(5, ()), a((3,)), a("scalar"), a((2,), "D"), args=1, axes=0, call=2, key=1, nth=0),
    case(ints(5, (2, 3)), ints(5, (2,)), a((2, 2), "f"), args=2, axes=1, call=0, key=3, nth=0),
    case(a((3,)), args=0, axes=0, call=0, key=1, nth=0),
)
declare(
    "custom_jvp",
    case(
        a((3,)), body=built(lambda x: op("sin", x), V), rule=built(lambda x, t: [op("sin", x), op("cos", x) * t], V, V)
    ),
    case(
        a("scalar"), a((3,)), body=built(lambda s, x: [op("sum", x * x, axis=(0,), keepdims=False) * s], S, V),
        rule=built(
            lambda s, x, ds, dx: [
                op("sum", x * x, axis=(0,), keepdims=False) * s,
                ds * op("sum", x * x, axis=(0,), keepdims=False) + s * op("sum", dx * (x * 2), axis=(0,),
                    keepdims=False),
            ],
            S, V, S, V,
        ),
    ),
)  # fmt: skip
declare(
    "custom_vjp",
    case(
        a((3,)), body=built(lambda x: op("sin", x), V), forward=built(lambda x: [op("sin", x), op("cos", x)], V),
        backward=built(lambda c, ct: c * ct, V, V),
    ),
    case(
        a((3,)), a((3,)), body=built(lambda x, y: [x * y, op("tanh", x)], V, V),
        forward=built(lambda x, y: [x * y, op("tanh", x), x, y, op("tanh", x)], V, V),
        backward=built(lambda x, y, h, p, q: [p * y + q * (1 - h * h), p * x], V, V, V, V, V),
    ),
)  # fmt: skip
declare(
    "custom_linear",
    case(a((3,)), a((3,)), backward=built(lambda r, ct: r * ct, V, V)),
    case(
        a((3,)), a("scalar"), a((3,)),
        backward=built(lambda r, p, q: [op("sum", r * q, axis=(0,), keepdims=False) + p, q * r], V, S, V),
    ),
)  # fmt: skip

# --- calls of Python: on integers, since they have no derivative of their own -------------------------------

I, N = Aval((3,), np.dtype(np.int64)), Aval((), np.dtype(np.int64), "scalar")
declare(
    "host",
    case(ints(5, (3,)), ints(5, (3,)), name=Host(lambda n, m: [2 * n + m, n.sum()], [I, N])),
    case(ints(5, (3,)), name=Host(lambda n: [n[::-1]], [I])),
)

# --- decisions ---------------------------------------------------------------------------------------------

declare(
    "guard",
    case(a("scalar", domain=positive), kind="bool", expected=True, lanes=False),
    case(lambda _: np.int64(3), kind="int", expected=3, lanes=False),
    case(lambda _: np.float64(2.5), kind="number", expected=2.5, lanes=False),
    case(a((4,)), kind="size", expected=4, lanes=False),
)
declare(  # of numbers that are the same at each run
    "draw",
    case(lambda _: np.random.default_rng(1), aval=I, method="integers", given=(7, 8), named=(("size", (3,)),)),
    case(lambda _: np.random.default_rng(1), aval=N, method="integers", given=(7, 8), named=()),
)
declare(
    "draws",
    case(
        lambda _: np.random.default_rng(1),
        items=(
            (
                "loop",
                3,
                (
                    ("draw", "integers", (7, 8), (), "int64", ()),
                    ("draw", "integers", (7, 8), (("size", (2,)),), "int64", (2,)),
                ),
            ),
        ),
    ),
)
declare("flatnonzero", case(lambda _: np.array([True, False, True]), aval=Aval((2,), np.dtype(np.int64))))
declare(
    "exit_if",
    case(
        a("scalar", domain=positive), a((3,)), kind="bool", expected=False, lanes=False,
        body=built(lambda x: op("sin", x), Aval((3,), np.dtype(float))),
    ),
)  # fmt: skip

# --- regions -----------------------------------------------------------------------------------------------

for ticking in ("ticked", "tangent_tick"):
    tick = {"loop": "a loop", "total": 3, "event": "step"}
    declare(ticking, case(a((3,)), **tick), case(a("scalar"), **tick), case(a((2, 2), "f"), **tick))
declare("named", case(a((3,)), name="a"), case(a("scalar"), name="b"), case(a((2, 2), "f"), name="a"))
declare(
    "region",
    case(a((3,)), body=built(lambda x: op("sin", x) * x, V), policy=("nothing",)),
    case(a((3,)), a((3,)), body=built(lambda x, y: [x * y, op("tanh", x + y)], V, V), policy=("everything",)),
    case(a((3,)), body=built(lambda x: op("sin", op("sin", x)) * x, V), policy=("within", 24, ("everything",))),
    case(a("scalar"), a((3,)), policy=("names", "a"), body=built(
        lambda s, x: [op("sum", x, axis=(0,), keepdims=False) * s, op("exp", x)], S, V)),
)  # fmt: skip
