"""Random calls of NumPy: functions, methods, ufuncs and their methods, with options drawn from their signatures."""

# ruff: noqa: E501, SIM905 - a row of a table stands on one line, and long lists of names are texts

from __future__ import annotations

import inspect
import random
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.fuzz.operands import BOOLS, COMMON, DTYPES, FLOATS, INTS, SCOPE, SHAPES, Operand, draw_operand

Shape = tuple[int, ...]
REAL = (*INTS, *FLOATS)
PLACES = ("int64", "int64", "int64", "int32", "uint8")

# Names of NumPy that are not called: types, files, text, settings, memory, dates, and what is not deterministic.
LEFT_OUT = set(
    """
    array2string array_repr array_str asmatrix base_repr binary_repr bmat busday_count busday_offset
    datetime_as_string datetime_data einsum_path format_float_positional format_float_scientific from_dlpack
    frombuffer fromfile fromregex fromstring frompyfunc genfromtxt get_include get_printoptions getbufsize
    geterr geterrcall info is_busday isdtype isnat issubdtype load loadtxt mintypecode nested_iters printoptions
    promote_types save savetxt savez savez_compressed set_printoptions setbufsize seterr seterrcall show_config
    show_runtime test typename shares_memory may_share_memory isfortran vectorize empty empty_like mask_indices
    row_stack fromiter fromfunction apply_over_axes min_scalar_type can_cast result_type common_type
    broadcast_shapes kaiser packbits unpackbits put place putmask copyto fill_diagonal put_along_axis
    histogram2d histogramdd bartlett blackman hamming hanning fftfreq rfftfreq identity tri
""".split()
)
METHODS_LEFT_OUT = set(
    """
    fill partition put sort byteswap dump dumps getfield resize setfield setflags tobytes tofile to_device view
    item tolist
""".split()
)


@dataclass(frozen=True)
class Call:
    """Lines of Python over operands, the last of which is the result; ``t0`` and so on are traced, ``g0`` captured."""

    seed: int
    lines: tuple[str, ...]
    operands: dict[str, Operand]

    def __str__(self) -> str:
        return "; ".join(self.lines)

    def names(self, role: str) -> list[str]:
        return [name for name, operand in self.operands.items() if operand.role == role]

    def values(self, which: int, role: str = "traced") -> list[Any]:
        return [self.operands[name].value(which) for name in self.names(role)]

    def program(self) -> str:
        """A program that repeats the call, plainly and compiled, with the first and the second operands."""
        traced = ", ".join(self.names("traced"))
        setting = [f"{n} = {self.operands[n].texts[0]}" for n in self.names("captured")]
        head = ["import numpy as np, retrograd as rg, scipy, math", "from numpy import nan, inf", *setting]
        body = [f"def f({traced}):", *(f"    {line}" for line in self.lines[:-1]), f"    return {self.lines[-1]}"]
        tail = ["g = rg.jit(f)"]
        for which in range(2):
            args = ", ".join(self.operands[n].texts[which] for n in self.names("traced"))
            moved = [f"{n} = {self.operands[n].texts[1]}" for n in self.names("captured")] if which else []
            tail += [*moved, f"args = lambda: ({args}{',' if args else ''})", "print(repr(f(*args())))"]
            tail += ["with rg.config(exact=True): print(repr(g(*args())))"]
        return "\n".join([*head, *body, *tail])


class Draft:
    """A call under construction: its operands, and the shape that they are drawn around."""

    def __init__(self, rng: random.Random, shape: Shape | None = None, special: float | None = None) -> None:
        self.rng = rng
        self.operands: dict[str, Operand] = {}
        self.lines: list[str] = []
        self.shape = rng.choice(SHAPES) if shape is None else shape
        self.special = special

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def of(self, *texts: str) -> str:
        return self.rng.choice(texts)

    def number(self) -> str:
        return self.of("0.5", "-1.25", "2", "0", "np.float32(0.5)", "1.5", "-3", "True", "1j")

    def array(
        self,
        shape: Shape | None = None,
        dtypes: tuple[str, ...] = (),
        *,
        role: str = "",
        special: float | None = None,
        array: bool = False,
    ) -> str:
        """The name, or the literal, of a new operand of the draft's shape or of another one."""
        shape = self.shape if shape is None else shape
        special = self.special if special is None else special
        operand = draw_operand(self.rng, shape, dtypes, role=role, special=special, array=array)
        if not self.operands and not role:
            operand = Operand(operand.texts, "traced", operand.layout)  # at least one is
        if operand.role == "literal":
            return operand.texts[0]
        name = f"{'t' if operand.role == 'traced' else 'g'}{len(self.operands)}"
        self.operands[name] = operand
        return name

    def near(self) -> Shape:
        """A shape that mostly broadcasts with the draft's."""
        coin, shape = self.rng.random(), self.shape
        if coin < 0.5:
            return shape
        if coin < 0.65:
            return ()
        if coin < 0.8:
            return tuple(n if self.rng.random() < 0.6 else 1 for n in shape)
        return shape[1:] if coin < 0.92 else self.rng.choice(SHAPES)

    def axis(self) -> str:
        if self.rng.random() < 0.05:
            return str(self.ndim)
        return str(self.rng.randint(-max(self.ndim, 1), max(self.ndim - 1, 0)))

    def axes(self) -> str:
        """None, an axis, or several."""
        coin = self.rng.random()
        if coin < 0.25:
            return "None"
        if coin < 0.75:
            return self.axis()
        return str(tuple(self.rng.sample(range(self.ndim), self.rng.randint(0, self.ndim))))

    def places(self, n: int) -> str:
        """Indices into an axis of that length: a literal, or an operand."""
        count = self.rng.randint(0, 3)
        if self.rng.random() < 0.5:
            return str([self.rng.randint(-n, max(n - 1, 0)) for _ in range(count)])
        return self.array((count,), PLACES, special=0.0)

    def order(self) -> str:
        return self.of("'C'", "'F'", "'A'", "'K'")

    def dtype(self) -> str:
        return f"np.{self.rng.choice(COMMON if self.rng.random() < 0.6 else DTYPES)}"


