"""The example of a wave equation: its gradient is right, stays within its budget, and leads to the ground."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("tqdm")
pytest.importorskip("matplotlib")
EXAMPLE = "wave"


def test_the_gradient_is_that_of_finite_differences(example):
    source = example.sources()[1]
    heard = example.echoes(example.truth(), source, 260)
    gradient = example.misfit(260, rg.Snapshots(5))
    ground = example.layers()
    slope = gradient(ground, source, heard)[1]
    assert slope.shape == ground.shape
    for place in ((45, 85), (20, 70), (3, 80)):
        moved = [ground.copy(), ground.copy()]
        moved[0][place] += 1e-6
        moved[1][place] -= 1e-6
        above, below = (float(gradient(g, source, heard)[0]) for g in moved)
        assert slope[place] == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-7)


def test_it_finds_the_lens_draws_it_and_tells_what_memory_costs(example, tmp_path, capsys):
    out = tmp_path / "out"
    options = ["--steps", "600", "--iterations", "3", "--budget", "16 MiB", "--compare", "6 MiB", "2 GiB"]
    assert example.main([*options, "--out", str(out)]) is None
    assert {path.name for path in out.iterdir()} == {"wave.png", "wave.txt", "wave.py"}
    assert (out / "wave.png").read_bytes().startswith(b"\x89PNG")
    text = (out / "wave.txt").read_text(encoding="utf-8")
    for part in ("states in", "at the peak:", "Snapshots(1)", "further steps"):
        assert part in text
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()[:1].isdigit()]
    predicted, measured = ([float(row[k]) for row in rows] for k in (2, 3))
    assert all(float(row[0]) * {"MiB": 1, "GiB": 1024}[row[1]] >= p for row, p in zip(rows, predicted, strict=True))
    np.testing.assert_allclose(measured, predicted, rtol=0.02, atol=0.3)
    assert predicted == sorted(predicted)
    assert [int(row[4].replace(",", "")) for row in rows][-1] == 0


def test_a_budget_that_is_too_small_is_reported(example, tmp_path):
    said = example.main(["--steps", "50", "--iterations", "1", "--budget", "1 MiB", "--out", str(tmp_path)])
    assert said.startswith("wave: [RG0140] no plan for this loop stays within 1,048,576 bytes")
