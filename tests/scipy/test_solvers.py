"""Linear equations of NumPy and SciPy: what their derivatives solve."""

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg

RNG = np.random.default_rng(0)
SQUARE, RIGHT = 4.0 * np.eye(4) + RNG.normal(size=(4, 4)), RNG.normal(size=(4, 3))
SOLVERS = {
    "np.linalg.solve": (np.linalg.solve, (SQUARE, RIGHT)),
    "solve_triangular": (scipy.linalg.solve_triangular, (SQUARE, RIGHT)),
    "solve_banded": (lambda ab, b: scipy.linalg.solve_banded((1, 1), ab, b), (SQUARE[:3], RIGHT)),
    "solve_sylvester": (scipy.linalg.solve_sylvester, (SQUARE, SQUARE.T, SQUARE)),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_gradients_by_all_operands_solve_once_more(name):
    solve, operands = SOLVERS[name]

    def number(*operands):
        return np.sum(np.sin(solve(*operands)))

    rg.check_grads(number, operands)
    source = rg.grad(number, argnums=tuple(range(len(operands)))).source(*operands)
    assert source.count(f"{name}(") == 2
