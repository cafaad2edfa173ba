"""Random draws are recorded: anew at each call, in plain NumPy's stream, once each."""

# ruff: noqa: NPY002 - the hidden generator, as users draw from it

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.parser import parse
from retrograd.ir.printer import to_text

X = np.array([0.5, 2.0, 3.0])
RNG = np.random.default_rng(0)


def with_noise(x):
    z = RNG.normal(size=3)
    return np.sum((x + z) ** 2) * RNG.random()


def of_a_default(x, rng=RNG):
    return x * rng.standard_normal(3)


def of_a_cell():
    rng = RNG
    return lambda x: x + rng.uniform(-1.0, 1.0, size=x.shape)


def two_kinds(x):
    k = RNG.integers(0, 3)
    return x[k] * RNG.exponential(2.0) + RNG.poisson(3.0)


def traced_parameters(x):
    return RNG.normal(x, 0.5) + RNG.uniform(0.0, x[1]) + RNG.exponential(scale=x) + RNG.lognormal(x[0], 0.25, size=3)


def picked(x):
    return RNG.choice(x, 5), RNG.permutation(x), RNG.choice(4, 2, replace=False), RNG.permutation(3)


def shuffled(x):
    y = x.copy()
    RNG.shuffle(y)
    return y * x


def decided(x):
    return x * 2.0 if RNG.random() > 0.5 else x - RNG.normal()


def by_decisions(x):
    total = x * 0.0
    while RNG.random() < 0.6:
        total = total + RNG.normal() * x
    return total


def multivariate(x):
    return RNG.multivariate_normal([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]]) * x[0] + RNG.dirichlet((1.0, 2.0))


DRAWN = {
    "a global": with_noise,
    "a default": of_a_default,
    "a cell": of_a_cell(),
    "a partial": partial(lambda rng, x: x * rng.random(), RNG),
    "integers and others": two_kinds,
    "traced parameters": traced_parameters,
    "choices and permutations": picked,
    "a shuffle": shuffled,
    "permuted": lambda x: RNG.permuted(np.stack([x, 2 * x]), axis=1) * RNG.permuted(x) + RNG.permuted([1, 2, 3]),
    "a decision": decided,
    "decisions": by_decisions,
    "of several dimensions": multivariate,
}


def runs(f, count=6):
    """Results of several calls, from a known state on; and the state after them."""
    RNG.bit_generator.state = np.random.default_rng(7).bit_generator.state
    return [f(X) for _ in range(count)], RNG.bit_generator.state


@pytest.mark.parametrize("f", DRAWN.values(), ids=DRAWN.keys())
def test_calls_draw_what_plain_numpy_draws(f):
    expected, after = runs(f)
    compiled = rg.jit(f)
    for _ in range(2):
        found, state = runs(compiled)
        for a, b in zip(found, expected, strict=True):
            for p, q in zip(a if isinstance(a, tuple) else [a], b if isinstance(b, tuple) else [b], strict=True):
                np.testing.assert_allclose(p, q, rtol=1e-13)
        assert state == after


def test_a_derivative_draws_each_number_once():
    plain, after = runs(with_noise, 3)
    for transform in (rg.value_and_grad, lambda f: lambda x: (rg.jvp(f, (x,), (np.ones(3),))[0], None)):
        found, state = runs(transform(with_noise), 3)
        np.testing.assert_allclose([v for v, _ in found], plain)
        assert state == after
    RNG.bit_generator.state = np.random.default_rng(7).bit_generator.state
    gradient = rg.grad(with_noise)(X)
    z, u = (r := np.random.default_rng(7)).normal(size=3), r.random()
    np.testing.assert_allclose(gradient, 2 * (X + z) * u)
    rg.hessian(with_noise)(X)


