"""Random calls: compiled they give NumPy's bits, dtypes, shapes, types and exceptions; derivatives are those of NumPy.

``documented`` lists the differences that are known, each with its reason; ``docs/limits.md`` has them, too. What is
silent fails at once. Of a hundred calls one may raise where NumPy does not, or not raise, or raise another error.

The normal run has the same calls each time, also in CI: of 10,000 new ones, one or two may still differ unlisted.
The slow run has others for each RETROGRAD_SEED.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from tests.fuzz.calling import Difference, Report, examine, slopes
from tests.fuzz.calls import Call, draw_call
from tests.fuzz.documented import documented
from tests.fuzz.scipy_calls import draw_scipy_call
from tests.support.seeds import moved

CHUNK = 300
Draw = Callable[..., Call]


def check(draw: Draw, seeds: range, smooth: bool = False) -> None:
    report = Report()
    (slopes if smooth else examine)([draw(seed, smooth=smooth) for seed in seeds], report)
    tally = {k: n for k, n in report.tally.items() if not k.startswith("refused: ")}
    new = [d for d in report.differences if documented(d) is None]
    sys.stdout.write(f"{tally}, {len(report.differences) - len(new)} of them documented\n")
    loud = [d for d in new if re.match("raises|no exception|another exception", d.kind) and "RG0900" not in d.found]
    silent = [d for d in new if d not in loud]
    assert not silent, _told(silent)
    assert len(loud) <= 0.015 * len(seeds), _told(loud)
    assert report.tally["refused"] <= 0.08 * len(seeds), report.tally


def _told(found: list[Difference]) -> str:
    kinds = sorted({re.sub(r", .*", "", d.kind) for d in found})
    first = "\n".join(map(str, found[:3]))
    return (
        f"{len(found)} calls differ ({', '.join(kinds)}), of seeds {[d.call.seed for d in found]}; the first:\n{first}"
    )


@pytest.mark.costly
@pytest.mark.parametrize("start", range(0, 3000, CHUNK))
def test_calls_of_numpy(start: int) -> None:
    check(draw_call, range(start, start + CHUNK))


@pytest.mark.parametrize("draw", [draw_call, draw_scipy_call], ids=["numpy", "scipy"])
def test_slopes_of_calls(draw: Draw) -> None:
    check(draw, range(10_000, 10_200), smooth=True)


def test_calls_of_scipy() -> None:
    check(draw_scipy_call, range(CHUNK))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100_000, 300_000, 2000))
def test_very_many_calls_of_numpy(start: int) -> None:
    check(draw_call, moved(range(start, start + 2000)))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100_000, 120_000, 2000))
def test_very_many_calls_of_scipy(start: int) -> None:
    check(draw_scipy_call, moved(range(start, start + 2000)))


@pytest.mark.slow
@pytest.mark.parametrize("draw", [draw_call, draw_scipy_call], ids=["numpy", "scipy"])
@pytest.mark.parametrize("start", range(100_000, 120_000, 2000))
def test_very_many_slopes_of_calls(draw: Draw, start: int) -> None:
    check(draw, moved(range(start, start + 2000)), smooth=True)
