"""Later calls of one structure go straight to their code; calls of another structure never go there."""

from __future__ import annotations

import collections
import itertools
import pickle
import traceback
import zlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler import unpackers
from retrograd.compiler.compiled import Compiled
from retrograd.compiler.unpackers import MOST_UNPACKERS
from retrograd.looking.tracebacks import is_inner
from retrograd.where import is_ours


class Pair(NamedTuple):
    a: Any
    b: Any


class Other(NamedTuple):
    a: Any
    b: Any


@dataclass
class Layer:
    w: Any
    b: Any
    name: str = field(default="tanh", metadata={"nondiff": True})


class Text(str):
    __slots__ = ()


X, Y, Z = np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.arange(4.0).reshape(2, 2)
# The arguments of calls, each two of which must not be taken for one another.
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "an array": ((X,), {}),
    "two": ((X, Y), {}),
    "a tuple": (((X, Y),), {}),
    "a list": (([X, Y],), {}),
    "a list of one": (([X],), {}),
    "tuples in a tuple": ((((X,), Y),), {}),
    "a named tuple": ((Pair(X, Y),), {}),
    "another named tuple": ((Other(X, Y),), {}),
    "a dict": (({"a": X, "b": Y},), {}),
    "another order": (({"b": X, "a": Y},), {}),
    "other keys": (({"a": X, "c": Y},), {}),
    "an ordered dict": ((collections.OrderedDict(a=X, b=Y),), {}),
    "an ordered dict in another order": ((collections.OrderedDict(b=X, a=Y),), {}),
    "an ordered dict in a dict": (({"b": collections.OrderedDict(z=X, y=Y), "a": X},), {}),
    "a default dict": ((collections.defaultdict(list, a=X, b=Y),), {}),
    "a dataclass": ((Layer(X, Y),), {}),
    "with another static field": ((Layer(X, Y, "relu"),), {}),
    "with None": ((Layer(X, None),), {}),
    "keywords": ((), {"a": X, "b": Y}),
    "keywords in another order": ((), {"b": X, "a": Y}),
    "both": ((X,), {"b": Y}),
    "float": ((X, 2.0), {}),
    "a NumPy float": ((X, np.float64(2.0)), {}),
    "float32": ((X, np.float32(2.0)), {}),
    "complex": ((X, 2.0 + 1.0j), {}),
    "an int": ((X, 2), {}),
    "another int": ((X, 3), {}),
    "a bool": ((X, True), {}),
    "a text": ((X, "2"), {}),
    "another text": ((X, "3"), {}),
    "its own text": ((X, Text("2")), {}),
    "None": ((X, None), {}),
    "a type": ((X, float), {}),
    "another type": ((X, int), {}),
    "an empty list": ((X, []), {}),
    "an empty dict": ((X, {}), {}),
    "a matrix": ((Z,), {}),
    "its transpose": ((Z.T,), {}),
    "a matrix of float32": ((Z.astype(np.float32),), {}),
    "of integers": ((np.array([1, 2]),), {}),
    "0-d": ((np.array(2.0),), {}),
    "three": ((np.array([1.0, 2.0, 3.0]),), {}),
}


def told(x: Any, weight: float = 1.0) -> Any:
    """A number that tells values and structures apart."""
    kind = type(x).__name__
    if isinstance(x, dict):
        parts = [told(v, weight * (k + 2) * len(str(key))) for k, (key, v) in enumerate(x.items())]
    elif isinstance(x, (list, tuple)):
        parts = [told(v, weight * (k + 3)) for k, v in enumerate(x)]
    elif isinstance(x, Layer):
        parts = [told(v, weight * (k + 5)) for k, v in enumerate((x.w, x.b, x.name))]
    elif isinstance(x, (str, type, bool)) or x is None:
        return weight * (sum(map(ord, str(x))) + len(kind))
    else:
        return weight * np.sum(x * np.exp(0.1 * np.arange(np.size(x), dtype=float).reshape(np.shape(x))))
    return sum(parts, weight * len(kind))


def f(*args: Any, **kwargs: Any) -> Any:
    return told((args, kwargs))


