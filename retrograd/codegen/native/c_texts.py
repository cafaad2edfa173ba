"""What operations are in C: expressions of elements, and folds of reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.graph import Node
from ...ir.primitive import REGISTRY
from ...ir.texts import TEXTS
from .indices import c_type, number


@dataclass(frozen=True)
class CFold:
    """A reduction: the value that it starts from, and a step over ``{0}``, what there is so far, and ``{1}``.

    ``choice`` is the step as a choice, where what there is so far is an element of an array of bools. An ``order`` is
    that of extrema: over long rows, a variable of its own knows of nan, and the step is one instruction.
    """

    start: str
    step: str
    clause: str  # of OpenMP
    choice: str = ""
    order: str = ""


ByNode = Callable[[Node, Sequence[Any]], str]
SAME = frozenset({"cast", "copy", "owned", "named", "putmask", "stop_gradient"})
SIMD = "#pragma omp simd"  # above a loop that compilers vectorise


@dataclass(frozen=True, kw_only=True)
class CText:
    """The C source of an operation.

    ``c`` is an expression over operands ``{0}``, ``{1}``, ...; ``{s}`` is the suffix of the functions of a dtype. Or it
    makes such an expression from the node and the numbers that its operands are; None for other operands. It holds for
    dtypes of the ``kinds``; ``of_complex`` is the text for complex numbers where that is another one. Where ``beyond``
    is true of an element, the kernel gives up, and NumPy computes all of it; ``raises`` is this for floats of Python,
    which raise where C's give infinity, and ``{out}`` is the result. ``below`` gives the same numbers as ``c`` where no
    operand is positive. ``work`` counts additions that take as long.
    ``ulp`` bounds the distance to NumPy's result, in units in the last place; of a complex number, of its modulus.
    """

    c: str | ByNode = ""
    below: str = ""
    kinds: str = "f"
    of_complex: CText | None = None
    work: int = 1
    ulp: float = 0.0
    fold: CFold | None = None
    beyond: str = ""
    raises: str = ""


TEXTS["native"] = CText


def _op(c: str, kinds: str = "fi", of_complex: CText | None = None) -> CText:
    return CText(c=c, kinds=kinds, of_complex=of_complex)


def _exact(c: str, work: int = 1, of_complex: CText | None = None) -> CText:
    return CText(c=c, work=work, of_complex=of_complex)


def _complex(c: str, work: int = 1, ulp: float = 0.0, beyond: str = "") -> CText:
    return CText(c=c, kinds="fic", work=work, ulp=ulp, beyond=beyond)


def _function(name: str, ulp: float = 4.0, operands: int = 1) -> CText:
    arguments = ", ".join(f"{{{k}}}" for k in range(operands))
    return CText(c=f"{name}{{s}}({arguments})", work=12, ulp=ulp)


INFINITE = "!(fabs{s}({out}) < INFINITY)"


PRODUCT = _complex("rg_cmul{s}({0}, {1})", 4, 4.0)  # NumPy contracts some of the operations of some elements
PRODUCT_OR_ZERO = _complex("{0} != 0 && {1} != 0 ? rg_cmul{s}({0}, {1}) : 0", 4, 4.0)
QUOTIENT = _complex("rg_cdiv{s}({0}, {1})", 16)
INVERSE = _complex("rg_creciprocal{s}({0})", 12)
ORDINARY = "(fabs{s}(__real__ {0}) < RG_LARGE{s}) & (fabs{s}(__imag__ {0}) < RG_FAR)"
EXPONENTIAL = _complex("rg_cexp{s}({0})", 40, 8.0, beyond=f"!({ORDINARY})")


CHOSEN = CText(  # GCC vectorises a choice of parts, and none of complex numbers
    c="__builtin_complex({0} ? __real__ {1} : __real__ {2}, {0} ? __imag__ {1} : __imag__ {2})", kinds="c", work=2
)


def _part_is(both: str, test: str) -> str:
    return f"(fabs{{s}}(__real__ {{0}}) {test}) {both} (fabs{{s}}(__imag__ {{0}}) {test})"


def _power(node: Node, numbers: Sequence[Any]) -> str:
    """Products for a few exponents that are known; of a half, NumPy's ``np.power`` takes the square root."""
    if node.prim.name == "power" and numbers[1] == 0.5:
        return "sqrt{s}({0})"
    return {2.0: "{0} * {0}", 3.0: "{0} * {0} * {0}", 1.0: "{0}"}.get(numbers[1], "rg_pow{s}({0}, {1})")