Drawer = Callable[[Draft], str]


def _weights(d: Draft) -> str:
    return d.array((d.shape[-1],) if d.ndim and d.rng.random() < 0.5 else None, ("float64", "float32", "int64"))


# How options and operands are drawn, by their names in signatures.
PARAMETERS: dict[str, Drawer] = {
    **dict.fromkeys(
        [
            "a",
            "x",
            "arr",
            "m",
            "z",
            "v",
            "ary",
            "array",
            "x1",
            "object",
            "f",
            "filt",
            "val",
            "element",
            "data",
            "prototype",
            "ar",
            "A",
            "u",
            "d",
            "y",
        ],
        lambda d: d.array(),
    ),
    **dict.fromkeys(["b", "x2", "a2", "ar2", "test_elements", "other", "values", "vals"], lambda d: d.array(d.near())),
    **dict.fromkeys(["a1", "ar1"], lambda d: d.array()),
    **dict.fromkeys(
        ["tup", "arrays", "arys"], lambda d: f"[{', '.join(d.array(d.near()) for _ in range(d.rng.randint(1, 3)))}]"
    ),
    **dict.fromkeys(["condition", "mask"], lambda d: d.array(d.near(), BOOLS + BOOLS + ("int64", "float64"))),
    **dict.fromkeys(["indices", "ind", "obj"], lambda d: d.of(d.places(d.shape[0] if d.ndim else 1), "0", "-1")),
    **dict.fromkeys(["p", "seq_of_zeros"], lambda d: d.array((d.rng.randint(0, 4),))),
    "axis": Draft.axes,
    "axes": lambda d: d.of("None", str(tuple(d.rng.sample(range(d.ndim), d.ndim))), d.axis()),
    **dict.fromkeys(["axis1", "axis2", "axisa", "axisb", "axisc", "source", "destination", "start"], Draft.axis),
    "dtype": Draft.dtype,
    **dict.fromkeys(
        [
            "keepdims",
            "rowvar",
            "bias",
            "returned",
            "assume_unique",
            "invert",
            "return_index",
            "return_inverse",
            "return_counts",
            "sorted",
            "increasing",
            "sparse",
            "compute_uv",
            "full_matrices",
            "hermitian",
            "upper",
            "deg",
            "equal_nan",
            "stable",
            "copy",
            "endpoint",
            "retstep",
            "density",
            "include_initial",
            "overwrite_input",
            "right",
            "optimize",
            "wrap",
            "return_indices",
            "full",
        ],
        lambda d: d.of("True", "False"),
    ),
    "subok": lambda d: d.of("True", "False"),
    "where": lambda d: d.array(d.near(), BOOLS, special=0.0),
    "initial": lambda d: d.of(d.number(), d.array(())),
    "order": Draft.order,
    "casting": lambda d: d.of("'safe'", "'same_kind'", "'unsafe'", "'no'", "'equiv'"),
    "kind": lambda d: d.of("None", "'stable'", "'quicksort'", "'heapsort'"),
    "side": lambda d: d.of("'left'", "'right'"),
    "method": lambda d: d.of(
        "'linear'",
        "'lower'",
        "'higher'",
        "'nearest'",
        "'midpoint'",
        "'hazen'",
        "'weibull'",
        "'inverted_cdf'",
        "'median_unbiased'",
        "'normal_unbiased'",
        "'averaged_inverted_cdf'",
        "'closest_observation'",
        "'interpolated_inverted_cdf'",
    ),
    "mode": lambda d: d.of(
        "'full'", "'same'", "'valid'", "'raise'", "'wrap'", "'clip'", "'reduced'", "'r'", "'complete'"
    ),
    "weights": _weights,
    **dict.fromkeys(["fweights"], lambda d: d.array((d.shape[-1],) if d.ndim else (), ("int64",), special=0.0)),
    **dict.fromkeys(["aweights", "w"], lambda d: d.array((d.shape[-1],) if d.ndim else (), ("float64",), special=0.0)),
    **dict.fromkeys(["ddof", "correction"], lambda d: d.of("0", "1", "2", "0.5", "-1")),
    "mean": lambda d: d.array(tuple(1 for _ in d.shape)),
    "bins": lambda d: d.of("3", "1", "[-1.0, 0.0, 2.0]", "np.array([0.5, 1.5])", d.array((3,), FLOATS, special=0.0)),
    "range": lambda d: d.of("(-1.0, 1.0)", "(0, 3)", "None"),
    **dict.fromkeys(["rtol", "atol", "tol", "rcond"], lambda d: d.of("0.1", "1e-3", "1", "None")),
    "norm": lambda d: d.of("'ortho'", "'forward'", "'backward'", "None"),
    "s": lambda d: d.of("None", str(tuple(d.rng.randint(1, 4) for _ in range(min(d.ndim, 2))))),
    **dict.fromkeys(["n"], lambda d: d.of("0", "1", "2", "3", "5")),
    **dict.fromkeys(
        [
            "nan",
            "posinf",
            "neginf",
            "fill_value",
            "default",
            "left",
            "period",
            "discont",
            "to_begin",
            "to_end",
            "prepend",
            "append",
        ],
        lambda d: d.of(d.number(), d.array(()), "[1.0, 2.5]"),
    ),
    "dx": lambda d: d.of("0.5", "2", d.array((), FLOATS)),
    "edge_order": lambda d: d.of("1", "2"),
    **dict.fromkeys(["offset", "k", "shift"], lambda d: d.of("0", "1", "-1", "2", "5")),
    "decimals": lambda d: d.of("0", "1", "-1", "2"),
    "minlength": lambda d: d.of("0", "6"),
    **dict.fromkeys(["N", "M"], lambda d: d.of("2", "3", "0", "None")),
    "indexing": lambda d: d.of("'xy'", "'ij'"),
    "UPLO": lambda d: d.of("'L'", "'U'"),
    "ord": lambda d: d.of("None", "1", "2", "-1", "-2", "inf", "-inf", "0", "'fro'", "'nuc'", "3", "0.5"),
    "q": lambda d: d.of("0.5", "0", "1", "[0.25, 0.5]", "0.3", "np.array([[0.1], [0.9]])", d.array((), FLOATS)),
    "kth": lambda d: d.of("0", "1", "-1", "[0, 1]"),
    "repeats": lambda d: d.of(
        "2", "0", "[1, 2, 0]", "1", d.array((d.shape[-1] if d.ndim else 1,), ("uint8",), special=0.0)
    ),
    **dict.fromkeys(["shape", "new_shape", "newshape"], lambda d: d.of(*shapes_for(d.shape))),
    "indices_or_sections": lambda d: d.of("1", "2", "3", "[1]", "[1, 2]", "[0, 5]"),
    "bitorder": lambda d: d.of("'big'"),
    "reps": lambda d: d.of("2", "(2, 1)", "0", "(1, 2, 2)", "1"),
    "pad_width": lambda d: d.of("1", "2", "(1, 2)", "0"),
    "trim": lambda d: d.of("'fb'", "'f'", "'b'"),
    "ndmin": lambda d: d.of("0", "2", "3"),
    "requirements": lambda d: d.of("None", "'C'", "'F'"),
    "num": lambda d: d.of("5", "1", "0", "2"),
    "base": lambda d: d.of("10.0", "2", d.array((), FLOATS)),
    "sorter": lambda d: "None",
    "choices": lambda d: f"[{d.array(d.near())}, {d.array(d.near())}, {d.array(())}]",
    **dict.fromkeys(["min", "max", "a_min", "a_max"], lambda d: d.of(d.number(), d.array(d.near()), "None")),
    "value": lambda d: d.of(d.number(), d.array(())),
}