def compiled() -> Any:
    """A compiled function with a memory of its own."""
    return rg.jit(lambda *args, **kwargs: told((args, kwargs)))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_after_any_other_is_right(name: str) -> None:
    args, kwargs = CALLS[name]
    for other, (first, named) in CALLS.items():
        g = compiled()
        for _ in range(2):
            np.testing.assert_allclose(g(*first, **named), f(*first, **named), rtol=1e-12, err_msg=other)
            np.testing.assert_allclose(g(*args, **kwargs), f(*args, **kwargs), rtol=1e-12, err_msg=other)


def test_all_calls_of_one_function_are_right() -> None:
    g = compiled()
    for args, kwargs in [*CALLS.values(), *reversed(CALLS.values())] * 2:
        np.testing.assert_allclose(g(*args, **kwargs), f(*args, **kwargs), rtol=1e-12)
    assert len(g._servers) <= MOST_UNPACKERS


TAKEN_APART = ["a default dict"]  # at each call


@pytest.mark.parametrize("name", [name for name in CALLS if name not in TAKEN_APART])
def test_a_known_structure_is_not_taken_apart_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    args, kwargs = CALLS[name]
    g = compiled()
    g(*args, **kwargs)
    monkeypatch.setattr(Compiled, "_take", lambda *_: pytest.fail("it is taken apart"))
    for _ in range(2):
        np.testing.assert_allclose(g(*args, **kwargs), f(*args, **kwargs), rtol=1e-12)


@pytest.mark.parametrize("name", TAKEN_APART)
def test_the_others_are_taken_apart_at_each_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    args, kwargs = CALLS[name]
    g = compiled()
    g(*args, **kwargs)
    assert not g._servers
    monkeypatch.setattr(unpackers, "_UnpackerWriter", lambda *_: pytest.fail("it is tried again"))
    np.testing.assert_allclose(g(*args, **kwargs), f(*args, **kwargs), rtol=1e-12)


STATIC = [  # values of one static argument, each two of which must not be taken for one another
    *(1, 2, True, 1.0, 1.5, 0.0, -0.0, float("inf"), 2.0 + 0j, "1", b"1", None, Text("1"), 10**30),
    *(np.float64(1.0), np.float64(-0.0), np.float32(1.0), np.int64(1), np.bool_(True)),
    *((), (1, 2), (1, True), (2, 1), (1.0, 2), (0.0, 2), (-0.0, 2), ((1, 2),), (1, (2,)), ("1", 2), (1, None)),
    *([1, 2], [1.0, 2], {"k": 1}, {"k": 2}, {"l": 1}, Pair(1, 2), Other(1, 2), np.tanh, np.sin, (1, np.tanh), range(3)),
]
NANS = [float("nan"), -float("nan"), (1, float("nan")), (1, -float("nan")), ((float("nan"),), 1)]
NANS += [complex(0.0, float("nan")), (np.float64("nan"), 1), np.float32("nan")]


def mark(x: Any) -> int:
    """A number for each value, type and sign."""
    if isinstance(x, (tuple, list)):
        return zlib.crc32(repr([type(x), *map(mark, x)]).encode())
    sign = np.copysign(1.0, x) if isinstance(x, float) else 0
    return zlib.crc32(f"{type(x)} {x!r} {sign}".encode())


def marked() -> Any:
    return rg.jit(lambda x, n: x * mark(n), static_argnums=1)


def test_calls_with_any_static_values_are_right() -> None:
    g = marked()
    for n in [*STATIC, *NANS, *reversed(STATIC), *NANS] * 2:
        assert g(1.0, n) == mark(n), n


