"""Compiling pauses the collection of cyclic garbage, and leaves the setting as it was."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import retrograd as rg
from retrograd.runtime.collector import Pause


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
        seen.append(gc.isenabled())
        return np.sin(x)  # type: ignore[call-overload]  # a tracer

    rg.grad(f)(1.0)
    with pytest.raises(rg.errors.NonScalarOutputError):
        rg.grad(f)(np.ones(3))
    assert seen == [True, True]
    assert gc.isenabled()
