"""Programs of the kind that people have in drawers: they make arrays, fill them, alias them and write into them.

Each takes a vector of six positive numbers. They are written as their authors would write them.
"""

# ruff: noqa: PLW2901

from __future__ import annotations

import math

import numpy as np
from numpy import empty, zeros

WEIGHTS = np.array([0.5, -1.0, 2.0, 0.25, 1.5, -0.75])
STENCIL = np.array([0.25, 0.5, 0.25])


# ------------------------------------------------------------------------------------------------ filling


def triangular_fill(x):
    A = np.zeros((6, 6))
    for i in range(6):
        for j in range(i + 1):
            A[i, j] = x[i] * x[j] + 0.1 * (i - j)
    return A


def symmetric_fill(x):
    n = len(x)
    K = np.empty((n, n))
    for i in range(n):
        for j in range(i, n):
            K[i, j] = K[j, i] = np.exp(-0.5 * (x[i] - x[j]) ** 2)
    return K


def lower_from_vector(x):
    L = np.zeros((3, 3))
    L[np.tril_indices(3)] = x
    np.fill_diagonal(L, np.exp(np.diag(L)))
    return L @ L.T


def vandermonde(x):
    V = np.ones((len(x), 4))
    for k in range(1, 4):
        V[:, k] = V[:, k - 1] * x
    return V


def companion(x):
    n = len(x) - 1
    C = np.zeros((n, n))
    C[1:, :-1] = np.eye(n - 1)
    C[0] = -x[1:] / x[0]
    return C


def toeplitz(x):
    T = np.zeros((6, 6))
    for k in range(6):
        T[k, k:] = x[: 6 - k]
        T[k:, k] = x[: 6 - k]
    return T


def tridiagonal(x):
    n = len(x)
    A = np.zeros((n, n))
    i = np.arange(n)
    A[i, i] = 2.0 + x
    A[i[:-1], i[1:]] = -x[:-1]
    A[i[1:], i[:-1]] = -x[1:]
    return A


def block_matrix(x):
    A, B = x[:4].reshape(2, 2), np.diag(x[4:])
    M = np.zeros((4, 4))
    M[:2, :2] = A
    M[2:, 2:] = B
    M[:2, 2:] = A @ B
    M[2:, :2] = M[:2, 2:].T
    return M


def rotation(x):
    R = np.eye(3)
    c, s = math.cos(x[0]), math.sin(x[0])
    R[0, 0], R[0, 1] = c, -s
    R[1, 0], R[1, 1] = s, c
    return R @ x[:3]


def skew(x):
    S = zeros((3, 3))
    S[0, 1], S[0, 2], S[1, 2] = -x[2], x[1], -x[0]
    S -= S.T
    return S @ S


def one_hot_rows(x):
    out = np.zeros((6, 6))
    out[np.arange(6), np.argsort(x)] = x
    return out


def meshed(x):
    g = np.empty((3, 4))
    for k, (a, b) in enumerate(np.ndindex(3, 4)):
        g[a, b] = x[a] * x[b + 2] + k
    return g


# --------------------------------------------------------------------------------------------- recurrences


def linear_recurrence(x):
    h = np.zeros(7)
    for t in range(6):
        h[t + 1] = 0.5 * h[t] + x[t]
    return h


def logistic_map(x):
    h = np.empty(8)
    h[0] = 0.3
    for t in range(7):
        h[t + 1] = x[t % 6] * 0.3 * h[t] * (1 - h[t]) + 0.1
    return h


def hidden_states(x):
    W = x[:4].reshape(2, 2) * 0.3
    h = np.zeros((5, 2))
    for t in range(4):
        h[t + 1] = np.tanh(h[t] @ W + x[4:] * (t + 1))
    return h


def fibonacci_like(x):
    f = np.zeros(6)
    f[0], f[1] = x[0], x[1]
    for k in range(2, 6):
        f[k] = f[k - 1] + x[k] * f[k - 2]
    return f


def backward_recursion(x):
    v = np.zeros(7)
    for t in reversed(range(6)):
        v[t] = x[t] + 0.9 * v[t + 1]
    return v


def log_forward(x):
    alpha = np.zeros((3, 2))
    alpha[0] = x[:2]
    for t in range(1, 3):
        for k in range(2):
            alpha[t, k] = x[2 * t + k] + np.log(np.sum(np.exp(alpha[t - 1])))
    return alpha


def exponential_average(x):
    out = np.empty_like(x)
    out[0] = x[0]
    for k in range(1, len(x)):
        out[k] = 0.7 * out[k - 1] + 0.3 * x[k]
    return out


