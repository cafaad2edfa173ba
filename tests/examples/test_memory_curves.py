"""The example of memory-time curves: the gradients of its nets are right, and measured memory is what was predicted."""

from __future__ import annotations

import numpy as np
import optree
import pytest

import retrograd as rg

pytest.importorskip("matplotlib")
EXAMPLE = "memory_curves"


@pytest.mark.parametrize("k", range(3), ids=["u-net", "transformer", "perceptron"])
def test_gradients_are_those_of_finite_differences(example, k):
    case = example.cases(quick=True)[k]
    weights, *others = case.args
    random = np.random.default_rng(1)
    way = optree.tree_map(lambda w: random.normal(size=w.shape), weights)
    slope = rg.grad(case.loss)(*case.args)
    expected = sum(np.sum(a * b) for a, b in zip(optree.tree_leaves(slope), optree.tree_leaves(way), strict=True))
    ahead = case.loss(optree.tree_map(lambda w, d: w + 1e-6 * d, weights, way), *others)
    behind = case.loss(optree.tree_map(lambda w, d: w - 1e-6 * d, weights, way), *others)
    assert (ahead - behind) / 2e-6 == pytest.approx(expected, rel=1e-4)


def test_it_predicts_runs_and_draws(example, tmp_path, capsys):
    example.main(["--quick", "--points", "3", "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"memory_curves.png", "memory_curves.txt"}
    assert (tmp_path / "memory_curves.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "memory_curves.txt").read_text(encoding="utf-8")
    for part in ("Everything()", "kept by the budget: computing it again costs", "computed again: ", "over time: "):
        assert text.count(part) >= 3
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()[:1].isdigit()]
    assert 6 <= len(rows) <= 9
    budgets, measured = (np.array([float(row[k]) for row in rows]) for k in (0, 1))
    np.testing.assert_allclose(measured, budgets, rtol=0.01, atol=0.15)  # and what Python itself takes
