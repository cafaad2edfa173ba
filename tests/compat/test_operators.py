"""Every operator, by a position and by a list of them, with keyword arguments: against formulas."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
import retrograd.compat.autograd as ag
from retrograd.errors import ArgnumsError, NonDifferentiableError, NonScalarOutputError

A, B = np.array([0.3, -0.7, 1.1]), np.array([2.0, 0.5, -1.0])
V, W = np.array([1.0, -2.0, 0.5]), np.array([0.1, 0.2, -0.4])


def f(a, b, power=2, scale=1.0):
    """A number; the argument at 0 is not among those that are differentiated in the table."""
    return scale * np.sum(a**power * b**3)


def g(a, b, power=2, scale=1.0):
    """As many numbers as there are elements, each a function of one of each argument."""
    return scale * a**power * b**3


# For scale s and power 3: the gradients by a and b, and the blocks of the diagonal Hessian.
def slopes(s):
    return s * 3 * A**2 * B**3, s * A**3 * 3 * B**2


def curves(s):
    return s * 6 * A * B**3, s * 9 * A**2 * B**2, s * A**3 * 6 * B


KW = {"power": 3, "scale": 2.0}
GA, GB = slopes(2.0)
HAA, HAB, HBB = curves(2.0)
VALUE = 2.0 * np.sum(A**3 * B**3)
EACH = 2.0 * A**3 * B**3

# Operator and function; the use of what it makes; results for argnum 0, 1, [0, 1] and [1, 0], None where it has none.
TABLE = [
    ("grad", f, lambda made: made, [GA, GB, (GA, GB), (GB, GA)]),
    ("value_and_grad", f, lambda made: made, [(VALUE, GA), (VALUE, GB), (VALUE, (GA, GB)), (VALUE, (GB, GA))]),
    ("elementwise_grad", g, lambda made: made, [GA, GB, (GA, GB), (GB, GA)]),
    ("deriv", g, lambda made: made, [GA, GB, GA + GB, GA + GB]),
    ("jacobian", g, lambda made: made, [np.diag(GA), np.diag(GB), (np.diag(GA), np.diag(GB)), None]),
    ("hessian", f, lambda made: made, [np.diag(HAA), np.diag(HBB), None, None]),
    (
        "make_vjp",
        g,
        lambda made: (made[0](V), made[1]),
        [(GA * V, EACH), (GB * V, EACH), ((GA * V, GB * V), EACH), None],
    ),
    ("make_jvp", g, lambda made: made(V), [(EACH, GA * V), (EACH, GB * V), None, None]),
    ("make_jvp", g, lambda made: made((V, W)), [None, None, (EACH, GA * V + GB * W), (EACH, GB * V + GA * W)]),
    ("make_jvp_reversemode", g, lambda made: made(V), [GA * V, GB * V, None, None]),
    ("make_hvp", f, lambda made: (made[0](V), made[1]), [(HAA * V, GA), (HBB * V, GB), None, None]),
    (
        "make_hvp",
        f,
        lambda made: (made[0]((V, W)), made[1]),
        [None, None, ((HAA * V + HAB * W, HAB * V + HBB * W), (GA, GB)), None],
    ),
]
ARGNUMS = [0, 1, [0, 1], [1, 0]]


def close(found, expected):
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            close(x, y)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
        assert np.shape(found) == np.shape(expected)


CASES = [
    pytest.param(op, fun, use, argnum, want, id=f"{op}-{argnum}")
    for op, fun, use, expected in TABLE
    for argnum, want in zip(ARGNUMS, expected, strict=True)
    if want is not None
]


@pytest.mark.parametrize(("op", "fun", "use", "argnum", "want"), CASES)
def test_the_table(op, fun, use, argnum, want):
    made = getattr(ag, op)(fun, argnum)
    close(use(made(A, B, **KW)), want)
    shown = tuple(argnum) if isinstance(argnum, list) else argnum
    assert made.__name__ == f"{op}_of_{fun.__name__}_wrt_argnum_{shown}"


def test_products_take_their_vector_last():
    close(ag.hessian_tensor_product(f)(A, B, V, **KW), HAA * V)
    close(ag.hessian_vector_product(f, 1)(A, B, V, **KW), HBB * V)
    close(ag.tensor_jacobian_product(g)(A, B, V, **KW), GA * V)
    close(ag.vector_jacobian_product(g, 1)(A, B, V, **KW), GB * V)


def test_a_matrix_against_rows_of_a_jacobian():
    m = np.arange(6.0).reshape(2, 3)

    def rows(x):
        return np.stack([x**2, x**3])

    close(ag.tensor_jacobian_product(rows)(A, np.array([1.0, 2.0])), np.diag(2 * A + 6 * A**2))
    close(ag.tensor_jacobian_product(rows)(A, m), m[0] * 2 * A + m[1] * 3 * A**2)


def test_the_hessian_of_several_results():
    found = ag.hessian(g)(A, B, **KW)
    expected = np.zeros((3, 3, 3))
    expected[range(3), range(3), range(3)] = HAA
    close(found, expected)


def test_the_gauss_newton_product():
    close(ag.make_ggnvp(g)(A, B, **KW)(V), GA * GA * V)
    close(ag.make_ggnvp(g, f_argnum=1)(A, B, **KW)(V), GB * GB * V)
    cubes = ag.make_ggnvp(g, lambda y: np.sum(y**3))
    close(cubes(A, B, **KW)(V), GA * 6 * EACH * GA * V)


def test_aux_and_names():
    aux = ag.grad_and_aux(lambda a, b: (np.sum(a * b), {"b": b}), 0)
    slope, rest = aux(A, B)
    close(slope, B)
    close(rest["b"], B)
    close(ag.grad_named(f, "b")(A, B, **KW), GB)
    with pytest.raises(ArgnumsError):
        ag.grad_named(f, "c")


def test_all_gradients_by_name():
    def h(a, b=2.0, *more, k=3.0, **rest):
        return np.sum(a) * b * k * sum(more) * rest.get("r", 1.0)

    found = ag.multigrad_dict(h)(A, 4.0, 5.0, 6.0, r=7.0)
    s = np.sum(A)
    assert list(found) == ["a", "b", "more", "k", "rest"]
    close(found["a"], np.full(3, 4.0 * 3 * 11 * 7))
    close(found["b"], s * 3 * 11 * 7)
    close(found["more"], (s * 4 * 3 * 7, s * 4 * 3 * 7))
    close(found["k"], s * 4 * 11 * 7)
    close(found["rest"]["r"], s * 4 * 3 * 11)
    close(ag.multigrad_dict(h)(1, 2, 3)["b"], 9.0)


def test_complex_numbers():
    z = 1.0 + 2.0j
    close(ag.grad(lambda z: np.abs(z) ** 2)(z), 2.0 - 4.0j)
    close(ag.holomorphic_grad(lambda z: z**3)(z), 3 * z**2)
    with pytest.warns(UserWarning, match="not complex"):
        close(ag.holomorphic_grad(lambda z: z**3)(2.0), 12.0)


def test_integers_become_floats():
    whole = np.array([1, 2, 3])
    close(ag.grad(lambda x: np.sum(x**2))(whole), 2.0 * whole)
    close(ag.grad(lambda x: x**2)(3), 6.0)
    close(ag.grad(lambda x: x**2)(np.int64(3)), 6.0)
    close(ag.grad(lambda p: np.sum(p["w"][0] ** 2))({"w": [whole]})["w"][0], 2.0 * whole)
    close(ag.jacobian(ag.grad(lambda x, y: np.sum(x * y)), 1)(whole, whole), np.eye(3))
    close(ag.make_vjp(lambda x: x**2)(whole)[0](whole), 2.0 * whole * whole)
    close(ag.make_jvp(lambda x: x**2)(whole)(whole)[1], 2.0 * whole * whole)
    assert ag.grad(lambda x, n: x * n)(2.0, 3) == 3.0
    assert "2.0" in ag.grad(lambda x: x**2).source(3)


def test_trees():
    params = {"w": [A, (B,)], "c": 2.0}
    found = ag.grad(lambda p: p["c"] * np.sum(p["w"][0] * p["w"][1][0]))(params)
    close(found["w"][0], 2.0 * B)
    close(found["w"][1], (2.0 * A,))
    close(found["c"], np.sum(A * B))


def test_operators_nest():
    close(ag.grad(ag.grad(lambda x: x**4))(2.0), 48.0)
    close(ag.elementwise_grad(ag.elementwise_grad(lambda x: x**4))(A), 12 * A**2)
    curved = np.zeros((3, 3, 3))
    for i in range(3):
        curved[i, i] += 1.0
        curved[i, :, i] += 1.0
    close(ag.jacobian(ag.jacobian(lambda x: np.sum(x) * x))(A), curved)
    close(ag.grad(lambda x: np.sum(ag.make_vjp(np.sin)(x)[0](V)))(A), -np.sin(A) * V)
    close(ag.grad(lambda x: np.sum(ag.make_jvp(np.sin)(x)(V)[1]))(A), -np.sin(A) * V)


def test_a_checkpoint_has_the_same_gradient():
    close(ag.grad(lambda x: np.sum(ag.checkpoint(np.tanh)(x)))(A), 1 - np.tanh(A) ** 2)


K = 2.0


def scaled(x):
    return np.sum(np.sin(x)) * K


@pytest.mark.parametrize("op", ["grad", "value_and_grad", "elementwise_grad", "deriv", "jacobian", "hessian"])
def test_an_operator_made_anew_compiles_nothing_anew(op):
    def own(x):
        return np.sum(np.sin(x))

    for k in range(4):
        getattr(ag, op)(own)(A + k)
    assert getattr(ag, op)(own).cache_info().misses == 1


def test_a_function_made_anew_compiles_nothing_anew():
    made = []
    for k in range(4):
        made.append(ag.grad(lambda x: np.sum(x**2)))
        close(made[-1](A + k), 2 * (A + k))
    assert sum(m.cache_info().misses for m in made) == 1


def test_a_counter_does_not_compile_at_each_step():
    def loss(w, i):
        return np.sum((w - i) ** 2)

    slope = ag.grad(loss)
    for i in range(20):
        close(slope(A, i), 2 * (A - i))
    assert slope.cache_info().misses <= 2


def test_what_the_function_reads_is_watched(monkeypatch):
    ways = {
        "grad": lambda: ag.grad(scaled)(A),
        "elementwise": lambda: ag.elementwise_grad(scaled)(A),
        "jacobian": lambda: ag.jacobian(scaled)(A),
        "hessian": lambda: ag.hessian(scaled)(A),
        "deriv": lambda: ag.deriv(scaled)(A),
        "vjp": lambda: ag.make_vjp(scaled)(A)[0](1.0),
        "jvp": lambda: ag.make_jvp(scaled)(A)(V)[1],
        "hvp": lambda: ag.make_hvp(scaled)(A)[0](V),
        "product": lambda: ag.hessian_vector_product(scaled)(A, V),
        "named": lambda: ag.multigrad_dict(scaled)(A)["x"],
    }
    before = {name: way() for name, way in ways.items()}
    monkeypatch.setitem(globals(), "K", 6.0)
    for name, way in ways.items():
        close(way(), 3.0 * before[name])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ag.grad(np.sin)(A), NonScalarOutputError),
        (lambda: ag.grad(np.sin, 2)(1.0), ArgnumsError),
        (lambda: ag.grad(np.sin, "x"), ArgnumsError),
        (lambda: ag.grad(lambda x: x, [0, 1.5]), ArgnumsError),
        (lambda: ag.grad(lambda x: x, [0, 0]), ArgnumsError),
        (lambda: ag.grad(lambda s: 1.0)("text"), NonDifferentiableError),
        (lambda: ag.grad(lambda z: z * 1j)(1.0), NonDifferentiableError),
    ],
)
def test_wrong_uses_are_named_with_the_line(call, error):
    with pytest.raises(error) as caught:
        call()
    assert "test_operators.py" in str(caught.value)


ASKING = {
    "a length": lambda x, n: np.sum(x[:n] ** 2),
    "an axis": lambda x, n: np.sum(np.max(np.outer(x, x), axis=n % 2) ** 2),
    "an exponent": lambda x, n: np.sum(x ** (n + 1)),
    "a count": lambda x, n: sum((np.sum(x**2) * k for k in range(n)), 0.0 * x[0]),
    "a decision": lambda x, n: np.sum(x**2) if n < 2 else np.sum(np.sin(x)),
    "a text": lambda x, n: np.sum(x**2) * len(f"{n:05d}"),
    "a quotient": lambda x, n: np.sum(x**2) / (n + 1) + np.sum(x) * (n // 2) - n % 3 * x[0],
    "an index": lambda x, n: x[n] * x[-n],
    "a part": lambda x, n: np.sum(x[n : n + 2] ** 3),
    "nothing": lambda x, n: np.sum(x**2),
}


@pytest.mark.parametrize("name", ASKING)
def test_ints_are_traced_from_the_first_call_on_where_that_can_be(name):
    f, x = ASKING[name], np.array([0.5, -1.0, 2.0, 1.5])
    both = ag.value_and_grad(f)
    for n in (0, 1, 2, 3, 1):
        np.testing.assert_allclose(ag.grad(f)(x, n), rg.grad(lambda x, n=n: f(x, n))(x), rtol=1e-15)
    for n in (3, 2, 0):
        value, slope = both(x, n)
        np.testing.assert_allclose(value, f(x, n), rtol=1e-15)
        np.testing.assert_allclose(slope, ag.grad(f)(x, n), rtol=1e-15)


def test_a_number_of_a_step_is_compiled_once():
    slope = ag.grad(lambda w, step: np.sum((w - 0.1 * step) ** 2) / (1 + step))
    for step in range(5):
        np.testing.assert_allclose(slope(np.ones(3), step), np.full(3, 2 * (1 - 0.1 * step) / (1 + step)), rtol=1e-14)
    assert slope.cache_info().misses == 1
