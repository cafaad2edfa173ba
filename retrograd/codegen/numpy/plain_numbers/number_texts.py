"""The code of operations that runs on Python numbers and on NumPy scalars, with the same bits.

``number`` is the type of the numbers, ``float`` or ``np.float64``, and ``m`` has the functions: ``math`` or ``np``.
Most functions of ``math`` round differently. Then NumPy's are called, and their results become numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ....ir.graph import Node
from ....ir.primitive import REGISTRY
from ....ir.texts import TEXTS

FAILURES = "(ArithmeticError, ValueError)"  # what Python's numbers raise where NumPy's warn
PROBES = 2_000  # numbers on which functions are compared


@dataclass(frozen=True)
class NumberText:
    """The source of an operation on numbers; ``function`` is one of ``math`` that may round as NumPy's does."""

    number: str
    function: str = ""


TEXTS["numbers"] = NumberText
FUNCTIONS = frozenset({"copysign", "cos", "isfinite", "isinf", "isnan", "sin", "sqrt"})  # of both modules
OPERATORS = frozenset(
    {
        *("add", "sub", "mul", "div", "neg", "floor_divide", "remainder"),
        *("lt", "le", "gt", "ge", "eq", "ne", "bitwise_and", "bitwise_or", "bitwise_xor"),
    }
)
OF_BOOLS = {"add": "{0} | {1}", "mul": "{0} & {1}", "abs": "{0}"}  # NumPy's are bools, Python's are numbers

REGISTRY.describe(
    "numbers",
    {
        "sin": NumberText("{m}.sin({0})", "sin"),
        "cos": NumberText("{m}.cos({0})", "cos"),
        "sqrt": NumberText("{m}.sqrt({0})"),
        "copysign": NumberText("{m}.copysign({0}, {1})"),
        "isnan": NumberText("{m}.isnan({0})"),
        "isinf": NumberText("{m}.isinf({0})"),
        "isfinite": NumberText("{m}.isfinite({0})"),
        "square": NumberText("{0} * {0}"),
        "reciprocal": NumberText("1.0 / {0}"),
        "abs": NumberText("abs({0})"),
        "where": NumberText("{1} if {0} else {2}"),
        "maximum": NumberText("{0} if ({0} > {1}) | ({0} != {0}) else {1}"),
        "minimum": NumberText("{0} if ({0} < {1}) | ({0} != {0}) else {1}"),
        "logical_not": NumberText("not {0}"),
        "logical_and": NumberText("bool({0}) & bool({1})"),
        "logical_or": NumberText("bool({0}) | bool({1})"),
        "logical_xor": NumberText("bool({0}) ^ bool({1})"),
        "invert": NumberText("not {0}"),
        "stop_gradient": NumberText("{0}"),
        "named": NumberText("{0}"),
        "relative_gap": NumberText("({1} - {0}) / {1}"),
        "student_weight": NumberText("({0} + 1.0) / ({0} + {1})"),
        "pseudo_huber_pull": NumberText("{1} / {number}(np.hypot({1} / {0}, 1.0))"),
    },
)
HELPERS = (  # functions that take numbers, too
    "beta_left",
    "binom_fall",
    "digamma_rise",
    "gamma_left",
    "log_beta_density",
    "log_betainc",
    "log_betaincc",
    "log_excess",
    "log_gamma_density",
    "log_gammainc",
    "log_gammaincc",
    "log_ratio",
    "log_stdtr",
    "log_student_density",
    "mirrored_rise",
    "pseudo_huber_by_width",
    "student_rate",
    "zeta",
)
REGISTRY.describe("numbers", {name: NumberText(f"{{number}}({REGISTRY[name].numpy.code})") for name in HELPERS})


@cache
def rounds_alike(name: str) -> bool:
    """Whether a function of ``math`` gives NumPy's bits on this machine.

    NumPy has its sine and cosine either from the C library, as Python does, or its own, which differ often.
    """
    python, numpys = getattr(math, name), getattr(np, name)
    places = np.tan(np.linspace(-1.57, 1.57, PROBES)).tolist()
    return all(python(x) == numpys(x) for x in places)


def text_of(node: Node) -> str:
    """The source of an operation, with places for its operands; empty if there is none."""
    prim, of_bools = node.prim, node.out.aval.dtype == bool
    if of_bools and prim.name in OF_BOOLS:
        return OF_BOOLS[prim.name]
    if prim.name in OPERATORS:
        op = prim.numpy.op
        return op if isinstance(op, str) else op(node)
    own: NumberText | None = prim.texts.get("numbers")
    if own is not None and (not own.function or rounds_alike(own.function)):
        return own.number
    result = "bool" if of_bools else "{number}"
    return f"{result}({prim.numpy.code})" if prim.numpy.ufunc and isinstance(prim.numpy.code, str) else ""
