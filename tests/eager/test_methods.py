"""Methods, attributes and operators of tensors and records: those of ndarray, with derivatives where there are any."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import ShapeError, TracerConversionError, UnsupportedError

A = np.array([[0.3, -1.2, 2.5], [1.1, 0.4, -0.7]])
V = np.array([3.0, 1.0, 2.0])
KINDS = {
    "tensor": lambda x: rg.eager.Tensor(x, requires_grad=np.asarray(x).dtype.kind in "fc"),
    "record": lambda x: rg.eager.Record().tensor(x),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def plain(x):
    if isinstance(x, (tuple, list)):
        return type(x)(map(plain, x))
    return getattr(x, "data", x) if not isinstance(x, (np.ndarray, np.generic)) else x


def agree(found, expected):
    found = plain(found)
    assert type(found) is type(expected)
    if isinstance(expected, (tuple, list)):
        for x, y in zip(found, expected, strict=True):
            agree(x, y)
    else:
        np.testing.assert_array_equal(found, expected, strict=True)


# --------------------------------------------------------------------------------------------- with derivatives

SMOOTH = {
    "divmod": lambda x: divmod(x, 0.65)[1],
    "divmod of two": lambda x: divmod(2.0 * x, x * x + 1.0)[1],
    "divmod of a number": lambda x: divmod(5.0, x + 4.0)[1],
    "mT": lambda x: x.mT,
    "real": lambda x: x.real,
    "real of complex": lambda x: (x * (1.0 + 2.0j)).real,
    "imag of complex": lambda x: (x * (1.0 + 2.0j)).imag,
    "conj": lambda x: (x * (1.0 + 2.0j)).conj().imag,
    "conjugate": lambda x: x.conjugate(),
    "flat": lambda x: x.flat[1:4],
    "flatten": lambda x: x.flatten("F")[:3],
    "ravel": lambda x: x.ravel(order="F")[:3],
    "reshape": lambda x: x.reshape(3, -1, order="F")[0],
    "reshape without a copy": lambda x: x.reshape((3, 2), copy=False)[0],
    "clip from below": lambda x: x.clip(0.1),
    "clip by name": lambda x: x.clip(max=0.5),
    "compress": lambda x: x.compress([True, False, True], axis=1),
    "choose": lambda x: (x > 0).astype(int).choose([x, 2.0 * x]),
    "round": lambda x: round(x[0, 0], 1) + x,
    "astype": lambda x: x.astype(np.float64, copy=False, casting="safe"),
    "prod": lambda x: x.prod(axis=0),
    "std": lambda x: x.std(ddof=1),
    "var": lambda x: x.var(axis=1, keepdims=True),
    "cumsum": lambda x: x.cumsum(axis=1),
    "dot": lambda x: x.dot(V),
    "trace": lambda x: x.trace(),
    "diagonal": lambda x: x.diagonal(1),
    "swapaxes": lambda x: x.swapaxes(0, -1),
    "squeeze": lambda x: x[None].squeeze(0),
    "take": lambda x: x.take([0, 2, 0], axis=1),
    "repeat": lambda x: x.repeat(2, axis=0),
    "a place that is not zero": lambda x: x[(x > 0).nonzero()],
    "places by functions": lambda x: x.ravel()[np.flatnonzero(x < 0)] * np.argwhere(x < 0)[:, 1],
}


@pytest.mark.parametrize("name", SMOOTH)
def test_values_and_gradients_are_those_of_arrays(name):
    f = SMOOTH[name]
    value = f(A)
    weights = np.linspace(0.5, 2.0, np.size(value)).reshape(np.shape(value))

    def loss(x):
        return np.sum(weights * f(x) ** 2)

    step = 1e-6
    numeric = np.zeros_like(A)
    for at in np.ndindex(*A.shape):
        d = np.zeros_like(A)
        d[at] = step
        numeric[at] = (loss(A + d) - loss(A - d)) / (2 * step)
    x = KINDS["tensor"](A)
    agree(f(x), np.asarray(value) if np.ndim(value) else value)
    loss(x).backward()
    np.testing.assert_allclose(x.grad.data, numeric, rtol=1e-6, atol=1e-8)
    rec = rg.eager.Record()
    t = rec.tensor(A)
    np.testing.assert_allclose(loss(t).grad().wrt(t), x.grad.data, rtol=1e-14)


# ------------------------------------------------------------------------------------------ without derivatives

WHOLE = np.array([5, 3, 6])
KNOWN = {
    "divmod": (A, lambda x: divmod(x, 0.7)),
    "divmod of a number": (WHOLE, lambda x: divmod(7, x)),
    "quotient": (WHOLE, lambda x: divmod(x, 2)[0]),
    "shifts": (WHOLE, lambda x: [x << 1, x >> 1, 1 << x, 64 >> x]),
    "tolist": (A, lambda x: x.tolist()),
    "tolist of a number": (V, lambda x: x[0].tolist()),
    "item": (A, lambda x: [x.item(1), x.item(-1), x.item(1, 2), x.item((0, 1)), x[0, 0].item()]),
    "sizes": (A, lambda x: [x.nbytes, x.itemsize, x.size, x.ndim, x.shape]),
    "nonzero": (WHOLE - 3, lambda x: x.nonzero()),
    "places": (A.clip(0), lambda x: [np.argwhere(x), np.flatnonzero(x), np.nonzero(x)]),
    "argpartition": (V, lambda x: x.argpartition(1)),
    "searchsorted": (np.sort(V), lambda x: x.searchsorted([1.5, 2.0], side="right")),
    "contains": (A, lambda x: [2.5 in x, 99.0 in x, x[0, 1] in x]),
    "round": (WHOLE, lambda x: round(x[0])),
    "a number": (V, lambda x: f"{x[0]:.2f} {x[1]:>6} {x[2]}"),
    "a number of single precision": (np.float32([1.5]), lambda x: f"{x[0]:.3e} {x[0]}"),
    "an integer": (WHOLE, lambda x: f"{x[0]:04d} {x[0]}"),
    "a complex number": (1j * V, lambda x: f"{x[0]:.1f} {x[0]}"),
    "a format of a method": (V, lambda x: f"{np.sum(x):6.2f}|{x!s:.0}"),
    "flat": (A, lambda x: [float(plain(part)) for part in x.flat]),
}


@pytest.mark.parametrize("name", KNOWN)
@each_kind
def test_results_are_those_of_arrays(kind, name):
    x, f = KNOWN[name]
    agree(f(KINDS[kind](x)), f(x))


@each_kind
def test_a_shift_in_place_makes_a_new_number(kind):
    n = first = KINDS[kind](3)
    n <<= 2
    assert (n.data, first.data) == (12, 3)
    n >>= 1
    assert n.data == 6


@each_kind
def test_an_array_is_shown_as_it_is(kind):
    t = KINDS[kind](V)
    assert f"{t}" == str(t) == repr(t)
    assert f"{t[:1]}" == repr(t[:1])


WRONG = {
    "a format of an array": (lambda t: f"{t:.2f}", TypeError, "unsupported format string"),
    "a format of one element": (lambda t: f"{t[:1]:.2f}", TypeError, "unsupported format string"),
    "a format of the wrong kind": (lambda t: f"{t[0]:d}", ValueError, "format code 'd'"),
    "no matrices": (lambda t: t.mT, ShapeError, "no matrices"),
    "round of an array": (lambda t: round(t, 1), TypeError, "np.round"),
    "round of a complex number": (lambda t: round(t[0] * 1j), TypeError, "np.round"),
    "round to an int": (lambda t: round(t[0]), TracerConversionError, "derivative"),
    "a cast": (lambda t: t.astype(int, casting="safe"), TypeError, "cannot cast"),
    "sort": (lambda t: t.sort(), UnsupportedError, "read-only"),
    "fill": (lambda t: t.fill(0.0), UnsupportedError, "read-only"),
    "put": (lambda t: t.put(0, 1.0), UnsupportedError, "read-only"),
    "partition": (lambda t: t.partition(1), UnsupportedError, "read-only"),
    "resize": (lambda t: t.resize((1, 3), refcheck=False), UnsupportedError, "read-only"),
    "del": (lambda t: operator.delitem(t, 0), UnsupportedError, "read-only"),
    "out": (lambda t: t.compress([True], out=np.zeros(1)), UnsupportedError, "read-only"),
    "a shift of arrays in place": (
        lambda t: operator.ilshift(t.astype(int), 1),
        UnsupportedError,
        "read-only",
    ),
}


@pytest.mark.parametrize("name", WRONG)
@each_kind
def test_what_arrays_refuse_is_refused(kind, name):
    wrong, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        wrong(KINDS[kind](V))
