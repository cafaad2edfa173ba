"""The cost of operations: what they do by family, how many floating-point operations and bytes, and how long."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..ir.graph import Node
from ..ir.primitive import Primitive
from .machine import Speeds

PRODUCTS = (
    "add_within convolve convolve_nd cross dot dot_within lagged_products matmul outer_product sparse_product "
    "value_within vecdot write_within"
)
ALGEBRA = (
    "cholesky cholesky_by_lapack cofactors det eig eigh expm expm_frechet half_inverse half_inverse_by_lapack "
    "half_log_det inv inverse_form inverse_of_triangle logm logm_frechet lstsq lu_by_lapack lu_factor pinv pivot_order "
    "qr slogdet solve solve_banded solve_by_lu solve_krylov solve_positive solve_sylvester solve_triangular "
    "sparse_solve sqrtm svd"
)
REDUCTIONS = (
    "all any argmax argmin count cummax cummin cumprod cumsum exact_sum max median min nanargmax nanargmin nanmax "
    "nanmedian nanmin nanquantile normal_ratio prod quantile quantile_at run_max run_min run_sum sum"
)
INDEXING = (
    "add_along add_slice additem choose flatnonzero gather getitem into_part putmask scatter scatter_add set_imag "
    "set_real set_slice setitem slice_at subitem take_along stack_add"
)
SHAPES = "array concatenate copy diag empty owned permute reshape roll tril triu windows overlap_add broadcast cast"
SORTING = "argpartition argsort digitize lexsort partition searchsorted sort"
SPECIAL = (
    "bessel_i beta_left betainc_slope binom_fall binormal digamma_rise gamma_left gammainc_slope i0 lambertw "
    "log_beta_density log_betainc log_betaincc log_excess log_gamma_density log_gammainc log_gammaincc log_ratio "
    "log_stdtr log_student_density mirrored_drop mirrored_rise pseudo_huber_by_width pseudo_huber_pull relative_gap "
    "student_rate student_slope student_weight zeta zeta_drop"
)
RECURRENCES = "lfilter lfilter_from polynomial recurrence"
FAMILIES: dict[str, str] = {
    name: family
    for family, names in {
        "products": PRODUCTS,
        "linear algebra": ALGEBRA,
        "reductions": REDUCTIONS,
        "indexing": INDEXING,
        "shapes and copies": SHAPES,
        "sorting and searching": SORTING,
        "special functions": SPECIAL,
        "recurrences": RECURRENCES,
        "Fourier transforms": "fft irfft rfft",
    }.items()
    for name in names.split()
}
# Elementwise operations that a processor does in about one step; all others are a call of a function per element.
ARITHMETIC = (
    "abs add sub mul div neg conj maximum minimum fmax fmin square sqrt reciprocal where sign eq ne lt le gt ge clip",
    "logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor invert floor ceil trunc rint",
    "real imag annihilating_mul annihilating_div copysign signbit isfinite isnan isinf cast",
)
CHEAP = frozenset(name for names in ARITHMETIC for name in names.split())


def family(prim: Primitive) -> str:
    """The family of an operation, in words.

    >>> import retrograd as rg
    >>> from retrograd.ir.primitive import REGISTRY
    >>> [family(REGISTRY[name]) for name in ("sin", "matmul", "scan", "guard")]
    ['elementwise', 'products', 'loops, choices and calls', 'guards, draws and host calls']
    """
    if prim.structure is not None:
        return "loops, choices and calls"
    if prim.name in FAMILIES:
        return FAMILIES[prim.name]
    if prim.effect:
        return "guards, draws and host calls"
    if prim.name in ("const", "iota", "zero_stack", "absent", "step_numbers"):
        return "constants"
    if prim.alias is not None:
        return "shapes and copies"
    return "elementwise" if prim.numpy.ufunc or prim.numpy.op or prim.name in CHEAP else "other functions"


class Cost(NamedTuple):
    """Floating-point operations, bytes read and written, predicted seconds, and operations that run."""

    flops: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0
    runs: float = 0.0

    def plus(self, other: Cost, times: float = 1.0) -> Cost:
        """Both, the other one so many times."""
        return Cost(
            self.flops + times * other.flops,
            self.bytes + times * other.bytes,
            self.seconds + times * other.seconds,
            self.runs + times * other.runs,
        )


def cost(node: Node, machine: Speeds) -> Cost:
    """The cost of one run of a node without bodies; views and constants that are numbers cost nothing."""
    aval = node.outputs[0].aval if node.outputs else None
    if not node.inputs and (aval is None or aval.kind != "array"):
        return Cost()
    if node.prim.alias is not None:
        return Cost(0.0, 0.0, machine.call, 1.0)
    flops = _flops(node)
    moved = float(sum(v.aval.nbytes for v in (*node.inputs, *node.outputs) if v.aval.kind != "python"))
    kind = family(node.prim)
    if kind in ("products", "linear algebra"):
        work = flops / machine.product
    elif kind == "elementwise" and node.prim.name not in CHEAP:
        work = flops / machine.function
    elif kind in ("Fourier transforms", "sorting and searching", "special functions", "recurrences", "other functions"):
        work = flops / (machine.function * 4)
    else:
        work = 0.0
    return Cost(flops, moved, machine.call + max(work, moved / machine.bandwidth), 1.0)


def _flops(node: Node) -> float:
    name, kind = node.prim.name, family(node.prim)
    read = float(max((v.aval.size for v in node.inputs), default=0))
    made = float(sum(v.aval.size for v in node.outputs))
    if kind == "products":
        return _product(node, read, made)
    if kind == "linear algebra":
        first = node.inputs[0].aval
        n = float(first.shape[-1]) if first.shape else 1.0
        leading = ALGEBRAIC.get(name)
        return 2 * n * read if leading is None else leading(n, read, made)
    if kind in ("Fourier transforms", "sorting and searching"):
        n = max((v.aval.shape[-1] for v in (*node.inputs, *node.outputs) if v.aval.shape), default=1)
        each = math.log2(max(n, 2))
        return (5.0 if kind == "Fourier transforms" else 1.0) * each * max(read, made)
    if kind == "reductions":
        return read
    if name in ("additem", "subitem", "add_slice", "scatter_add", "add_along", "stack_add"):
        return float(node.inputs[1].aval.size) if len(node.inputs) > 1 else made
    return made if kind in ("elementwise", "recurrences", "other functions") else 0.0


def _product(node: Node, read: float, made: float) -> float:
    first = node.inputs[0].aval
    if node.prim.name in ("dot", "matmul"):
        return 2.0 * made * (first.shape[-1] if first.shape else 1)
    if node.prim.name.startswith("convolve"):
        return 2.0 * made * min(v.aval.size for v in node.inputs[:2])
    return 2.0 * max(read, made)


# Leading terms for square matrices of n rows: ``read`` elements come in and ``made`` go out.
ALGEBRAIC: dict[str, Callable[[float, float, float], float]] = {
    "cholesky": lambda n, read, made: n * read / 3,
    "cholesky_by_lapack": lambda n, read, made: n * read / 3,
    "half_log_det": lambda n, read, made: n * read / 3,
    "inverse_form": lambda n, read, made: n * read / 3 + n * n * made,
    "half_inverse": lambda n, read, made: n * read,
    "half_inverse_by_lapack": lambda n, read, made: 2 * n * read / 3,
    "inverse_of_triangle": lambda n, read, made: n * read / 3,
    "det": lambda n, read, made: 2 * n * read / 3,
    "slogdet": lambda n, read, made: 2 * n * read / 3,
    "lu_factor": lambda n, read, made: 2 * n * read / 3,
    "lu_by_lapack": lambda n, read, made: 2 * n * read / 3,
    "solve_by_lu": lambda n, read, made: 2 * n * made,
    "solve": lambda n, read, made: 2 * n * read / 3 + 2 * n * made,
    "solve_positive": lambda n, read, made: n * read / 3 + 2 * n * made,
    "solve_triangular": lambda n, read, made: n * made,
    "inv": lambda n, read, made: 2 * n * read,
    "qr": lambda n, read, made: 2 * n * read,
    "eigh": lambda n, read, made: 9 * n * read,
    "eig": lambda n, read, made: 25 * n * read,
    "svd": lambda n, read, made: 20 * n * read,
    "pinv": lambda n, read, made: 22 * n * read,
    "expm": lambda n, read, made: 20 * n * read,
    "sqrtm": lambda n, read, made: 25 * n * read,
}