def shapes_for(shape: Shape) -> list[str]:
    size = int(np.prod(shape))
    return [str(shape[::-1]), "-1", "(-1,)", str(size), f"(1, {size})", "(-1, 1)", "()", "(2, -1)"]


def _p(n: int) -> Drawer:
    return lambda d: d.array((n,))


# Parameters of single functions, where their names mean something else.
OF_FUNCTION: dict[str, dict[str, Drawer]] = {
    "np.percentile": {
        "q": lambda d: d.of("50", "0", "100.0", "[25, 75]", "30.5", d.array((), ("float64",), special=0.0))
    },
    "np.nanpercentile": {"q": lambda d: d.of("50", "[25, 75]", "30.5")},
    "np.interp": {"xp": lambda d: d.of("[0.0, 0.5, 1.0]", "[-1, 0, 2]", d.array((3,), REAL)), "fp": _p(3)},
    "np.searchsorted": {"a": lambda d: d.of("[-1.0, 0.0, 1.0]", d.array((3,))), "v": lambda d: d.array()},
    "np.digitize": {"bins": lambda d: d.of("[-1.0, 0.0, 1.0]", "[2, 1]", d.array((3,)))},
    "np.bincount": {"x": lambda d: d.array((4,), ("uint8", "int64"), special=0.0), "weights": lambda d: d.array((4,))},
    "np.polyval": {"p": lambda d: d.array((d.rng.randint(0, 4),)), "x": lambda d: d.array()},
    "np.polyfit": {"x": _p(4), "y": _p(4), "deg": lambda d: d.of("0", "1", "2")},
    "np.polyint": {"m": lambda d: d.of("0", "1", "2"), "k": lambda d: d.of("None", "1.5", d.array(()))},
    "np.polyder": {"m": lambda d: d.of("0", "1", "2", "5")},
    "np.polydiv": {"u": _p(4), "v": lambda d: d.array((d.rng.randint(1, 3),))},
    **{f"np.poly{n}": {"a1": _p(3), "a2": _p(2)} for n in ("add", "mul", "sub")},
    "np.vander": {"x": _p(3), "N": lambda d: d.of("None", "2", "0")},
    "np.dot": {"b": lambda d: d.array(_right(d))},
    "np.matmul": {"x2": lambda d: d.array(_right(d))},
    "np.linalg.matmul": {"x2": lambda d: d.array(_right(d))},
    "np.tensordot": {"axes": lambda d: d.of("1", "0", "([0], [0])", "2", "(-1, 0)")},
    "np.linalg.tensordot": {"axes": lambda d: d.of("1", "0", "([0], [0])", "2")},
    "np.linalg.solve": {"b": lambda d: d.array(d.rng.choice((d.shape[:-1], d.shape)))},
    "np.linalg.matrix_power": {"n": lambda d: d.of("0", "1", "2", "3", "-1")},
    "np.linalg.cond": {"p": lambda d: d.of("None", "1", "2", "inf", "'fro'", "-2")},
    "np.gradient": {"varargs": lambda d: d.of("", "", "0.5", "2")},
    "np.diff": {"n": lambda d: d.of("0", "1", "2", "4", "-1")},
    "np.expand_dims": {"axis": lambda d: d.of("0", "-1", "(0, 1)", "1", "5")},
    "np.squeeze": {"axis": lambda d: d.of("None", "0", "-1", "()", "1")},
    "np.take_along_axis": {"indices": lambda d: d.array(None, PLACES, special=0.0), "axis": Draft.axis},
    "np.insert": {"axis": lambda d: d.of("None", "0", "-1")},
    "np.delete": {"axis": lambda d: d.of("None", "0", "-1")},
    "np.trim_zeros": {"filt": _p(4)},
    "np.linspace": {
        "start": lambda d: d.array(d.near()),
        "stop": lambda d: d.array(d.near()),
        "axis": lambda d: d.of("0", "-1"),
    },
    "np.logspace": {
        "start": lambda d: d.array(d.near()),
        "stop": lambda d: d.array(d.near()),
        "axis": lambda d: d.of("0", "-1"),
    },
    "np.geomspace": {
        "start": lambda d: d.array(d.near()),
        "stop": lambda d: d.array(d.near()),
        "axis": lambda d: d.of("0", "-1"),
    },
    "np.full": {"fill_value": lambda d: d.array(d.near()), "shape": lambda d: str(d.shape)},
    "np.array": {"copy": lambda d: d.of("True", "None")},
    "np.ravel_multi_index": {
        "multi_index": lambda d: f"({d.array((2,), PLACES, special=0.0)}, [0, 1])",
        "dims": lambda d: d.of("(6, 3)", "(2, 2)"),
    },
    "np.unravel_index": {
        "indices": lambda d: d.array((2,), PLACES, special=0.0),
        "shape": lambda d: d.of("(6, 3)", "(2, 2)"),
    },
    "np.resize": {"new_shape": lambda d: d.of("5", "(2, 4)", "()", "0", "(2, 0)")},
    "np.broadcast_to": {"shape": lambda d: d.of(str((2, *d.shape)), str(d.shape), "3", "(2, 3)")},
    "np.rollaxis": {"axis": Draft.axis},
    "np.unstack": {"axis": Draft.axis},
    "np.roll": {"shift": lambda d: d.of("1", "-2", "(1, 2)", "0", "7")},
    "np.cross": {
        "a": lambda d: d.array((*d.shape[:-1], 3)),
        "b": lambda d: d.array((*d.shape[:-1], 3)),
        "axis": lambda d: d.of("-1", "None"),
    },
    "np.round": {},
    "np.lexsort": {"keys": lambda d: f"({d.array()}, {d.array()})"},
    "np.eye": {"N": lambda d: d.of("2", "3"), "k": lambda d: d.of("0", "1")},
    "np.indices": {"dimensions": lambda d: d.of("(2, 3)", "(2,)")},
    **{f"np.{name}_indices": {"n": lambda d: d.of("2", "3"), "m": lambda d: "2"} for name in ("tril", "triu")},
    "np.diag_indices": {"n": lambda d: "2", "ndim": lambda d: "2"},
    "np.linalg.tensorinv": {"ind": lambda d: d.of("1", "2")},
    "np.linalg.multi_dot": {"arrays": lambda d: f"[{d.array((2, 3))}, {d.array((3, 2))}, {d.array((2, 3))}]"},
}
SQUARE = {
    f"np.linalg.{name}" for name in "cholesky cond det eig eigh eigvals eigvalsh inv matrix_power solve slogdet".split()
}


