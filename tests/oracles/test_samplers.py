"""emcee draws from compiled densities what the example's own sampler draws with their gradients."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg

emcee = pytest.importorskip("emcee")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.filterwarnings("ignore::DeprecationWarning:emcee")
def test_emcee_and_the_example_agree(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import sampler  # noqa: PLC0415 - it stands in a folder of scripts

    monkeypatch.delitem(sys.modules, "sampler")
    rng = np.random.default_rng(1)
    start = sampler.FLAT + 0.5 * rng.normal(size=(64, sampler.FLAT.size))
    lanes = emcee.EnsembleSampler(64, start.shape[1], rg.vmap(sampler.flat_log_density), vectorize=True)
    lanes.random_state = np.random.RandomState(1).get_state()
    lanes.run_mcmc(start, 4000)
    theirs = lanes.get_chain(discard=1000, thin=10, flat=True)
    ours = sampler.run(1000).points.reshape(-1, start.shape[1])
    np.testing.assert_allclose(theirs.mean(0), ours.mean(0), atol=0.25)
    np.testing.assert_allclose(theirs.std(0), ours.std(0), rtol=0.15)


def test_emcee_takes_a_compiled_density_of_one_point():
    density = rg.jit(lambda x: -0.5 * np.sum(x**2))
    chain = emcee.EnsembleSampler(8, 2, density)
    chain.run_mcmc(np.random.default_rng(0).normal(size=(8, 2)), 20)
    found = chain.get_log_prob()
    np.testing.assert_allclose(found, -0.5 * np.sum(chain.get_chain() ** 2, axis=-1))
