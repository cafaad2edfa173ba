"""The three jobs over shards run on real processes, and their results are right."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("distributed", "threadpoolctl", "sklearn")),
    reason="dask and scikit-learn are optional",
)


def play(*options: object) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-W", "error", ROOT / "examples" / "many_shards.py", *options]
    return subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, timeout=900, check=False
    )


def numbers(said: str, pattern: str) -> list[float]:
    return [float(x) for x in re.findall(pattern, said)]


@pytest.mark.parametrize("steps", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_digits_are_learned_in_lockstep(steps: int) -> None:
    played = play("digits", "--steps", steps, "--require", 0.85 if steps == 30 else 0.95)
    assert played.returncode == 0, played.stderr
    assert f"{steps} steps in lockstep" in played.stdout
    assert "tcp://127.0.0.1:" in played.stdout


@pytest.mark.parametrize("paths", [200_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_paths_give_the_price_and_its_derivatives(paths: int) -> None:
    played = play("paths", "--paths", paths)
    assert played.returncode == 0, played.stderr
    off = numbers(played.stdout, r"off by (\S+)")
    assert len(off) == 4
    assert max(off) <= 10 / paths**0.5
    assert f"{paths // 50_000} shards in " in played.stdout


def test_threads_give_the_same_price() -> None:
    said = [play("paths", "--paths", 200_000, "--workers", n).stdout for n in (0, 2)]
    assert len({tuple(numbers(text, r" ([\d.]+)   exactly")) for text in said}) == 1


@pytest.mark.slow
def test_a_survey_goes_on_from_its_file(tmp_path: Path) -> None:
    small = ("survey", "--shots", 3, "--length", 150, "--budget", "8 MiB")
    whole = play(*small, "--steps", 3, "--workers", 0)
    assert whole.returncode == 0, whole.stderr
    saved = tmp_path / "survey.rgs"
    first = play(*small, "--steps", 1, "--checkpoint", saved)
    assert first.returncode == 0, first.stderr
    rest = play(*small, "--steps", 3, "--checkpoint", saved)
    misfits = [numbers(p.stdout, r"misfit (\S+)\n") for p in (first, rest, whole)]
    assert [*misfits[0], *misfits[1]] == misfits[2]
    assert len(misfits[2]) == 3


@pytest.mark.slow
def test_a_survey_in_too_little_memory_is_refused() -> None:
    played = play("survey", "--shots", 2, "--length", 150, "--budget", "100 kB", "--steps", 1)
    assert played.returncode != 0
    assert "MemoryBudgetError" in played.stderr
    assert "allow at least" in played.stderr


@pytest.mark.slow
def test_a_survey_finds_the_lens() -> None:
    played = play("survey")
    assert played.returncode == 0, played.stderr
    assert numbers(played.stdout, r"correlation (\S+) with the lens")[0] > 0.5
