"""Optimisers take the steps of torch's."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

torch = pytest.importorskip("torch")

PAIRS = {
    "sgd": (rg.optim.sgd(0.05), lambda ps: torch.optim.SGD(ps, lr=0.05)),
    "momentum": (rg.optim.momentum(0.05, 0.9), lambda ps: torch.optim.SGD(ps, lr=0.05, momentum=0.9)),
    "adam": (rg.optim.adam(0.05), lambda ps: torch.optim.Adam(ps, lr=0.05)),
    "adam with other decays": (
        rg.optim.adam(0.05, 0.8, 0.95, 1e-3),
        lambda ps: torch.optim.Adam(ps, lr=0.05, betas=(0.8, 0.95), eps=1e-3),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_fifty_steps_are_torchs(name: str) -> None:
    ours, make = PAIRS[name]
    rng = np.random.default_rng(0)
    params = {"W": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}
    x, y = rng.normal(size=(10, 3)), rng.normal(size=(10, 2))
    tensors = {key: torch.tensor(value, requires_grad=True) for key, value in params.items()}
    theirs = make(list(tensors.values()))
    loss = rg.grad(lambda p: np.mean((np.tanh(x @ p["W"]) + p["b"] - y) ** 2))
    state = ours.init(params)
    for _ in range(50):
        params, state = ours.update(loss(params), state, params)
        theirs.zero_grad()
        torch.mean((torch.tanh(torch.tensor(x) @ tensors["W"]) + tensors["b"] - torch.tensor(y)) ** 2).backward()
        theirs.step()
        for key, tensor in tensors.items():
            np.testing.assert_allclose(params[key], tensor.detach().numpy(), rtol=1e-9, atol=1e-11)
