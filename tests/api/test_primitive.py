"""rg.primitive: what is declared is checked, and operands are taken as NumPy takes them."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Aval
from retrograd.ops.elementary import cos
from tests.support.functions import assert_same

X = np.array([0.3, -0.7, 1.1])
Y = np.array([2.0, 3.0, 4.0])
NUMBERS = count()


def declared(emit: Any, **options: Any) -> Any:
    """A primitive with a name of its own."""
    return rg.primitive(f"declared_in_a_test_{next(NUMBERS)}", emit=emit, **options)


def first(t, out, x, y):
    return t * x / out


def second(t, out, x, y):
    return t * y / out


HYPOT = declared("np.hypot({0}, {1})", diff=[rg.push(first), rg.push(second)])
OPERANDS: list[tuple[Any, Any]] = [
    (3, 4),
    (3.0, 4.0),
    (True, False),
    (X, 2.0),
    (X, 2),
    (X, Y),
    (X[:, None], Y),
    (X.astype(np.float32), 2.0),
    (X.astype(np.float32), Y),
    (np.float32(3), 4.0),
    (np.array([3, 1]), np.array([4, 2], np.int8)),
    (np.array(3.0), np.array(4.0)),
    ([3.0, 0.0], [4.0, 1.0]),
    (X, [1, 2, 3]),
]


@pytest.mark.parametrize("operands", OPERANDS, ids=str)
def test_operands_are_broadcast_and_cast_as_numpy_does(operands):
    expected = np.hypot(*operands)
    assert_same(HYPOT(*operands), expected)
    assert_same(rg.jit(lambda x: (x, HYPOT(*operands)))(X)[1], expected)


def test_constants_alone_are_operands_inside_a_trace():
    np.testing.assert_array_equal(rg.jit(lambda x: x * HYPOT(3.0, [4.0, 4.0, 4.0]))(X), X * 5)


def test_each_operand_has_its_own_derivative():
    found = rg.grad(lambda x, y: np.sum(HYPOT(x, y)), argnums=(0, 1))(np.array([3.0]), np.array([4.0]))
    np.testing.assert_allclose(found, [[0.6], [0.8]])
    rg.check_grads(lambda x, y: np.sum(HYPOT(x[:, None], y) ** 2), (X, Y), order=2)
    rg.check_grads(lambda x: HYPOT(x, 2) * x, (0.3,), order=2)
    np.testing.assert_allclose(rg.vmap(HYPOT, in_axes=(0, None))(X, Y), np.hypot(X[:, None], Y))


def test_without_derivatives_differentiation_is_an_error():
    cube = declared("np.power({0}, 3)")
    np.testing.assert_array_equal(cube(X), X**3)
    with pytest.raises(rg.errors.NonDifferentiableError, match="declared without diff="):
        rg.grad(lambda x: np.sum(cube(x)))(X)
    np.testing.assert_array_equal(rg.grad(lambda x: np.sum(x * cube(rg.stop_gradient(x))))(X), X**3)


def test_none_declares_a_zero_derivative():
    floor = declared("np.floor({0})", diff=[None])
    np.testing.assert_array_equal(rg.grad(lambda x: np.sum(floor(x) * x))(X), np.floor(X))


def test_lanes_of_what_is_not_elementwise_run_one_by_one():
    matrix = np.outer(X, Y)
    for axis in (0, 1):
        total = declared("np.cumsum({0}, axis={axis})", diff=[None])
        np.testing.assert_array_equal(total(matrix, axis=axis), np.cumsum(matrix, axis=axis))
        np.testing.assert_array_equal(total(X, axis=0), np.cumsum(X))
    running = declared("np.cumsum({0}, axis=0)")
    np.testing.assert_array_equal(rg.vmap(running)(matrix), np.cumsum(matrix, axis=1))
    summed = declared("np.sum({0})", shape=lambda x: Aval((), x.dtype, "scalar"))
    np.testing.assert_allclose(rg.vmap(summed)(matrix), np.sum(matrix, axis=1))


def test_attributes_may_be_numbers_that_differ_from_call_to_call():
    power = declared("{0} ** {n}", diff=[rg.push(lambda t, out, x, n: t * (x ** (n - 1)) * n)])
    for n in (2.0, 3.0, -1.0):
        np.testing.assert_array_equal(power(Y, n=n), Y**n)
        rg.check_grads(lambda x, n=n: power(x, n=n), (Y,))


def test_the_source_of_numbers_computes_as_numpy_does():
    square = declared("{0} ** 2", diff=[None])
    assert_same(square(-3.0), np.float64(9.0))
    assert_same(rg.jit(lambda x: square(-3.0) * x)(2.0), np.float64(18.0))


FAULTY: dict[str, tuple[str, dict[str, Any], str]] = {
    "one rule for two": ("np.hypot({0}, {1})", {"diff": [rg.push(first)]}, "2 operands, but diff has 1"),
    "a rule too many": ("np.floor({0})", {"diff": [None, None]}, "1 operands, but diff has 2"),
    "a bare function": ("np.sin({0})", {"diff": [lambda t, out, x: t * cos(x)]}, "derivative of operand 0"),
    "no list": ("np.sin({0})", {"diff": rg.push(lambda t, out, x: t * cos(x))}, "diff of"),
    "NumPy in a rule": ("np.sin({0})", {"diff": [rg.push(lambda t, out, x: t * np.cos(x))]}, "rule of operand 0"),
    "a wrong signature": ("np.sin({0})", {"diff": [rg.push(lambda t, x: t * cos(x))]}, "positional arguments"),
    "a forgotten tangent": ("np.sin({0})", {"diff": [rg.push(lambda t, out, x: cos(x))]}, "not linear in its first"),
    "a number": ("np.sin({0})", {"diff": [rg.push(lambda t, out, x: 1.0)]}, "gives 1.0"),
    "a false pull": ("np.sin({0})", {"diff": [rg.pull(lambda ct, x: ct * cos(x))]}, "declared to be linear"),
    "a typo": ("np.hypto({0}, {1})", {}, "np.hypto, which does not exist"),
    "a typo in SciPy": ("scipy.special.expitt({0})", {}, "does not exist"),
    "another module": ("numpy.sin({0})", {}, "names numpy"),
    "a method that is none": ("{0}.foo()", {}, "not allowed"),
    "no expression": ("np.sin({0}", {}, "not an expression"),
    "not a template": ("np.sin({0", {}, "not a template"),
    "no operand": ("np.sin({x})", {}, "names no operand"),
    "no number": ("np.sin({})", {}, "names no operand"),
    "a gap": ("np.hypot({0}, {2})", {}, "operands 0, 2"),
    "too few operands": ("np.hypot({0})", {}, "does not fit the shape rule"),
    "too many operands": ("np.sin({0}, {1}, {2}, {3})", {}, "does not fit the shape rule"),
    "another shape": ("np.sum({0})", {}, "gives float64 for operands of float64"),
    "another dtype": ("{0} > 0", {}, "gives bool"),
    "a false ufunc": ("np.sin({0}) + 1", {"ufunc": "np.sin"}, "not a call of such a ufunc"),
    "no ufunc": ("np.sin({0})", {"ufunc": "np.sine"}, "not a call of such a ufunc"),
    "no source": (None, {}, "emit of"),  # type: ignore[dict-item]  # the fault
    "no rule of lanes": ("np.sin({0})", {"batch": 3}, "batch of"),
    "a statement": ("{0} if {1} else {0}", {}, "not allowed"),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_faulty_declarations_are_refused_and_their_names_stay_free(fault):
    emit, options, message = FAULTY[fault]
    with pytest.raises(rg.errors.OptionError, match=message) as caught:
        rg.primitive("refused_in_a_test", emit=emit, **options)
    assert caught.value.remedy
    assert "test_primitive.py" in str(caught.value.where)


@pytest.mark.parametrize("name", ["lambda", "no name", 3, []])
def test_names_that_are_none_are_refused(name):
    with pytest.raises(rg.errors.OptionError, match="cannot name a primitive"):
        rg.primitive(name, emit="np.sin({0})")


def test_names_of_others_are_refused():
    with pytest.raises(rg.errors.OptionError, match="'sin' is taken by a primitive of retrograd"):
        rg.primitive("sin", emit="np.sin({0})")
    elsewhere = {"rg": rg, "__name__": "somewhere.else"}
    exec("rg.primitive('declared_elsewhere', emit='np.sin({0})')", elsewhere)
    with pytest.raises(rg.errors.OptionError, match=r"taken by a primitive of the module somewhere\.else"):
        rg.primitive("declared_elsewhere", emit="np.sin({0})")


CELL = """
scaled = rg.primitive(
    "scaled_root", emit="{factor} * np.cbrt({{0}})", diff=[rg.push(lambda t, out, x: t * out / (3.0 * x))]
)
"""


def test_a_cell_that_declares_a_primitive_may_run_again():
    cell = {"rg": rg, "np": np, "__name__": "__main__"}
    exec("def f(x):\n    return np.sum(scaled(x))", cell)
    compiled = [rg.jit(cell["f"]), rg.grad(cell["f"]), rg.vmap(rg.grad(cell["f"]))]
    for factor in (1.0, 1.0, 2.5):
        exec(CELL.format(factor=factor), cell)
        value, slope, slopes = (f(x) for f, x in zip(compiled, (X, X, np.stack([X, Y])), strict=True))
        np.testing.assert_allclose(value, factor * np.sum(np.cbrt(X)))
        np.testing.assert_allclose(slope, factor * np.cbrt(X) / (3.0 * X))
        np.testing.assert_allclose(slopes, factor * np.cbrt([X, Y]) / (3.0 * np.stack([X, Y])))


def test_rules_call_primitives_of_the_user():
    step = declared("np.heaviside({0}, 0.5)", diff=[None])
    ramp = declared("np.maximum({0}, 0.0)", diff=[rg.push(lambda t, out, x: t * step(x))])
    points = np.array([-1.0, 2.0, -3.0])
    np.testing.assert_array_equal(rg.grad(lambda x: np.sum(ramp(x)))(points), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(rg.vmap(rg.grad(ramp))(points), [0.0, 1.0, 0.0])
    power = declared("{0} ** {n}", diff=[rg.push(lambda t, out, x, n: t * power(x, n=n - 1) * float(n))])
    rg.check_grads(lambda x: power(x, n=3), (X,), order=3)
    with pytest.raises(rg.errors.OptionError, match="takes 1 operands, but 2"):
        declared("np.sin({0})", diff=[rg.push(lambda t, out, x: step(t, x))])


def test_calls_that_do_not_fit_the_declaration():
    with pytest.raises(rg.errors.OptionError, match="takes 2 operands, but 1"):
        HYPOT(X)
    with pytest.raises(rg.errors.OptionError, match="no attribute axis"):
        HYPOT(X, Y, axis=0)
    with pytest.raises(ValueError, match="broadcast"):
        HYPOT(X, Y[:2])
    total = declared("np.cumsum({0}, axis={axis})")
    with pytest.raises(rg.errors.OptionError, match="lacks the attribute axis"):
        total(X)
    with pytest.raises(rg.errors.OptionError, match="pass arrays as operands"):
        total(X, axis=X)
    with pytest.raises(rg.errors.ShapeError, match="its shape rule gives"):
        declared("np.sum({0})", shape=lambda x: Aval((2,), x.dtype))(X)
    with pytest.raises(rg.errors.ShapeError, match="its shape rule gives"):
        declared("np.abs({0})")(X + 1j)


IN_RULES = {
    "exp": lambda t, out, x: t * np.exp(x - out),
    "sum": lambda t, out, x: t * np.sum(x),  # of one object it would be that object
    "mean": lambda t, out, x: t * np.mean(x),
    "solve": lambda t, out, x: np.linalg.solve(x, t),
}


@pytest.mark.parametrize("name", IN_RULES)
def test_numpy_functions_in_rules_are_refused_with_the_line_and_the_remedy(name):
    with pytest.raises(rg.errors.OptionError, match="the rule of operand 0 of refused fails at ") as caught:
        rg.primitive("refused", emit="np.logaddexp(0.0, {0})", diff=[rg.push(IN_RULES[name])])
    assert f"{__file__}:{IN_RULES[name].__code__.co_firstlineno}" in caught.value.what
    assert "from retrograd.ops.elementary import exp" in caught.value.remedy


def test_rules_of_shape_and_batch_that_fail_are_named():
    shape = rg.primitive("badly_shaped", emit="np.cbrt({0})", shape=lambda x: x.no_such)
    with pytest.raises(rg.errors.OptionError, match=r"the rule shape= of badly_shaped fails at .*has no attribute"):
        shape(np.ones(3))
    batch = rg.primitive("badly_batched", emit="np.cbrt({0})", batch=lambda prim, size, args, flags: args[1])
    with pytest.raises(rg.errors.OptionError, match=r"the rule batch= of badly_batched fails at .*IndexError"):
        rg.vmap(batch)(np.ones((2, 3)))
