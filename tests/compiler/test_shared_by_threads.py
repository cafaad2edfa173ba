"""Tables that all threads share hold while several change them at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

import retrograd as rg
from retrograd.compiler import sharing, varying_ints
from retrograd.compiler.cache import Cache

THREADS, SECONDS = 6, 0.7


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Threads take turns after a few instructions, and tables are full at once."""
    before = sys.getswitchinterval(), rg.config.cache_size
    sys.setswitchinterval(1e-6)
    rg.config.cache_size = 8
    yield
    sys.setswitchinterval(before[0])
    rg.config.cache_size = before[1]


def at_once(act: Callable[[int, int], Any]) -> None:
    """Act in several threads, each with its number and a count; what fails in one fails here."""

    def work(thread: int) -> None:
        n, end = 0, time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            n += 1
            act(thread, n)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))


def test_versions_of_code_are_asked_for_by_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_by_code", {})
    kept = lambda x: x  # noqa: E731 - a function of the code that lives on

    def act(thread: int, n: int) -> None:
        assert sharing.versions_of(kept, n if thread < 2 else thread) is not None

    at_once(act)
    assert len(sharing._by_code) <= 8


def test_threads_that_ask_for_one_key_share_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_by_code", {})
    kept = lambda x: x  # noqa: E731 - a function of the code that lives on
    first = sharing.versions_of(kept, "key")

    def act(thread: int, n: int) -> None:
        assert sharing.versions_of(kept, "key") is first

    at_once(act)


def test_large_captures_of_all_threads_count(monkeypatch: pytest.MonkeyPatch) -> None:
    heavy: list[Any] = []
    monkeypatch.setattr(sharing, "_heavy", heavy)
    lists: list[list[Any]] = [[] for _ in range(THREADS)]

    class Sized(SimpleNamespace):
        __hash__ = object.__hash__
        __eq__ = object.__eq__

    def act(thread: int, n: int) -> None:
        sharing.keep(Sized(size=sharing.MOST // 10), lists[thread], lambda versions, paths: versions.append(paths))  # type: ignore[arg-type]  # all that is asked of paths
        del lists[thread][:-4]

    at_once(act)
    act(0, 0)
    assert sum(paths.size for kept in lists for paths in kept) <= sharing.MOST


def test_ints_of_many_signatures_are_judged_at_once() -> None:
    cache: Cache[Any] = Cache()

    def act(thread: int, n: int) -> None:
        call: Any = SimpleNamespace(key=n if thread < 2 else thread, leaves=[1, 2])
        varying_ints._seen_so_far(cache, call, [0])

    at_once(act)
    assert len(varying_ints._seen[cache]) <= 9
