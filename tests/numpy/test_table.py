"""Every row of the table of NumPy: values over dtypes and layouts, derivatives in both modes to second order."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import assert_same, outcome
from tests.support.table import LENGTHS, Row
from tests.support.table_rows import ROWS

Array = np.ndarray[Any, Any]
NORMAL, SINGLE, EMPTY = LENGTHS, dict.fromkeys(LENGTHS, 1), dict.fromkeys(LENGTHS, 0)


def _read_only(x: Array) -> Array:
    x.flags.writeable = False
    return x


# How arrays lie in memory: the lengths of their axes (None for no axes), and what is made of contiguous ones.
LAYOUTS: dict[str, tuple[dict[str, int] | None, Callable[[Array], Array]]] = {
    "contiguous": (NORMAL, lambda x: x),
    "without axes": (None, lambda x: x),
    "empty": (EMPTY, lambda x: x),
    "of size 1": (SINGLE, lambda x: x),
    "broadcast": (NORMAL, lambda x: np.broadcast_to(x[:1], x.shape) if x.ndim else x),
    "transposed": (NORMAL, lambda x: x.T.copy().T),
    "negative stride": (NORMAL, lambda x: x[..., ::-1].copy()[..., ::-1] if x.ndim else x),
    "read-only": (NORMAL, _read_only),
}
over_rows = pytest.mark.parametrize("row", ROWS, ids=[row.code for row in ROWS])


def plain(value: Any) -> Any:
    """Results without their structure: named tuples and lists as tuples."""
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


def arrays(row: Row, dtype: str, layout: str) -> list[Array]:
    lengths, lay = LAYOUTS[layout]
    return [lay(x) for x in row.arrays(dtype, lengths)]


def quiet(function: Callable[..., Any], args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return outcome(function, args)


@over_rows
def test_values_dtypes_and_shapes_are_those_of_numpy(row):
    for dtype in "dfeDF":
        compiled = rg.jit(row.call)
        for layout in LAYOUTS:
            args = arrays(row, dtype, layout)
            expected = quiet(row.call, args)
            found = quiet(compiled, args)
            if dtype in row.refused and not isinstance(expected, type):
                assert isinstance(found, type)
                assert issubclass(found, rg.RetrogradError)
                assert not issubclass(found, rg.errors.InternalError)
                continue
            try:
                if isinstance(expected, type) and isinstance(found, type) and issubclass(found, rg.errors.UserError):
                    continue  # what NumPy refuses may be refused by name
                assert_same(plain(found), plain(expected), float(np.finfo(dtype).eps) * 8)
            except Exception as fault:
                fault.add_note(f"{row.code} of {layout} {np.dtype(dtype)}")
                raise


@over_rows
def test_a_write_into_a_result_changes_an_operand_exactly_where_numpys_does(row):
    def program(*operands: Array) -> list[Array]:
        operands = [np.copy(x) for x in operands]
        for found in _leaves(row.call(*operands)):
            if isinstance(found, np.ndarray):
                found[...] = found == 0
        return operands

    for layout in ("contiguous", "of size 1"):
        args = arrays(row, "d", layout)
        expected = quiet(program, args)
        if not isinstance(expected, type):
            assert_same(quiet(rg.jit(program), args), expected, 1e-14)


def real_loss(row: Row) -> Callable[..., Any]:
    """A function with one real result, of all floating-point results of the row."""

    def loss(*args: Any) -> Any:
        total = 0.0
        for y in _leaves(row.call(*args)):
            if np.result_type(y).kind in "fc":
                total = total + np.sum(np.real(y * (1 - 0.5j)) + 0.1 * np.square(np.real(y)))
        return total

    return loss


def _leaves(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


SMOOTH_ROWS = [row for row in ROWS if row.derivative == "any order"]
DEGENERATE = ("without axes", "empty", "of size 1", "broadcast")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("row", SMOOTH_ROWS, ids=[row.code for row in SMOOTH_ROWS])
def test_derivatives_in_both_modes_to_second_order(row):
    for dtype in "dD":
        if dtype in row.refused or isinstance(quiet(row.call, arrays(row, dtype, "contiguous")), type):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            rg.check_grads(real_loss(row), tuple(arrays(row, dtype, "contiguous")), order=2)
        for layout in LAYOUTS if dtype == "d" else ():
            args = arrays(row, dtype, layout)
            value = quiet(real_loss(row), args)
            method = layout == "without axes" and row.name.startswith("ndarray")  # differences are NumPy scalars
            if isinstance(value, type) or np.isnan(value) or method or (row.simple and layout in DEGENERATE):
                continue
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of NumPy about what is empty
                    rg.check_grads(real_loss(row), tuple(args), order=1)
            except Exception as fault:
                fault.add_note(f"{row.code} of {layout} {np.dtype(dtype)}")
                raise


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", SMOOTH_ROWS, ids=[row.code for row in SMOOTH_ROWS])
def test_gradients_have_the_dtypes_shapes_and_values_of_double_precision(row):
    for narrow, wide, tolerance in (("f", "d", 2e-3), ("e", "d", 0.1), ("F", "D", 2e-3)):
        args = arrays(row, narrow, "contiguous")
        if narrow in row.refused or isinstance(quiet(row.call, args), type):
            continue
        every = tuple(range(len(args)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rg.grad(real_loss(row), argnums=every)(*args)
            expected = rg.grad(real_loss(row), argnums=every)(*(x.astype(wide) for x in args))
        for ct, x, e in zip(found, args, expected, strict=True):
            assert (np.asarray(ct).dtype, np.shape(ct)) == (x.dtype, x.shape)
            if narrow == "e" and not np.isfinite(ct).all():  # beyond 65504
                continue
            scale = max(1.0, float(np.max(np.abs(e), initial=0.0)))
            np.testing.assert_allclose(ct, e, atol=tolerance * scale, rtol=0, err_msg=f"{row.code} in {narrow}")


@pytest.mark.parametrize("row", [r for r in ROWS if r.derivative == "zero"], ids=lambda row: row.code)
def test_derivatives_of_steps_are_zero(row):
    for dtype in "df":
        args = arrays(row, dtype, "contiguous")
        out, dot = rg.jvp(row.call, tuple(args), tuple(map(np.ones_like, args)))
        for t in _leaves(dot):
            np.testing.assert_array_equal(t, 0)
        for ct, x in zip(rg.vjp(row.call, *args)[1](out), args, strict=True):
            assert (ct.dtype, ct.shape) == (x.dtype, x.shape)
            np.testing.assert_array_equal(ct, 0)


LARGE = {"m": 48, "n": 64, "k": 52}  # 2,496 elements and more: storage is used again from 2,048 on


SMALL_ONLY = {"ndarray.tolist", "numpy.diagflat", "numpy.frompyfunc"}  # of n² elements, or a call for each element
LARGE_ROWS = [r for r in SMOOTH_ROWS if r.name not in SMALL_ONLY and not r.code.startswith("np.vectorize(lambda")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", LARGE_ROWS, ids=[row.code for row in LARGE_ROWS])
def test_large_arrays_whose_storage_is_used_again(row):
    """Values are NumPy's, and <u, J v> = <Jᵀ u, v>, compiled, where results are written into dead storage."""
    args = row.arrays("d", LARGE)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = outcome(row.call, args)
        if isinstance(expected, type):  # the row's numbers are for small arrays
            return
        assert_same(plain(rg.jit(row.call)(*args)), plain(expected), 1e-13)
        loss, every = real_loss(row), tuple(range(len(args)))
        rng = np.random.default_rng(1)
        dots = tuple(np.asarray(rng.normal(size=x.shape)) for x in args)
        slope = rg.jit(lambda *xs: rg.jvp(loss, xs, dots)[1])(*args)
        back = rg.grad(loss, argnums=every)(*args)
    terms = [np.sum(g * v) for g, v in zip(back, dots, strict=True)]
    scale = max(1.0, sum(float(np.sum(np.abs(g * v))) for g, v in zip(back, dots, strict=True)))
    if np.isfinite(scale):
        assert abs(slope - sum(terms)) <= 1e-9 * scale


LANE_ROWS = [row for row in ROWS if row.derivative != "facts" and row.arguments]


@pytest.mark.parametrize("row", LANE_ROWS, ids=[row.code for row in LANE_ROWS])
def test_lanes_are_a_loop(row):
    """Also of gradients. Where shapes depend on data, lanes would differ: that is refused by name."""
    lanes = [row.arrays("d", LENGTHS, seed) for seed in range(3)]
    stacks = [np.stack(column) for column in zip(*lanes, strict=True)]
    functions = [row.call]
    if row.derivative == "any order":
        functions.append(rg.grad(real_loss(row), argnums=tuple(range(len(stacks)))))
    for function in functions:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            each = [outcome(function, lane) for lane in lanes]
            found = outcome(rg.vmap(function), stacks)
        if any(isinstance(one, type) for one in each) or found is rg.errors.ControlFlowError:
            return
        columns = zip(*(list(_leaves(one)) for one in each), strict=True)
        for a, column in zip(_leaves(found), columns, strict=True):
            np.testing.assert_allclose(a, np.stack(column), rtol=1e-9, atol=1e-11)