def test_tracing_and_looking_draw_nothing():
    before = RNG.bit_generator.state
    text = to_text(rg.trace(with_noise)(X))
    assert ": rng" in text
    assert to_text(parse(text)) == text
    assert "rng.normal(size=3)" in rg.grad(with_noise).source(X).replace("RNG", "rng")
    assert RNG.bit_generator.state == before


def test_a_compiled_function_inside_another_draws_anew_at_each_of_its_calls():
    inner = rg.jit(lambda x: x * RNG.normal())

    def f(x):
        return inner(x) + inner(x) * 10.0

    expected, after = runs(lambda x: (RNG.normal() + RNG.normal() * 10.0) * x)
    found, state = runs(rg.jit(f))
    np.testing.assert_allclose(found, expected)
    assert state == after


def test_numpys_hidden_generator_is_followed():
    def f(x):
        return np.random.normal(size=3) * x + np.random.rand() + np.random.randint(5)

    compiled = rg.jit(f)
    for g in (f, compiled):
        np.random.seed(3)
        found = [g(X) for _ in range(3)]
        if g is f:
            expected = found
    np.testing.assert_allclose(found, expected)


def test_a_generator_made_inside_from_a_seed_gives_the_same_each_time():
    def f(x):
        rng = np.random.default_rng(5)
        noise = rng.normal(size=3)
        noise[0] = x[0]
        return noise * x * rng.normal(x, 1.0)

    for x in (X, X * 2):
        np.testing.assert_allclose(rg.jit(f)(x), f(x), rtol=1e-14)


class Model:
    def __init__(self):
        self.rng = np.random.default_rng(1)

    def noisy(self, x):
        return x + self.rng.normal()


NOISY = rg.custom_jvp(lambda x: x * RNG.normal())
NOISY.defjvp(lambda primals, tangents: (primals[0], tangents[0]))

