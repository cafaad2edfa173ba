"""What loops would compute or read again is stored, and what reads rows of another nest joins it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native.kernel_function import kernel_function
from retrograd.compiler.rolled import rolled_from
from tests.support.native import as_kernels, needs_compiler, results

pytestmark = needs_compiler
RNG = np.random.default_rng(0)


def in_c(function: Callable[..., Any], *args: Any) -> str:
    """The C of a function, whose results are those of NumPy to the bit."""
    graph = rg.jit(function, backend="native").graph(*args)
    (run,) = as_kernels([graph])
    for found, expected in zip(results(run, graph, args), function(*args), strict=True):
        np.testing.assert_array_equal(found, expected)
    return kernel_function(graph, "f").source


def depth(source: str, text: str) -> int:
    """How many loops stand around the only line that has a text."""
    loops: list[int] = []
    found: list[int] = []
    for line in source.splitlines():
        indent = len(line) - len(line.lstrip())
        loops = [outer for outer in loops if outer < indent]
        if text in line and "*restrict" not in line:
            found.append(len(loops))
        if line.lstrip().startswith("for ("):
            loops.append(indent)
    assert len(found) == 1, source
    return found[0]


def test_rows_that_inner_loops_read_are_computed_once() -> None:
    """Each of eleven lines of a plane reads the same shares."""

    def shares(w: Any, total: Any, x: Any) -> Any:
        p = w - total * w
        return np.sum(p, axis=1), x * -p[:, None, :]

    source = in_c(shares, RNG.random((25, 40)), RNG.random(40) + 1.0, RNG.random((25, 11, 40)))
    assert depth(source, "= rg_rounded(v2 ") == 2
    assert depth(source, "in2[") == 3


def test_what_all_rows_read_is_computed_once() -> None:
    source = in_c(lambda x, w: (x * (1.0 / w), w + 0.0), RNG.random((30, 50)), RNG.random(50) + 1.0)
    assert depth(source, " / v") == 1


def test_cheap_values_have_no_storage_for_rows() -> None:
    """One addition takes no longer than what it would read."""
    source = in_c(lambda x, w: (x * (w + 1.0), w * 2.0), RNG.random((30, 50)), RNG.random(50))
    assert "w1" not in source
    assert re.search(r"\bs\d+\[50\]", source) is None


def test_parts_of_short_axes_are_different_elements() -> None:
    """A sum of three costly products reads each of them once."""

    def pull(x: Any, y: Any) -> Any:
        root = np.sqrt(x + y[:, None])
        for _ in range(4):
            root = np.sqrt(root + x)
        return (np.sum(root * root, axis=-1) * y,)

    source = in_c(pull, RNG.random((50, 3)), RNG.random(50))
    assert "w1" not in source
    assert re.search(r"\bs\d+\[", source) is None


def test_what_rows_of_a_written_part_read_is_computed_once() -> None:
    """Long chains of writes have loops of their own, each of which reads a small matrix again in each row."""

    def placed(x: Any, w: Any) -> Any:
        y = np.zeros((40, 8))
        for k in range(9):
            p = (w[k] * w[k] + 0.5) * w[k] + 0.25
            y[4 * k : 4 * k + 4, 3:6] += np.sum(x[k][:, None, :] * p.T, axis=2)
        return (y,)

    with rolled_from(10**9):
        source = in_c(placed, RNG.random((9, 4, 3)), RNG.random((9, 3, 3)))
    assert source.count(" + 0.25;") <= 9  # not three in each nest


@pytest.mark.parametrize("rows", [9, 300])
def test_copies_along_another_axis_are_made_once(rows: int) -> None:
    """Columns would be read element by element in each of 25 planes."""

    def apart(x: Any, mu: Any) -> Any:
        return (x.T.copy() - mu[:, :, None], x * 2.0)

    source = in_c(apart, RNG.random((rows, 10)), RNG.random((25, 10)))
    copied = re.search(r"const double (v\d+) = in0\[10 \* (\w+) \+ (\w+)\];\n\s+w\d+\[", source)
    assert copied, source
    assert not re.search(r"in0\[10 \* \w+ \+ \w+\].*\n.* - ", source)


def test_sums_of_rows_join_the_nest_that_makes_them() -> None:
    """What stands between, a vector of another length, does not keep them apart."""

    def scaled(x: Any, w: Any, a: Any) -> Any:
        y = x * w[:, None, :]
        return y, a + 1.0, np.sum(y, axis=2)

    source = in_c(scaled, RNG.random((25, 11, 40)), RNG.random((25, 40)), RNG.random(20))
    nests = [line for line in source.splitlines() if line.startswith("  for (")]
    assert len(nests) == 2
    assert depth(source, "rg_total(") == 2


def test_what_a_later_nest_makes_is_there_before_it_is_read() -> None:
    """A root that reads rows of one nest and all of a later one comes after both."""

    def mixed(x: Any, w: Any) -> Any:
        y = x * w[:, None, :]
        norm = np.sum(w, axis=0)
        return y, norm, np.sum(y * norm, axis=2)

    source = in_c(mixed, RNG.random((25, 11, 40)), RNG.random((25, 40)))
    assert source.index("out1[") < source.rindex("out2[")