def _right(d: Draft) -> Shape:
    """The shape of the right factor of a matrix product."""
    if not d.ndim:
        return d.near()
    return d.rng.choice(((d.shape[-1],), (d.shape[-1], 2), d.shape[::-1]))


# Calls that signatures do not describe: {a} an operand, {b} one that broadcasts, {c} a mask, {i} places, {n} a number,
# {x} an axis, {s} and {r} operands without axes, {t} and {u} vectors of three entries, {m} and {w} square matrices.
FORMS = [
    *(f"{{a}} {op} {{b}}" for op in ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">="]),
    *(f"{{s}} {op} {{r}}" for op in ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<", "<=", "==", "!="]),
    "-{a}", "+{a}", "~{a}", "abs({a})", "divmod({a}, {b})", "divmod({s}, {r})", "round({a}, 1)", "round({s})",
    "{a}[0]", "{a}[-1]", "{a}[1:]", "{a}[::-1]", "{a}[::2]", "{a}[None]", "{a}[..., None]", "{a}[...]", "{a}[()]",
    "{a}[{i}]", "{a}[..., {i}]", "{a}[{i}, None]", "{a}[{c}]", "{a}[5:2]", "{a}[:, 0]", "{a}[{i}, 0]", "{a}[[0], ...]",
    "{a}[:, {i}]", "{a}[np.newaxis, {i}]", "{a}.T", "{a}.real", "{a}.imag", "{a}.mT", "{a}.flat[{i}]", "{a}.flat[0]",
    "{a}.item()", "{a}.item(0)", "{a}.tolist()", "{a}.dtype.name", "{a}.shape", "len({a})", "{a}.size", "{a}.ndim",
    "list({a})", "tuple({a})", "sum({a})", "max({a})", "min({a})", "float({s})", "int({s})", "complex({s})", "bool({s})",
    "sorted({t})", "[v * 2 for v in {t}]", "max({s}, {r})", "min({s}, {r}, 0.5)", "abs({s})", "pow({s}, 2)",
    "math.sin({s})", "math.exp({s})", "math.sqrt({s})", "math.floor({s})", "math.ceil({s})", "math.hypot({s}, {r})",
    "math.atan2({s}, {r})", "math.log({s})", "math.copysign({s}, {r})", "math.fabs({s})", "math.isnan({s})",
    "math.fmod({s}, {r})", "math.pow({s}, {r})", "math.trunc({s})", "math.log1p({s})", "math.isclose({s}, {r})",
    "math.log({s}, 2)", "math.fsum([{s}, {r}])", "math.prod([{s}, {r}])", "math.dist({t}, {u})", "math.degrees({s})",
    "np.where({c}, {a}, {b})", "np.where({c})", "np.select([{c}, {c}], [{a}, {b}], {n})",
    "np.piecewise({a}, [{a} > 0, {a} <= 0], [np.sin, {n}])", "np.array([{a}, {a}])", "np.array([{s}, {r}, {n}])",
    "np.array([[{s}, {r}], [{n}, 0]])", "np.asarray(({s}, {r}))", "np.stack([{s}, {r}])", "np.float64({s})",
    "np.float32({s})", "np.int64({s})", "np.complex128({s})", "np.bool_({s})", "np.float16({s})", "np.uint8({s})",
    "np.block([[{m}, {w}], [{w}, {m}]])", "np.pad({a}, 1, mode='edge')", "np.pad({a}, 1, mode='reflect')",
    "np.pad({a}, 1, mode='wrap')", "np.pad({a}, (1, 2), constant_values={n})", "np.pad({a}, 1, mode='symmetric')",
    "np.pad({a}, 1, mode='linear_ramp', end_values={n})", "np.pad({a}, 1, mode='mean')", "np.pad({a}, 2, mode='maximum')",
    "np.einsum('i,i', {t}, {u})", "np.einsum('i,j->ij', {t}, {u})", "np.einsum('ij,jk', {m}, {w})",
    "np.einsum('ii', {m})", "np.einsum('ii->i', {m})", "np.einsum('ij->ji', {m})", "np.einsum('...i->...', {a})",
    "np.einsum('...i,...i->...', {a}, {a})", "np.einsum('ij->', {m})", "np.einsum('ij,j->i', {m}, {t})",
    "np.apply_along_axis(np.sum, {x}, {a})", "np.apply_along_axis(np.cumsum, {x}, {a})",
    "np.meshgrid({t}, {u})", "np.meshgrid({t}, {u}, indexing='ij', sparse=True)", "np.ix_({t}, {u})", "np.r_[{t}, {n}, {u}]",
    "np.c_[{t}, {u}]", "np.s_[1:2]", "np.broadcast_arrays({a}, {b})", "np.vecdot({t}, {u})", "np.matvec({m}, {t})",
    "np.vecmat({t}, {m})", "np.modf({a})", "np.frexp({a})", "np.divmod({a}, {b})", "np.ldexp({a}, 2)",
    "np.linalg.lstsq({m}, {t})[0]", "np.linalg.norm({m}, 'fro')", "np.linalg.norm({m}, 2)", "np.linalg.norm({a}, axis={x})",
    "np.linalg.norm({a}, 1, axis={x})", "np.linalg.norm({a}, inf, axis={x})", "np.linalg.norm({a}, 0, axis={x})",
    "np.linalg.norm({a}, {s}, axis={x})", "np.linalg.matrix_norm({m}, ord='nuc')",
    "np.arange({s})", "np.arange({s}, {r})", "np.arange({s}, {r}, 0.5)", "np.full((2, 2), {s})", "np.full_like({a}, {s})",
    "np.fromiter([{s}, {r}], float)", "np.nan_to_num({a}, nan={s})", "np.clip({a}, {s}, {r})", "np.clip({a}, {b}, {b})",
    "np.cov({t}, {u})", "np.corrcoef({m})", "np.cov({m}, aweights={t})", "np.trapezoid({t}, {u})", "np.gradient({t}, {u})",
    "np.isclose({a}, {b})", "np.allclose({a}, {b})", "np.array_equal({a}, {b})", "np.unwrap({a}, axis={x})",
    "{a} in ({n}, 1)", "{s} in {t}", "{a}.astype(int).astype(float)", "{a}.astype({d}, casting='same_kind')",
    "{a}.sum() + {n}", "{a}.mean({x}) * {b}", "({a} + {n}).max()", "np.sum({a} ** 2)", "{a} * 2 ** {n}", "1 / {a}",
    "{n} ** {a}", "{a} ** {n}", "{n} // {a}", "{n} % {a}", "{n} - {a}", "np.power({a}, {n})", "np.float_power({a}, {b})",
    "np.multiply.outer({t}, {u})", "np.nonzero({a})", "np.histogram({a}, 3)", "np.average({a}, weights=np.abs({a}) + 1)",
    "np.bincount({i})", "np.trim_zeros({t})", "np.partition({t}, 1)", "not {s}", "{s} and {r}", "{s} or {r}",
    "{s} if {r} else {n}", "isinstance({a}, np.ndarray)", "np.ndim({a})", "np.iscomplexobj({a})", "np.isscalar({s})",
    "{a}.conj().T @ {a}", "{a}.reshape({a}.shape[::-1])", "{a}.swapaxes(0, -1)", "{a}.transpose()", "np.diag({t})[1:]",
]  # fmt: skip
# Statements on a copy ``o`` of an operand.
WRITES = [
    "o[0] = {n}", "o[...] = {b}", "o[::2] = {s}", "o[{i}] = {s}", "o[{c}] = {s}", "o += {b}", "o -= {b}", "o *= {b}",
    "o /= {b}", "o //= {b}", "o **= {n}", "o %= {b}", "o &= {b}", "o |= {b}", "o ^= {b}", "o <<= 1", "o >>= 1",
    "o[1:] += o[:-1]", "o[{i}] += {s}", "o.fill({s})", "o.sort()", "o.sort(axis={x})", "o.partition(0)", "o.put({i}, {s})",
    "np.put(o, {i}, {t})", "np.place(o, {c}, {t})", "np.putmask(o, {c}, {t})", "np.copyto(o, {b})",
    "np.copyto(o, {b}, where={c})", "np.copyto(o, {b}, casting='unsafe')", "np.fill_diagonal(o, {s})",
    "np.fill_diagonal(o, {t}, wrap=True)", "np.put_along_axis(o, np.argsort({a}, axis=0), {s}, 0)",
    "np.add.at(o, {i}, {s})", "np.multiply.at(o, {i}, {s})", "np.subtract.at(o, {i}, {t})", "np.maximum.at(o, {i}, {s})",
    "np.negative.at(o, {i})", "o.flat = {b}", "o.flat[{i}] = {s}", "o.real = {b}", "o.imag = {s}", "o.T[0] = {s}",
    "o[..., -1] *= {s}", "o[None][0] = {s}", "o.shape = (-1,)", "o[()] = {s}", "o[[0, 0]] = {s}", "o[-1], o[0] = o[0], o[-1]",
    "np.sin(o, out=o)", "np.add(o, {b}, out=o)", "np.clip(o, {s}, {r}, out=o)",
    "np.round(o, 1, out=o)", "np.multiply(o, {b}, out=o, where={c})", "np.add(o, {b}, out=o, casting='unsafe')",
    "np.negative(o, out=o[::-1])", "o[:, 0] = {s}", "o.reshape(-1)[0] = {s}", "np.nan_to_num(o, copy=False)",
]  # fmt: skip


