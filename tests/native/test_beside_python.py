"""Kernels beside Python: long ones release its lock."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import shim
from tests.support.native import needs_compiler

pytestmark = needs_compiler


def turns_of_another_thread(call: Any) -> int:
    """How often another thread, which sleeps for a millisecond each time, wakes up in a call."""
    stop, turns = threading.Event(), 0

    def other() -> None:
        nonlocal turns
        while not stop.is_set():
            time.sleep(0.001)
            turns += 1

    thread = threading.Thread(target=other)
    thread.start()
    try:
        before = turns
        call()
        return turns - before
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("released", [True, False])
def test_long_kernels_release_the_lock(released: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not released:
        monkeypatch.setattr(shim, "ALONE", math.inf)
    steps = 2000 if released else 2001  # else the file of the other kernel would be loaded
    f = rg.jit(lambda x: rg.fori_loop(steps, lambda i, s: np.sin(s) + x, x), backend="native")
    x = np.linspace(0.0, 1.0, 50_000)
    f(x)
    assert "fori" not in f.source(x)
    assert (turns_of_another_thread(lambda: f(x)) > 8) == released
