"""Losses that workers import by name, and shards for them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg


def network(w: Any, x: Any, y: Any) -> Any:
    """A sum of squares of a small network; its matrix products go to BLAS."""
    return np.sum((np.tanh(x @ w["a"]) @ w["b"] - y) ** 2)


def weights(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(size=(20, 30)), "b": rng.normal(size=30)}


def data(shards: int = 7, rows: int = 100) -> list[tuple[Any, ...]]:
    """Shards with gaps in memory, as slices of one array have them."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(shards * rows, 20)), rng.normal(size=shards * rows)
    return [(x[k::shards], y[k::shards]) for k in range(shards)]


def by_hand(w: Any, shards: list[tuple[Any, ...]]) -> Any:
    """Value and gradient, summed in pairs, then in pairs of pairs: with nothing of the room under test."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - optional

    slope = rg.value_and_grad(network)
    with threadpool_limits(1):
        level = [slope(w, *(np.ascontiguousarray(x) for x in shard)) for shard in shards]
    while len(level) > 1:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [rg.tree.map(np.add, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


def bits(tree: Any) -> bytes:
    """All numbers of a tree, as bytes."""
    return b"".join(np.asarray(x).tobytes() for x in rg.tree.leaves(tree))


class Slow:
    """A shard that takes time to load; ``folder`` gets a file for each load."""

    def __init__(self, k: int, seconds: float = 0.0, folder: Path | None = None) -> None:
        self.k, self.seconds, self.folder = k, seconds, folder

    def __call__(self) -> tuple[Any, ...]:
        time.sleep(self.seconds)
        if self.folder is not None:
            (self.folder / f"{self.k}-{os.getpid()}-{time.monotonic_ns()}").touch()
        return data()[self.k]


def load_by_number(k: int) -> tuple[Any, ...]:
    return data()[k]
