"""explain_retrace: what a call would compile, and why; it compiles nothing itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg

X = np.ones((3, 2))


def test_it_tells_of_a_first_call_and_of_one_that_is_compiled() -> None:
    f = rg.grad(lambda x: np.sum(x**2))
    assert f.explain_retrace(X) == "nothing has been compiled yet"
    f(X)
    assert f.explain_retrace(X) == "nothing would be compiled: a version for these arguments is valid"
    assert f.cache_info().misses == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((X[:2], 1, "a"), "x is an array of dtype float64 and shape (2, 2), but was"),
        ((X.astype(np.float32), 1, "a"), "x is an array of dtype float32"),
        ((np.asfortranarray(X), 1, "a"), "with the strides (8, 24)"),
        ((X, 1, "b"), "kind is the static value 'b', but was the static value 'a'"),
        ((X, 2, "a"), "n is of type int, but was the static value 1"),
        (([X], 1, "a"), "the structure of the arguments is"),
    ],
    ids=["shape", "dtype", "layout", "static", "int", "structure"],
)
def test_it_names_the_argument_that_differs(args: tuple[Any, ...], said: str) -> None:
    f = rg.jit(lambda x, n, kind: (x, n, kind))
    f(X, 1, "a")
    before = f.cache_info()
    assert said in f.explain_retrace(*args)
    assert f.cache_info() == before


def test_it_names_what_was_read_and_has_changed() -> None:
    layer = SimpleNamespace(scale=2.0)
    f = rg.jit(lambda x: layer.scale * x)
    f(X)
    layer.scale = 3.0
    assert f.explain_retrace(X).startswith("state that the function reads has changed: the attribute 'scale'")
    f(X)
    layer.scale = 2.0
    assert "a version for these arguments is valid" in f.explain_retrace(X)


def test_it_names_a_setting() -> None:
    f = rg.jit(lambda x: x * 2.0)
    f(X)
    with rg.config(fast=True):
        assert f.explain_retrace(X) == "rg.config.fast is True, but was False"


def test_it_writes_structures_as_python_does() -> None:
    f = rg.jit(lambda p: p["a"] * 2.0)
    f({"a": X})
    said = f.explain_retrace({"a": X, "b": [1.0]})
    assert said == "the structure of the arguments is (({'a': ·, 'b': [·]},), {}), but was (({'a': ·},), {})"


def test_to_ask_is_no_call() -> None:
    """What is asked about first is not the value that a later int is compared with."""
    f = rg.jit(lambda x, n: x * n)
    f.explain_retrace(X, 1)
    f(X, 2)
    assert f.explain_retrace(X, 2) == "nothing would be compiled: a version for these arguments is valid"
    assert len(f.at(X, 2).recorded.graph.inputs) == 1  # 2 is its first value, and static
