"""The functions that the page for users of PyTorch names are torch's: docs/coming_from_pytorch.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg

torch = pytest.importorskip("torch")
F = torch.nn.functional

PAGE = (Path(__file__).parents[2] / "docs" / "coming_from_pytorch.md").read_text(encoding="utf-8")
ROWS = [row for row in PAGE.splitlines() if row.startswith("| `torch.nn.functional.")]
RNG = np.random.default_rng(0)
X, W, B = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3)), RNG.normal(size=3)
IMAGES, KERNELS, LABELS = RNG.normal(size=(2, 3, 6, 5)), RNG.normal(size=(4, 3, 2, 3)), np.array([1, 0, 2, 1])
CALLS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {  # of one of the libraries, with its arrays
    "linear": lambda nn, a: nn.linear(a(X), a(W) if nn is F else a(W).T, a(B)),
    "conv2d": lambda nn, a: nn.conv2d(a(IMAGES), a(KERNELS), a(np.arange(4.0)), stride=2, padding=1),
    "relu": lambda nn, a: nn.relu(a(X)),
    "leaky_relu": lambda nn, a: nn.leaky_relu(a(X)),
    "log_softmax": lambda nn, a: nn.log_softmax(a(X), -1),
    "cross_entropy": lambda nn, a: nn.cross_entropy(a(X), a(LABELS)),
}


def test_each_name_of_the_page_is_compared() -> None:
    names = re.findall(r"`(?:torch\.nn\.functional\.)?(\w+)[`(]", " ".join(row.split("|")[1] for row in ROWS))
    assert sorted(names) == sorted(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_it_is_the_function_of_torch(name: str) -> None:
    theirs = CALLS[name](F, torch.tensor)
    np.testing.assert_allclose(CALLS[name](rg.nn, np.asarray), theirs.numpy(), rtol=1e-12, atol=1e-12)
