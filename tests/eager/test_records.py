"""Records: the document's examples, gradients by any tensor, what is compiled, and wrong uses."""

from __future__ import annotations

import gc
import pickle
import time
import weakref

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager.history import HISTORY

W = np.array([[1.11549, 6.5, 3.0], [8.75, 7.25, 5.25], [4.0, 8.25, 0.25]], np.float32)
X = np.array([[1, 2, 3]], np.float32)


def made() -> int:
    return rg.eager.Record.cache_info().misses


# ----------------------------------------------------------------------------------------- the document's examples


def test_values_are_updated_outside_while_a_record_keeps_its_own():
    x, y, printed = 2.0, 3.0, []
    for _ in range(2):
        rec = rg.eager.Record()
        tx, ty = rec.tensor(x), rec.tensor(y)
        z = tx * ty
        x = x - 0.1 * z.grad().wrt(tx)
        printed.append(x)
    assert printed == pytest.approx([1.7, 1.4], rel=1e-15)
    assert z.data == pytest.approx(5.1, rel=1e-15)


def training(steps, store):
    losses, slopes = [], []
    for _ in range(steps):
        rec = rg.eager.Record()
        linear = rg.nn.Linear(rec, 3, 3, store, name="fc")
        out = linear(rec.tensor(X))
        loss = np.sum(rg.nn.relu(out))
        grads = loss.grad()
        losses.append(loss.data)
        slopes.append(grads.wrt(out))
        linear.update(grads, rate=0.01)
    return losses, slopes


def test_the_linear_layer_of_the_document():
    store = rg.eager.ParameterStore()
    store["fc.W"] = W
    losses, slopes = training(5, store)
    assert [str(x) for x in losses] == ["90.61549", "90.19549", "89.77549", "89.35549", "88.935486"]
    assert all(x.dtype == np.float32 for x in losses)
    for slope in slopes:
        np.testing.assert_array_equal(slope, np.ones((1, 3), np.float32), strict=True)


def test_a_record_is_used_again_and_earlier_gradients_stay():
    rec = rg.eager.Record()
    x, y = rec.tensor(0.5), rec.tensor(4.2)
    z = x * y + np.sin(x)
    first = z.grad()
    assert z.data == 2.579425538604203
    assert (first.wrt(x), first.wrt(y)) == (5.077582561890373, 0.5)
    w = z**2
    assert w.grad().wrt(x) == pytest.approx(26.19449226902277, rel=1e-15)
    assert (first.wrt(x), first.wrt(y)) == (5.077582561890373, 0.5)
    assert first.wrt(w) == 0.0


def test_shared_nodes_take_linear_work():
    rec = rg.eager.Record()
    x = rec.tensor(3.0)
    y = x**2
    assert (y + y).grad().wrt(x) == 12.0
    x = y = rec.tensor(1.0)
    for _ in range(60):
        y = y + y
    assert y.grad().wrt(x) == 2.0**60


def test_log_softmax():
    rec = rg.eager.Record()
    x = rec.tensor([1.0, 2.0, 3.0, 4.0])
    expected = [0.87176559, 0.65142273, 0.05246873, -1.57565704]
    np.testing.assert_allclose(np.sum(rg.nn.log_softmax(x)).grad().wrt(x), expected, atol=5e-9)


def test_an_unreachable_tensor_has_a_zero_gradient_of_its_shape():
    rec = rg.eager.Record()
    x, other = rec.tensor(2.0), rec.tensor(np.ones((2, 3), np.float32))
    grads = (x * x).grad()
    np.testing.assert_array_equal(grads.wrt(other), np.zeros((2, 3), np.float32), strict=True)
    np.testing.assert_array_equal(grads.wrt(rec.tensor(np.ones(4))), np.zeros(4), strict=True)


# -------------------------------------------------------------------------------------- against compiled gradients

