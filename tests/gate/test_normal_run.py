"""What the normal run holds of large tables: tables that mark cases as slow have chosen the others themselves."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

from bench import house
from tests.native.test_random_kernels import MANY

TABLE = "tests/native/test_random_kernels.py"


def collected(*options: str) -> Counter[str]:
    """The cases of each test of a file in a run."""
    command = [sys.executable, "-m", "pytest", "--co", "-q", "-p", "no:cacheprovider", *options, TABLE]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=house.ROOT)
    return Counter(line.partition("::")[2].partition("[")[0] for line in told.stdout.splitlines() if "::" in line)


def test_thousands_of_random_kernels_are_in_the_normal_run() -> None:
    name = "test_many_random_kernels_compute_what_numpy_computes"
    assert collected()[name] * MANY >= 2_000
    assert collected("-m", "")[name] * MANY >= 50_000
