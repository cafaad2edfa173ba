"""Every option of every function of NumPy, one at a time: NumPy's result or a named error."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import assert_same, outcome
from tests.support.table import LENGTHS, Row
from tests.support.table_rows import ROWS

# Values to try, by the names of options.
VALUES: dict[str, list[Any]] = {
    "keepdims": [True],
    "dtype": [np.float32, np.complex128, np.int64],
    "where": [True, np.array([True, False, True])],
    "initial": [1.5],
    "axis": [0, 1, -1, None, (0, 1), 7],
    "axes": [(1, 0), (0,)],
    "order": ["F", "K"],
    "casting": ["unsafe", "no"],
    "kind": ["stable"],
    "stable": [True],
    "ddof": [1],
    "correction": [1],
    "method": ["lower", "hazen", "nonsense"],
    "mode": ["wrap", "clip", "same", "valid", "reduced", "edge"],
    "n": [2, 0],
    "norm": ["ortho", "nonsense"],
    "side": ["right"],
    "right": [True, 0.5],
    "left": [0.5],
    "period": [2.0],
    "offset": [1, -1],
    "k": [1, -1],
    "prepend": [0.5],
    "append": [0.5],
    "include_initial": [True],
    "full_matrices": [False],
    "compute_uv": [False],
    "hermitian": [True],
    "UPLO": ["U"],
    "ord": [1, 2, np.inf, "fro"],
    "rcond": [1e-3],
    "rtol": [1e-3],
    "atol": [1.0],
    "tol": [0.5],
    "assume_unique": [True],
    "invert": [True],
    "return_index": [True],
    "return_inverse": [True],
    "return_counts": [True],
    "increasing": [True],
    "edge_order": [2],
    "dx": [0.5],
    "bias": [True],
    "rowvar": [False],
    "upper": [True],
    "copy": [False],
    "nan": [1.0],
    "posinf": [2.0],
    "neginf": [3.0],
    "equal_nan": [True],
    "overwrite_input": [True],
    "decimals": [1, -1],
    "trim": ["f"],
    "endpoint": [False],
    "retstep": [True],
    "base": [3.0],
    "discont": [1.0],
    "to_begin": [0.5],
    "to_end": [[1.0, 2.0]],
    "minlength": [7],
    "density": [True],
    "range": [(-1.0, 1.0)],
    "bins": [4],
    "returned": [True],
    "full": [True],
    "cov": [True, "unscaled"],
    "m": [2],
    "wrap": [True],
    "subok": [True],
    "shape": [(2, 2)],
    "strict": [True],
    "interpolation": ["lower"],
    "deg": [True],
    "indexing": ["ij"],
    "sparse": [True],
    "optimize": [True],
    "N": [2],
    "shift": [2],
    "source": [0],
    "destination": [1],
    "return_indices": [True],
    "signature": ["d->d"],
}


def options(row: Row) -> list[tuple[str, Any]]:
    """The options of the row's function that the row does not give."""
    function: Any = np
    for part in row.name.split(".")[1:]:
        function = getattr(function, part, None)
    if row.name.startswith("ndarray") or ":=" in row.code or not row.code.endswith(")") or "(" in row.code[:2]:
        return []
    if isinstance(function, np.ufunc):
        found = ["dtype", "casting", "order"]
    else:
        try:
            found = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            return []
    return [(name, value) for name in found if f"{name}=" not in row.code for value in VALUES.get(name, [])]


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("row", [row for row in ROWS if options(row)], ids=lambda row: row.code)
def test_each_option_is_right_or_refused(row):
    for name, value in options(row):
        code = f"lambda {', '.join(row.arguments)}: {row.code[:-1]}, {name}=value)"
        program = eval(code, {"np": np, "value": value})
        args = row.arrays("d", LENGTHS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, found = outcome(program, args), outcome(rg.jit(program), args)
        try:
            if isinstance(found, type):
                assert not issubclass(found, rg.errors.InternalError)
                assert isinstance(expected, type) or issubclass(found, rg.RetrogradError)
            else:
                assert_same(plain(found), plain(expected), 1e-13)
        except Exception as fault:
            fault.add_note(f"{code} with {name}={value!r}: {found!r}")
            raise


SMOOTH = [row for row in ROWS if row.derivative == "any order" and options(row)]
STEPS = ("dtype", "casting", "ord")  # integers and narrow floats; 'ord' of a norm where singular values coincide


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", SMOOTH, ids=[row.code for row in SMOOTH])
def test_each_option_has_derivatives(row):
    for name, value in options(row):
        code = f"lambda {', '.join(row.arguments)}: {row.code[:-1]}, {name}=value)"
        program = eval(code, {"np": np, "value": value})
        args = row.arrays("d", LENGTHS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outs = outcome(program, args)
            if name in STEPS or isinstance(outs, type) or isinstance(outcome(rg.jit(program), args), type):
                continue

            def floats(*args, program=program):
                found = plain(program(*args))
                return [y for y in (found if isinstance(found, tuple) else (found,)) if _floating(y)]

            if not all(np.all(np.isfinite(y)) for y in floats(*args)):
                continue  # the mean of nothing
            try:
                rg.check_grads(floats, tuple(args), order=1)
            except Exception as fault:
                fault.add_note(f"{code} with {name}={value!r}")
                raise


def _floating(y: Any) -> bool:
    return not isinstance(y, (tuple, bool, int)) and np.result_type(y).kind in "fc"
