"""One cluster of two processes for all tests that leave it whole, and programs whose bits are compared."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import retrograd as rg

HERE = Path(__file__).parent
CLUSTER = ExitStack()
CLIENTS: list[Any] = []


@pytest.fixture
def client() -> Any:
    """A client of two worker processes on this machine, the same for all tests here."""
    pytest.importorskip("distributed")
    if not CLIENTS:
        CLIENTS.append(CLUSTER.enter_context(rg.distributed.cluster(2, memory=0)))
    return CLIENTS[0]


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """The cluster ends with the last test here: its threads allocate beside calls whose memory others measure."""
    if nextitem is None or HERE not in nextitem.path.parents:
        CLIENTS.clear()
        CLUSTER.close()
