"""Networks: recurrent ones that fill arrays, a convolution by slices, attention, an ODE net."""

from __future__ import annotations

import numpy as np

from .catalogue import Program

rng = np.random.default_rng(12)


def sigmoid(x):
    return 0.5 * (np.tanh(0.5 * x) + 1.0)


def recurrent_network(weights, xs, targets, n=5):
    """An Elman network whose states are filled into an array."""
    steps, d = xs.shape
    at = 0
    w_x = weights[at : at + d * n].reshape(d, n)
    at += d * n
    w_h = weights[at : at + n * n].reshape(n, n)
    at += n * n
    w_y = weights[at : at + n]
    h = np.zeros((steps + 1, n))
    loss = 0.0
    for t in range(steps):
        h[t + 1] = np.tanh(xs[t] @ w_x + h[t] @ w_h)
        loss += (h[t + 1] @ w_y - targets[t]) ** 2
    return loss / steps


XS = rng.standard_normal((12, 2))
TARGETS = np.cumsum(XS[:, 0]) * 0.2


class LSTM:
    """A cell with its weights as attributes, as people keep them."""

    def __init__(self, weights, d, n):
        size = (d + n + 1) * n
        self.gates = {
            name: weights[k * size : (k + 1) * size].reshape(d + n + 1, n)
            for k, name in enumerate(("forget", "input", "output", "change"))
        }

    def step(self, x, h, c):
        joined = np.concatenate([x, h, np.ones(1)])
        forget = sigmoid(joined @ self.gates["forget"])
        ingate = sigmoid(joined @ self.gates["input"])
        outgate = sigmoid(joined @ self.gates["output"])
        c = forget * c + ingate * np.tanh(joined @ self.gates["change"])
        return outgate * np.tanh(c), c


def lstm(weights, xs, targets, n=4):
    """A long short-term memory that predicts a sequence."""
    cell = LSTM(weights, xs.shape[1], n)
    h, c = np.zeros(n), np.zeros(n)
    outputs = []
    for x in xs:
        h, c = cell.step(x, h, c)
        outputs.append(np.sum(h))
    return np.mean((np.array(outputs) - targets) ** 2)


def convolution_network(weights, image, label):
    """Convolution by shifted slices, max pooling by reshape, softmax."""
    kernels = weights[:18].reshape(2, 3, 3)
    dense = weights[18:].reshape(2 * 3 * 3, 3)
    h, w = image.shape
    maps = np.zeros((2, h - 2, w - 2))
    for k in range(2):
        for i in range(3):
            for j in range(3):
                maps[k] += kernels[k, i, j] * image[i : i + h - 2, j : j + w - 2]
    maps = np.maximum(maps, 0.01 * maps)
    pooled = maps.reshape(2, 3, 2, 3, 2).max(axis=(2, 4))
    scores = pooled.ravel() @ dense
    scores -= scores.max()
    return np.log(np.sum(np.exp(scores))) - scores[label]


def attention_block(weights, x):
    """One head of attention with a causal mask, a residual path and a layer norm."""
    n, d = x.shape
    q, k, v, o = (w.reshape(d, d) for w in np.split(weights, 4))
    scores = (x @ q) @ (x @ k).T / np.sqrt(d)
    mask = np.triu(np.ones((n, n), dtype=bool), 1)
    scores[mask] = -np.inf
    scores -= scores.max(axis=1, keepdims=True)
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    y = x + p @ (x @ v) @ o
    y = (y - y.mean(axis=1, keepdims=True)) / np.sqrt(y.var(axis=1, keepdims=True) + 1e-5)
    return np.sum(y**3)


def ode_network(weights, start, data, dt=0.05):
    """A neural ODE on the plane, integrated by Runge and Kutta's method, against a spiral."""
    w1, w2 = weights[:16].reshape(2, 8), weights[16:].reshape(8, 2)

    def velocity(y):
        return np.tanh(y**3 @ w1) @ w2

    y, loss = start, 0.0
    for k in range(len(data)):
        for _ in range(2):
            k1 = velocity(y)
            k2 = velocity(y + 0.5 * dt * k1)
            k3 = velocity(y + 0.5 * dt * k2)
            k4 = velocity(y + dt * k3)
            y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        loss += np.sum(np.abs(y - data[k]))
    return loss / len(data)


SPIRAL = np.array([[np.exp(-0.1 * t) * np.cos(t), -np.exp(-0.1 * t) * np.sin(t)] for t in 0.1 * np.arange(1, 15)]) * 1.5


PROGRAMS = [
    Program(recurrent_network, 0.4 * rng.standard_normal(2 * 5 + 25 + 5), (XS, TARGETS), minimise=0.02),
    Program(lstm, 0.4 * rng.standard_normal(4 * 7 * 4), (XS, TARGETS), minimise=0.01),
    Program(convolution_network, 0.3 * rng.standard_normal(18 + 54), (rng.standard_normal((8, 8)), 1), minimise=0.1),
    Program(attention_block, 0.5 * rng.standard_normal(64), (rng.standard_normal((5, 4)),)),
    Program(ode_network, 0.3 * rng.standard_normal(32), (np.array([1.5, 0.0]), SPIRAL), minimise=0.8),
]