def _clip(node: Node, numbers: Sequence[Any]) -> str:
    """NumPy's result is the upper bound where bounds cross, and nan where one of them is."""
    low, high = node.attrs["low"], node.attrs["high"]
    if np.isnan(low) or np.isnan(high):
        return "NAN"
    least, most = (number(x, node.out.aval.dtype) for x in (min(low, high), high))
    return f"{{0}} < {least} ? {least} : {{0}} > {most} ? {most} : {{0}}"


def _where(node: Node, numbers: Sequence[Any]) -> str:
    """A choice; of bools in operations that GCC vectorises."""
    bools = all(v.aval.dtype.kind == "b" for v in node.inputs)
    return "({0} & {1}) | (({0} == 0) & {2})" if bools else "{0} ? {1} : {2}"


def _bound(node: Node, name: str) -> str:
    return number(node.attrs[name], node.out.aval.dtype)


def _finite(node: Node, numbers: Sequence[Any]) -> str:
    dtype = node.out.aval.dtype
    ends = [np.finfo(dtype).max, np.finfo(dtype).min]
    given = [node.attrs[name] for name in ("posinf", "neginf")]
    high, low = (number(end if x is None else x, dtype) for x, end in zip(given, ends, strict=True))
    return f"{{0}} != {{0}} ? {_bound(node, 'nan')} : {{0}} == INFINITY ? {high} : {{0}} == -INFINITY ? {low} : {{0}}"


