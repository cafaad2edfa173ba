"""Functions of networks on every kind of array, and layers of records."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

SOBEL = np.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
RNG = np.random.default_rng(5)


def direct_conv2d(x, W, b, stride, padding):
    """Written out, one number at a time."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    n, _, height, width = x.shape
    c_out, _, k, m = W.shape
    rows, columns = (height - k) // stride + 1, (width - m) // stride + 1
    out = np.zeros((n, c_out, rows, columns))
    for at in np.ndindex(out.shape):
        image, o, i, j = at
        part = x[image, :, i * stride : i * stride + k, j * stride : j * stride + m]
        out[at] = np.sum(part * W[o]) + b[o]
    return out


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_conv2d_is_the_direct_loop(stride, padding):
    x, W, b = RNG.normal(size=(2, 3, 7, 6)), RNG.normal(size=(4, 3, 3, 2)), RNG.normal(size=4)
    found = rg.nn.conv2d(x, W, b, stride=stride, padding=padding)
    np.testing.assert_allclose(found, direct_conv2d(x, W, b, stride, padding), rtol=1e-12, atol=1e-13)
    rg.check_grads(lambda x, W, b: rg.nn.conv2d(x, W, b, stride=stride, padding=padding), (x, W, b), order=1)


def test_sobel_finds_edges_and_its_gradient_is_the_direct_one():
    image = np.zeros((1, 1, 6, 8))
    image[:, :, :, 4:] = 1.0
    kernel = SOBEL[None, None]
    edges = rg.nn.conv2d(image, kernel)
    np.testing.assert_array_equal(edges, direct_conv2d(image, kernel, [0.0], 1, 0))
    assert set(np.flatnonzero(edges[0, 0, 0])) == {2, 3}
    x = rg.eager.Tensor(image, requires_grad=True)
    ct = RNG.normal(size=edges.shape)
    rg.nn.conv2d(x, kernel).backward(ct)
    expected = np.zeros_like(image)
    for i, j in np.ndindex(edges.shape[2:]):
        expected[0, 0, i : i + 3, j : j + 3] += ct[0, 0, i, j] * SOBEL
    np.testing.assert_allclose(x.grad.data, expected, rtol=1e-13, atol=1e-14)


FUNCTIONS = {
    "relu": (rg.nn.relu, (RNG.normal(size=(3, 4)),)),
    "leaky_relu": (lambda x: rg.nn.leaky_relu(x, 0.2), (RNG.normal(size=(3, 4)),)),
    "log_softmax": (rg.nn.log_softmax, (RNG.normal(size=(3, 4)),)),
    "log_softmax over rows": (lambda x: rg.nn.log_softmax(x, axis=0), (RNG.normal(size=(3, 4)),)),
    "cross_entropy": (lambda x: rg.nn.cross_entropy(x, np.array([0, 3, 1])), (RNG.normal(size=(3, 4)),)),
    "linear": (rg.nn.linear, (RNG.normal(size=(5, 3)), RNG.normal(size=(3, 2)), RNG.normal(size=2))),
    "conv2d": (rg.nn.conv2d, (RNG.normal(size=(2, 1, 4, 4)), RNG.normal(size=(2, 1, 3, 3)), RNG.normal(size=2))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_one_on_every_kind_of_array(name):
    function, args = FUNCTIONS[name]

    def loss(*args):
        out = function(*args)
        return np.sum(out * out * np.cos(np.arange(float(out.size))).reshape(out.shape))

    value, slopes = rg.value_and_grad(loss, argnums=tuple(range(len(args))))(*args)
    np.testing.assert_allclose(value, loss(*args), rtol=1e-13)
    rec = rg.eager.Record()
    recorded = [rec.tensor(x) for x in args]
    grads = loss(*recorded).grad()
    eager = [rg.eager.Tensor(x, requires_grad=True) for x in args]
    loss(*eager).backward()
    for slope, mine, other in zip(slopes, recorded, eager, strict=True):
        np.testing.assert_allclose(grads.wrt(mine), slope, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(other.grad.data, slope, rtol=1e-11, atol=1e-13)
    rg.check_grads(function, args, order=2)


def test_at_their_edges():
    x = np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, np.inf])
    np.testing.assert_array_equal(rg.nn.relu(x), [0.0, 0.0, 0.0, 0.0, 1.0, np.inf])
    assert np.isnan(rg.nn.relu(np.array(np.nan)))
    np.testing.assert_array_equal(rg.grad(lambda x: np.sum(rg.nn.leaky_relu(x, 0.1)))(x[1:5]), [0.1, 0.1, 0.1, 1.0])
    huge = np.array([1000.0, 0.0, -1000.0])
    np.testing.assert_array_equal(rg.nn.log_softmax(huge), [0.0, -1000.0, -2000.0])
    assert np.all(np.isfinite(rg.grad(lambda x: rg.nn.log_softmax(x)[1])(huge)))
    assert rg.nn.relu(np.float32([1.0])).dtype == np.float32


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: rg.nn.cross_entropy(np.ones(3), np.array([0])), rg.errors.ShapeError),
        (lambda: rg.nn.cross_entropy(np.ones((2, 3)), np.array([0])), rg.errors.ShapeError),
        (lambda: rg.nn.conv2d(np.ones((1, 2, 4, 4)), np.ones((1, 3, 2, 2))), rg.errors.ShapeError),
        (lambda: rg.nn.conv2d(np.ones((4, 4)), np.ones((2, 2))), rg.errors.ShapeError),
        (lambda: rg.nn.conv2d(np.ones((1, 1, 2, 2)), np.ones((1, 1, 3, 3))), rg.errors.ShapeError),
        (lambda: rg.nn.conv2d(np.ones((1, 1, 2, 2)), np.ones((1, 1, 1, 1)), stride=0), rg.errors.OptionError),
    ],
)
def test_a_wrong_use_is_a_named_error(wrong, error):
    with pytest.raises(error) as caught:
        wrong()
    assert __file__ in str(caught.value)