@pytest.mark.parametrize("n", [*STATIC, *NANS], ids=repr)
def test_a_known_static_value_is_not_taken_apart_again(n: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    g = marked()
    g(1.0, n)
    monkeypatch.setattr(Compiled, "_take", lambda *_: pytest.fail("it is taken apart"))
    assert [g(x, n) for x in (1.0, 2.0)] == [mark(n), 2 * mark(n)]


def test_one_unpacker_serves_all_static_numbers_of_a_type() -> None:
    g = rg.jit(lambda x, n, shape: x * n + len(shape), static_argnames=("n", "shape"))
    for n in range(20):
        assert g(1.0, n, shape=(n, 3)) == n + 2
    assert len(g._servers) == 1


@pytest.mark.parametrize("n", NANS, ids=repr)
def test_static_nans_are_compiled_once(n: Any) -> None:
    g = rg.jit(lambda x, n: x - mark(n), static_argnums=1)
    for x in (1.0, 2.0, 3.0):
        assert g(x, pickle.loads(pickle.dumps(n))) == x - mark(n)
    assert g.cache_info().misses == 1


def test_an_array_in_place_of_a_static_number_is_refused() -> None:
    g = rg.jit(lambda x, n: x * n, static_argnums=1)
    g(X, 3)
    with pytest.raises(rg.errors.OptionError, match="the static argument 1 holds an array"):
        g(X, X)


def test_the_frame_of_an_unpacker_is_ours() -> None:
    g = rg.jit(np.linalg.inv)
    g(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError) as caught:
        g(np.zeros((2, 2)))
    frames = [frame for frame, _ in traceback.walk_tb(caught.tb) if frame.f_code.co_name == "unpack"]
    assert len(frames) == 1
    assert is_inner(frames[0].f_code.co_filename)
    assert is_ours(frames[0])


def test_gradients_come_in_the_structure_of_the_arguments() -> None:
    g = rg.grad(lambda p: np.sum(p["w"] ** 2 * p["b"]["c"][0]) + p["b"]["k"])
    p = {"w": X, "b": {"k": 2.0, "c": [Y, "text"]}}
    for scale in (1.0, 2.0, 3.0):
        p["w"] = scale * X
        found = g(p)
        np.testing.assert_allclose(found["w"], 2 * scale * X * Y)
        np.testing.assert_allclose(found["b"]["c"][0], (scale * X) ** 2)
        assert found["b"]["k"] == 1.0
        assert found["b"]["c"][1] is None


def test_settings_are_part_of_the_key() -> None:
    g = rg.jit(lambda p: np.log(p[0]))
    with np.errstate(all="ignore"):
        assert np.isnan(g([-X])).all()
        with rg.config(debug_nans=True), pytest.raises(rg.errors.NanError):
            g([-X])
        assert np.isnan(g([-X])).all()


def test_an_int_that_begins_to_vary() -> None:
    g = rg.jit(lambda x, p: x * p["n"])
    for n in (3, 3, 4, 5, 3, 10**20, -2, True, 2**53, 2**53 + 1):
        for x in (X, Y):
            np.testing.assert_array_equal(g(x, {"n": n}), x * n)


def test_ints_that_decide_do_not_make_ways_without_end() -> None:
    g = rg.jit(lambda x, n: x * (2.0 if n % 7 == 3 else 3.0) + (n > 4) + (n > 6) + (n > 8) + (n > 9) + (n > 11))
    for n in itertools.chain(range(14), range(14)):
        np.testing.assert_array_equal(g(X, n), X * (2.0 if n % 7 == 3 else 3.0) + sum(n > k for k in (4, 6, 8, 9, 11)))


def test_what_a_static_object_holds_is_watched() -> None:
    class Model:
        def __init__(self, k: float) -> None:
            self.k = k

    g = rg.jit(lambda m, p: m.k * p[0])
    model, other = Model(2.0), Model(3.0)
    for _ in range(2):
        np.testing.assert_array_equal(g(model, (X,)), 2.0 * X)
        np.testing.assert_array_equal(g(other, (X,)), 3.0 * X)
    model.k = 5.0
    np.testing.assert_array_equal(g(model, (X,)), 5.0 * X)


def test_versions_that_were_let_go_are_made_again() -> None:
    g = rg.jit(lambda p: p[0] * 2.0)
    with rg.config(cache_size=2):
        for _ in range(2):
            for n in range(1, 6):
                np.testing.assert_array_equal(g([np.ones(n)]), 2.0 * np.ones(n))
    assert g.cache_info().size <= 2


def test_a_container_that_changes_its_class_s_fields_late() -> None:
    @dataclass
    class Late:
        a: Any

    g = rg.jit(lambda p: 2.0 * p.a)
    late = Late(X)
    for _ in range(2):
        np.testing.assert_array_equal(g(late), 2.0 * X)
    late.a = Y
    np.testing.assert_array_equal(g(late), 2.0 * Y)
    del late.a
    with pytest.raises(AttributeError):
        g(late)