@cache
def functions() -> dict[str, Any]:
    """NumPy's functions by the names under which users call them, in all their modules; no ufuncs and no classes."""
    found = {}
    for prefix, module in (("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft)):
        for name in sorted(vars(module)):
            member = getattr(module, name)
            if name.startswith("_") or name in LEFT_OUT or not callable(member) or isinstance(member, (type, np.ufunc)):
                continue
            found[f"{prefix}.{name}"] = member
    return found


@cache
def ufuncs() -> list[str]:
    return [name for name in sorted(vars(np)) if isinstance(getattr(np, name), np.ufunc) and name not in LEFT_OUT]


@cache
def methods() -> list[str]:
    return [
        name
        for name in sorted(vars(np.ndarray))
        if not name.startswith("_") and name not in METHODS_LEFT_OUT and callable(getattr(np.ndarray, name))
    ]


def arguments(d: Draft, name: str, parameters: list[inspect.Parameter]) -> list[str] | None:
    """Arguments as text; None if a required one cannot be drawn."""
    texts, named = [], False
    special = OF_FUNCTION.get(name, {})
    for parameter in parameters:
        draw = special.get(parameter.name) or PARAMETERS.get(parameter.name)
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            if parameter.name in special:
                texts += [text for text in [special[parameter.name](d)] if text]
            else:
                texts += [d.array(d.near()) for _ in range(d.rng.randint(1, 2))]
            continue
        required = parameter.default is parameter.empty
        if not required and (draw is None or d.rng.random() < 0.72):
            named = True
            continue
        if draw is None:
            return None
        text = draw(d)
        if parameter.kind is parameter.KEYWORD_ONLY or named or (not required and d.rng.random() < 0.5):
            named = True
            texts.append(f"{parameter.name}={text}")
        else:
            texts.append(text)
    return texts


def _of_function(d: Draft) -> str | None:
    name = d.rng.choice(list(functions()))
    if name in SQUARE:
        d.shape = d.rng.choice(((3, 3), (2, 2), (1, 1), (2, 2, 2), (0, 0), (2, 3)))
    if "fft" in name and 0 in d.shape:
        d.shape = (3,)  # where there are no points, NumPy gives what was in memory
    if "linalg" in name or name in ("np.polyfit", "np.roots"):
        d.special = 0.0  # LAPACK may never end on nan and infinities
    function = functions()[name]
    texts = arguments(d, name, list(inspect.signature(function).parameters.values()))
    return None if texts is None else f"{name}({', '.join(texts)})"


def _of_method(d: Draft) -> str | None:
    name = d.rng.choice(methods())
    parameters = list(inspect.signature(getattr(np.ndarray, name)).parameters.values())[1:]
    operand = d.array(array=d.rng.random() < 0.9)
    if name in ("reshape", "transpose"):
        chosen = d.of(*shapes_for(d.shape)) if name == "reshape" else d.of("", "None", str(tuple(range(d.ndim))[::-1]))
        return f"{operand}.{name}({chosen})"
    texts = arguments(d, f"ndarray.{name}", parameters)
    if texts is None:
        return None
    if name in ("sum", "prod", "mean", "std", "var", "max", "min") and d.rng.random() < 0.4:
        option = d.of("keepdims", "where", "initial")
        texts.append(f"{option}={PARAMETERS[option](d)}")
    return f"{operand if operand[0].isalpha() else f'({operand})'}.{name}({', '.join(texts)})"


def _of_ufunc(d: Draft) -> str | None:
    name = d.rng.choice(ufuncs())
    ufunc = getattr(np, name)
    texts = [d.array()] + [d.array(_right(d) if ufunc.signature else d.near()) for _ in range(ufunc.nin - 1)]
    if d.rng.random() < 0.2:
        option = d.of("dtype", "casting", "order", "subok")
        texts.append(f"{option}={PARAMETERS[option](d)}")
    return f"np.{name}({', '.join(texts)})"


def _of_ufunc_method(d: Draft) -> str | None:
    name = d.rng.choice([n for n in ufuncs() if getattr(np, n).nin == 2 and not getattr(np, n).signature])
    method = d.of("reduce", "reduce", "accumulate", "outer", "reduceat", "at")
    if method == "outer":
        return f"np.{name}.outer({d.array()}, {d.array(d.near())})"
    if method == "at":
        d.lines.append(f"o = np.copy({d.array()})")
        d.lines.append(f"np.{name}.at(o, {d.places(d.shape[0] if d.ndim else 1)}, {d.array(())})")
        return "o"
    operand = d.array()
    if method == "accumulate":
        return f"np.{name}.accumulate({operand}{d.of('', f', axis={d.axis()}', f', dtype={d.dtype()}')})"
    if method == "reduceat":
        axis = d.of("", f", axis={d.axis()}")
        return f"np.{name}.reduceat({operand}, {d.of('[0]', '[0, 1]', '[1, 0]', d.places(d.shape[0] if d.ndim else 1))}{axis})"
    options = [d.of("", f", axis={d.axes()}", f", dtype={d.dtype()}"), d.of("", ", keepdims=True")]
    if d.rng.random() < 0.2:
        options.append(f", where={PARAMETERS['where'](d)}")
    if d.rng.random() < 0.2:
        options.append(f", initial={d.of('None', d.number())}")
    return f"np.{name}.reduce({operand}{''.join(options)})"


def filled(d: Draft, form: str) -> str:
    drawers: dict[str, Drawer] = {
        "a": lambda d: d.array(array=True),
        "b": lambda d: d.array(d.near()),
        "c": lambda d: d.array(d.shape if d.rng.random() < 0.8 else d.near(), BOOLS, special=0.0),
        "i": lambda d: d.places(d.shape[0] if d.ndim else 1),
        "n": Draft.number,
        "x": Draft.axis,
        "s": lambda d: d.array(()),
        "r": lambda d: d.array(()),
        "t": lambda d: d.array((3,), special=0.0 if "linalg" in form else None),
        "u": _p(3),
        "m": lambda d: d.array((3, 3), special=0.0),
        "w": lambda d: d.array((3, 3), special=0.0),
        "d": Draft.dtype,
    }

    def fill(match: re.Match[str]) -> str:
        text = drawers[match[1]](d)
        return text if re.fullmatch(r"[\w.]+|\[.*\]|np\.\w+\(.*\)", text) else f"({text})"

    return re.sub(r"\{([a-z])\}", fill, form)


def _of_form(d: Draft) -> str:
    return filled(d, d.rng.choice(FORMS))


def _of_write(d: Draft) -> str:
    d.lines.append(f"o = {d.array(array=True)}.copy()")
    d.lines.append(filled(d, d.rng.choice(WRITES)))
    return "o"


SOURCES = (
    [_of_function] * 6 + [_of_method] * 3 + [_of_ufunc] * 3 + [_of_ufunc_method] * 2 + [_of_form] * 5 + [_of_write] * 2
)


def draw_call(seed: int, sources: Sequence[Callable[[Draft], str | None]] = SOURCES, smooth: bool = False) -> Call:
    """The call of that number; a smooth one has no nan and no infinities among its operands."""
    rng = random.Random(seed)
    while True:
        d = Draft(rng, special=0.0 if smooth else None)
        code = rng.choice(sources)(d)
        traced = [name for name, operand in d.operands.items() if operand.role == "traced"]
        lines = [*d.lines, code or ""]
        if code is None or not any(re.search(rf"\b{name}\b", line) for name in traced for line in lines):
            continue
        call = Call(seed, (*d.lines, code), d.operands)
        if (
            " out" not in code
            and rng.random() < 0.08
            and code.startswith("np.")
            and code.endswith(")")
            and _takes_out(code)
        ):
            call = _with_out(rng, call)
        return call


def _takes_out(line: str) -> bool:
    name = line.partition("(")[0].removeprefix("np.")
    function = functions().get(f"np.{name}")
    return "." in name or function is None or "out" in inspect.signature(function).parameters


def _with_out(rng: random.Random, call: Call) -> Call:
    """The call with ``out=`` an array that fits the plain result, mostly."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = plain(call, 0)
    except Exception:  # noqa: BLE001 - the call is wrong without out=, too
        return call
    if not isinstance(made, (np.ndarray, np.generic)) or made.dtype.kind not in "biufc":
        return call
    dtype = made.dtype.name if rng.random() < 0.8 else rng.choice(DTYPES)
    shape = made.shape if rng.random() < 0.9 else (2, *made.shape)
    if "cum" in call.lines[-1] or "accumulate" in call.lines[-1]:
        return call  # NumPy itself crashes where the operand has no axes
    line = call.lines[-1]
    lines = (*call.lines[:-1], f"out = np.full({shape}, 1, np.{dtype})", f"{line[:-1]}, out=out)")
    return Call(call.seed, lines, call.operands)


def plain(call: Call, which: int) -> Any:
    """What NumPy gives."""
    scope = {**SCOPE, **{n: call.operands[n].value(which) for n in call.operands}}
    for line in call.lines[:-1]:
        exec(line, scope)
    return eval(call.lines[-1], scope)