# ---------------------------------------------------------------------------------------------------------- layers


def test_two_layers_have_distinct_names_that_stay_the_same_in_each_record():
    store = rg.eager.ParameterStore(np.random.default_rng(0))
    for _ in range(2):
        rec = rg.eager.Record()
        layers = [rg.nn.Linear(rec, 2, 2, store), rg.nn.Linear(rec, 2, 2, store), rg.nn.Conv2d(rec, 1, 1, 2, store)]
        assert [layer.name for layer in layers] == ["linear1", "linear2", "conv2d1"]
    assert sorted(store) == ["conv2d1.W", "conv2d1.b", "linear1.W", "linear2.W"]


def test_missing_parameters_are_drawn_from_the_given_generator():
    def drawn(seed):
        store = rg.eager.ParameterStore(np.random.default_rng(seed), np.float32)
        rg.nn.Linear(rg.eager.Record(), 300, 200, store, name="fc", bias=True)
        return store

    first, again, other = drawn(1), drawn(1), drawn(2)
    np.testing.assert_array_equal(first["fc.W"], again["fc.W"])
    assert np.any(first["fc.W"] != other["fc.W"])
    assert first["fc.W"].dtype == np.float32
    assert np.std(first["fc.W"]) == pytest.approx(np.sqrt(2 / 300), rel=0.02)
    np.testing.assert_array_equal(first["fc.b"], np.zeros(200, np.float32), strict=True)


def test_an_update_goes_down_the_gradient_and_leaves_the_record_alone():
    store = rg.eager.ParameterStore(np.random.default_rng(0))
    with rg.eager.Record() as rec:
        layer = rg.nn.Linear(rec, 3, 2, store, name="fc", bias=True)
        before = {part: t.data for part, t in layer.parameters.items()}
        grads = np.sum(layer(rec.tensor(np.ones((4, 3)))) ** 2).grad()
        layer.update(grads, rate=0.1)
        for part, t in layer.parameters.items():
            assert t.data is before[part]
            np.testing.assert_array_equal(store[f"fc.{part}"], t.data - 0.1 * grads.wrt(t))


def test_a_convolution_learns_the_sobel_kernel():
    rng = np.random.default_rng(0)
    store = rg.eager.ParameterStore(rng)
    images = rng.normal(size=(8, 1, 8, 8))
    wanted = rg.nn.conv2d(images, SOBEL[None, None])
    for _ in range(60):
        with rg.eager.Record() as rec:
            layer = rg.nn.Conv2d(rec, 1, 1, 3, store, name="edge", bias=False)
            loss = np.mean((layer(rec.tensor(images)) - wanted) ** 2)
            layer.update(loss.grad(), rate=0.3)
    assert loss.data < 1e-6
    np.testing.assert_allclose(store["edge.W"][0, 0], SOBEL, atol=1e-2)


def test_the_store_is_a_mapping_that_hands_out_read_only_copies():
    store = rg.eager.ParameterStore()
    mine = np.ones(2)
    store["a"] = mine
    mine[0] = 5.0
    assert (dict(store)["a"] == 1.0).all()
    with pytest.raises(ValueError, match="read-only"):
        store["a"][0] = 2.0
    del store["a"]
    assert len(store) == 0


WRONG_LAYERS = {
    "a taken name": (
        lambda rec, store: [rg.nn.Linear(rec, 2, 2, store, name="fc") for _ in range(2)],
        rg.errors.OptionError,
    ),
    "no generator": (lambda rec, _: rg.nn.Linear(rec, 2, 2, rg.eager.ParameterStore()), rg.errors.OptionError),
    "no generator but a seed": (lambda rec, _: rg.eager.ParameterStore(0), rg.errors.OptionError),
    "another size": (
        lambda rec, store: [rg.nn.Linear(r, 2, n, store, name="fc") for r, n in ((rec, 2), (rg.eager.Record(), 3))],
        rg.errors.ShapeError,
    ),
}


@pytest.mark.parametrize("name", WRONG_LAYERS)
def test_a_wrong_layer_is_a_named_error(name):
    wrong, error = WRONG_LAYERS[name]
    with pytest.raises(error) as caught:
        wrong(rg.eager.Record(), rg.eager.ParameterStore(np.random.default_rng(0)))
    assert __file__ in str(caught.value)
    assert caught.value.remedy
