"""Attributes that arrays of other packages have: the error says what to write; asking for them goes on as before."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.numpy.other_names import INSTEAD
from retrograd.tracer.array import Tracer

X = np.array([1.0, 2.0])


@pytest.mark.parametrize("name", INSTEAD)
@pytest.mark.parametrize("x", [X, 2.0], ids=["array", "number"])
def test_the_error_says_what_to_write(name: str, x: Any) -> None:
    assert not hasattr(Tracer, name)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; ") as caught:
        rg.jit(lambda x: getattr(x, name))(x)
    assert caught.value.name == name
    assert rg.jit(lambda x: 2.0 * x if hasattr(x, name) else x)(2.0) == 2.0
    assert rg.jit(lambda x: getattr(x, name, x))(2.0) == 2.0


def test_other_names_are_missing_as_before() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        rg.jit(lambda x: x.nothing)(X)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        operator.attrgetter("nothing")(rg.eager.Tensor(X))


@pytest.mark.parametrize(
    ("use", "instead"),
    [
        (lambda t: t.numpy(), "write t.data"),
        (lambda t: t.view(2, 1), "write t.reshape"),
        (lambda t: t.exp(), r"write np.exp\(x\)"),
        (lambda t: t.requires_grad_(), "requires_grad=True"),
    ],
)
def test_members_of_tensors_of_torch(use: Callable[[Any], Any], instead: str) -> None:
    with pytest.raises(AttributeError, match=instead):
        use(rg.eager.Tensor(X))


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("retain_graph", "called again"),
        ("create_graph", "rg.grad twice"),
        ("gradient", "backward"),
        ("inputs", "no inputs$"),
    ],
)
def test_options_of_backward_of_torch(option: str, instead: str) -> None:
    with pytest.raises(TypeError, match=instead):
        np.sum(rg.eager.Tensor(X, requires_grad=True)).backward(**{option: True})
