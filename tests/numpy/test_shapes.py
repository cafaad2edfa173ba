"""Functions that reshape, join, split, repeat and move elements, against NumPy and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import LAYOUTS, assert_differentiable, assert_same, assert_traced, distinct, outcome

s_ = np.s_

SHAPES: dict[str, Any] = {
    "reshape": lambda x: np.reshape(x, (2, -1)),
    "reshape F": lambda x: np.reshape(x, (2, -1), order="F"),
    "reshape A": lambda x: np.reshape(x.T, (-1, 2), order="A"),
    "reshape method": lambda x: x.reshape(-1, 2),
    "reshape to nothing": lambda x: np.reshape(np.sum(x), ()),
    "reshape copy": lambda x: np.reshape(x, (-1,), copy=True),
    "ravel": np.ravel,
    "ravel F": lambda x: np.ravel(x, order="F"),
    "ravel K": lambda x: x.T.ravel("K"),
    "flatten": lambda x: x.flatten(),
    "flatten F": lambda x: x.flatten("F"),
    "transpose": np.transpose,
    "transpose axes": lambda x: x.transpose(-1, 0),
    "transpose tuple": lambda x: x.transpose((1, 0)),
    "permute_dims": lambda x: np.permute_dims(x, (1, 0)),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "matrix_transpose": np.matrix_transpose,
    "linalg.matrix_transpose": np.linalg.matrix_transpose,
    "swapaxes": lambda x: np.swapaxes(x, 0, -1),
    "swapaxes method": lambda x: x.swapaxes(-1, 0),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "moveaxis several": lambda x: np.moveaxis(x, [0, 1], [1, 0]),
    "rollaxis": lambda x: np.rollaxis(x, 1),
    "expand_dims": lambda x: np.expand_dims(x, (0, -1)),
    "squeeze": lambda x: np.squeeze(x[:, None]),
    "squeeze axis": lambda x: x[None].squeeze(axis=0),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, x[:1], 2.0),
    "atleast_1d": np.atleast_1d,
    "atleast_2d": lambda x: np.atleast_2d(x, x.ravel()),
    "atleast_3d": lambda x: np.atleast_3d(x, x.ravel()),
    "flip": np.flip,
    "flip axis": lambda x: np.flip(x, axis=-1),
    "flip axes": lambda x: np.flip(x, (0, 1)),
    "fliplr": np.fliplr,
    "flipud": np.flipud,
    "rot90": np.rot90,
    "rot90 twice": lambda x: np.rot90(x, 2),
    "rot90 back": lambda x: np.rot90(x, -1, axes=(1, 0)),
    "rot90 never": lambda x: np.rot90(x, 4),
    "astype": lambda x: np.astype(x, np.complex128),
    "astype method": lambda x: x.astype(np.complex128, copy=False),
}
JOINED: dict[str, Any] = {
    "concatenate": lambda x: np.concatenate((x, x[:1], x)),
    "concatenate axis": lambda x: np.concatenate([x, np.ones((len(x), 1))], axis=-1),
    "concatenate flat": lambda x: np.concatenate((x, [1, 2], 3.0 * x), axis=None),
    "concatenate dtype": lambda x: np.concatenate((x, x), dtype=np.complex128),
    "concat": lambda x: np.concat([x], axis=0),
    "stack": lambda x: np.stack([x, x * 2, np.zeros_like(x)]),
    "stack axis": lambda x: np.stack((x, 2 * x), axis=-1),
    "stack of numbers": lambda x: np.stack([np.sum(x), 1.0, np.mean(x * x)]),
    "hstack": lambda x: np.hstack((x, x)),
    "hstack of vectors": lambda x: np.hstack((x.ravel(), [1.0], np.sum(x))),
    "vstack": lambda x: np.vstack((x, x[0])),
    "dstack": lambda x: np.dstack((x, 2 * x)),
    "column_stack": lambda x: np.column_stack((x, x[:, 0], np.arange(len(x)))),
    "append": lambda x: np.append(x, [1.0, 2.0]),
    "append axis": lambda x: np.append(x, x[:1], axis=0),
    "block": lambda x: np.block([[x, np.zeros((len(x), 2))], [np.ones((1, x.shape[1])), x[:1, :2]]]),
    "block of one": np.block,
    "block of vectors": lambda x: np.block([x[0], 1.0, x[-1]]),
    "array": lambda x: np.array([x[0, 0], 2 * x[0, 1], 1.0]),
    "r_": lambda x: np.r_[x[0], 1.0, 0:3, np.sum(x), [2.0, 3.0]],
    "r_ of matrices": lambda x: np.r_[x, x[:1]],
    "c_": lambda x: np.c_[x[:, 0], x, 2.0 * x[:, :1], 0 : len(x)],
    "c_ of numbers": lambda x: np.c_[np.sum(x), 1],
    "array of rows": lambda x: np.array([x[0], x[1] * 2]),
    "array_split": lambda x: np.array_split(x, 2),
    "split": lambda x: np.split(x, [1, 2], axis=-1),
    "hsplit": lambda x: np.hsplit(x, 2),
    "vsplit": lambda x: np.vsplit(x, [1]),
    "dsplit": lambda x: np.dsplit(x[..., None], 1),
    "unstack": np.unstack,
    "unstack axis": lambda x: np.unstack(x, axis=-1),
}
PLACES: dict[str, Any] = {
    "tile": lambda x: np.tile(x, 2),
    "tile axes": lambda x: np.tile(x, (2, 1, 3)),
    "tile once": lambda x: np.tile(x, 1),
    "repeat": lambda x: np.repeat(x, 2),
    "repeat axis": lambda x: x.repeat(3, axis=-1),
    "repeat each": lambda x: np.repeat(x, [0, 2, 1], axis=0),
    "repeat never": lambda x: np.repeat(x, 0, axis=0),
    "resize": lambda x: np.resize(x, (5, 3)),
    "resize smaller": lambda x: np.resize(x, 2),
    "roll": lambda x: np.roll(x, 1),
    "roll axis": lambda x: np.roll(x, -2, axis=-1),
    "roll axes": lambda x: np.roll(x, (1, 2), axis=(0, 1)),
    "roll everywhere": lambda x: np.roll(x, 1, axis=(0, 1)),
    "roll around": lambda x: np.roll(x, x.shape[0], axis=0),
    "delete": lambda x: np.delete(x, 1, axis=0),
    "delete slice": lambda x: np.delete(x, slice(None, None, 2), axis=-1),
    "delete several": lambda x: np.delete(x, [0, -1]),
    "insert": lambda x: np.insert(x, 1, x[0], axis=0),
    "insert several": lambda x: np.insert(x, [0, 2], 5.0, axis=-1),
    "insert flat": lambda x: np.insert(x, 2, [1.5, 2.5]),
    "insert at the end": lambda x: np.insert(x, x.shape[0], 2 * x[:1], axis=0),
    "insert column": lambda x: np.insert(x, -1, x[:, 0], axis=1),
    "pad": lambda x: np.pad(x, 1),
    "pad sides": lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=2.5),
    "pad numbers": lambda x: np.pad(x, 1, constant_values=((1, 2), (3, 4))),
    "pad traced number": lambda x: np.pad(x, 1, constant_values=np.sum(x)),
    "pad edge": lambda x: np.pad(x, (2, 1), "edge"),
    "pad reflect": lambda x: np.pad(x, 2, mode="reflect"),
    "pad symmetric": lambda x: np.pad(x, ((0, 2), (3, 1)), mode="symmetric"),
    "pad wrap": lambda x: np.pad(x, 5, mode="wrap"),
    "pad linear_ramp": lambda x: np.pad(x, ((2, 0), (3, 3)), "linear_ramp", end_values=(1.0, -2.0)),
    "pad mean": lambda x: np.pad(x, 1, "mean"),
    "pad maximum": lambda x: np.pad(x, (1, 2), "maximum", stat_length=2),
    "pad minimum": lambda x: np.pad(x, 1, "minimum", stat_length=((1, 2), (2, 2))),
    "pad dict": lambda x: np.pad(x, {-1: (1, 2)}),
    "meshgrid": lambda x: np.meshgrid(x[0], x[:, 0]),
    "meshgrid ij": lambda x: np.meshgrid(x[0], x[:, 0], [1.0, 2.0], indexing="ij"),
    "meshgrid sparse": lambda x: np.meshgrid(x[0], x[:, 0], sparse=True, copy=False),
}
DIAGONALS: dict[str, Any] = {
    "diag": np.diag,
    "diag below": lambda x: np.diag(x, -1),
    "diag of a vector": lambda x: np.diag(x[0], 1),
    "diag far": lambda x: np.diag(x, 7),
    "diagflat": lambda x: np.diagflat(x, -1),
    "diagonal": np.diagonal,
    "diagonal axes": lambda x: np.diagonal(x[None] * np.ones((2, 1, 1)), 1, 2, 1),
    "diagonal method": lambda x: x.diagonal(1),
    "linalg.diagonal": lambda x: np.linalg.diagonal(x, offset=1),
    "trace": np.trace,
    "trace offset": lambda x: np.trace(x, 1, 1, 0),
    "trace method": lambda x: x.trace(-1),
    "linalg.trace": lambda x: np.linalg.trace(np.stack([x, 2 * x]), offset=-1),
    "tril": np.tril,
    "tril above": lambda x: np.tril(x, 1),
    "triu": lambda x: np.triu(np.stack([x, x]), -1),
    "tril of a vector": lambda x: np.tril(x[0]),
}
ALL = SHAPES | JOINED | PLACES | DIAGONALS


@pytest.mark.parametrize("dtype", ["d", "f", "D", "i"])
@pytest.mark.parametrize("name", ALL)
def test_results_have_the_types_that_numpy_gives(name: str, dtype: str) -> None:
    x = distinct((3, 4), dtype if dtype in "dfD" else "d")
    if dtype in "dfD" or name not in {"pad linear_ramp", "pad mean"}:
        assert_traced(ALL[name], x if dtype in "dfD" else np.rint(x * 3).astype(dtype))


@pytest.mark.parametrize("layout", ["transposed", "negative stride", "broadcast"])
@pytest.mark.parametrize("name", ALL)
def test_layouts_make_no_difference(name: str, layout: str) -> None:
    if name not in {"ravel K", "reshape A"}:
        assert_traced(ALL[name], LAYOUTS[layout](distinct((3, 4))))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 4), (2, 3, 4)])
@pytest.mark.parametrize("name", ALL)
def test_edge_shapes_give_what_numpy_gives(name: str, shape: tuple[int, ...]) -> None:
    assert_traced(ALL[name], distinct(shape))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ALL)
def test_derivatives(name: str) -> None:
    if not name.startswith("pad m"):
        assert_differentiable(ALL[name], distinct((3, 4), "D"))
    assert_differentiable(ALL[name], distinct((3, 4)))
    if "astype" not in name and "dtype" not in name:
        assert_differentiable(ALL[name], distinct((3, 4), "f"), order=1)


def test_lines_of_one_point_that_are_not_copied_may_be_written() -> None:
    def program(x: Any) -> Any:
        x = +x
        lines = np.meshgrid(x[:1], x[1:2], copy=False)
        lines[0][...] = x[2]
        return x, lines

    assert_traced(program, distinct((3,)))


def test_arrays_from_outside_may_be_joined_and_are_read_at_each_call() -> None:
    outside = np.arange(3.0)
    for function in (
        lambda x: np.concatenate([outside, x]),
        lambda x: np.stack([x, outside[::-1]]),
        lambda x: np.append(outside, x),
        lambda x: np.insert(outside, 1, x),
        lambda x: np.insert(x, 1, outside),
        lambda x: np.block([[outside], [x]]),
        lambda x: np.broadcast_arrays(x, outside),
        lambda x: np.meshgrid(outside, x),
        lambda x: np.hstack([outside[::2], x]),
    ):
        outside[:] = [0.0, 1.0, 2.0]
        x, compiled = distinct((3,)), rg.jit(function)
        assert_same(compiled(x), function(x))
        outside[:] = [5.0, 6.0, 7.0]
        assert_same(compiled(x), function(x))


VIEWS: dict[str, Any] = {
    "reshape": lambda y: y.reshape(2, 6),
    "ravel": np.ravel,
    "ravel of the transpose": lambda y: y.T.ravel("K"),
    "transpose": np.transpose,
    "swapaxes": lambda y: y.swapaxes(0, 1),
    "flip": np.flip,
    "fliplr": np.fliplr,
    "rot90": np.rot90,
    "rot90 twice": lambda y: np.rot90(y, 2)[1:],
    "split": lambda y: np.split(y, 2, axis=1)[1],
    "unstack": lambda y: np.unstack(y, axis=1)[2],
    "expand_dims": lambda y: np.expand_dims(y, 1),
    "squeeze": lambda y: np.squeeze(y[:, 1:2]),
    "atleast_3d": np.atleast_3d,
    "einsum": lambda y: np.einsum("ij->ji", y),
    "einsum diagonal": lambda y: np.einsum("ii->i", y[:, 1:]),
    "part of a part": lambda y: y[1:].T[::2],
}
READ_ONLY: dict[str, Any] = {
    "diagonal": np.diagonal,
    "diag": lambda y: np.diag(y, 1),
    "broadcast_to": lambda y: np.broadcast_to(y, (2, 3, 4)),
}
COPIES: dict[str, Any] = {
    "flatten": lambda y: y.flatten(),
    "ravel": lambda y: np.ravel(y.T),
    "concatenate": lambda y: np.concatenate([y]),
    "tile": lambda y: np.tile(y, 1),
    "repeat": lambda y: np.repeat(y, 1),
    "roll": lambda y: np.roll(y, 0),
    "pad": lambda y: np.pad(y, 0),
    "delete": lambda y: np.delete(y, []),
    "insert": lambda y: np.insert(y, [], []),
    "tril": lambda y: np.tril(y, 9),
    "block": np.block,
    "take": lambda y: np.take(y, 1, axis=0),
    "array": lambda y: y[[0, 1]],
    "reshape": lambda y: np.reshape(y, (4, 3), copy=True),
}


@pytest.mark.parametrize("name", VIEWS)
def test_writing_into_a_view_changes_its_base(name: str) -> None:
    def write(x: Any) -> Any:
        y = x * 1.0
        part = VIEWS[name](y)
        part *= 2.0
        part[0] = np.sin(x[0, 0])
        return y, part

    assert_traced(write, distinct((3, 4)))
    assert_differentiable(write, distinct((3, 4)))


@pytest.mark.parametrize("name", VIEWS | READ_ONLY)
def test_a_view_shows_what_is_written_into_its_base(name: str) -> None:
    def write(x: Any) -> Any:
        y = x * 1.0
        part = (VIEWS | READ_ONLY)[name](y)
        y[1] = x[0] * x[1]
        y[:, 2] += 3.0
        return part

    assert_traced(write, distinct((3, 4)))
    assert_differentiable(write, distinct((3, 4)))


@pytest.mark.parametrize("name", READ_ONLY)
def test_read_only_views_are_not_written(name: str) -> None:
    def write(x: Any) -> Any:
        READ_ONLY[name](x)[...] = 1.0

    with pytest.raises(rg.errors.ReadOnlyError):
        rg.jit(write)(distinct((3, 4)))


@pytest.mark.parametrize("name", COPIES)
def test_copies_are_apart(name: str) -> None:
    def write(x: Any) -> Any:
        y = x * 1.0
        part = COPIES[name](y)
        y[1] = 5.0
        part[...] = part * 2.0
        return y, part

    assert_traced(write, distinct((3, 4)))


ERRORS: dict[str, Any] = {
    "r_": lambda x: np.r_[x, 1.0],
    "c_": lambda x: np.c_[x, x[0]],
    "reshape": lambda x: np.reshape(x, (5, 2)),
    "reshape copy": lambda x: np.reshape(x.T, (12,), copy=False),
    "transpose": lambda x: np.transpose(x, (0, 0)),
    "swapaxes": lambda x: np.swapaxes(x, 0, 2),
    "moveaxis": lambda x: np.moveaxis(x, [0, 1], [0]),
    "squeeze": lambda x: np.squeeze(x, 0),
    "expand_dims": lambda x: np.expand_dims(x, 5),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 2)),
    "concatenate": lambda x: np.concatenate([x, x.T]),
    "concatenate nothing": lambda x: np.concatenate([x, 1.0]),
    "stack": lambda x: np.stack([x, x[0]]),
    "block": lambda x: np.block([[x], x]),
    "split": lambda x: np.split(x, 5),
    "hsplit": lambda x: np.hsplit(np.sum(x), 2),
    "dsplit": lambda x: np.dsplit(x, 2),
    "flip": lambda x: np.flip(x, 3),
    "rot90": lambda x: np.rot90(x, axes=(0, 0)),
    "roll": lambda x: np.roll(x, 1, axis=4),
    "repeat": lambda x: np.repeat(x, [1, 2], axis=0),
    "repeat less than never": lambda x: np.repeat(x, -1),
    "insert": lambda x: np.insert(x, 9, 1.0, axis=0),
    "delete": lambda x: np.delete(x, 9, axis=0),
    "pad": lambda x: np.pad(x, -1),
    "pad type": lambda x: np.pad(x, 1.5),
    "pad shape": lambda x: np.pad(x, ((1, 1), (1, 1), (1, 1))),
    "diag": lambda x: np.diag(x[None]),
    "diagonal": lambda x: np.diagonal(x, 0, 1, 1),
    "meshgrid": lambda x: np.meshgrid(x[0], x[1], indexing="ba"),
    "out": lambda x: np.concatenate([x, x], out=np.zeros((3, 3))),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_numpy(name: str) -> None:
    x = distinct((3, 4))
    expected = outcome(ERRORS[name], [x])
    assert isinstance(expected, type)
    assert_same(outcome(rg.jit(ERRORS[name]), [x]), expected)


UNSUPPORTED: dict[str, Any] = {
    "r_ with a string": lambda x: np.r_["0,2", x[0], x[1]],
    "pad by a function": lambda x: np.pad(x, 1, lambda *_: None),
    "pad odd": lambda x: np.pad(x, 1, "reflect", reflect_type="odd"),
    "pad empty": lambda x: np.pad(x, 1, "empty"),
}
OF_DATA: dict[str, Any] = {
    "counts": lambda x: np.repeat(x, np.argsort(x[:, 0]), axis=0),
    "shift": lambda x: np.roll(x, np.argmax(x)),
    "place": lambda x: np.insert(x, np.argmax(x), 1.0),
    "deletion": lambda x: np.delete(x, np.argmax(x)),
}


@pytest.mark.parametrize("name", OF_DATA)
def test_traced_integers_that_decide_shapes_are_those_of_the_call(name: str) -> None:
    function, x = OF_DATA[name], distinct((3, 4))
    compiled = rg.jit(function)
    for point in (x, -x, x[::-1].copy()):
        assert_same(compiled(point), function(point))
    assert_differentiable(function, x)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_traced_says_so(name: str) -> None:
    with pytest.raises(rg.errors.UnsupportedError, match="remedy"):
        rg.jit(UNSUPPORTED[name])(distinct((3, 4)))


def test_results_can_go_into_arrays_of_the_trace() -> None:
    def joined(x: Any) -> Any:
        y = np.zeros((6, 4))
        return np.concatenate([x, x * x], out=y), y, np.stack([x, x], out=np.empty((2, 3, 4)))[0, 0]

    assert_traced(joined, distinct((3, 4)))
    assert_differentiable(joined, distinct((3, 4)))


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (lambda x: np.sum(np.flip(x) * x), 6),
        (lambda x: np.sum(np.trace(x[:, 1:]) * x), 11),
        (lambda x: np.sum(np.diag(x[0]) ** 2), 7),
        (lambda x: np.sum(np.pad(x, 1) ** 3), 6),
    ],
)
def test_gradients_are_as_short_as_by_hand(function: Any, lines: int) -> None:
    text = rg.grad(function).source(distinct((3, 4)))
    body = [line for line in text.partition("def ")[2].splitlines()[1:] if line.strip()]
    assert len(body) <= lines, text


@pytest.mark.parametrize("zero", [0.0, -0.0, complex(0.0, -0.0)])
def test_a_frame_of_zeros_keeps_their_sign(zero: complex) -> None:
    def framed(x: Any) -> Any:
        return np.pad(x * type(zero)(1.0), 1, constant_values=zero)

    x = distinct((3, 4))
    found, expected = rg.jit(framed)(x), framed(x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found.imag), np.signbit(expected.imag))
    np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected.real))