REGISTRY.describe(
    "native",
    {
        "add": _op("{0} + {1}", "fic"),
        "sub": _op("{0} - {1}", "fic"),
        "mul": _op("{0} * {1}", of_complex=PRODUCT),
        "neg": _op("-{0}", "fic"),
        "square": _op("{0} * {0}", of_complex=_complex("rg_cmul{s}({0}, {0})", 4, 4.0)),
        "div": CText(c="{0} / {1}", of_complex=QUOTIENT, work=4, raises="{1} == 0"),
        "reciprocal": CText(c="1 / {0}", of_complex=INVERSE, work=4, raises="{0} == 0"),
        "real": CText(c="__real__ {0}", kinds="c"),
        "imag": CText(c="__imag__ {0}", kinds="c"),
        "lt": _op("{0} < {1}"),
        "le": _op("{0} <= {1}"),
        "gt": _op("{0} > {1}"),
        "ge": _op("{0} >= {1}"),
        "eq": _op("{0} == {1}", "fic"),
        "ne": _op("{0} != {1}", "fic"),
        "logical_and": _op("({0} != 0) & ({1} != 0)", "fibc"),
        "logical_or": _op("({0} != 0) | ({1} != 0)", "fibc"),
        "logical_xor": _op("({0} != 0) ^ ({1} != 0)", "fibc"),
        "logical_not": _op("{0} == 0", "fibc"),
        "bitwise_and": _op("{0} & {1}", "ib"),
        "bitwise_or": _op("{0} | {1}", "ib"),
        "bitwise_xor": _op("{0} ^ {1}", "ib"),
        "invert": _op("~{0}", "i"),
        "where": CText(c=_where, kinds="fib", of_complex=CHOSEN),
        "maximum": _op("(({0} >= {1}) | ({0} != {0})) ? {0} : {1}"),
        "minimum": _op("(({0} <= {1}) | ({0} != {0})) ? {0} : {1}"),
        "fmax": _op("(({0} >= {1}) | ({1} != {1})) ? {0} : {1}"),
        "fmin": _op("(({0} <= {1}) | ({1} != {1})) ? {0} : {1}"),
        "annihilating_mul": _exact("{0} != 0 && {1} != 0 ? {0} * {1} : 0", of_complex=PRODUCT_OR_ZERO),
        "annihilating_div": _exact("{0} != 0 && fabs{s}({1}) != INFINITY ? {0} / {1} : 0", 4),
        "isnan": CText(c="{0} != {0}", kinds="fc"),
        "isinf": _exact("fabs{s}({0}) == INFINITY", of_complex=_complex(_part_is("|", "== INFINITY"))),
        "isfinite": _exact("fabs{s}({0}) < INFINITY", of_complex=_complex(_part_is("&", "< INFINITY"))),
        "abs": _exact("fabs{s}({0})", of_complex=_complex("rg_cabs{s}({0})", 12, 4.0)),
        "copysign": _exact("copysign{s}({0}, {1})"),
        "signbit": _exact("copysign{s}(1, {0}) < 0"),
        "sign": _exact(
            "{0} != {0} ? {0} : ({0} > 0 ? 1 : 0) - ({0} < 0 ? 1 : 0)", of_complex=_complex("rg_csign{s}({0})", 16, 4.0)
        ),
        "heaviside": _exact("{0} != {0} ? {0} : {0} == 0 ? {1} : {0} > 0 ? 1 : 0"),
        "floor": _exact("floor{s}({0})"),
        "ceil": _exact("ceil{s}({0})"),
        "trunc": _exact("trunc{s}({0})"),
        "rint": _exact("rint{s}({0})"),
        "sqrt": _exact("sqrt{s}({0})", 5),
        "root": _exact("sqrt{s}({0})", 5),
        "deg2rad": CText(c="{0} * 0.017453292519943295{s}", ulp=1.0),
        "rad2deg": CText(c="{0} * 57.29577951308232{s}", ulp=2.0),
        "exp": CText(c="rg_exp{s}({0})", below="rg_exp_below{s}({0})", of_complex=EXPONENTIAL, work=12, ulp=4.0),
        "expm1": _function("rg_expm1"),
        "log": _function("rg_log"),
        "log1p": _function("rg_log1p"),
        "tanh": _function("rg_tanh"),
        "expit": CText(c="rg_expit{s}({0})", work=16, ulp=128.0),  # SciPy's is as far off in float32
        "exp2": _function("rg_exp2"),
        "log2": _function("rg_log2"),
        "log10": _function("rg_log10"),
        "sin": CText(c="rg_sin{s}({0})", work=12, ulp=4.0, beyond="RG_IS_FAR(fabs{s}({0}))"),
        "cos": CText(c="rg_cos{s}({0})", work=12, ulp=4.0, beyond="RG_IS_FAR(fabs{s}({0}))"),
        "tan": _function("tan"),
        "arcsin": _function("rg_asin"),
        "arccos": _function("rg_acos"),
        "arctan": _function("rg_atan"),
        "arctan2": _function("rg_atan2", operands=2),
        "hypot": _function("rg_hypot", operands=2),
        "sinh": _function("rg_sinh"),
        "cosh": _function("rg_cosh"),
        "arcsinh": _function("asinh"),
        "arccosh": _function("acosh"),
        "arctanh": _function("atanh"),
        "cbrt": _function("rg_cbrt"),
        "erf": _function("rg_erf"),
        "erfc": _function("erfc", 512.0),  # SciPy's is as far off where it is tiny
        "power": CText(c=_power, work=20, ulp=4.0, raises=INFINITE),
        "float_power": CText(c=_power, work=20, ulp=4.0, raises=INFINITE),
        "pow": CText(c=_power, work=20, ulp=4.0, raises=INFINITE),
        "remainder": CText(c="rg_remainder{s}({0}, {1})", work=12, raises="{1} == 0"),
        "floor_divide": CText(c="rg_floor_divide{s}({0}, {1})", work=16, raises="{1} == 0"),
        "logaddexp": _function("rg_logaddexp", 64.0, operands=2),  # it may cancel, NumPy's as well
        "log_expit": _function("rg_log_expit"),
        "xlogy": CText(c="(({0} == 0) & ({1} == {1})) ? 0 : {0} * rg_log{s}({1})", work=12, ulp=4.0),
        "xlog1py": CText(c="(({0} == 0) & ({1} == {1})) ? 0 : {0} * rg_log1p{s}({1})", work=12, ulp=4.0),
        "entr": CText(c="{0} > 0 ? -{0} * rg_log{s}({0}) : {0} == 0 ? 0 : {0} < 0 ? -INFINITY : {0}", work=12, ulp=4.0),
        "exp10": CText(c="rg_pow{s}(10, {0})", work=20, ulp=4.0),
        "special_cbrt": _function("rg_cbrt"),
        "special_exp2": _function("rg_exp2"),
        "special_expm1": _function("rg_expm1"),
        "special_log1p": _function("rg_log1p"),
        "clip": CText(c=_clip, work=2),
        "nan_to_num": CText(c=_finite, work=3),
        "conj": _op("{0}", of_complex=_complex("~{0}")),
        "fmod": CText(c="fmod{s}({0}, {1})", work=12),
        "nextafter": CText(c="nextafter{s}({0}, {1})", work=6),
        "sum": CText(kinds="fic", fold=CFold("0", "{0} + {1}", "+")),
        "prod": CText(kinds="fi", fold=CFold("1", "{0} * {1}", "*")),
        "count": CText(kinds="b", fold=CFold("0", "{0} + {1}", "+")),
        "max": CText(fold=CFold("-INFINITY", "rg_larger{s}({0}, {1})", "rg_max{s}", order=">")),
        "min": CText(fold=CFold("INFINITY", "rg_smaller{s}({0}, {1})", "rg_min{s}", order="<")),
        "nanmax": CText(fold=CFold("NAN", "rg_larger_number{s}({0}, {1})", "rg_nanmax{s}")),
        "nanmin": CText(fold=CFold("NAN", "rg_smaller_number{s}({0}, {1})", "rg_nanmin{s}")),
        "any": CText(kinds="fibc", fold=CFold("0", "{0} | ({1} != 0)", "|", "{1} != 0 ? 1 : {0}")),
        "all": CText(kinds="fibc", fold=CFold("1", "{0} & ({1} != 0)", "&", "{1} != 0 ? {0} : 0")),
    },
)


