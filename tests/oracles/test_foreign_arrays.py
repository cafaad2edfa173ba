"""Tables and tensors of other libraries: as arguments they are refused, as captures they are read anew at each call.

A compiled function sees numbers and positions, and no labels. pandas and xarray align by labels, so a table that passed
as an array would give other numbers than in plain Python. Hence the refusal, with what to write instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd import errors

W = np.array([1.0, 2.0, 4.0])


class Kind(NamedTuple):
    """A class of arrays of some library: how to make one, its numbers, ways to change it, and what the remedy says."""

    package: str
    make: Callable[[Any, Any], Any]  # of the package and numbers
    numbers: Callable[[Any], Any]
    changes: dict[str, Callable[[Any], Any]]
    remedy: str


def put(x: Any, key: Any, value: Any) -> None:
    x[key] = value


def renewed(x: Any, name: str, value: Any) -> None:
    setattr(x, name, value)


TORCH = {"in place": lambda t: t.mul_(5.0), "an entry": lambda t: put(t, 0, 9.0)}
KINDS = {
    "Series": Kind(
        "pandas",
        lambda pd, x: pd.Series(x, index=[2, 0, 1]),
        lambda s: s.to_numpy(),
        {
            "an entry": lambda s: put(s.iloc, 0, 9.0),
            "in place": lambda s: s.__imul__(5.0),
            "by label": lambda s: put(s, 2, -3.0),
            "by a mask": lambda s: put(s, s > 1, 0.5),
            "labels": lambda s: renewed(s, "index", [0, 1, 2]),
        },
        r"x\.to_numpy\(\): labels",
    ),
    "DataFrame": Kind(
        "pandas",
        lambda pd, x: pd.DataFrame({"a": x, "b": 2.0 * x}),
        lambda d: d["a"].to_numpy(),
        {
            "an entry": lambda d: put(d.loc, (0, "a"), 9.0),
            "a column": lambda d: put(d, "a", [7.0, 8.0, 9.0]),
            "in place": lambda d: d.__imul__(5.0),
        },
        r"x\.to_numpy\(\): labels",
    ),
    "DataArray": Kind(
        "xarray",
        lambda xr, x: xr.DataArray(x, dims="t"),
        lambda a: a.to_numpy(),
        {
            "an entry": lambda a: put(a, 0, 9.0),
            "in place": lambda a: a.__imul__(5.0),
            "values": lambda a: renewed(a, "values", np.array([5.0, 6.0, 7.0])),
            "data": lambda a: renewed(a, "data", np.array([5.0, 6.0, 7.0])),
        },
        r"x\.to_numpy\(\): names of axes",
    ),
    "Dataset": Kind(
        "xarray",
        lambda xr, x: xr.Dataset({"a": ("t", x)}),
        lambda d: d["a"].to_numpy(),
        {
            "an entry": lambda d: put(d["a"], 0, 9.0),
            "a variable": lambda d: put(d, "a", ("t", [5.0, 6.0, 7.0])),
        },
        r"x\.to_numpy\(\): names of axes",
    ),
    "Tensor": Kind("torch", lambda torch, x: torch.tensor(x), lambda t: t.numpy(), TORCH, r"rg\.to_torch\(f\)"),
    "Parameter": Kind(
        "torch",
        lambda torch, x: torch.nn.Parameter(torch.tensor(x)),
        lambda t: t.detach().numpy(),
        {name: lambda t, change=change: change(t.data) for name, change in TORCH.items()},
        r"rg\.to_torch\(f\)",
    ),
    "Array": Kind("jax", lambda jax, x: jax.numpy.asarray(x), np.asarray, {}, r"rg\.to_jax\(f\)"),
}
every_kind = pytest.mark.parametrize("name", KINDS)


def made(name: str) -> Any:
    kind = KINDS[name]
    return kind.make(pytest.importorskip(kind.package), np.array([1.0, 2.0, 3.0]))


DOORS: dict[str, Callable[[Any], Any]] = {
    "jit": rg.jit(np.sum),
    "grad": lambda x: rg.grad(lambda w, x: np.sum(w * x))(W, x),
    "at the differentiated place": rg.grad(np.sum),
    "jacobian": rg.jacobian(np.sin),
    "vmap": rg.vmap(np.sin),
    "vjp": lambda x: rg.vjp(np.sin, x),
    "jvp": lambda x: rg.jvp(np.sin, (x,), (x,)),
    "in a tree": lambda x: rg.jit(lambda tree: np.sum(tree["x"][0]))({"x": (x,)}),
    "by keyword": lambda x: rg.jit(lambda w, *, x: np.sum(w * x))(W, x=x),
    "twice": rg.jit(rg.grad(np.sum)),
    "in a trace": lambda x: rg.jit(lambda w: rg.grad(lambda w, x: np.sum(w * x))(w, x))(W),
}


@every_kind
@pytest.mark.parametrize("door", DOORS)
def test_arguments_are_refused_with_a_remedy(name, door):
    x = made(name)
    with pytest.raises(
        errors.OptionError, match=rf"(?s)which is not traced\n  at .*\n  remedy: pass .*{KINDS[name].remedy}"
    ):
        DOORS[door](x)


@every_kind
def test_cotangents_and_sequences_of_loops_are_refused(name):
    x = made(name)
    with pytest.raises(errors.ShapeError, match="is not an array of numbers"):
        rg.vjp(np.sin, W)[1](x)
    with pytest.raises(errors.RetrogradError, match=r"remedy: .*np\.asarray\(x, float\)"):
        rg.scan(lambda c, x: (c + x, c), 0.0, x)


@every_kind
def test_their_numbers_go_in(name):
    x = made(name)
    np.testing.assert_array_equal(rg.grad(lambda w, x: np.sum(w * x))(W, KINDS[name].numbers(x)), [1.0, 2.0, 3.0])


class Model:
    """What holds an array of another library."""

    def __init__(self, x: Any) -> None:
        self.x = x


def of_variable(x: Any, numbers: Any) -> Callable[..., Any]:
    return lambda w: np.sum(w * numbers(x))


def of_attribute(x: Any, numbers: Any) -> Callable[..., Any]:
    model = Model(x)
    return lambda w: np.sum(w * numbers(model.x))


def of_entry(x: Any, numbers: Any) -> Callable[..., Any]:
    held = {"x": x}
    return lambda w: np.sum(w * numbers(held["x"]))


READERS = {f.__name__: f for f in (of_variable, of_attribute, of_entry)}
PARAMS = [(name, change) for name, kind in KINDS.items() for change in kind.changes]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("name", "change"), PARAMS)
def test_captures_are_read_anew(name, change, reader):
    x, kind = made(name), KINDS[name]
    f = READERS[reader](x, kind.numbers)
    slope = rg.grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.UnwatchedWarning)
        for _ in range(3):
            np.testing.assert_array_equal(slope(W), kind.numbers(x))
            kind.changes[change](x)
            np.testing.assert_array_equal(slope(W), kind.numbers(x))


@pytest.mark.parametrize(("name", "change"), [p for p in PARAMS if p[0] in ("Series", "DataArray")])
def test_captures_that_take_part_themselves_are_read_anew(name, change):
    x, kind = made(name), KINDS[name]
    slope = rg.grad(lambda w: np.sum(w * x))
    np.testing.assert_array_equal(slope(W), kind.numbers(x))
    kind.changes[change](x)
    np.testing.assert_array_equal(slope(W), kind.numbers(x))


def test_who_captures_a_table_is_warned():
    x = made("Series")
    slope = rg.grad(lambda w: np.sum(w * x.to_numpy()))
    with pytest.warns(errors.UnwatchedWarning, match="of the class Series.*Pass the value as an argument"):
        _ = [slope(W) for _ in range(4)]


LOST: dict[str, Callable[[Any], Any]] = {
    "columns": lambda d: lambda w: np.sum(d[["a", "b"]].to_numpy().T @ w),
    "rows": lambda d: lambda w: np.sum(d.loc[[0, 1], "a"].to_numpy() * w[:2]),
}


@pytest.mark.parametrize("name", LOST)
def test_where_pandas_itself_fails_on_traced_values_it_says_what_to_do(name):
    f = LOST[name](made("DataFrame"))
    with pytest.raises(
        errors.TracerConversionError, match=r"at .*test_foreign_arrays\.py:\d+\n  remedy: take the columns out"
    ):
        rg.grad(f)(W)


def test_compiled_functions_go_into_pandas_and_xarray():
    pd, xr = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    square = rg.grad(lambda x: x**2)
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert table["a"].map(square).tolist() == [2.0, 4.0]
    assert table.apply(rg.jit(np.sum), axis=1, raw=True).tolist() == [4.0, 6.0]
    found = xr.apply_ufunc(rg.vmap(square), xr.DataArray([1.0, 2.0], dims="t"))
    assert found.dims == ("t",)
    assert found.values.tolist() == [2.0, 4.0]


def test_results_are_arrays_of_the_array_api():
    compat = pytest.importorskip("array_api_compat")
    x = np.array([0.3, -0.7])
    for result in (rg.jit(np.sin)(x), rg.grad(lambda x: np.sum(x**2))(x), rg.hessian(lambda x: np.sum(x**3))(x)):
        assert type(result) is np.ndarray
        assert compat.is_numpy_array(result)
        assert compat.array_namespace(result, x) is compat.array_namespace(x)
        np.testing.assert_array_equal(np.from_dlpack(result), result)
