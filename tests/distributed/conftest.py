"""One cluster of two processes for all tests that leave it whole, and programs whose bits are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import retrograd as rg


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """A client of two worker processes on this machine."""
    pytest.importorskip("distributed")
    with rg.distributed.cluster(2, memory=0) as found:
        yield found
