"""A cache of compiled kernels for each run of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from retrograd.codegen.native.target import REFUSALS


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that XDG_CACHE_HOME names."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(home))
        yield home


@pytest.fixture
def all_in_c() -> Iterator[None]:
    """C computes all: NumPy would have the right results anyway."""
    REFUSALS.clear()
    yield
    assert not REFUSALS