REFUSED = {
    "seeded by the system": (lambda x: np.random.default_rng().normal() * x, "create it outside"),
    "a traced shape": (lambda x: RNG.gamma(x[0]) * x, "shift and scale"),
    "a seed": (lambda x: np.random.seed(0) or x, "outside"),
    "the state": (lambda x: RNG.bit_generator.state and x, "outside"),
    "a loop of unknown length": (
        lambda x: rg.while_loop(lambda c: np.sum(c) < 9.0, lambda c: c + RNG.random(), x),
        "before",
    ),
    "a traced number of steps": (
        lambda x: rg.fori_loop(np.sum(x).astype(int), lambda i, c: c + RNG.random(), x),
        "before",
    ),
    "a branch": (lambda x: rg.cond(x[0] > 0, lambda: x * RNG.normal(), lambda: x), "before"),
    "a branch in a loop": (
        lambda x: rg.scan(lambda c, r: (rg.cond(r > 0, lambda: c * RNG.normal(), lambda: c), None), x, x)[0],
        "before",
    ),
    "branches that draw in another order": (
        lambda x: rg.cond(x[0] > 0, lambda: RNG.normal() + RNG.random(), lambda: RNG.random() + RNG.normal()),
        "before",
    ),
    "branches that draw other shapes": (
        lambda x: rg.cond(x[0] > 0, lambda: np.sum(RNG.normal(size=2)), lambda: np.sum(RNG.normal(size=3))),
        "before",
    ),
    "lanes in a branch": (
        lambda x: rg.cond(x[0] > 0, lambda: rg.vmap(lambda r: r + RNG.normal())(x), lambda: x),
        "before",
    ),
    "a branch in a loop of unknown length": (
        lambda x: rg.while_loop(
            lambda c: np.sum(c) < 9.0,
            lambda c: rg.cond(c[0] > 0, lambda: c + RNG.random(), lambda: c + RNG.random()),
            x,
        ),
        "before",
    ),
    "steps in a loop of unknown length": (
        lambda x: rg.while_loop(
            lambda c: c < 9.0, lambda c: rg.scan(lambda c, r: (c + RNG.random(), None), c, x)[0], x[0]
        ),
        "before",
    ),
    "a generator made around a loop": (
        lambda x: (rng := np.random.default_rng(3), rg.scan(lambda c, r: (c + rng.normal(), None), x[0], x)[0])[1],
        "outside",
    ),
    "a generator made around lanes": (
        lambda x: (rng := np.random.default_rng(3), rg.vmap(lambda r: r + rng.normal())(x))[1],
        "outside",
    ),
    "a list that is shuffled": (lambda x: (items := [1.0, 2.0, 3.0], RNG.shuffle(items), items[0] * x)[2], "np.array"),
    "a derivative of its own": (lambda x: NOISY(x[0]) * x, "before"),
    "a derivative of its own in a loop": (lambda x: rg.scan(lambda c, r: (c, NOISY(r)), 1.0, x)[1], "before"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_followed_is_refused_and_changes_nothing(name):
    f, remedy = REFUSED[name]
    before = RNG.bit_generator.state
    with pytest.raises(rg.errors.UnsupportedError, match=remedy):
        rg.jit(f)(X)
    assert RNG.bit_generator.state == before


BRANCHES = {
    "cond": lambda x: rg.cond(x[0] > 0, lambda y: y + RNG.normal(), lambda y: y * RNG.normal(), x[1]),
    "several draws, and others around": lambda x: (
        RNG.random()
        + rg.cond(
            x[1] > 0,
            lambda: np.sum(x * RNG.normal(size=3)) * RNG.integers(1, 9),
            lambda: RNG.normal(size=3)[1] - RNG.integers(1, 9) * x[2],
        )
        * RNG.normal()
    ),
    "switch": lambda x: rg.switch(
        x.astype(int)[2], [lambda: x[0] + RNG.random(), lambda: x[1] * RNG.random(), lambda: -RNG.random()]
    ),
    "in a scan": lambda x: rg.scan(
        lambda c, r: (rg.cond(c > r, lambda: c * RNG.normal(), lambda: r - RNG.normal()), None), x[0], x
    )[0],
    "around a scan": lambda x: rg.cond(
        x[0] > 0,
        lambda: rg.scan(lambda c, r: (c + r * RNG.normal(), None), 0.0, x)[0],
        lambda: rg.scan(lambda c, r: (c * r - RNG.normal(), None), 1.0, x)[0],
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_that_draw_alike_draw_what_python_draws(name):
    f = BRANCHES[name]
    by_python, gradient = lambda x: f_of_python(f, x), rg.value_and_grad(f)
    for point in (X, -X, X[::-1].copy()):
        RNG.bit_generator.state = np.random.default_rng(7).bit_generator.state
        expected = [by_python(point) for _ in range(3)]
        after = RNG.bit_generator.state
        for compiled in (rg.jit(f), lambda x: gradient(x)[0]):
            RNG.bit_generator.state = np.random.default_rng(7).bit_generator.state
            np.testing.assert_allclose([compiled(point) for _ in range(3)], expected, rtol=1e-13)
            assert RNG.bit_generator.state == after


def f_of_python(f, x):
    """A function with loops and choices of plain Python in place of ours."""
    plain = {"cond": lambda p, a, b, *args: (a if p else b)(*args), "scan": by_scan}
    plain["switch"] = lambda i, fs, *args: fs[min(max(int(i), 0), len(fs) - 1)](*args)
    names = {**f.__globals__, "rg": type("rg", (), {k: staticmethod(v) for k, v in plain.items()})}
    return type(f)(f.__code__, names)(x)


def test_lanes_of_branches_draw_one_after_the_other_and_slopes_hold_the_numbers():
    f = lambda x: rg.cond(x > 0, lambda: x * RNG.normal(), lambda: x**2 * RNG.normal())  # noqa: E731
    RNG.bit_generator.state = np.random.default_rng(7).bit_generator.state
    lanes = rg.vmap(f)(np.array([1.0, -2.0, 3.0]))
    z = np.random.default_rng(7).normal(size=3)
    np.testing.assert_allclose(lanes, [z[0], 4 * z[1], 3 * z[2]])
    RNG.bit_generator.state = np.random.default_rng(7).bit_generator.state
    np.testing.assert_allclose(rg.grad(rg.grad(f))(-2.0), 2 * z[0])


def test_the_class_of_a_generator_is_its_own():
    def f(x):
        assert isinstance(RNG, np.random.Generator)
        return x * RNG.random()

    rg.jit(f)(X)


def by_scan(body, init, xs, length=None, *, reverse=False, memory=None):
    """``rg.scan`` as a loop of plain Python."""
    n = len(xs) if xs is not None else length
    carry, ys = init, [None] * n
    for t in range(n)[::-1] if reverse else range(n):
        carry, ys[t] = body(carry, None if xs is None else xs[t])
    return carry, np.array(ys)


def by_fori(n, body, init, *, memory=None):
    for i in range(n):
        init = body(i, init)
    return init


def by_lanes(f):
    return lambda *xs: np.stack([f(*x) for x in zip(*xs, strict=True)])


class Plain:
    """The transforms, as a user would write them with loops."""

    scan, fori_loop, vmap = staticmethod(by_scan), staticmethod(by_fori), staticmethod(by_lanes)


def stepped(t, x, **options):
    def body(c, r):
        z, k, w = RNG.normal(), RNG.integers(0, 3), RNG.uniform(size=2)
        return 0.9 * c * np.cos(z) + r * z, c * c * np.sum(w) + k

    return t.scan(body, x[0], x, **options)[1]


def nested(t, x, **options):
    def inner(c, r):
        return c * RNG.uniform(0.5, 1.5) + r, c * RNG.normal()

    def outer(c, r):
        a = RNG.random()
        last, ys = t.scan(inner, c * a, x * r)
        return last / (1 + RNG.random()), np.sum(ys**2) * RNG.standard_normal()

    return t.scan(outer, x[0], x, **options)[1]


def counted(t, x, **options):
    return t.fori_loop(4, lambda i, c: c * RNG.normal(1.0, 0.1, size=3) + i * RNG.random(), x * 1.0, **options)


def located(t, x, **options):
    return t.scan(lambda c, r: (RNG.normal(np.sin(c), r), RNG.exponential(r) * c), x[0], x, **options)[1]


def over_lanes(t, x):
    return t.vmap(lambda r: r * RNG.normal() + np.sum(RNG.normal(r, 1.0, size=2)) * RNG.random())(x)


def over_lanes_of_lanes(t, x):
    return t.vmap(lambda a: t.vmap(lambda b: a * b * RNG.normal() + RNG.random())(x) * RNG.random())(x)


def loops_in_lanes(t, x):
    return t.vmap(lambda r: stepped(t, x * r) * RNG.random())(x)


def lanes_in_a_loop(t, x):
    return t.scan(lambda c, r: (c * RNG.random() + r, over_lanes(t, x * c)), 0.5, x)[1]


def of_two_generators(t, x):
    return t.scan(lambda c, r: (c * OTHER.random() + r, c * RNG.normal() + OTHER.normal()), 0.5, x)[1]


def no_steps(t, x):
    return t.fori_loop(0, lambda i, c: c * RNG.normal(), x) + RNG.random()


def hidden(t, x):
    return t.scan(lambda c, r: (c + np.random.normal(), c * np.random.rand()), x[0], x)[1]


OTHER = np.random.default_rng(5)
REPEATED = [
    stepped,
    partial(stepped, reverse=True),
    nested,
    counted,
    located,
    over_lanes,
    over_lanes_of_lanes,
    loops_in_lanes,
    lanes_in_a_loop,
    of_two_generators,
    no_steps,
    hidden,
]
NAMES = [f.func.__name__ + " in reverse" if isinstance(f, partial) else f.__name__ for f in REPEATED]


def seeded(f, count=1):
    """Results of several calls from a known state of all generators on, and the states after them."""
    for g, seed in ((RNG, 7), (OTHER, 8)):
        g.bit_generator.state = np.random.default_rng(seed).bit_generator.state
    np.random.seed(9)
    found = [f(X) for _ in range(count)]
    return found, (RNG.bit_generator.state, OTHER.bit_generator.state, np.random.get_state()[1].tolist())


@pytest.mark.parametrize("f", REPEATED, ids=NAMES)
def test_loops_and_lanes_draw_what_loops_of_python_draw(f):
    expected, after = seeded(lambda x: f(Plain, x), 3)
    compiled = rg.jit(lambda x: f(rg, x))
    for run in (compiled, compiled, lambda x: f(rg, x)):
        found, state = seeded(run, 3)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert state == after


@pytest.mark.parametrize("f", REPEATED, ids=NAMES)
def test_derivatives_of_loops_and_lanes_draw_each_number_once(f):
    (value,), after = seeded(lambda x: np.sum(f(Plain, x) ** 2))
    ((found, gradient),), state = seeded(rg.value_and_grad(lambda x: np.sum(f(rg, x) ** 2)))
    assert state == after
    np.testing.assert_allclose(found, value, rtol=1e-12)
    for k in range(3):
        step = np.eye(3)[k] * 1e-5
        (up,), _ = seeded(lambda x, step=step: np.sum(f(Plain, x + step) ** 2))
        (down,), _ = seeded(lambda x, step=step: np.sum(f(Plain, x - step) ** 2))
        np.testing.assert_allclose(gradient[k], (up - down) / 2e-5, rtol=1e-5, atol=1e-6 * max(1.0, abs(value)))
        (pushed,), state = seeded(lambda x, k=k: rg.jvp(lambda x: np.sum(f(rg, x) ** 2), (x,), (np.eye(3)[k],))[1])
        np.testing.assert_allclose(pushed, gradient[k], rtol=1e-10, atol=1e-10 * max(1.0, abs(value)))
        assert state == after
    (hessian,), state = seeded(rg.hessian(lambda x: np.sum(f(rg, x) ** 2)))
    assert state == after
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-9 * max(1.0, np.max(np.abs(hessian))))


@pytest.mark.parametrize("f", [stepped, nested, counted, located], ids=lambda f: f.__name__)
def test_a_loop_that_computes_states_again_has_the_same_numbers(f):
    def gradient(**options):
        return seeded(rg.grad(lambda x: np.sum(f(rg, x, **options) ** 2)), 2)

    expected, after = gradient()
    for plan in (rg.Snapshots(2), rg.Snapshots(1)):
        found, state = gradient(memory=plan)
        np.testing.assert_array_equal(found, expected)
        assert state == after


@pytest.mark.parametrize("captured", [False, True])
def test_draws_into_an_array(captured):
    outside = np.random.default_rng(3)

    def program(x):
        rng = outside if captured else np.random.default_rng(3)
        y, z = np.empty(3), np.zeros((2, 2), np.float32)
        rng.random(out=y)
        rng.standard_normal(out=z, dtype=np.float32)
        rng.standard_gamma(2.0, out=y[:2])
        return x * y, z

    x = np.array([0.3, -0.7, 1.1])
    compiled = rg.jit(program)
    for _ in range(2):
        state = outside.bit_generator.state
        expected = program(x)
        outside.bit_generator.state = state
        for a, b in zip(compiled(x), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_draw_into_an_array_that_does_not_fit():
    x = np.ones(3)
    with pytest.raises(TypeError):
        rg.jit(lambda x: np.random.default_rng(3).random(out=np.empty(3, np.float32)) * x)(x)
    outside = np.empty(3)
    with pytest.raises(rg.errors.CapturedWriteError):
        rg.jit(lambda y: np.random.default_rng(3).random(out=outside) * y)(x)
