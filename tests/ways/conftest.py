"""How folding is watched: short loops fold, too, and what is folded can be counted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler import folding
from retrograd.errors import ManyPathsWarning

NEVER = 1 << 60


@pytest.fixture(autouse=True)
def _short_loops_fold() -> Iterator[None]:
    with mock.patch.object(folding, "LONG", 40), mock.patch.object(folding, "DECISIONS", 4), np.errstate(all="ignore"):
        yield


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[folding.Folding]:
    """The signatures for which folding is considered."""
    found: list[folding.Folding] = []
    make = folding.Folding.__init__

    def made(self: folding.Folding, paths: Any) -> None:
        make(self, paths)
        found.append(self)

    monkeypatch.setattr(folding.Folding, "__init__", made)
    return found


@pytest.fixture
def unfolded() -> Callable[[Any], Callable[..., Any]]:
    """A compiled function whose ways are not folded."""

    def plainly(compiled: Any) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            with (
                mock.patch.object(folding, "DECISIONS", NEVER),
                rg.config(max_traces=1),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore", ManyPathsWarning)
                return compiled(*args)

        return call

    return plainly