def chebyshev(x):
    T = np.empty((5, len(x)))
    T[0], T[1] = 1.0, x
    for k in range(2, 5):
        T[k] = 2 * x * T[k - 1] - T[k - 2]
    return T


def pascal_weighted(x):
    row = np.zeros(6)
    row[0] = 1.0
    for k in range(5):
        row[1:] = row[1:] + x[k] * row[:-1].copy()
    return row


def edit_distance_soft(x):
    D = np.zeros((4, 4))
    D[0] = np.arange(4.0)
    D[:, 0] = np.arange(4.0)
    for i in range(1, 4):
        for j in range(1, 4):
            cost = (x[i - 1] - x[j + 2]) ** 2
            options = np.array([D[i - 1, j] + 1.0, D[i, j - 1] + 1.0, D[i - 1, j - 1] + cost])
            D[i, j] = -np.log(np.sum(np.exp(-options)))
    return D


# ---------------------------------------------------------------------------------------------- running sums


def running_sum(x):
    s = x.copy()
    for k in range(1, len(s)):
        s[k] += s[k - 1]
    return s


def prefix_products(x):
    p = np.ones(len(x) + 1)
    for k, v in enumerate(x):
        p[k + 1] = p[k] * v
    return p


def histogram_of_weights(x):
    bins = np.zeros(3)
    np.add.at(bins, np.array([0, 1, 0, 2, 1, 0]), x)
    return bins / bins.sum()


