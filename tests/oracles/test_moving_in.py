"""Programs and calls under autograd's names against autograd itself."""

from __future__ import annotations

import autograd
import autograd.misc as autograd_misc
import autograd.numpy as anp
import numpy as np
import pytest
from autograd.core import vspace as autograd_vspace
from autograd.misc import optimizers as autograd_optimizers
from autograd.misc.fixed_points import fixed_point as autograd_fixed_point
from autograd.scipy.signal import convolve as autograd_convolve

from bench import moving_in
from retrograd.compat import autograd as ours
from retrograd.compat.autograd import misc
from retrograd.compat.autograd.extend import vspace
from retrograd.compat.autograd.misc import optimizers
from retrograd.compat.autograd.misc.fixed_points import fixed_point
from retrograd.compat.autograd.scipy.signal import convolve

pytestmark = pytest.mark.oracle

A, B, V = np.array([0.3, -0.7, 1.1]), np.array([2.0, 0.5, 1.5]), np.array([1.0, -2.0, 0.5])


def number(a, b, scale=1.0):
    return scale * anp.sum(anp.tanh(a * b) ** 2) + anp.dot(a, anp.exp(-b))


def several(a, b, scale=1.0):
    return scale * anp.outer(anp.sin(a), b**2) @ a


def plain(function):
    """The same function with NumPy for autograd's wrapper of it."""
    code = function.__code__
    return type(function)(code, {**globals(), "anp": np}, code.co_name, function.__defaults__)


CALLS = {
    "grad": lambda ag, f, g, k: ag.grad(f, k)(A, B, scale=2.0),
    "value_and_grad": lambda ag, f, g, k: ag.value_and_grad(f, k)(A, B, scale=2.0),
    "elementwise_grad": lambda ag, f, g, k: ag.elementwise_grad(g, k)(A, B, scale=2.0),
    "deriv": lambda ag, f, g, k: ag.deriv(g, k)(A, B, scale=2.0),
    "jacobian": lambda ag, f, g, k: ag.jacobian(g, k)(A, B, scale=2.0),
    "hessian": lambda ag, f, g, k: ag.hessian(f, k)(A, B, scale=2.0),
    "hessian of several": lambda ag, f, g, k: ag.hessian(g, k)(A, B),
    "make_vjp": lambda ag, f, g, k: (ag.make_vjp(g, k)(A, B)[0](V), ag.make_vjp(g, k)(A, B)[1]),
    "make_jvp": lambda ag, f, g, k: ag.make_jvp(g, k)(A, B, scale=2.0)(V),
    "make_jvp_reversemode": lambda ag, f, g, k: ag.differential_operators.make_jvp_reversemode(g, k)(A, B)(V),
    "make_hvp": lambda ag, f, g, k: (ag.make_hvp(f, k)(A, B)[0](V), ag.make_hvp(f, k)(A, B)[1]),
    "hessian_tensor_product": lambda ag, f, g, k: ag.hessian_tensor_product(f, k)(A, B, V),
    "tensor_jacobian_product": lambda ag, f, g, k: ag.tensor_jacobian_product(g, k)(A, B, V),
    "make_ggnvp": lambda ag, f, g, k: ag.make_ggnvp(g, f_argnum=k)(A, B)(V),
    "grad_and_aux": lambda ag, f, g, k: ag.grad_and_aux(lambda a, b: (f(a, b), a), k)(A, B),
    "grad_named": lambda ag, f, g, k: ag.grad_named(f, "ab"[k])(A, B),
    "checkpoint": lambda ag, f, g, k: ag.grad(ag.checkpoint(f), k)(A, B),
}
ZERO_DIMENSIONAL = {"grad": [0, 1], "value_and_grad": [0, 1], "elementwise_grad": [0, 1]}


def alike(found, expected):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            alike(x, y)
    else:
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("argnum", [0, 1])
def test_operators_agree(name, argnum):
    alike(CALLS[name](ours, plain(number), plain(several), argnum), CALLS[name](autograd, number, several, argnum))


@pytest.mark.parametrize("name", ZERO_DIMENSIONAL)
def test_operators_agree_for_lists_of_arguments(name):
    argnum = ZERO_DIMENSIONAL[name]
    alike(CALLS[name](ours, plain(number), plain(several), argnum), CALLS[name](autograd, number, several, argnum))


