"""Budgets of nested derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg


def test_the_budget_of_a_gradient_holds_over_one_inside():
    def curved(v):
        return np.sum(np.sin(np.exp(np.tanh(v))))

    def function(v):
        return np.sum(rg.vjp(curved, v, memory="10 MB")[1](1.0)[0])

    with pytest.raises(rg.errors.MemoryBudgetError):
        rg.grad(function, memory=100)(np.linspace(0.0, 1.0, 1000))