def scatter_by_order(x):
    out = np.zeros(6)
    np.add.at(out, np.argsort(x) // 2, x * x)
    return out


def counts_by_python(x):
    totals = [0.0, 0.0]
    for k, v in enumerate(x):
        totals[k % 2] += v**2
    return np.array(totals)


def running_maximum(x):
    m = x.copy()
    for k in range(1, 6):
        m[k] = max(m[k], m[k - 1])
    return m


def integral_image(x):
    a = x.reshape(2, 3).copy()
    a[:, 1:] += a[:, :-1].copy()
    a[1:] += a[:-1]
    return a


def cumulative_recursion(x):
    c = np.zeros(6)
    total = 0.0
    for k in range(6):
        total = total * x[k] + 1.0
        c[k] = total
    return c


# -------------------------------------------------------------------------------------------------- stencils


def smooth(x):
    y = x.copy()
    y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    return y


def smooth_in_place(x):
    y = x.copy()
    for k in range(1, 5):
        y[k] = 0.25 * (y[k - 1] + 2 * y[k] + y[k + 1])
    return y


def heat(x):
    u = x.copy()
    for _ in range(4):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def heat_two_buffers(x):
    u, new = x.copy(), np.empty(6)
    for _ in range(3):
        new[0], new[-1] = u[0], u[-1]
        new[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u, new = new, u
    return u


def wave(x):
    before, now = x.copy(), x * 0.9
    for _ in range(3):
        after = np.zeros(6)
        after[1:-1] = 2 * now[1:-1] - before[1:-1] + 0.2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        before, now = now, after
    return now


def laplacian_2d(x):
    u = np.zeros((4, 5))
    u[1:-1, 1:-1] = x.reshape(2, 3)
    lap = np.zeros_like(u)
    lap[1:-1, 1:-1] = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    return lap


def jacobi(x):
    A = np.diag(x + 4.0) + 0.5
    u = np.zeros(6)
    for _ in range(5):
        new = np.empty(6)
        for i in range(6):
            new[i] = (WEIGHTS[i] - A[i] @ u + A[i, i] * u[i]) / A[i, i]
        u = new
    return u


def gauss_seidel(x):
    A = np.diag(x + 4.0) + 0.5
    u = np.zeros(6)
    for _ in range(3):
        for i in range(6):
            u[i] = (WEIGHTS[i] - A[i, :i] @ u[:i] - A[i, i + 1 :] @ u[i + 1 :]) / A[i, i]
    return u


def convolution(x):
    out = np.zeros(len(x) + len(STENCIL) - 1)
    for k, w in enumerate(STENCIL):
        out[k : k + len(x)] += w * x
    return out


def sliding_windows(x):
    out = np.zeros((4, 3))
    for k in range(4):
        window = x[k : k + 3]
        out[k] = (window - window.mean()) / (window.std() + 1.0)
    return out


def moving_median(x):
    out = np.empty(4)
    for k in range(4):
        out[k] = np.sort(x[k : k + 3])[1]
    return out


def life_like(x):
    u = x.reshape(2, 3).copy()
    total = np.zeros_like(u)
    for a in (-1, 0, 1):
        for b in (-1, 0, 1):
            if a or b:
                total += np.roll(np.roll(u, a, 0), b, 1)
    u *= 0.5
    u += 0.125 * total
    return u


# ----------------------------------------------------------------------------------------------- fluid fields


def fluid_projection(x):
    vx, vy = x.reshape(2, 3).copy(), (x[::-1] * 0.5).reshape(2, 3)
    p = np.zeros((2, 3))
    div = np.roll(vx, -1, 1) - vx + np.roll(vy, -1, 0) - vy
    for _ in range(3):
        p = (div + np.roll(p, 1, 0) + np.roll(p, -1, 0) + np.roll(p, 1, 1) + np.roll(p, -1, 1)) / 4.0
    vx -= p - np.roll(p, 1, axis=1)
    vy -= p - np.roll(p, 1, axis=0)
    return vx, vy


def advected(x):
    f = x.copy()
    speed = 0.4
    flux = np.zeros(7)
    for _ in range(3):
        flux[1:] = speed * f
        f -= flux[1:] - flux[:-1]
    return f


def shallow_water(x):
    h, u = x + 1.0, np.zeros(6)
    for _ in range(3):
        u[1:] -= 0.1 * (h[1:] - h[:-1])
        h[:-1] -= 0.1 * (u[1:] - u[:-1])
    return h, u


def masked_field(x):
    field = x.reshape(2, 3).copy()
    wall = np.array([[True, False, False], [False, False, True]])
    field[wall] = 0.0
    field[~wall] *= 2.0
    return field


# ------------------------------------------------------------------------------------------- swaps and orders


def swap_ends(x):
    y = x.copy()
    y[0], y[-1] = y[-1], y[0]
    return y * WEIGHTS


def reverse_by_swaps(x):
    y = x.copy()
    i, j = 0, len(y) - 1
    while i < j:
        y[i], y[j] = y[j], y[i]
        i, j = i + 1, j - 1
    return y * WEIGHTS


def bubble_sort(x):
    y = x.copy()
    for i in range(len(y)):
        for j in range(len(y) - 1 - i):
            if y[j] > y[j + 1]:
                y[j], y[j + 1] = y[j + 1], y[j]
    return y * WEIGHTS


def rotate_buffer(x):
    ring = np.zeros(4)
    for k, v in enumerate(x):
        ring[k % 4] = v + 0.5 * ring[(k - 1) % 4]
    return ring


def rows_exchanged(x):
    A = x.reshape(3, 2).copy()
    A[[0, 2]] = A[[2, 0]]
    return A * np.arange(6.0).reshape(3, 2)


def shifted_in_place(x):
    y = x.copy()
    y[1:] = y[:-1]
    y[0] = 0.0
    return y * WEIGHTS


# ------------------------------------------------------------------------------------------------ elimination


def gauss_elimination(x):
    A = np.diag(x + 2.0) + np.outer(x, WEIGHTS) * 0.1
    b = WEIGHTS * x
    n = len(b)
    for k in range(n - 1):
        for i in range(k + 1, n):
            m = A[i, k] / A[k, k]
            A[i, k:] -= m * A[k, k:]
            b[i] -= m * b[k]
    u = np.zeros(n)
    for k in reversed(range(n)):
        u[k] = (b[k] - A[k, k + 1 :] @ u[k + 1 :]) / A[k, k]
    return u


def pivoted_elimination(x):
    A = x.reshape(2, 3)[:, :2].copy() + np.eye(2)[::-1]
    b = x[4:].copy()
    p = int(np.argmax(np.abs(A[:, 0])))
    if p != 0:
        A[[0, p]] = A[[p, 0]]
        b[[0, p]] = b[[p, 0]]
    m = A[1, 0] / A[0, 0]
    A[1] -= m * A[0]
    b[1] -= m * b[0]
    return b[1] / A[1, 1]


def cholesky_by_hand(x):
    A = np.outer(x[:3], x[:3]) + np.diag(x[3:] + 1.0)
    L = np.zeros_like(A)
    for i in range(3):
        for j in range(i + 1):
            s = A[i, j] - np.sum(L[i, :j] * L[j, :j])
            L[i, j] = np.sqrt(s) if i == j else s / L[j, j]
    return L


def thomas(x):
    n = len(x)
    a, b, c, d = -np.ones(n), x + 3.0, -np.ones(n), WEIGHTS.copy()
    for k in range(1, n):
        w = a[k] / b[k - 1]
        b[k] -= w * c[k - 1]
        d[k] -= w * d[k - 1]
    u = np.zeros(n)
    u[-1] = d[-1] / b[-1]
    for k in range(n - 2, -1, -1):
        u[k] = (d[k] - c[k] * u[k + 1]) / b[k]
    return u


def gram_schmidt(x):
    V = np.vander(x[:3], 3) + np.eye(3)
    Q = np.zeros_like(V)
    for k in range(3):
        v = V[:, k].copy()
        for j in range(k):
            v -= (Q[:, j] @ v) * Q[:, j]
        Q[:, k] = v / np.sqrt(v @ v)
    return Q


def power_iteration(x):
    A = x.reshape(2, 3).T @ x.reshape(2, 3) + np.eye(3)
    v = np.ones(3)
    for _ in range(6):
        v = A @ v
        v /= np.linalg.norm(v)
    return v


def givens(x):
    A = x.reshape(3, 2).copy()
    for i in (2, 1):
        a, b = A[i - 1, 0], A[i, 0]
        r = np.hypot(a, b)
        G = np.array([[a / r, b / r], [-b / r, a / r]])
        A[i - 1 : i + 1] = G @ A[i - 1 : i + 1]
    return A


# ------------------------------------------------------------------------------------- masks and normalisation


def normalised(x):
    y = x.copy()
    y -= y.mean()
    y /= np.sqrt(np.mean(y**2)) + 1e-3
    return y


def softmax_in_place(x):
    y = x - x.max()
    np.exp(y, out=y)
    y /= y.sum()
    return y


def rows_normalised(x):
    A = x.reshape(2, 3).copy()
    for row in A:
        row /= row.sum()
    return A


def clipped(x):
    y = x.copy()
    y[y > 2.0] = 2.0
    y[y < 0.5] *= 0.5
    return y


def leaky(x):
    y = x - 1.5
    y[y < 0] = 0.1 * y[y < 0]
    return y


def thresholded_by_where(x):
    out = np.zeros(6)
    np.log(x, out=out, where=x > 1.0)
    return out


def winsorised(x):
    y = np.sort(x)
    y[0], y[-1] = y[1], y[-2]
    return y


def dropout_by_pattern(x):
    keep = np.arange(6) % 3 != 0
    y = np.zeros_like(x)
    y[keep] = x[keep] / keep.mean()
    return y


def padded(x):
    out = np.full(10, x.mean())
    out[2:8] = x
    return out


def interleaved(x):
    out = empty(12)
    out[::2] = x
    out[1::2] = np.sqrt(x)
    return out


def complex_signal(x):
    z = np.zeros(6, complex)
    z.real = np.cos(x)
    z.imag = np.sin(x)
    z *= x
    z[0] += 1j * x[1]
    return np.abs(z), z.real, z.imag


def views_of_views(x):
    A = np.zeros((3, 4))
    inner = A[1:, 1:][:, :2]
    inner += x[:4].reshape(2, 2)
    inner.T[0] *= x[4]
    A.ravel()[::5] = x[5]
    return A


def parts_by_split(x):
    y = x.copy()
    for k, part in enumerate(np.split(y, 3)):
        part *= k + part[0]
    return y


def a_class_that_accumulates(x):
    class Meter:
        def __init__(self, n):
            self.values = np.zeros(n)
            self.count = 0

        def add(self, v):
            self.values[self.count] = v
            self.count += 1

    meter = Meter(6)
    for v in x:
        meter.add(v * meter.values.sum() + 1.0)
    return meter.values


def newton_rows(x):
    roots = np.ones(6)
    for _ in range(4):
        roots -= (roots**2 - x) / (2 * roots)
    return roots


def simpson_weights(x):
    w = np.ones(7)
    w[1:-1:2] = 4.0
    w[2:-1:2] = 2.0
    t = np.linspace(0.0, x[0], 7)
    return np.sum(w * np.exp(-t * x[1])) * (t[1] - t[0]) / 3


def runge_kutta(x):
    y = np.zeros((5, 2))
    y[0] = x[:2]
    h = 0.1
    for k in range(4):

        def f(s):
            return np.array([s[1], -x[2] * s[0] - x[3] * s[1]])

        k1 = f(y[k])
        k2 = f(y[k] + 0.5 * h * k1)
        y[k + 1] = y[k] + h * k2
    return y


PROGRAMS = {
    name: f
    for name, f in list(globals().items())
    if callable(f) and getattr(f, "__module__", None) == __name__ and not isinstance(f, type)
}
