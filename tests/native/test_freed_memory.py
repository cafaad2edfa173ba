"""Large arrays that pass between kernels and NumPy are in memory that earlier calls have freed."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from tests.support.native import needs_compiler

# Five arrays of a MB live at once. A process of its own: NumPy's arrays in other tests have been freed, too.
FAULTS = """
import resource
import numpy as np
import retrograd as rg

def loss(q, k):
    scores = np.exp(q @ k)
    return np.sum(np.tanh(scores @ k) / (1 + scores))

x = np.random.default_rng(0).normal(size=(2, 360, 360)) / 50
g = rg.value_and_grad(loss, (0, 1), backend="native")
for _ in range(5):
    g(*x)
assert g.executable(*x).module.kernels and not rg.native_info().refused
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    g(*x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20)
"""


@needs_compiler
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have other rules")
def test_calls_get_memory_that_earlier_calls_have_freed() -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}  # dask.distributed sets some
    told = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=False, env=env)
    assert told.returncode == 0, told.stderr[-2000:]
    assert float(told.stdout) < 50
