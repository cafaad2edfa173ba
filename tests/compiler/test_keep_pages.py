"""Freed memory stays with the process if a program asks for it, and is returned when it no longer does."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

import retrograd as rg
from retrograd import errors

WITHOUT = not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "mallopt")

PROGRAM = """
import resource
import numpy as np
import retrograd as rg

f = rg.jit(lambda x: np.cos(np.sin(x) * x[::-1])[::2] + 1.0)
x = np.ones(1_000_000)

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        f(x)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

f(x)
rg.config.keep_pages = 64 * 2**20
f(x), f(x)
kept = faults()
expected = f(x)
rg.config.keep_pages = 0
assert (f(x) == expected).all()
f(x), f(x)
print(kept, faults(), rg.config.keep_pages)
"""


@pytest.mark.skipif(WITHOUT, reason="there is no mallopt here")
def test_pages_are_kept_and_returned() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    kept, usual, setting = map(int, done.stdout.split())
    assert kept < 500
    assert usual > 10_000
    assert setting == 0


@pytest.mark.parametrize("count", [-1, True, 1.0, "1 GB", 2**31])
def test_what_is_no_number_of_bytes_is_refused(count: object) -> None:
    with pytest.raises(errors.OptionError, match="keep_pages"):
        rg.config.keep_pages = count
    assert rg.config.keep_pages == 0