def test_complex_functions_agree():
    z = np.array([1.0 + 2.0j, -0.5 + 0.3j])
    for f in (
        lambda z: anp.sum(anp.abs(z) ** 2),
        lambda z: anp.real(anp.sum(z**3)),
        lambda z: anp.sum(anp.imag(anp.exp(z) * anp.conj(z))),
    ):
        alike(ours.grad(plain(f))(z), autograd.grad(f)(z))
    alike(ours.holomorphic_grad(lambda z: np.sum(z**3))(z), autograd.holomorphic_grad(lambda z: anp.sum(z**3))(z))


@pytest.mark.parametrize("name", ["sgd", "rmsprop", "adam"])
def test_optimisers_agree(name):
    told = {}
    for package, steps in ((ours, optimizers), (autograd, autograd_optimizers)):
        found = told[package] = []

        def loss(p, i):
            return (p["a"] - 1.0) ** 2 + ((p["b"] * p["b"]).sum() - 0.1 * i) ** 2

        start = {"a": 0.0, "b": np.array([1.0, 0.5])}
        kept = lambda x, i, g, found=found: found.append([x["a"], x["b"], i, g["a"], g["b"]])  # noqa: E731
        end = getattr(steps, name)(package.grad(loss), start, callback=kept, num_iters=30, step_size=0.02)
        found.append([end["a"], end["b"]])
    alike(told[ours], told[autograd])


@pytest.mark.parametrize("tree", [3.0, [1.0, np.ones((2, 2))], {"b": (1.0, [2.0]), "a": np.arange(3.0)}, 2j], ids=str)
def test_flatten_agrees(tree):
    (found, back), (expected, there) = misc.flatten(tree), autograd_misc.flatten(tree)
    alike(found, expected)
    assert repr(back(found * 2)) == repr(there(expected * 2))


@pytest.mark.parametrize("value", [1.0, np.ones((2, 3)), 1j, [1.0, np.ones(2)], {"a": 1j * np.ones(2)}], ids=str)
def test_spaces_agree(value):
    mine, theirs = vspace(value), autograd_vspace(value)
    assert mine.size == theirs.size
    for name in ("zeros", "ones"):
        alike(misc.flatten(getattr(mine, name)())[0], misc.flatten(getattr(theirs, name)())[0])
    assert len(list(mine.standard_basis())) == len(list(theirs.standard_basis()))
    x = mine.ones()
    alike(mine.inner_prod(x, x), theirs.inner_prod(x, x))


def test_fixed_points_agree():
    def distance(x, y):
        return np.max(np.abs(x - y))

    def settled(solver, np_):
        return lambda a: np_.sum(solver(lambda a: lambda x: np_.cos(a * x), a, np.ones(2), distance, 1e-12))

    a = np.array([0.5, 0.9])
    alike_to = autograd.grad(settled(autograd_fixed_point, anp))(a)
    np.testing.assert_allclose(ours.grad(settled(fixed_point, np))(a), alike_to, rtol=1e-9)


AXES = [
    ((5,), (3,), None, ((), ())),
    ((3,), (5,), None, ((), ())),
    ((4, 5), (2, 3), None, ((), ())),
    ((2, 3, 6, 5), (3, 4, 2, 3), ([2, 3], [2, 3]), ([1], [0])),
    ((3, 4, 2, 3), (2, 3, 6, 5), ([2, 3], [2, 3]), ([0], [1])),
    ((6, 3), (4, 6), ([0], [1]), ([], [])),
    ((5, 3), (3, 5), ([0], [0]), ([], [])),
]


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize(("a", "b", "axes", "dot_axes"), AXES)
def test_convolutions_agree(a, b, axes, dot_axes, mode):
    rng = np.random.default_rng(0)
    given = rng.normal(size=a), rng.normal(size=b)
    options = {"axes": axes, "dot_axes": dot_axes, "mode": mode}
    alike(convolve(*given, **options), autograd_convolve(*given, **options))
    if mode != "same":
        found = ours.grad(lambda a, b: np.sum(np.sin(convolve(a, b, **options))), [0, 1])(*given)
        alike(found, autograd.grad(lambda a, b: anp.sum(anp.sin(autograd_convolve(a, b, **options))), [0, 1])(*given))


@pytest.mark.slow
@pytest.mark.parametrize("program", moving_in.PROGRAMS)
def test_programs_tell_the_same_numbers(program):
    found, expected = (moving_in.timed(program, contestant).told for contestant in ("compat", "autograd"))
    assert len(found) == moving_in.FIRST + moving_in.LATER
    assert moving_in.agreeing(program, found, expected), max(map(abs, np.subtract(found, expected)))
    assert not moving_in.agreeing(program, [x + 0.01 * (1 + abs(x)) for x in found], expected)
