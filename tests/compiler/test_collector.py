"""Compiling pauses the collection of cyclic garbage, recording slows it; both leave the setting as it was."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler import garbage
from retrograd.compiler.garbage import SELDOM, Pause, Unhurried


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


def test_pauses_nest() -> None:
    pause = Pause()
    with pause:
        with pause:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_collection_that_was_off_stays_off() -> None:
    gc.disable()
    with Pause():
        pass
    assert not gc.isenabled()


def test_an_exception_ends_the_pause() -> None:
    with pytest.raises(ZeroDivisionError), Pause():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_the_last_of_two_threads_ends_the_pause() -> None:
    pause, entered, leave = Pause(), threading.Event(), threading.Event()

    def other() -> None:
        with pause:
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait()
    with pause:
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_the_collector_runs_in_the_users_function_and_after_a_failed_compilation() -> None:
    seen = []

    def f(x: object) -> object:
        seen.append((gc.isenabled(), gc.get_threshold()[0]))
        return np.sin(x)  # type: ignore[call-overload]  # a tracer

    before = gc.get_threshold()
    rg.grad(f)(1.0)
    with pytest.raises(rg.errors.NonScalarOutputError):
        rg.grad(f)(np.ones(3))
    assert seen == [(True, max(before[0], SELDOM))] * 2
    assert gc.isenabled()
    assert gc.get_threshold() == before


def test_cyclic_garbage_of_the_users_function_goes_while_it_is_recorded() -> None:
    class Node:
        def __init__(self) -> None:
            self.itself = self

    alive = []

    def f(x: object) -> object:
        first = weakref.ref(Node())
        for _ in range(2 * SELDOM):
            Node()
        alive.append(first())
        return np.sin(x)  # type: ignore[call-overload]  # a tracer

    rg.jit(f)(1.0)
    assert alive == [None]


@pytest.mark.parametrize("setting", [(0, 10, 10), (100_000, 5, 5)])
def test_a_collector_that_is_slower_or_off_stays_so(setting: tuple[int, int, int]) -> None:
    before = gc.get_threshold()
    gc.set_threshold(*setting)
    try:
        with Unhurried():
            assert gc.get_threshold() == setting
        assert gc.get_threshold() == setting
    finally:
        gc.set_threshold(*before)


def test_what_the_user_sets_meanwhile_stays() -> None:
    before = gc.get_threshold()
    try:
        with Unhurried():
            gc.set_threshold(12_345)
        assert gc.get_threshold()[0] == 12_345
    finally:
        gc.set_threshold(*before)


def test_what_a_pause_made_sets_off_no_collection() -> None:
    started: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            started.append(info["generation"])

    gc.callbacks.append(note)
    try:
        with Pause():
            made = [[k] for k in range(50_000)]
        after = [[k] for k in range(10)]
    finally:
        gc.callbacks.remove(note)
    assert len(made) + len(after) == 50_010
    assert started == []


def test_cycles_made_in_a_pause_are_collected_later() -> None:
    class Part:
        pass

    with Pause():
        part = Part()
        part.itself = part  # type: ignore[attr-defined]
        seen = weakref.ref(part)
        del part
    gc.collect()
    assert seen() is None


def test_what_others_froze_stays_frozen() -> None:
    kept = [object()]
    assert collected(kept)
    gc.freeze()
    try:
        with Pause():
            pass
        assert gc.get_freeze_count() > 0
        assert not collected(kept)
    finally:
        gc.unfreeze()
    assert collected(kept)


def collected(value: object) -> bool:
    """Whether the collector walks the value. Counts would not do: other threads free what was frozen, too."""
    return any(one is value for one in gc.get_objects())


def test_garbage_of_programs_that_compile_often_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that a pause makes old are walked after many of them, though Python then never would."""

    class Model:
        def __init__(self, k: int) -> None:
            self.slope = rg.grad(self.loss)  # a cycle
            self.k = k

        def loss(self, x: Any) -> Any:
            return np.sum(np.sin(x) ** 2) * self.k

    monkeypatch.setattr(garbage, "MANY", 20_000)
    gc.collect()
    others = len(gc.get_objects())  # other tests may have left a lot
    monkeypatch.setattr(garbage, "len", lambda alive: len(alive) - others, raising=False)
    monkeypatch.setattr(garbage.paused, "_alive", 0)
    monkeypatch.setattr(garbage.paused, "_made", 0)
    models = []
    for k in range(60):
        model = Model(k)
        model.slope(np.ones(3))
        models.append(weakref.ref(model))
        del model
    assert sum(model() is not None for model in models) < 30


def test_a_collector_that_never_collects_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "MANY", 0)
    before, setting = gc.get_stats()[2]["collections"], gc.get_threshold()
    gc.set_threshold(0)
    try:
        with Pause():
            made = [[k] for k in range(1000)]
    finally:
        gc.set_threshold(*setting)
    assert len(made) == 1000
    assert gc.get_stats()[2]["collections"] == before
