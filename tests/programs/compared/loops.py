"""Programs that loop by scan; autograd runs the loop in Python."""

from tests.oracles.program import normal, number, program, uniform


@program(normal(3), normal(3, 3, scale=0.5), normal(3, 2), normal(5, 2), loops=True)
def recurrent_network(np, scan, h, W, U, xs):
    def cell(h, x):
        h = np.tanh(W @ h + U @ x)
        return h, np.sum(h**2)

    last, energies = scan(cell, h, xs)
    return np.sum(last) + np.sum(np.sin(energies))


@program(uniform(-0.5, 0.5, 2), uniform(0.5, 1.5, 2), number(0.05, 0.2), loops=True)
def pendulum_by_symplectic_euler(np, scan, angle, momentum, dt):
    def step(state, _):
        q, p = state
        p = p - dt * np.sin(q)
        q = q + dt * p
        return (q, p), q

    (q, p), trail = scan(step, (angle, momentum), None, length=6)
    return np.sum(p**2 / 2 - np.cos(q)) + np.sum(trail**2)


@program(number(0.1, 0.9), number(-0.5, 0.5), normal(6), loops=True)
def exponential_smoothing_backwards(np, scan, share, start, signal):
    def step(level, x):
        level = share * x + (1 - share) * level
        return level, level

    _, levels = scan(step, start, signal, reverse=True)
    return levels


@program(number(0.5, 0.9), number(0.1, 0.5), number(0.1, 0.5), normal(6), loops=True)
def likelihood_of_a_kalman_filter(np, scan, decay, process_noise, noise, signal):
    def step(state, y):
        mean, variance = state
        mean, variance = decay * mean, decay**2 * variance + process_noise
        total = variance + noise
        gain = variance / total
        score = -0.5 * ((y - mean) ** 2 / total + np.log(total))
        return (mean + gain * (y - mean), (1 - gain) * variance), score

    zero = 0.0 * decay
    _, scores = scan(step, (zero, zero + 1.0), signal)
    return np.sum(scores)


@program(normal(4), normal(2, 4), loops=True)
def horner_scheme(np, scan, coefficients, x):
    def step(total, c):
        return total * x + c, np.mean(total)

    total, means = scan(step, 0.0 * x, coefficients)
    return np.sum(total) + np.sum(means**2)


@program(normal(8), number(0.1, 0.4), loops=True)
def heat_equation(np, scan, u, rate):
    def step(u, _):
        inner = u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = np.concatenate([u[:1], inner, u[-1:]])
        return u, np.max(u)

    u, peaks = scan(step, u, None, length=5)
    return np.sum(u**2) + np.sum(peaks)


@program(normal(3), normal(3, 3), normal(5, 3), loops=True)
def forward_algorithm(np, scan, start, transition, emission):
    def step(alpha, e):
        scores = alpha[:, None] + transition
        peak = np.max(scores, axis=0)
        alpha = np.log(np.sum(np.exp(scores - peak), axis=0)) + peak + e
        return alpha, alpha[0]

    alpha, firsts = scan(step, start, emission)
    return np.log(np.sum(np.exp(alpha))) + np.sum(firsts)


@program(number(0.5, 1.5), normal(3), normal(4, 3), loops=True)
def loop_within_a_loop(np, scan, gain, start, rows):
    def outer(state, row):
        inner, trail = scan(lambda s, r: (np.tanh(gain * s + r), s * r), state, np.stack([row, row, row]))
        return inner, np.sum(trail, axis=0)

    state, sums = scan(outer, start, rows)
    return np.sum(state**2) + np.sum(np.cos(sums))


@program(uniform(0.5, 1.5, 3), number(0.02, 0.1), loops=True)
def newton_root_and_its_trail(np, scan, target, damping):
    def step(x, _):
        x = x - (1 - damping) * (x**2 - target) / (2 * x)
        return x, x

    root, trail = scan(step, target, None, length=5)
    return root + np.sum(trail, axis=0)
