"""The documentation page generated from the table of NumPy functions."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import ModuleType

import numpy as np

from .table import Row
from .table_rows import ROWS

HEAD = """# The table of NumPy

This page lists every function of NumPy, `numpy.linalg` and `numpy.fft` and every member of `ndarray`, and says what it
does in a traced function. The page is generated from the table that the tests run (`tests/support/table_rows.py`).

Each call is tested as shown. The tests use the dtypes float16, float32, float64, complex64 and complex128, where NumPy
accepts them. They use arrays that are contiguous, without axes, empty, of size 1, broadcast, transposed, with negative
strides, and read-only. Results, dtypes and shapes equal NumPy's. Gradients have the dtypes and shapes of their
arguments.

[Edges](edges.md) lists the choices at points without a unique derivative, and [limits](limits.md) lists what differs
from NumPy.
"""

SMOOTH = """
## {title}: derivatives of any order

These have derivatives in forward and reverse mode, nested in any way, and work under `vmap`.

| function | as tested | notes |
|---|---|---|
"""

ZERO = """
## Zero derivatives

Step functions, comparisons, positions and counts have the derivative zero. Using them raises no error and no warning,
unless the whole output is constant (`IndependentOutputWarning`).

| function | as tested |
|---|---|
"""

FACTS = """
## Facts about arrays

Shapes, dtypes and similar facts are known during tracing. They are plain Python values.

"""


ITERATORS = """
## Python functions, iterators and text

`np.vectorize` (with `otypes`, `excluded`, `signature` and `cache`, also as a decorator) and ufuncs created by
`np.frompyfunc` call the Python function once per element, as NumPy does. Each call is traced. A Python decision on an
element is therefore one decision per element. Use `np.where` instead, and `rg.vmap` for many elements. The results of
`np.frompyfunc` have the dtype of the numbers, where NumPy has an array of objects.

`np.ndenumerate`, `np.ndindex` and `np.nditer` iterate over traced arrays in NumPy's order for C-contiguous arrays.
`np.nditer` accepts several operands, operands that it allocates (`None`), `op_flags=["readwrite"]`, `order=`, and the
flags `multi_index`, `c_index` and `f_index`. Other flags and options raise an error that names them.

`np.array2string`, `np.array_repr` and `np.array_str` of a traced value return the text of its example value, marked as
`<traced ...>`. This is useful in messages.
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
    "histogram2d histogramdd": ("counts are step functions", "`np.digitize` and `np.bincount`"),
    "kaiser": ("NumPy does not dispatch it", "`np.i0`"),
    "packbits unpackbits": ("bits have no derivative", "`np.bitwise_and`, shifts"),
    "einsum_path min_scalar_type isfortran": ("these facts depend on contents or memory", "`x.dtype`"),
    "asmatrix bmat": ("`np.matrix` is not supported", "arrays"),
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
    notes |= {f"not for {np.dtype(char).name}" for row in rows for char in row.refused}
    if any(row.simple for row in rows):
        of_matrices = rows[0].name.startswith("numpy.linalg")
        notes.add("distinct eigenvalues or singular values" if of_matrices else "distinct elements")
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
    text += "\n## Functions that create arrays\n\n"
    text += "Inside a traced function, their arrays are traced and may be written into.\n\n"
    text += ", ".join(_code(f"numpy.{name}") for name in CREATION) + "\n"
    text += ITERATORS
    text += "\n## Not supported\n\nWith traced values, these raise an error that names the function. "
    text += "They never return wrong numbers.\n\n"
    text += "| function | why | instead |\n|---|---|---|\n"
    for group, (why, instead) in REFUSED.items():
        text += f"| {', '.join(_code(f'numpy.{name}') for name in group.split())} | {why} | {instead} |\n"
    text += f"| {', '.join(_code(f'ndarray.{name}') for name in MEMORY)} | they access memory | |\n"
    text += "\nThese functions on files, printing, settings and dtypes do not concern derivatives: "
    return text + ", ".join(_code(f"numpy.{name}") for name in APART) + ".\n"
