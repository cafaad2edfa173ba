"""Tensors: the roles of nodes, accumulation, deep and wide graphs, functions of the user's own, wrong uses."""

from __future__ import annotations

import copy
import gc
import itertools
import operator
import pickle
import weakref

import numpy as np
import pytest

import retrograd as rg
from tests.eager.test_records import PROGRAMS


def tensor(x, requires_grad=True):
    return rg.eager.Tensor(x, requires_grad=requires_grad)


# -------------------------------------------------------------------------------------------------- roles of nodes


@pytest.mark.parametrize("wants", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("detached", list(itertools.product([False, True], repeat=2)))
def test_the_truth_table_of_an_operation(wants, detached):
    leaves = [tensor(v, on) for v, on in zip((2.0, 5.0), wants, strict=True)]
    a, b = (x.detach() if off else x for x, off in zip(leaves, detached, strict=True))
    out = a * b
    counts = [on and not off for on, off in zip(wants, detached, strict=True)]
    assert out.requires_grad is any(counts)
    assert out.is_leaf is not any(counts)
    if not any(counts):
        assert out.grad_fn is None
        with pytest.raises(rg.errors.NonDifferentiableError):
            out.backward()
        return
    assert out.grad_fn.name == "multiply"
    names = [node and node.name for node, _ in out.grad_fn.next_functions]
    assert names == ["AccumulateGrad" if on else None for on in counts]
    out.backward()
    for leaf, other, on in zip(leaves, (5.0, 2.0), counts, strict=True):
        assert (leaf.grad.data if on else leaf.grad) == (other if on else None)


def test_results_without_cotangents_have_no_past():
    x = tensor([1.0, -2.0])
    for out in (x > 0, np.argmax(x), np.floor_divide(x, 2.0) == -1.0):
        assert (out.requires_grad, out.grad_fn) == (False, None)
    mantissa, exponent = np.frexp(x)
    assert (mantissa.grad_fn.name, exponent.grad_fn) == ("frexp", None)
    np.sum(np.where(x > 0, x, 3.0 * x) * mantissa).backward()
    np.testing.assert_array_equal(x.grad.data, [1.0, -3.0])


def test_leaves_constants_and_results():
    leaf, constant = tensor(1.0), tensor(1.0, requires_grad=False)
    assert (leaf.is_leaf, leaf.requires_grad, leaf.grad_fn) == (True, True, None)
    assert (constant.is_leaf, constant.requires_grad, constant.grad_fn) == (True, False, None)
    result = leaf + constant
    assert (result.is_leaf, result.requires_grad) == (False, True)
    result.backward()
    assert result.grad is None
    assert (leaf.grad.is_leaf, leaf.grad.requires_grad, leaf.grad.grad_fn) == (True, False, None)
    comparison = leaf > constant
    assert (comparison.is_leaf, comparison.requires_grad, bool(comparison)) == (True, False, False)


def test_the_graph_can_be_walked():
    x, y = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    out = np.sum(np.exp(x) @ y + 3.0)
    names = []
    node = out.grad_fn
    while node is not None and node.next_functions:
        names.append(node.name)
        node = node.next_functions[0][0]
    assert names == ["sum", "add", "matmul", "exp"]
    assert node.name == "AccumulateGrad"
    assert node.variable is x


def test_gradients_add_up_until_they_are_forgotten():
    p = tensor(5.0)
    out = 3 * p
    out.backward()
    assert p.grad.data == 3.0
    out.backward()
    assert p.grad.data == 6.0
    (p * p).backward()
    assert p.grad.data == 16.0
    p.zero_grad()
    assert p.grad is None
    out.backward()
    assert p.grad.data == 3.0


def test_broadcasting_on_both_sides_of_a_maximum():
    W = tensor([1.0, 3.0, 2.0])
    y = W + np.max(W)
    out = y.dot(y)
    out.backward()
    assert out.data == 77.0
    np.testing.assert_array_equal(W.grad.data, [8.0, 42.0, 10.0])


def test_a_cotangent_may_be_given():
    x = tensor([1.0, 2.0])
    y = x * x
    y.backward(np.array([1.0, 10.0]))
    y.backward(rg.eager.Tensor([1.0, 0.0]))
    np.testing.assert_array_equal(x.grad.data, [4.0, 40.0])


def test_a_leaf_may_be_differentiated_itself():
    x = tensor(2.0)
    x.backward()
    assert x.grad.data == 1.0


def test_data_is_set_anew_while_results_keep_theirs():
    x, y = tensor(2.0), tensor(3.0)
    for expected in (1.7, 1.4):
        z = x * y
        z.backward()
        x.data = x.data - 0.1 * x.grad
        x.zero_grad()
        assert x.data == pytest.approx(expected, rel=1e-15)
    assert z.data == pytest.approx(5.1, rel=1e-15)
    z.backward()
    assert y.grad.data == pytest.approx(2.0 + 2 * 1.7, rel=1e-15)


def test_what_the_owner_does_to_an_array_changes_nothing():
    a, c = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    x = tensor(a)
    loss = np.sum(x * c * x)
    a[:], c[:] = 100.0, 100.0
    loss.backward()
    np.testing.assert_array_equal(x.grad.data, [6.0, 16.0])
    with pytest.raises(ValueError, match="read-only"):
        x.data[0] = 1.0


def test_a_leaf_is_copied_and_pickled_without_its_gradient():
    x = tensor([1.0, 2.0])
    np.sum(x * x).backward()
    for other in (copy.copy(x), copy.deepcopy({"x": x})["x"], pickle.loads(pickle.dumps(x))):
        assert other.requires_grad
        assert other.grad is None
        np.testing.assert_array_equal(other.data, x.data)
        np.sum(other * 3.0).backward()
        np.testing.assert_array_equal(x.grad.data, [2.0, 4.0])


def test_a_number_may_be_added_to_in_place():
    x = tensor(2.0)
    total = first = x * x
    total += x
    assert (total.data, first.data) == (6.0, 4.0)
    total.backward()
    assert x.grad.data == 5.0


def test_no_grad_and_stop_gradient():
    x = tensor(2.0)
    with rg.no_grad():
        y = x**3
    assert y.is_leaf
    (y * x + rg.stop_gradient(x * x) * x).backward()
    assert x.grad.data == 12.0


def test_dtypes_are_kept():
    x, y = tensor(np.float32([1.0, 2.0])), tensor(np.float64([3.0, 4.0]))
    np.sum(2.0 * x * y).backward()
    assert (x.grad.dtype, y.grad.dtype) == (np.float32, np.float64)
    assert (2.0 * x).dtype == np.float32


def test_results_of_several_parts():
    x = tensor([1.0, 2.0, 3.0, 4.0])
    left, right = np.split(x, 2)
    assert left.grad_fn is right.grad_fn
    np.sum(right * right).backward()
    np.testing.assert_array_equal(x.grad.data, [0.0, 0.0, 6.0, 8.0])
    np.sum(left * right).backward()
    np.testing.assert_array_equal(x.grad.data, [3.0, 4.0, 7.0, 10.0])


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_the_compiled_function(name):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    value, expected = rg.value_and_grad(PROGRAMS[name], argnums=(0, 1))(a, b)
    x, y = tensor(a), tensor(b)
    loss = PROGRAMS[name](x, y)
    np.testing.assert_allclose(loss.data, value, rtol=1e-14)
    loss.backward()
    for t, slope in zip((x, y), expected, strict=True):
        np.testing.assert_allclose(t.grad.data, slope, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("size", [3, 2047, 2048, 9000])
def test_values_that_nodes_keep_are_not_written_into(size):
    x = tensor(np.linspace(-1.0, 1.0, size))
    y = np.tanh(x)
    z = np.exp(y * y + x)
    w = np.sum(z * y)
    kept = [t.data.copy() for t in (x, y, z)]
    w.backward()
    once = x.grad.data
    w.backward()
    np.testing.assert_array_equal(x.grad.data, 2 * once)
    for t, before in zip((x, y, z), kept, strict=True):
        np.testing.assert_array_equal(t.data, before)
    expected = rg.grad(lambda v: np.sum(np.exp(np.tanh(v) ** 2 + v) * np.tanh(v)))(x.data)
    np.testing.assert_allclose(once, expected, rtol=1e-12, atol=1e-14)


# ------------------------------------------------------------------------------------------- deep and wide graphs


def test_a_chain_of_100_000_operations_and_its_end():
    x = y = tensor(1.0)
    for _ in range(50_000):
        y = y * 1.00001
        y = y - 0.0
    y.backward()
    assert x.grad.data == pytest.approx(1.00001**50_000, rel=1e-10)
    del x, y


def test_sixty_doublings_take_linear_work():
    x = y = tensor(1.0)
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad.data == 2.0**60


def test_a_value_with_many_uses():
    x = tensor(1.5)
    total = x * 0.0
    for k in range(200):
        total = total + x * float(k)
    total.backward()
    assert x.grad.data == sum(range(200))


def test_a_graph_is_freed_with_its_end():
    x = tensor(np.ones(100))
    inner = np.exp(x)
    kept = weakref.ref(inner.data)
    out = np.sum(inner)
    del inner
    assert kept() is not None
    del out
    gc.collect()
    assert kept() is None


def test_a_leaf_may_be_gone_before_backward():
    x, w = tensor(2.0), tensor(3.0)
    out = x * w
    del w
    gc.collect()
    out.backward()
    assert x.grad.data == 3.0


# ---------------------------------------------------------------------------------------- functions of one's own


class Scale(rg.eager.Function):
    """x · y, whose backward checks what it is given."""

    @staticmethod
    def forward(ctx, x, y, factor):
        assert isinstance(x, rg.eager.Tensor)
        assert not x.requires_grad
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return x * y * factor

    @staticmethod
    def backward(ctx, ct):
        x, y = ctx.saved_tensors
        return ct * y * ctx.factor if ctx.needs_input_grad[0] else None, ct * x * ctx.factor, None


class Parts(rg.eager.Function):
    """Two results."""

    @staticmethod
    def forward(ctx, x):
        return x[:1] * 2.0, np.array([7.0, 8.0])

    @staticmethod
    def backward(ctx, first, second):
        return np.concatenate([2.0 * first, second])


def test_a_function_of_ones_own_has_a_node_like_others():
    x, y = tensor([1.0, 2.0]), tensor([3.0, 4.0], requires_grad=False)
    out = Scale.apply(x, y, 10.0)
    assert out.grad_fn.name == "Scale"
    assert [node and node.name for node, _ in out.grad_fn.next_functions] == ["AccumulateGrad", None, None]
    np.sum(out * out).backward()
    np.testing.assert_array_equal(x.grad.data, 2 * 100.0 * x.data * y.data**2)
    assert y.grad is None


def test_a_function_may_have_several_results():
    x = tensor([1.0, 2.0, 3.0])
    first, second = Parts.apply(x)
    np.testing.assert_array_equal(second.data, [7.0, 8.0])
    np.sum(first).backward()
    np.testing.assert_array_equal(x.grad.data, [2.0, 0.0, 0.0])
    np.sum(second * second).backward()
    np.testing.assert_array_equal(x.grad.data, [2.0, 14.0, 16.0])


def test_a_function_of_constants_or_under_no_grad_makes_constants():
    assert Scale.apply(rg.eager.Tensor(1.0), rg.eager.Tensor(2.0), 3.0).is_leaf
    with rg.no_grad():
        assert Scale.apply(tensor(1.0), tensor(2.0), 3.0).is_leaf


# ------------------------------------------------------------------------------------------------------ wrong uses


class TooFew(Scale):
    """One cotangent for three arguments."""

    @staticmethod
    def backward(ctx, ct):
        return ct


class WrongShape(Scale):
    """Cotangents of a wrong shape."""

    @staticmethod
    def backward(ctx, ct):
        return np.ones(7), None, None


def back(t):
    t.backward()


def set_data(t, value):
    t.data = value


def set_requires_grad(t):
    t.requires_grad = True


class Foreign:
    """An array of another library."""

    def __array__(self, *_, **__):
        return np.ones(1)


WRONG = {
    "a foreign array": (lambda: tensor([1.0]) * Foreign(), rg.errors.UnsupportedError),
    "a foreign array first": (lambda: np.add(Foreign(), tensor([1.0])), rg.errors.UnsupportedError),
    "a foreign array in a list": (lambda: np.stack([tensor([1.0]), Foreign()]), rg.errors.UnsupportedError),
    "integers": (lambda: rg.eager.Tensor([1, 2], requires_grad=True), rg.errors.NonDifferentiableError),
    "a tensor of a tensor": (lambda: rg.eager.Tensor(tensor(1.0)), rg.errors.RecordMismatchError),
    "objects": (lambda: rg.eager.Tensor(np.array([None])), rg.errors.UnsupportedError),
    "backward of a constant": (lambda: back(rg.eager.Tensor(1.0) * 2.0), rg.errors.NonDifferentiableError),
    "backward of several elements": (lambda: back(tensor([1.0, 2.0]) * 2.0), rg.errors.NonScalarOutputError),
    "a cotangent of another shape": (lambda: (tensor([1.0, 2.0]) * 2.0).backward(np.ones(3)), rg.errors.ShapeError),
    "data of another shape": (lambda: set_data(tensor([1.0, 2.0]), np.ones(3)), rg.errors.ShapeError),
    "requires_grad of a result": (lambda: set_requires_grad(tensor(1.0) * 2.0), rg.errors.OptionError),
    "writing": (lambda: tensor([1.0]).__setitem__(0, 2.0), rg.errors.UnsupportedError),
    "adding in place": (lambda: operator.iadd(tensor([1.0]), 1.0), rg.errors.UnsupportedError),
    "copying a result deeply": (lambda: copy.deepcopy(tensor(1.0) * 2.0), rg.errors.OptionError),
    "out=": (lambda: np.exp(tensor([1.0]), out=np.zeros(1)), rg.errors.UnsupportedError),
    "float": (lambda: float(tensor(1.0)), rg.errors.TracerConversionError),
    "an array of it": (lambda: np.asarray(tensor(1.0)), rg.errors.TracerConversionError),
    "too few cotangents": (lambda: TooFew.apply(tensor(1.0), 2.0, 3.0).backward(), rg.errors.TreeError),
    "a cotangent of a wrong shape": (lambda: WrongShape.apply(tensor(1.0), 2.0, 3.0).backward(), rg.errors.ShapeError),
    "a traced value": (lambda: rg.grad(lambda x: tensor(1.0) * x)(1.0), rg.errors.RecordMismatchError),
    "a traced value, reflected": (lambda: rg.grad(lambda x: x * tensor(1.0))(1.0), rg.errors.TracerConversionError),
    "a shape that depends on data": (lambda: np.unique(tensor([1.0, 1.0])), rg.errors.ControlFlowError),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_use_is_a_named_error_with_line_and_remedy(name):
    wrong, error = WRONG[name]
    with pytest.raises(error) as caught:
        wrong()
    assert __file__ in str(caught.value)
    assert caught.value.remedy


def test_a_constant_tensor_converts_and_a_number_is_taken_out():
    assert float(rg.eager.Tensor(2.0)) == 2.0
    np.testing.assert_array_equal(np.asarray(rg.eager.Tensor([1.0, 2.0])), [1.0, 2.0])
    assert tensor(2.5).item() == 2.5
    assert int(rg.eager.Tensor(3)) == 3
    assert [10, 20, 30][rg.eager.Tensor(1)] == 20


def test_classes_of_arrays_whose_rules_would_be_lost_are_refused():
    masked, t = np.ma.masked_array([1.0, 2.0], [False, True]), rg.eager.Tensor([1.0, 2.0])
    for put in (rg.eager.Tensor, rg.eager.Record().tensor, lambda x: setattr(t, "data", x), lambda x: t + x):
        with pytest.raises(rg.errors.UnsupportedError, match="an array of the class MaskedArray"):
            put(masked)
