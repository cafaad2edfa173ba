"""Programs that fill and change arrays; the other libraries run the same formulas without writes."""

import numpy as np

from tests.oracles.program import normal, number, program, uniform

COUNTED = np.array([0, 2, 1, 2, 0, 1])
ODD = np.arange(8) % 2 == 1


def _heat(np, u, rate):
    for _ in range(3):
        u = np.concatenate([u[:1], u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2]), u[-1:]])
    return u


@program(normal(8), number(0.1, 0.4), functional=_heat)
def heat_steps_into_a_copy(np, u, rate):
    u = u.copy()
    for _ in range(3):
        u[1:-1] += rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def _recurrence(np, x, decay):
    y = [x[0]]
    for i in range(1, 6):
        y.append(decay * y[-1] + np.sin(x[i]) * y[-1])
    return np.stack(y)


@program(normal(6), number(0.5, 1), functional=_recurrence)
def recurrence_into_zeros(np, x, decay):
    y = np.zeros(6)
    y[0] = x[0]
    for i in range(1, 6):
        y[i] = decay * y[i - 1] + np.sin(x[i]) * y[i - 1]
    return y


def _springs(np, x, stiffness):
    ends = np.concatenate([np.zeros(1), x, np.zeros(1)])
    return 0.5 * stiffness * np.sum(np.diff(ends) ** 2)


@program(normal(5), number(0.5, 2), functional=_springs)
def springs_between_walls(np, x, stiffness):
    stretch = np.zeros(len(x) + 1)
    stretch[:-1] += x
    stretch[1:] -= x
    return 0.5 * stiffness * np.sum(stretch**2)


def _matrix(np, angle, scale):
    c, s = np.cos(angle), np.sin(angle)
    turn = np.stack([np.stack([c, -s]), np.stack([s, c])])
    return np.sum((turn * scale) @ turn @ np.array([1.0, 2.0]))


@program(number(0.1, 1), uniform(0.5, 2, 2), functional=_matrix)
def rotation_matrix_by_elements(np, angle, scale):
    turn = np.empty((2, 2))
    turn[0, 0] = turn[1, 1] = np.cos(angle)
    turn[0, 1] = -np.sin(angle)
    turn[1, 0] = np.sin(angle)
    return np.sum((turn * scale) @ turn @ np.array([1.0, 2.0]))


def _cholesky(np, root):
    a, b, c = root
    x = 1 / (a**2 + 1)
    y = (1 - a * b * x) / (b**2 + c**2 + 1 - (a * b) ** 2 * x)
    return y + np.log(a**2 + 1)


@program(uniform(0.5, 1.5, 3), functional=_cholesky)
def elimination_of_two_unknowns(np, root):
    L = np.zeros((2, 2))
    L[np.tril_indices(2)] = root[np.array([0, 1, 2])]
    A = L @ L.T
    A[0, 0] += 1.0
    A[1, 1] += 1.0
    rhs = np.ones(2)
    factor = A[1, 0] / A[0, 0]
    A[1] -= factor * A[0]
    rhs[1] -= factor * rhs[0]
    return rhs[1] / A[1, 1] + np.log(A[0, 0])


def _bins(np, weights, x):
    counted = np.eye(3)[COUNTED]
    return np.sum((counted.T @ (weights * x)) ** 2)


@program(normal(6), normal(6), functional=_bins)
def weights_in_bins_by_add_at(np, weights, x):
    bins = np.zeros(3)
    np.add.at(bins, COUNTED, weights * x)
    return np.sum(bins**2)


def _masked(np, x, level):
    return np.sum(np.where(ODD, level * x**2, np.where(np.arange(8) == 4, 0.0, x)) ** 3)


@program(normal(8), number(0.5, 2), functional=_masked)
def writes_through_masks(np, x, level):
    y = x.copy()
    y[ODD] = level * x[ODD] ** 2
    y[4] = 0.0
    return np.sum(y**3)


def _sweep(np, u, relaxation):
    rows = list(u)
    for _ in range(2):
        for i in (1, 2):
            rows[i] = rows[i] + relaxation * (0.5 * (rows[i - 1] + rows[i + 1]) - rows[i])
    return np.stack(rows)


@program(normal(4, 3), number(0.5, 1), functional=_sweep)
def relaxation_sweep_through_views(np, u, relaxation):
    u = np.array(u)
    for _ in range(2):
        for i in (1, 2):
            row = u[i]
            row += relaxation * (0.5 * (u[i - 1] + u[i + 1]) - row)
    return u


def _wave(np, shape, courant):
    before, now = shape, shape
    for _ in range(3):
        inner = 2 * now[1:-1] - before[1:-1] + courant**2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        before, now = now, np.concatenate([np.zeros(1), inner, np.zeros(1)])
    return np.sum(now**2)


@program(normal(8), number(0.2, 0.9), functional=_wave)
def wave_in_rows_of_a_table(np, shape, courant):
    u = np.zeros((5, 8))
    u[:2] = shape
    for t in range(1, 4):
        u[t + 1, 1:-1] = 2 * u[t, 1:-1] - u[t - 1, 1:-1] + courant**2 * (u[t, 2:] - 2 * u[t, 1:-1] + u[t, :-2])
    return np.sum(u[-1] ** 2)


def _table(np, costs):
    best = [costs[0, 0]]
    for j in range(1, 4):
        best.append(best[-1] + costs[0, j])
    for i in range(1, 3):
        row = [best[0] + costs[i, 0]]
        for j in range(1, 4):
            row.append(-np.logaddexp(-best[j], -row[-1]) + costs[i, j])
        best = row
    return best[-1]


@program(uniform(0.5, 2, 3, 4), functional=_table)
def soft_shortest_path_in_a_table(np, costs):
    best = np.zeros_like(costs)
    best[0] = np.cumsum(costs[0])
    for i in range(1, 3):
        best[i, 0] = best[i - 1, 0] + costs[i, 0]
        for j in range(1, 4):
            best[i, j] = -np.logaddexp(-best[i - 1, j], -best[i, j - 1]) + costs[i, j]
    return best[-1, -1]


def _normalised(np, x, gain):
    return np.sum(np.exp(gain * (x - np.mean(x)) / np.max(np.abs(x - np.mean(x)))))


@program(normal(6), number(0.5, 1.5), functional=_normalised)
def augmented_assignments(np, x, gain):
    x = x.copy()
    x -= np.mean(x)
    x /= np.max(np.abs(x))
    x *= gain
    np.exp(x, out=x)
    return np.sum(x)


def _block(np, A, B):
    top = np.concatenate([A, np.zeros((2, 2))], axis=1)
    low = np.concatenate([A.T @ B, B], axis=1)
    return np.sum(np.concatenate([top, low]) @ np.concatenate([top, low]))


@program(normal(2, 2), normal(2, 2), functional=_block)
def block_matrix_by_slices(np, A, B):
    M = np.zeros((4, 4))
    M[:2, :2] = A
    M[2:, 2:] = B
    M[2:, :2] = M[:2, :2].T @ M[2:, 2:]
    return np.sum(M @ M)


def _reversed(np, x):
    woven = np.stack([x[::-1][:3], x[:3] ** 2], axis=1)
    return np.sum(np.sin(woven) * np.arange(6.0).reshape(3, 2))


@program(normal(6), functional=_reversed)
def writes_with_steps_and_transposes(np, x):
    woven = np.empty(6)
    woven[::2] = x[::-1][:3]
    pairs = woven.reshape(3, 2)
    pairs.T[1] = x[:3] ** 2
    return np.sum(np.sin(woven) * np.arange(6.0))
