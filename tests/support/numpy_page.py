"""The page of the documentation that is made of the table of NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import ModuleType

import numpy as np

from .table import Row
from .table_rows import ROWS

HEAD = """# The table of NumPy

Every function of NumPy, `numpy.linalg` and `numpy.fft` and every member of `ndarray`, and what happens to it in a
traced function. This page is made of the table that the tests run (`tests/support/table_rows.py`): each call stands
there as it is tested, over the dtypes float16, float32, float64, complex64 and complex128 as far as NumPy takes
them, and over arrays that are contiguous, without axes, empty, of size 1, broadcast, transposed, of negative
stride, and read-only. Results, dtypes and shapes are NumPy's own; gradients have the dtypes and shapes of their
arguments.

What happens where a derivative is a matter of choice stands in [edges](edges.md), what is weaker in
[limits](limits.md).
"""

SMOOTH = """
## {title}: derivatives of any order

Forward and reverse, nested as you like, and over lanes.

| function | as tested | to know |
|---|---|---|
"""

ZERO = """
## Zero derivatives

Steps, comparisons, positions and counts pass through a derivative with zero: it is no error to use them, and nothing
warns, unless the whole output is constant (`IndependentOutputWarning`).

| function | as tested |
|---|---|
"""

FACTS = """
## Facts about arrays

Shapes, dtypes and the like are known while a function is traced; they are plain Python values.

"""


ITERATORS = """
## Python functions, iterators and texts

`np.vectorize` (with `otypes`, `excluded`, `signature` and `cache`, also as a decorator) and ufuncs that `np.frompyfunc`
made call the Python function once for each element, as NumPy does, and record what it does. So a decision on an element
is one decision for each element; write it with `np.where`, and for many elements use `rg.vmap`. The results of
`np.frompyfunc` have the dtype of the numbers, where NumPy has an array of objects.

`np.ndenumerate`, `np.ndindex` and `np.nditer` go through traced arrays in NumPy's order for C-contiguous ones.
`np.nditer` takes several operands, operands that it makes (`None`), `op_flags=["readwrite"]`, `order=`, and the flags
`multi_index`, `c_index` and `f_index`; other flags and options are a named error.

`np.array2string`, `np.array_repr` and `np.array_str` of a traced value give the text of its example, marked as
`<traced ...>`, for messages.
"""


def _words(text: str) -> list[str]:
    return text.split()


# Functions that make arrays: inside a traced function they make traced ones.
CREATION = _words("""
arange array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray empty eye fromfunction
fromiter identity indices ones tri zeros diag_indices tril_indices triu_indices mask_indices bartlett blackman
hamming hanning require
""")

# What is not traced, and why; with traced values these are named errors.
REFUSED: dict[str, tuple[str, str]] = {
    "histogram2d histogramdd": ("counts are steps", "`np.digitize` and `np.bincount`"),
    "kaiser": ("NumPy does not hand it over", "`np.i0`"),
    "packbits unpackbits": ("bits have no derivative", "`np.bitwise_and`, shifts"),
    "einsum_path min_scalar_type isfortran": ("facts that depend on contents or memory", "`x.dtype`"),
    "asmatrix bmat": ("`np.matrix` is no array", "arrays"),
    "busday_count busday_offset is_busday datetime_as_string datetime_data isnat": ("dates", "numbers of days"),
}
APART = _words("""
base_repr binary_repr format_float_positional format_float_scientific
from_dlpack frombuffer fromfile fromregex fromstring genfromtxt get_include get_printoptions getbufsize geterr
geterrcall info isdtype issubdtype load loadtxt mintypecode nested_iters printoptions promote_types save savetxt
savez savez_compressed set_printoptions setbufsize seterr seterrcall show_config show_runtime test typename
""")
TEXTS = _words("array2string array_repr array_str")
MEMORY = _words("""
dumps dump byteswap getfield resize setfield setflags tobytes tofile flags strides data base ctypes
""")


def names(module: ModuleType, prefix: str) -> list[str]:
    """The functions of a module, as the table names them."""
    members = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return [f"{prefix}.{name}" for name, member in members.items() if callable(member) and not inspect.isclass(member)]


def everything() -> list[str]:
    """All that the page must speak of."""
    members = [f"ndarray.{name}" for name in vars(np.ndarray) if not name.startswith("_")]
    return [*names(np, "numpy"), *names(np.linalg, "numpy.linalg"), *names(np.fft, "numpy.fft"), *members]


def spoken_of() -> set[str]:
    """All that the page speaks of."""
    listed = [
        *CREATION,
        *APART,
        *TEXTS,
        *(name for group in REFUSED for name in group.split()),
    ]
    rows = {row.name for row in ROWS}
    ufuncs = {name.rpartition(".")[0] for name in rows if name.rpartition(".")[2] in ("reduce", "accumulate", "outer")}
    tests = {"numpy.linalg.test", "numpy.fft.test"}
    return rows | ufuncs | {f"numpy.{name}" for name in listed} | {f"ndarray.{name}" for name in MEMORY} | tests


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _calls(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of each function, in the order of names."""
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.name):
        found.setdefault(row.name, []).append(row)
    return found


def _remarks(rows: list[Row]) -> str:
    notes = {row.remark for row in rows if row.remark}
    notes |= {f"not of {np.dtype(char).name}" for row in rows for char in row.refused}
    if any(row.simple for row in rows):
        notes.add("of distinct elements" if not rows[0].name.startswith("numpy.linalg") else "of a simple spectrum")
    return "; ".join(sorted(notes))


def page() -> str:
    """The text of ``docs/numpy.md``."""
    text = HEAD
    smooth = [row for row in ROWS if row.derivative == "any order"]
    for title, prefix in (
        ("numpy", "numpy."),
        ("numpy.linalg", "numpy.linalg."),
        ("numpy.fft", "numpy.fft."),
        ("ndarray", "ndarray."),
    ):
        inner = tuple(p for p in ("numpy.linalg.", "numpy.fft.") if p != prefix)
        chosen = [row for row in smooth if row.name.startswith(prefix) and not row.name.startswith(inner)]
        text += SMOOTH.format(title=title)
        for name, rows in _calls(chosen).items():
            text += f"| {_code(name)} | {', '.join(_code(row.code) for row in rows)} | {_remarks(rows)} |\n"
    text += ZERO
    for name, rows in _calls(row for row in ROWS if row.derivative == "zero").items():
        text += f"| {_code(name)} | {', '.join(_code(row.code) for row in rows)} |\n"
    text += FACTS + ", ".join(_code(name) for name in _calls(r for r in ROWS if r.derivative == "facts")) + "\n"
    text += "\n## Functions that make arrays\n\n"
    text += "Inside a traced function their arrays are traced, and may be written into.\n\n"
    text += ", ".join(_code(f"numpy.{name}") for name in CREATION) + "\n"
    text += ITERATORS
    text += "\n## Not supported\n\nWith traced values these are named errors, never wrong numbers.\n\n"
    text += "| function | why | instead |\n|---|---|---|\n"
    for group, (why, instead) in REFUSED.items():
        text += f"| {', '.join(_code(f'numpy.{name}') for name in group.split())} | {why} | {instead} |\n"
    text += f"| {', '.join(_code(f'ndarray.{name}') for name in MEMORY)} | they concern memory | |\n"
    text += "\nFiles, printing, settings and dtypes are no matter of derivatives: "
    return text + ", ".join(_code(f"numpy.{name}") for name in APART) + ".\n"
