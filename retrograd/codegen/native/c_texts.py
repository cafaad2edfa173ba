"""What operations are in C: expressions of elements, and folds of reductions."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.primitive import REGISTRY
from ...ir.texts import TEXTS


@dataclass(frozen=True)
class CFold:
    """A reduction: the value that it starts from, and a step over ``{0}``, what there is so far, and ``{1}``.

    ``choice`` is the step as a choice, where what there is so far is an element of an array of bools.
    """

    start: str
    step: str
    clause: str  # of OpenMP
    choice: str = ""


@dataclass(frozen=True, kw_only=True)
class CText:
    """The C source of an operation.

    ``c`` is an expression over operands ``{0}``, ``{1}``, ...; ``{s}`` is the suffix of the functions of a dtype. It
    holds for dtypes of the ``kinds``. Where ``beyond`` is true of an element, the kernel gives up, and NumPy computes
    all of it. ``work`` counts additions that take as long. ``ulp`` bounds the distance to NumPy's result, in units in
    the last place.
    """

    c: str = ""
    kinds: str = "f"
    work: int = 1
    ulp: float = 0.0
    fold: CFold | None = None
    beyond: str = ""


TEXTS["native"] = CText


def _op(c: str, kinds: str = "fi") -> CText:
    return CText(c=c, kinds=kinds)


def _exact(c: str, work: int = 1) -> CText:
    return CText(c=c, work=work)


def _function(name: str, ulp: float = 4.0, operands: int = 1) -> CText:
    arguments = ", ".join(f"{{{k}}}" for k in range(operands))
    return CText(c=f"{name}{{s}}({arguments})", work=12, ulp=ulp)


REGISTRY.describe(
    "native",
    {
        "add": _op("{0} + {1}"),
        "sub": _op("{0} - {1}"),
        "mul": _op("{0} * {1}"),
        "neg": _op("-{0}"),
        "square": _op("{0} * {0}"),
        "div": _exact("{0} / {1}", 4),
        "reciprocal": _exact("1 / {0}", 4),
        "lt": _op("{0} < {1}"),
        "le": _op("{0} <= {1}"),
        "gt": _op("{0} > {1}"),
        "ge": _op("{0} >= {1}"),
        "eq": _op("{0} == {1}"),
        "ne": _op("{0} != {1}"),
        "logical_and": _op("({0} != 0) & ({1} != 0)", "fib"),
        "logical_or": _op("({0} != 0) | ({1} != 0)", "fib"),
        "logical_xor": _op("({0} != 0) ^ ({1} != 0)", "fib"),
        "logical_not": _op("{0} == 0", "fib"),
        "bitwise_and": _op("{0} & {1}", "ib"),
        "bitwise_or": _op("{0} | {1}", "ib"),
        "bitwise_xor": _op("{0} ^ {1}", "ib"),
        "invert": _op("~{0}", "i"),
        "where": _op("{0} ? {1} : {2}", "fib"),
        "maximum": _op("(({0} >= {1}) | ({0} != {0})) ? {0} : {1}"),
        "minimum": _op("(({0} <= {1}) | ({0} != {0})) ? {0} : {1}"),
        "fmax": _op("(({0} >= {1}) | ({1} != {1})) ? {0} : {1}"),
        "fmin": _op("(({0} <= {1}) | ({1} != {1})) ? {0} : {1}"),
        "annihilating_mul": _exact("{0} != 0 && {1} != 0 ? {0} * {1} : 0"),
        "annihilating_div": _exact("{0} != 0 && fabs{s}({1}) != INFINITY ? {0} / {1} : 0", 4),
        "isnan": _exact("{0} != {0}"),
        "isinf": _exact("fabs{s}({0}) == INFINITY"),
        "isfinite": _exact("fabs{s}({0}) < INFINITY"),
        "abs": _exact("fabs{s}({0})"),
        "copysign": _exact("copysign{s}({0}, {1})"),
        "signbit": _exact("copysign{s}(1, {0}) < 0"),
        "sign": _exact("{0} != {0} ? {0} : ({0} > 0 ? 1 : 0) - ({0} < 0 ? 1 : 0)"),
        "heaviside": _exact("{0} != {0} ? {0} : {0} == 0 ? {1} : {0} > 0 ? 1 : 0"),
        "floor": _exact("floor{s}({0})"),
        "ceil": _exact("ceil{s}({0})"),
        "trunc": _exact("trunc{s}({0})"),
        "rint": _exact("rint{s}({0})"),
        "sqrt": _exact("sqrt{s}({0})", 5),
        "root": _exact("sqrt{s}({0})", 5),
        "deg2rad": CText(c="{0} * 0.017453292519943295{s}", ulp=1.0),
        "rad2deg": CText(c="{0} * 57.29577951308232{s}", ulp=2.0),
        "exp": _function("rg_exp"),
        "expm1": _function("rg_expm1"),
        "log": _function("rg_log"),
        "log1p": _function("rg_log1p"),
        "tanh": _function("rg_tanh"),
        "expit": CText(c="rg_expit{s}({0})", work=16, ulp=128.0),  # SciPy's is as far off in float32
        "exp2": _function("exp2"),
        "log2": _function("log2"),
        "log10": _function("log10"),
        "sin": CText(c="rg_sin{s}({0})", work=12, ulp=4.0, beyond="fabs{s}({0}) > RG_FAR"),
        "cos": CText(c="rg_cos{s}({0})", work=12, ulp=4.0, beyond="fabs{s}({0}) > RG_FAR"),
        "tan": _function("tan"),
        "arcsin": _function("asin"),
        "arccos": _function("acos"),
        "arctan": _function("atan"),
        "arctan2": _function("atan2", operands=2),
        "hypot": _function("hypot", operands=2),
        "sinh": _function("sinh"),
        "cosh": _function("cosh"),
        "arcsinh": _function("asinh"),
        "arccosh": _function("acosh"),
        "arctanh": _function("atanh"),
        "cbrt": _function("cbrt"),
        "erf": _function("rg_erf"),
        "erfc": _function("erfc", 512.0),  # SciPy's is as far off where it is tiny
        "power": _function("pow", operands=2),
        "fmod": CText(c="fmod{s}({0}, {1})", work=12),
        "nextafter": CText(c="nextafter{s}({0}, {1})", work=6),
        "sum": CText(kinds="fi", fold=CFold("0", "{0} + {1}", "+")),
        "prod": CText(kinds="fi", fold=CFold("1", "{0} * {1}", "*")),
        "count": CText(kinds="b", fold=CFold("0", "{0} + {1}", "+")),
        "max": CText(fold=CFold("-INFINITY", "rg_larger{s}({0}, {1})", "rg_max{s}")),
        "min": CText(fold=CFold("INFINITY", "rg_smaller{s}({0}, {1})", "rg_min{s}")),
        "any": CText(kinds="fib", fold=CFold("0", "{0} | ({1} != 0)", "|", "{1} != 0 ? 1 : {0}")),
        "all": CText(kinds="fib", fold=CFold("1", "{0} & ({1} != 0)", "&", "{1} != 0 ? {0} : 0")),
    },
)