def text_of(node: Node) -> CText | None:
    """What C has for an operation."""
    found: CText | None = node.prim.texts.get("native")
    if found is None or found.of_complex is None or all(v.aval.dtype.kind != "c" for v in node.inputs):
        return found
    return found.of_complex


def common(node: Node) -> np.dtype[Any]:
    """The dtype in which an operation works: of its result, or of its operands if that is a decision or a part."""
    out = node.out.aval.dtype
    parts = out.kind == "f" and node.inputs[0].aval.dtype.kind == "c"
    if out.kind != "b" and not parts:
        return out
    operands = [v.aval.dtype for v in node.inputs if v.aval.kind != "python"] or [node.inputs[0].aval.dtype]
    return np.result_type(*operands)


def fold_of(node: Node) -> Any:
    """The fold of a reduction."""
    text = text_of(node)
    assert text is not None
    return text.fold


def suffix(node: Node) -> str:
    """The suffix of the functions that a node calls."""
    return "f" if node.inputs[0].aval.dtype == np.float32 else ""


def total_type(node: Node) -> str:
    """The type of the variable in which a reduction adds up."""
    return "int" if node.out.aval.dtype.kind == "b" else c_type(node.out.aval.dtype)


def mask_type(node: Node) -> str:
    """The type of integers that are as wide as the results: where one has all bits, a vector of them is a mask."""
    return "int64_t" if node.out.aval.dtype.itemsize == 8 else "int"


def is_elementwise(node: Node) -> bool:
    """Whether an element is computed from those at the same index, or from numbers."""
    if node.prim.name == "const":
        return not isinstance(node.attrs["value"], tuple)
    if node.prim.name == "broadcast":
        return node.inputs[0].aval.size == 1
    text = text_of(node)
    return (text is not None and bool(text.c)) or node.prim.name in SAME
