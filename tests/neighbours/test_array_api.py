"""SciPy under ``SCIPY_ARRAY_API=1``, which wraps its functions, takes results and is traced."""

from __future__ import annotations

import json
import os
import subprocess
import sys

PROGRAM = """
import json
import numpy as np, scipy.special, scipy.stats, scipy.linalg
import retrograd as rg

x = np.array([0.3, 0.7, 1.1])
slope = rg.grad(lambda x: np.sum(x**2))(x)
found = [scipy.special.logsumexp(slope), scipy.stats.zscore(slope)[0], scipy.linalg.norm(slope)]
wanted = [np.log(np.sum(np.exp(2 * x))), (0.6 - 1.4) / np.std(2 * x), np.sqrt(np.sum(4 * x * x))]
for f in ("expit", "gammaln", "erf", "ndtr", "entr", "logit"):
    f, at = getattr(scipy.special, f), 0.5 * x
    found += rg.grad(lambda x: np.sum(f(x)))(at).tolist()
    wanted += ((f(at + 1e-6) - f(at - 1e-6)) / 2e-6).tolist()
print(json.dumps([found, wanted, type(scipy.special.expit).__name__]))
"""


def test_results_go_in_and_functions_of_one_argument_are_traced() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    found, wanted, kind = json.loads(run.stdout)
    assert kind == "function"  # and not a ufunc, so that it was wrapped indeed
    assert max(abs(a - b) for a, b in zip(found, wanted, strict=True)) < 1e-8