MASK = np.array([[True, False, True], [False, True, True]])
PROGRAMS = {
    "polynomial": lambda x, y: np.sum(x**3 - 2.0 * x * y + y**2),
    "transcendental": lambda x, y: np.sum(np.exp(-x * x) * np.sin(y) + np.log(1.0 + y * y) / np.cosh(x)),
    "products": lambda x, y: np.sum((x @ y.T) ** 2) + np.sum(np.dot(x[0], y[1])),
    "broadcasting": lambda x, y: np.sum((x[:, None, :] - y[None, :, :]) ** 2 * np.array([1.0, 2.0, 3.0])),
    "indexing": lambda x, y: np.sum(x[1:, ::2] * y[0, 1]) + x[np.array([0, 1, 1]), np.array([2, 0, 0])].sum(),
    "joining": lambda x, y: np.sum(np.concatenate([x, y], axis=1)[:, 1:5] ** 2) + np.sum(np.stack([x, y])[1] * x),
    "splitting": lambda x, y: np.sum(np.multiply(*np.split(np.concatenate([x, y]), 2))),
    "extrema": lambda x, y: np.max(x * y) + np.min(x) * y.max() + np.sum(np.maximum(x, y)),
    "shapes": lambda x, y: np.sum(x.reshape(3, 2) @ y.transpose().T.reshape(2, 3)) + np.sum(x.T[1]),
    "reductions": lambda x, y: np.mean(x, axis=0).sum() * y.std() + np.prod(x) + np.cumsum(y, axis=1).mean(),
    "choosing": lambda x, y: np.sum(np.where(x > y, x * x, y)) + np.sum(np.clip(x, -0.5, 0.5) * y),
    "einsum": lambda x, y: np.einsum("ij,kj->", x, y) * np.trace(x @ y.T),
    "masks": lambda x, y: np.sum(x[MASK] ** 2 * y[MASK]) + np.sum(y[1, MASK[0]] * x[:, MASK[1], None]),
    "sorting": lambda x, y: np.sum(np.sort(x, axis=1) * np.arange(3.0) * y),
    "methods of ufuncs": lambda x, y: np.add.reduce(x * y, axis=None) + np.multiply.outer(x[0], y[0]).sum(),
    "float32": lambda x, y: np.sum(x.astype(np.float32) * np.float32(2.0) * y.astype(np.float32)).astype(float),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_compiled_function(name):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    value, expected = rg.value_and_grad(PROGRAMS[name], argnums=(0, 1))(a, b)
    rec = rg.eager.Record()
    x, y = rec.tensor(a), rec.tensor(b)
    loss = PROGRAMS[name](x, y)
    np.testing.assert_allclose(loss.data, value, rtol=1e-14)
    grads = loss.grad()
    for t, slope in zip((x, y), expected, strict=True):
        np.testing.assert_allclose(grads.wrt(t), slope, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("size", [3, 2047, 2048, 9000])
def test_gradients_by_intermediates_below_and_above_the_thresholds_of_storage(size):
    a = np.linspace(-1.0, 1.0, size)
    rec = rg.eager.Record()
    x = rec.tensor(a)
    y = np.tanh(x)
    z = y * y + x
    grads = np.sum(np.exp(z) * y).grad()
    by_y, by_z, by_x = grads.wrt(y), grads.wrt(z), grads.wrt(x)
    np.testing.assert_allclose(by_z, np.exp(z.data) * y.data, rtol=1e-13)
    np.testing.assert_allclose(by_y, np.exp(z.data) * (1 + 2 * y.data**2), rtol=1e-13)
    np.testing.assert_allclose(by_x, by_y * (1 - y.data**2) + by_z, rtol=1e-12)
    np.testing.assert_array_equal(a, np.linspace(-1.0, 1.0, size))


def test_a_record_is_not_changed_by_what_its_owner_does_to_an_array():
    a, c = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    rec = rg.eager.Record()
    x = rec.tensor(a)
    loss = np.sum(x * c * x)
    a[:], c[:] = 100.0, 100.0
    np.testing.assert_array_equal(loss.grad().wrt(x), [6.0, 16.0])


def test_python_may_branch_on_values():
    def run(value):
        rec = rg.eager.Record()
        x = rec.tensor(value)
        y = x * x if x > 1.0 else 3.0 * x
        return y.grad().wrt(x)

    assert [run(2.0), run(0.5), run(3.0), run(1.0)] == [4.0, 3.0, 6.0, 3.0]


def test_a_mask_of_known_values_picks_elements():
    def run(values):
        rec = rg.eager.Record()
        x = rec.tensor(values)
        return np.sum(x[x > 0] ** 2).grad().wrt(x)

    np.testing.assert_array_equal(run([1.0, -1.0, 3.0]), [2.0, 0.0, 6.0])
    np.testing.assert_array_equal(run([-1.0, 2.0, 3.0]), [0.0, 4.0, 6.0])
    np.testing.assert_array_equal(run([-1.0, -2.0, 3.0]), [0.0, 0.0, 6.0])


def test_no_grad_detach_and_stop_gradient_make_constants():
    def run(stopped):
        rec = rg.eager.Record()
        x = rec.tensor(2.0)
        y = x**3
        return (stopped(y) * x).grad().wrt(x)

    def under(y):
        with rg.no_grad():
            return y * 1.0

    assert [run(lambda y: y), run(under), run(lambda y: y.detach()), run(rg.stop_gradient)] == [32.0, 8.0, 8.0, 8.0]


def test_functions_with_several_results_and_with_plain_ones():
    rec = rg.eager.Record()
    x = rec.tensor([[1.0, 2.0], [3.0, 4.0]])
    left, right = np.split(x, 2, axis=1)
    assert np.shape(x) == (2, 2)
    assert np.ndim(left) == 2
    np.testing.assert_array_equal(np.sum(left * right).grad().wrt(x), [[2.0, 1.0], [4.0, 3.0]])
    assert np.argmax(x).data == 3
    assert [t.data[0] for t in x] == [1.0, 3.0]


# ------------------------------------------------------------------------------------------------ what is compiled


def test_a_training_loop_records_and_compiles_in_its_first_step_only():
    store = rg.eager.ParameterStore(np.random.default_rng(3), np.float32)
    training(1, store)
    before = made()
    training(5, store)
    assert made() == before
    assert rg.eager.Record.cache_info().hits > 0


def test_new_inputs_record_nothing_and_new_shapes_do():
    def run(x):
        rec = rg.eager.Record()
        t = rec.tensor(x)
        return np.sum(np.sinh(t) * t).grad().wrt(t)

    run(np.ones(3))
    before = made()
    np.testing.assert_allclose(run(np.zeros(3)), np.zeros(3))
    assert made() == before
    run(np.ones(4))
    assert made() > before
    before = made()
    run(np.ones(4, np.float32))
    assert made() > before


def test_another_static_argument_is_another_operation():
    def run(axis):
        rec = rg.eager.Record()
        t = rec.tensor([[1.0, 2.0], [3.0, 5.0]])
        return np.sum(np.max(t, axis=axis) * np.array([1.0, 10.0])).grad().wrt(t)

    np.testing.assert_array_equal(run(0), [[0, 0], [1, 10]])
    np.testing.assert_array_equal(run(1), [[0, 1], [0, 10]])
    np.testing.assert_array_equal(run(0), [[0, 0], [1, 10]])


def test_history_begins_anew_when_it_is_long(monkeypatch):
    monkeypatch.setattr("retrograd.eager.history.LARGEST", 20)
    for n in range(1, 8):
        rec = rg.eager.Record()
        x = rec.tensor(np.ones(n))
        assert np.sum(x * x * x).grad().wrt(x)[0] == 3.0
    assert HISTORY.size <= 24


def test_the_adjoint_reads_values_instead_of_computing_them_again():
    rec = rg.eager.Record()
    x = rec.tensor(np.ones(3))
    loss = np.sum(np.exp(np.sin(x)))
    adjoint = rec._steps[loss.position].adjoint(loss.position)
    assert "np.exp" not in adjoint.executable.module.source
    assert "np.sin" not in adjoint.executable.module.source
    np.testing.assert_allclose(loss.grad().wrt(x), np.exp(np.sin(1.0)) * np.cos(np.ones(3)))


@pytest.mark.slow
def test_a_step_costs_at_most_30_microseconds_beyond_the_compiled_body():
    store = rg.eager.ParameterStore()
    store["fc.W"] = W
    training(10, store)
    rec = rg.eager.Record()
    t = rec.tensor(W)
    out = rec.tensor(X) @ t
    loss = np.sum(rg.nn.relu(out))
    loss.grad().wrt(out)
    adjoint = rec._steps[loss.position].adjoint(loss.position)
    given = [rec.values[k] for k in adjoint.reads]
    run = adjoint.executable.function

    def body():
        y = X @ W
        np.sum(np.where(y <= 0, 0, y))
        run(*given)
        return W - np.float32(0.01) * W

    def seconds(function, n=2000):
        best = np.inf
        for _ in range(15):
            start = time.perf_counter()
            for _ in range(n):
                function()
            best = min(best, (time.perf_counter() - start) / n)
        return best

    assert seconds(lambda: training(1, store)) - seconds(body) <= 30e-6


def test_closing_a_record_frees_its_values():
    with rg.eager.Record() as rec:
        x = rec.tensor(np.ones(1000))
        inner = np.exp(x)
        kept = weakref.ref(inner.data)
        loss = np.sum(inner * x)
    assert loss.data == pytest.approx(1000 * np.e)
    del inner
    gc.collect()
    assert kept() is None


# ------------------------------------------------------------------------------------------------------ wrong uses


def closed():
    with rg.eager.Record() as rec:
        x = rec.tensor(1.0)
        y = x * x
    return rec, x, y


class Foreign:
    """An array of another library."""

    def __array__(self, *_, **__):
        return np.ones(1)


WRONG = {
    "a foreign array": (lambda: rg.eager.Record().tensor([1.0]) * Foreign(), rg.errors.UnsupportedError),
    "a foreign array first": (lambda: np.add(Foreign(), rg.eager.Record().tensor([1.0])), rg.errors.UnsupportedError),
    "a foreign array in a list": (
        lambda: np.stack([rg.eager.Record().tensor([1.0]), Foreign()]),
        rg.errors.UnsupportedError,
    ),
    "mixed records": (
        lambda: rg.eager.Record().tensor(1.0) * rg.eager.Record().tensor(2.0),
        rg.errors.RecordMismatchError,
    ),
    "mixed in a list": (
        lambda: np.stack([rg.eager.Record().tensor(1.0), rg.eager.Record().tensor(2.0)]),
        rg.errors.RecordMismatchError,
    ),
    "a tensor of another record as a value": (
        lambda: rg.eager.Record().tensor(rg.eager.Record().tensor(1.0)),
        rg.errors.RecordMismatchError,
    ),
    "the gradient by a tensor of another record": (
        lambda: rg.eager.Record().tensor(1.0).grad().wrt(rg.eager.Record().tensor(1.0)),
        rg.errors.RecordMismatchError,
    ),
    "the gradient by an array": (
        lambda: rg.eager.Record().tensor(1.0).grad().wrt(np.ones(1)),
        rg.errors.RecordMismatchError,
    ),
    "mixed with a Tensor": (
        lambda: rg.eager.Record().tensor(1.0) * rg.eager.Tensor(1.0, True),
        rg.errors.RecordMismatchError,
    ),
    "mixed with a Tensor, reflected": (
        lambda: rg.eager.Tensor(1.0, True) * rg.eager.Record().tensor(1.0),
        rg.errors.RecordMismatchError,
    ),
    "mixed with a traced value": (
        lambda: rg.grad(lambda x: rg.eager.Record().tensor(1.0) * x)(1.0),
        rg.errors.RecordMismatchError,
    ),
    "mixed with a traced value, reflected": (
        lambda: rg.grad(lambda x: x * rg.eager.Record().tensor(1.0))(1.0),
        rg.errors.TracerConversionError,
    ),
    "computing in a closed record": (lambda: closed()[1] + 1.0, rg.errors.LeakedTracerError),
    "the gradient in a closed record": (lambda: 2.0 * closed()[2].grad().wrt(0), rg.errors.LeakedTracerError),
    "a new tensor in a closed record": (lambda: closed()[0].tensor(1.0), rg.errors.LeakedTracerError),
    "several elements": (lambda: rg.eager.Record().tensor([1.0, 2.0]).grad(), rg.errors.NonScalarOutputError),
    "an integer loss": (lambda: rg.eager.Record().tensor(3).grad(), rg.errors.NonDifferentiableError),
    "a complex loss": (lambda: rg.eager.Record().tensor(3j).grad(), rg.errors.NonDifferentiableError),
    "an array of objects": (lambda: rg.eager.Record().tensor(np.array([None])), rg.errors.UnsupportedError),
    "writing": (lambda: rg.eager.Record().tensor([1.0]).__setitem__(0, 2.0), rg.errors.UnsupportedError),
    "out=": (lambda: np.add(rg.eager.Record().tensor([1.0]), 1.0, out=np.zeros(1)), rg.errors.UnsupportedError),
    "pickling": (lambda: pickle.dumps(rg.eager.Record().tensor(1.0)), rg.errors.OptionError),
    "copyto": (lambda: np.copyto(rg.eager.Record().tensor([1.0]), 2.0), rg.errors.UnsupportedError),
    "adding at indices": (lambda: np.add.at(rg.eager.Record().tensor([1.0]), [0], 1.0), rg.errors.UnsupportedError),
    "float": (lambda: float(rg.eager.Record().tensor(1.0)), rg.errors.TracerConversionError),
    "an array of it": (lambda: np.asarray(rg.eager.Record().tensor(1.0)), rg.errors.TracerConversionError),
    "a shape that depends on data": (
        lambda: np.unique(rg.eager.Record().tensor([1.0, 1.0])),
        rg.errors.ControlFlowError,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_use_is_a_named_error_with_line_and_remedy(name):
    wrong, error = WRONG[name]
    with pytest.raises(error) as caught:
        wrong()
    assert __file__ in str(caught.value)
    assert caught.value.remedy


def test_integers_have_no_gradient():
    rec = rg.eager.Record()
    x, n = rec.tensor(2.0), rec.tensor([1, 2])
    with pytest.raises(rg.errors.NonDifferentiableError):
        np.sum(x * n).grad().wrt(n)


def test_an_operation_that_fails_leaves_the_record_as_it_was():
    def run(index):
        rec = rg.eager.Record()
        x = rec.tensor([1.0, 2.0, 3.0])
        try:
            y = x[index]
        except IndexError:
            y = x[np.array([0])]
        return np.sum(y * y * x[0]).grad().wrt(x)

    np.testing.assert_array_equal(run(np.array([2])), [9.0, 0.0, 6.0])
    np.testing.assert_array_equal(run(np.array([7])), [3.0, 0.0, 0.0])
    np.testing.assert_array_equal(run(np.array([1])), [4.0, 4.0, 0.0])


def test_the_gradient_of_a_value_by_itself_is_one():
    rec = rg.eager.Record()
    x = rec.tensor(3.0)
    y = x * x
    assert x.grad().wrt(x) == 1.0
    grads = y.grad()
    assert (grads.wrt(y), grads.wrt(x)) == (1.0, 6.0)
    assert y.detach().grad().wrt(x) == 0.0


def test_several_losses_of_one_record_have_gradients_of_their_own():
    rec = rg.eager.Record()
    x = rec.tensor([1.0, 2.0, 3.0])
    y = np.sin(x)
    slopes = [t.grad().wrt(x) for t in y]
    np.testing.assert_allclose(slopes, np.diag(np.cos(x.data)), rtol=1e-15)


def test_numbers_keep_their_kind():
    rec = rg.eager.Record()
    x, a = rec.tensor(2.0), rec.tensor(np.array([2.0], np.float32))
    assert type((x * x).grad().wrt(x)) is np.float64
    assert type(x.data) is np.float64
    slope = np.sum(a * a * 3.0).grad().wrt(a)
    assert (slope.dtype, slope.shape) == (np.float32, (1,))
