"""Bad uses, as careless users write them: one function each, with `# <-` on the line that an error must name."""

# ruff: noqa: B008, PLW0108 - they are written as users write them, and made in loops

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import chdir
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from retrograd import errors
from retrograd.export.committed import check
from tests.errors.foreign_uses import HANDED_OVER, UNTRACED_SCIPY

X = np.array([1.0, 2.0, 3.0])
W = np.array([4.0, 5.0, 6.0])
HELD = [W]


class BadUse(NamedTuple):
    """A function that must fail, the class of its error, and the function that holds the line to be named."""

    call: Callable[[], Any]
    error: type[errors.RetrogradError]
    culprit: Callable[..., Any]


BAD_USES: dict[str, BadUse] = {}


def add(name: str, call: Callable[[], Any], error: type[errors.RetrogradError]) -> None:
    BAD_USES[name] = BadUse(call, error, call)


def add_traced(
    name: str, function: Callable[[Any], Any], error: type[errors.RetrogradError], transform: Any = rg.jit
) -> None:
    """The line is that of a lambda, or of the call where NumPy's own function is traced."""

    def call() -> Any:
        return transform(lambda x: function(x))(X)  # <-

    culprit = function if getattr(function, "__name__", "") == "<lambda>" else call
    BAD_USES[name] = BadUse(call, error, culprit)


def bad(error: type[errors.RetrogradError]) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def register(call: Callable[[], Any]) -> Callable[[], Any]:
        assert call.__name__ not in BAD_USES
        BAD_USES[call.__name__] = BadUse(call, error, call)
        return call

    return register


def square_sum(x):
    return np.sum(x * x)


# ------------------------------------------------------------------------------------------ what is not traced

UNTRACED: dict[str, Callable[[Any], Any]] = {
    "an array of objects": lambda x: np.array([x[0], None]),
    "an array asked to hold objects": lambda x: np.array([x[0], x[1]], dtype=object),
    "long doubles": lambda x: x.astype(np.longdouble),
    "long double zeros": lambda x: np.zeros(3, np.longdouble),
    "an array in another byte order": lambda x: x + W.astype(">f8"),
    "a masked array": lambda x: x + np.ma.array(W, mask=[True, False, False]),
    "the strides": lambda x: x.strides,
    "the memory": lambda x: x.data,
    "the memory as ctypes": lambda x: x.ctypes,
    "tobytes": lambda x: x.tobytes(),
    "tofile": lambda x: x.tofile("nowhere"),
    "a view of another dtype": lambda x: x.view(np.int64),
}

for _name, _function in UNTRACED.items():
    add_traced(f"traced {_name}", _function, errors.UnsupportedError)

add_traced("traced add.at into an array", lambda x: np.add.at(HELD[0], [0], x[0]), errors.CapturedWriteError)


@bad(errors.UnsupportedError)
def an_array_of_objects_as_argument():
    rg.jit(lambda x: x)(np.array([1.0, None]))  # <-


@bad(errors.UnsupportedError)
def an_array_of_strings_as_argument():
    rg.jit(lambda x, names: x)(X, np.array(["a", "b"]))  # <-


@bad(errors.UnsupportedError)
def a_masked_array_as_argument():
    rg.jit(np.sum)(np.ma.array(X, mask=[True, False, False]))  # <-


@bad(errors.UnsupportedError)
def a_masked_array_after_a_plain_one():
    f = rg.jit(np.sum)
    f(X)
    f(np.ma.array(X, mask=[True, False, False]))  # <-


@bad(errors.UnsupportedError)
def an_unknown_subclass_as_argument():
    class Quantity(np.ndarray):
        pass

    rg.jit(np.sum)(X.view(Quantity))  # <-


@bad(errors.UnsupportedError)
def a_long_double_as_argument():
    rg.grad(square_sum)(np.longdouble(2.0))  # <-


@bad(errors.UnsupportedError)
def a_big_endian_array_as_argument():
    rg.grad(square_sum)(X.astype(">f8"))  # <-


@bad(errors.UnsupportedError)
def an_array_of_records_as_argument():
    rg.jit(lambda x: x)(np.zeros(2, [("a", float)]))  # <-


@bad(errors.UnsupportedError)
def dates_as_argument():
    rg.jit(lambda x: x)(np.zeros(2, "M8[s]"))  # <-


# ---------------------------------------------------------------------- positions that cannot be differentiated

for _what, _value in {
    "an int": 3,
    "an array of ints": np.arange(3),
    "a bool": True,
    "a NumPy bool": np.bool_(True),
    "an array of bools": np.array([True]),
    "a string": "x",
    "bytes": b"x",
    "None": None,
    "an object": object(),
    "a list of ints": [1, 2],
    "an empty tuple": (),
    "an empty dict": {},
    "a NumPy int": np.int64(3),
}.items():

    def _differentiated(value: Any = _value) -> Any:
        return rg.grad(square_sum)(value)  # <-

    add(f"grad of {_what}", _differentiated, errors.NonDifferentiableError)


@bad(errors.NonDifferentiableError)
def an_int_among_the_primals_of_vjp():
    rg.vjp(lambda x, n: x * n, X, 2)  # <-


@bad(errors.NonDifferentiableError)
def an_int_among_the_primals_of_jvp():
    rg.jvp(lambda x: x * 2, (2,), (1.0,))  # <-


@bad(errors.NonDifferentiableError)
def an_int_under_linearize():
    rg.linearize(lambda x: x * 2, 2)  # <-


@bad(errors.NonDifferentiableError)
def an_int_under_jacfwd():
    rg.jacfwd(lambda x: x * 2)(2)  # <-


@bad(errors.NonDifferentiableError)
def an_int_under_jacrev():
    rg.jacrev(lambda x: x * 2)(2)  # <-


@bad(errors.NonDifferentiableError)
def an_int_under_hessian():
    rg.hessian(lambda x: x * 2)(2)  # <-


@bad(errors.NonDifferentiableError)
def an_int_under_check_grads():
    rg.check_grads(square_sum, (np.arange(3),))  # <-


@bad(errors.NonDifferentiableError)
def grad_of_an_argmax():
    rg.grad(np.argmax)(X)  # <-


@bad(errors.NonDifferentiableError)
def grad_of_a_comparison():
    rg.grad(lambda x: x > 1.0)(2.0)  # <-


@bad(errors.NonDifferentiableError)
def grad_of_a_count():
    rg.grad(len)(X)  # <-


@bad(errors.NonDifferentiableError)
def grad_of_a_complex_output():
    rg.grad(lambda x: x * 1j)(2.0)  # <-


@bad(errors.NonDifferentiableError)
def the_transpose_of_a_sine():
    def f(x):
        return np.sin(x)  # <-

    rg.linear_transpose(f, X)


@bad(errors.NonDifferentiableError)
def the_transpose_of_a_square():
    def f(x):
        return x * x  # <-

    rg.linear_transpose(f, X)


# --------------------------------------------------------------------------------------------- outputs and aux


@bad(errors.NonScalarOutputError)
def grad_of_a_vector():
    rg.grad(np.sin)(X)  # <-


@bad(errors.NonScalarOutputError)
def grad_of_an_empty_array():
    rg.grad(lambda x: x[:0])(X)  # <-


@bad(errors.NonScalarOutputError)
def grad_of_a_pair():
    rg.value_and_grad(lambda x: (np.sum(x), 1.0))(X)  # <-


@bad(errors.NonScalarOutputError)
def grad_of_nothing():
    rg.grad(lambda x: None)(X)  # <-


@bad(errors.NonScalarOutputError)
def grad_of_a_string():
    rg.grad(lambda x: "loss")(X)  # <-


@bad(errors.NonScalarOutputError)
def a_hessian_of_a_vector():
    rg.hessian(np.sin)(X)  # <-


@bad(errors.NonScalarOutputError)
def grad_of_a_vector_with_aux():
    rg.grad(lambda x: (x, 1.0), has_aux=True)(X)  # <-


@bad(errors.OptionError)
def aux_without_a_pair():
    rg.grad(square_sum, has_aux=True)(X)  # <-


@bad(errors.OptionError)
def aux_in_a_list():
    rg.value_and_grad(lambda x: [np.sum(x), 1.0], has_aux=True)(X)  # <-


@bad(errors.OptionError)
def aux_in_a_triple():
    rg.vjp(lambda x: (x, x, x), X, has_aux=True)  # <-


# ---------------------------------------------------------------------------------------------------- argnums

for _argnums in (1, -2, "y", "0", None, 1.0, True, (0, 0), (0, "x"), (0, -1), (0, 5), (), [], {0}, "x "):

    def _named(argnums: Any = _argnums) -> Any:
        return rg.grad(square_sum, argnums)(X)  # <-

    add(f"argnums {_argnums!r}", _named, errors.ArgnumsError)


@bad(errors.ArgnumsError)
def argnums_of_a_call_without_arguments():
    rg.grad(square_sum)()  # <-


@bad(errors.ArgnumsError)
def a_position_that_is_passed_by_name():
    rg.grad(square_sum)(x=X)  # <-


@bad(errors.ArgnumsError)
def a_default_that_the_call_leaves_out():
    rg.grad(lambda x, scale=2.0: np.sum(x) * scale, "scale")(X)  # <-


@bad(errors.ArgnumsError)
def vjp_at_no_point():
    rg.vjp(lambda: 1.0)  # <-


# ----------------------------------------------------------------------------------------- shapes and structures

for _what, _ct in {
    "a number for an array": 1.0,
    "another shape": np.ones(4),
    "a longer shape": np.ones((1, 3)),
    "a string": "ct",
    "an array of objects": np.array([1.0, None, 2.0]),
    "a complex array": 1j * X,
    "a masked array": np.ma.array(X),
}.items():

    def _pulled(ct: Any = _ct) -> Any:
        return rg.vjp(np.sin, X)[1](ct)  # <-

    def _pushed(ct: Any = _ct) -> Any:
        return rg.jvp(np.sin, (X,), (ct,))  # <-

    def _transposed(ct: Any = _ct) -> Any:
        return rg.linear_transpose(np.negative, X)(ct)  # <-

    add(f"cotangent {_what}", _pulled, errors.ShapeError)
    _untraced = _what in ("an array of objects", "a masked array")  # tangents are arguments of what is compiled
    add(f"tangent {_what}", _pushed, errors.UnsupportedError if _untraced else errors.ShapeError)
    add(f"transposed cotangent {_what}", _transposed, errors.ShapeError)

for _what, _ct in {"a list": [1.0, 2.0, 3.0], "a tuple": (X,), "None": None, "a dict": {"x": X}}.items():

    def _pulled_tree(ct: Any = _ct) -> Any:
        return rg.vjp(np.sin, X)[1](ct)  # <-

    add(f"cotangent {_what}", _pulled_tree, errors.TreeError)


@bad(errors.TreeError)
def a_tangent_too_many():
    rg.jvp(np.sin, (X,), (X, X))  # <-


@bad(errors.TreeError)
def bare_primals():
    rg.jvp(np.sin, X, X)  # <-


@bad(errors.TreeError)
def a_tangent_too_few_for_a_linearization():
    rg.linearize(np.multiply, X, W)[1](X)  # <-


@bad(errors.TreeError)
def a_tangent_with_a_missing_key():
    rg.jvp(lambda d: d["a"] * d["b"], ({"a": 1.0, "b": 2.0},), ({"a": 1.0},))  # <-


@bad(errors.TreeError)
def check_grads_of_a_bare_array():
    rg.check_grads(square_sum, X)  # <-


for _axis in (1, -2, "a", 0.0, True):

    def _mapped(axis: Any = _axis) -> Any:
        return rg.vmap(np.sin, in_axes=axis)(X)  # <-

    add(f"in_axes {_axis!r}", _mapped, errors.ShapeError)

for _axis in (2, -3, "a", 0.0, True, None):

    def _stacked(axis: Any = _axis) -> Any:
        return rg.vmap(np.sin, out_axes=axis)(np.ones((3, 2)))  # <-

    add(f"out_axes {_axis!r}", _stacked, errors.ShapeError)


@bad(errors.ShapeError)
def lanes_of_different_numbers():
    rg.vmap(np.add)(X, np.ones(4))  # <-


@bad(errors.ShapeError)
def no_lanes():
    rg.vmap(np.sin, in_axes=None)(X)  # <-


@bad(errors.ShapeError)
def lanes_of_a_number():
    rg.vmap(np.sin)(2.0)  # <-


@bad(errors.TreeError)
def more_axes_than_arguments():
    rg.vmap(np.sin, in_axes=(0, 0))(X)  # <-


@bad(errors.TreeError)
def more_axes_than_outputs():
    rg.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X)  # <-


# -------------------------------------------------------------------------------------------------------- scan

for _what, _body in {
    "another shape": lambda c, x: (np.ones(2) * c, x),
    "another dtype": lambda c, x: (c * np.float32(1) > 0, x),
    "another structure": lambda c, x: ((c, c), x),
    "no pair": lambda c, x: c,
    "a list": lambda c, x: [c, x],
    "nothing": lambda c, x: None,
    "a string": lambda c, x: ("c", x),
    "a string beside the carry": lambda c, x: (c, "y"),
}.items():

    def _scanned(body: Any = _body) -> Any:
        return rg.scan(body, 0.0, X)  # <-

    add(f"scan body returns {_what}", _scanned, errors.CarryError)


@bad(errors.CarryError)
def a_narrow_carry():
    rg.scan(lambda c, x: (c + x, c), np.float32(0), X)  # <-


@bad(errors.ShapeError)
def steps_of_different_numbers():
    rg.scan(lambda c, x: (c, x), 0.0, (X, np.ones(4)))  # <-


@bad(errors.ShapeError)
def a_length_that_differs_from_the_steps():
    rg.scan(lambda c, x: (c, x), 0.0, X, length=5)  # <-


@bad(errors.ShapeError)
def neither_steps_nor_length():
    rg.scan(lambda c, x: (c, x), 0.0)  # <-


@bad(errors.ShapeError)
def a_list_of_numbers_as_steps():
    rg.scan(lambda c, x: (c + x, c), 0.0, [1.0, 2.0])  # <-


for _length in (-1, 2.0, "2", True):

    def _counted(length: Any = _length) -> Any:
        return rg.scan(lambda c, x: (c, c), 0.0, None, length)  # <-

    add(f"length {_length!r}", _counted, errors.OptionError)


@bad(errors.UnsupportedError)
def a_string_as_carry():
    rg.scan(lambda c, x: (c, x), "a", X)  # <-


@bad(errors.OptionError)
def a_body_that_is_no_function():
    rg.scan(3, 0.0, X)  # <-


@bad(errors.CapturedWriteError)
def a_body_that_writes_into_an_outer_array():
    def f(x):
        seen = np.zeros(1)

        def body(c, x):
            seen[0] += 1.0  # <-
            return c + x, c

        return rg.scan(body, 0.0, x)[0], seen

    rg.jit(f)(X)


# ----------------------------------------------------------------------------------------------------- options

for _transform in ("jit", "grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "hessian"):
    for _wrong in (3, "f", X, [square_sum], {}):

        def _not_a_function(transform: Any = getattr(rg, _transform), wrong: Any = _wrong) -> Any:
            return transform(wrong)  # <-

        add(f"{_transform} of {type(_wrong).__name__}", _not_a_function, errors.OptionError)

for _transform in ("vjp", "linearize", "linear_transpose"):

    def _not_a_function_at(transform: Any = getattr(rg, _transform)) -> Any:
        return transform(3, X)  # <-

    add(f"{_transform} of 3", _not_a_function_at, errors.OptionError)


@bad(errors.OptionError)
def jvp_of_a_number():
    rg.jvp(3, (X,), (X,))  # <-


@bad(errors.OptionError)
def trace_of_a_number():
    rg.trace(3)(X)  # <-


@bad(errors.OptionError)
def check_grads_of_a_number():
    rg.check_grads(3, (X,))  # <-


@bad(errors.OptionError)
def an_unknown_mode():
    rg.check_grads(square_sum, (X,), modes=("forward",))  # <-


@bad(errors.OptionError)
def a_negative_order():
    rg.check_grads(square_sum, (X,), order=-1)  # <-


@bad(errors.OptionError)
def an_order_in_words():
    rg.check_grads(square_sum, (X,), order="second")  # <-


@bad(errors.OptionError)
def an_unknown_stage():
    rg.grad(square_sum).graph(X, stage="fast")  # <-


@bad(errors.OptionError)
def a_stage_that_this_object_has_not():
    rg.jit(square_sum).graph(X, stage="adjoint")  # <-


for _what, _static in {"a set": {1}, "a bytearray": bytearray(b"a"), "a mapping view": {}.keys()}.items():

    def _static_argument(static: Any = _static) -> Any:
        return rg.jit(lambda x, s: x * len(s))(X, static)  # <-

    add(f"static {_what}", _static_argument, errors.OptionError)


@bad(errors.OptionError)
def an_array_as_a_static_argument():
    rg.jit(lambda x, s: x * len(s), static_argnums=1)(X, X)  # <-


@bad(errors.GradientCheckError)
def a_derivative_that_is_wrong():
    @rg.custom_jvp
    def cube(x):
        return x**3

    cube.defjvp(lambda primals, tangents: (primals[0] ** 3, 2.0 * primals[0] ** 2 * tangents[0]))
    rg.check_grads(cube, (X,))  # <-


@bad(errors.GradientCheckError)
def a_function_that_is_not_smooth():
    rg.check_grads(np.abs, (np.zeros(2),))  # <-


# ---------------------------------------------------------------------------------------------------- read-only


@bad(errors.ReadOnlyError)
def a_write_into_a_broadcast():
    def f(x):
        y = np.broadcast_to(x, (2, 3))
        y[0, 0] = 1.0  # <-
        return y

    rg.jit(f)(X)


@bad(errors.ReadOnlyError)
def a_sum_into_a_broadcast():
    def f(x):
        y = np.broadcast_to(x, (2, 3))
        y += x  # <-
        return y

    rg.jit(f)(X)


# ------------------------------------------------------------------------------------- arrays from outside


@bad(errors.CapturedWriteError)
def a_write_of_a_number_into_an_outside_array():
    def f(x):
        out = HELD[0]
        out[0] = x[0]  # <-
        return out

    rg.jit(f)(X)


@bad(errors.CapturedWriteError)
def a_write_of_an_array_into_an_outside_array():
    def f(x):
        out = HELD[0]
        out[:] = x  # <-
        return out

    rg.jit(f)(X)


@bad(errors.CapturedWriteError)
def a_fill_of_an_outside_array():
    def f(x):
        out = HELD[0]
        out.fill(x[0])  # <-
        return out

    rg.jit(f)(X)


@bad(errors.CapturedWriteError)
def a_sum_into_an_outside_array():
    def f(x):
        out = HELD[0]
        out += x  # <-
        return out

    rg.jit(f)(X)


@bad(errors.CapturedWriteError)
def a_ufunc_into_an_outside_array():
    def f(x):
        out = HELD[0]
        np.sin(x, out=out)  # <-
        return out

    rg.jit(f)(X)


@bad(errors.CapturedWriteError)
def a_product_into_an_outside_array():
    def f(x):
        out = HELD[0]
        np.matmul(np.eye(3), x, out=out)  # <-
        return out

    rg.jit(f)(X)


@bad(errors.CapturedWriteError)
def an_inner_value_in_an_outer_array():
    def f(x):
        y = np.zeros(3)

        def inner(v):
            y[0] = v  # <-
            return v * v

        return rg.grad(inner)(x[0]), y

    rg.jit(f)(X)


# ------------------------------------------------------------------------------- conversions to plain values

add_traced("a format in a loop", lambda x: rg.map(lambda v: v * len(f"{v:.3f}"), x), errors.TracerConversionError)

for _name, (_function, _) in HANDED_OVER.items():
    add_traced(f"passed to {_name}", _function, errors.TracerConversionError)

for _name, (_function, _error) in UNTRACED_SCIPY.items():
    add_traced(f"of {_name}", _function, _error, rg.jacfwd)


# ----------------------------------------------------------------------------------------------- control flow

DECISIONS: dict[str, Callable[[Any], Any]] = {
    "if": lambda x: 1.0 if x[0] > 0 else 2.0,
    "range": lambda x: range(np.argmax(x)),
    "int()": lambda x: int(x[0]),
    "a list index": lambda x: [1.0, 2.0, 3.0][np.argmax(x)],
    "a repeated list": lambda x: [0.0] * np.argmax(x),
    "a repeated string": lambda x: np.argmax(x) * "ab",
    "max": lambda x: max(x),
}


def add_decided(name: str, function: Callable[[Any], Any]) -> None:
    """A decision on a value of a loop's body, which is compiled for all values."""

    def call() -> None:
        rg.scan(lambda carry, x: (carry, function(x)), 0.0, np.outer(X, X))

    BAD_USES[f"decision by {name}"] = BadUse(call, errors.ControlFlowError, function)


for _name, _function in DECISIONS.items():
    add_decided(_name, _function)


@bad(errors.TraceLengthError)
def a_loop_without_end():
    def f(x):
        while np.sum(x := x * 0.5 + 1.0) > 0:  # <-
            pass
        return x

    with rg.config(max_nodes=100):
        rg.jit(f)(X)


@bad(errors.ControlFlowError)
def a_branch_in_a_scan():
    def body(c, x):
        return (c + x if x > 0 else c), c  # <-

    rg.scan(body, 0.0, X)


@bad(errors.ControlFlowError)
def a_branch_under_vmap():
    def f(x):
        return x if x > 0 else -x  # <-

    rg.vmap(f)(np.array([1.0, -1.0]))


@bad(errors.SolutionError)
def no_solution():
    rg.jit(lambda a: rg.scipy.brentq(lambda x: x * x + a, 1.0, 2.0))(1.0)  # <-


@bad(errors.SolutionError)
def solution_without_a_derivative():
    rg.grad(lambda a: rg.scipy.root(lambda x: a * (x - 1.0) ** 3, 0.5).x[0])(2.0)  # <-


@bad(errors.MemoryBudgetError)
def a_budget_that_is_too_small():
    def f(x):
        return np.sum(rg.scan(lambda c, _: (np.sin(c), None), x, None, 10, memory="1 kB")[0])  # <-

    rg.grad(f)(np.ones(10_000))


@bad(errors.MemoryBudgetError)
def a_budget_for_a_region_below_what_it_draws():
    generator = np.random.default_rng(0)
    noisy = rg.checkpoint(lambda x: np.sin(x * generator.normal(size=3)), memory=8)

    def f(x):
        return np.sum(noisy(x))  # <-

    rg.grad(f)(X)


@bad(errors.MemoryBudgetError)
def a_budget_for_a_pullback_that_is_too_small():
    def f(x):
        return np.exp(np.sin(x))  # <-

    rg.vjp(f, np.ones(10_000), memory="1 kB")


@bad(errors.OptionError)
def a_budget_for_a_pullback_that_is_no_number():
    rg.vjp(np.sin, X, memory="plenty")  # <-


@bad(errors.OptionError)
def a_plan_for_a_region():
    rg.checkpoint(np.sin, memory=rg.Snapshots(3))  # <-


@bad(errors.HigherOrderCotangentError)
def a_function_value_differentiated_inside():
    def f(g, x):
        return rg.grad(g)(x) ** 2  # <-

    rg.grad(f, fns="pairs")(lambda y: y**3, 2.0)


@bad(errors.SnapshotError)
def a_directory_for_states_that_is_not_there():
    rg.Tiered(ram=1, disk=2, directory="/no/such/folder")  # <-


# ------------------------------------------------------------------------------------------ leaks and mixtures


def leaked(value: Callable[[Any], Any] = lambda x: x * 2.0) -> Any:
    """A traced value that has outlived its trace."""
    kept = []

    def f(x):
        kept.append(value(x))
        return x

    rg.jit(f)(X)
    return kept[0]


@bad(errors.LeakedTracerError)
def a_leak_in_plain_code():
    t = leaked()
    t + 1.0  # <-


@bad(errors.LeakedTracerError)
def a_leak_under_a_function():
    t = leaked()
    np.sum(t)  # <-


@bad(errors.LeakedTracerError)
def a_leak_read_by_index():
    t = leaked()
    t[0]  # <-


@bad(errors.LeakedTracerError)
def a_leak_written():
    t = leaked()
    t[0] = 1.0  # <-


@bad(errors.LeakedTracerError)
def a_leaked_argument():
    t = leaked(lambda x: x)
    np.sin(t)  # <-


@bad(errors.LeakedTracerError)
def a_leak_in_another_trace():
    t = leaked()

    def f(x):
        return x + t  # <-

    rg.jit(f)(X)


@bad(errors.LeakedTracerError)
def a_leak_returned_by_another_function():
    t = leaked(lambda x: x + 1.0)  # the error names the line that made it: # <-
    rg.jit(lambda x: t)(X)


@bad(errors.LeakedTracerError)
def a_leak_as_argument_of_a_compiled_function():
    t = leaked()
    rg.jit(np.sin)(t)  # <-


@bad(errors.LeakedTracerError)
def a_leak_under_vjp():
    t = leaked()
    rg.vjp(np.sin, t)  # <-


@bad(errors.LeakedTracerError)
def an_inner_value_used_in_the_outer_trace():
    def f(x):
        kept = []

        def inner(v):
            kept.append(v * 2.0)
            return v * v

        slope = rg.grad(inner)(x[0])
        return slope + kept[0]  # <-

    rg.jit(f)(X)


@bad(errors.LeakedTracerError)
def a_value_of_a_loop_used_after_it():
    def f(x):
        kept = []

        def body(c, v):
            kept.append(v)
            return c + v, c

        total, _ = rg.scan(body, 0.0, x)
        return total * kept[-1]  # <-

    rg.jit(f)(X)


@bad(errors.LeakedTracerError)
def an_array_that_leaks_after_a_traced_write():
    def made(x):
        y = np.zeros(3)
        y[0] = x[0]
        return y

    t = leaked(made)
    t * 2.0  # <-


def in_another_thread(work: Callable[[], Any]) -> Any:
    """The error that ``work`` raises in a thread of its own."""
    faults: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as fault:  # noqa: BLE001 - passed to the caller
            faults.append(fault)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if faults:
        raise faults[0]


@bad(errors.RecordMismatchError)
def a_value_of_another_thread():
    def f(x):
        in_another_thread(lambda: x * 2.0)  # <-
        return x

    rg.jit(f)(X)


@bad(errors.RecordMismatchError)
def a_value_of_a_trace_in_another_thread():
    def f(x):
        def g(y):
            return y + x  # <-

        in_another_thread(lambda: rg.jit(g)(1.0))
        return x

    rg.jit(f)(X)


@bad(errors.RecordMismatchError)
def an_argument_from_another_thread():
    def f(x):
        in_another_thread(lambda: rg.jit(np.sin)(x))  # <-
        return x

    rg.jit(f)(X)


@bad(errors.LensLawError)
def a_lens_whose_pullback_is_not_additive():
    rg.check_lens(lambda x: (x, lambda ct: ct * ct), X)  # <-


@bad(errors.CapturedTracerError)
def a_rule_of_ones_own_that_closes_over_a_traced_value():
    def f(x, w):
        @rg.custom_vjp
        def scaled(v):
            return v * w

        scaled.defvjp(lambda v: (v * w, None), lambda _, ct: (ct * w,))
        return np.sum(scaled(x))  # <-

    rg.grad(f)(X, W)


# --------------------------------------------------------------------------------------------- function values


@bad(errors.HigherOrderCotangentError)
def a_function_value_that_is_differentiated_inside():
    def f(g, x):
        return rg.grad(g)(x)  # <-

    rg.vjp(f, np.sin, 0.5, fns="pairs")


@bad(errors.HigherOrderCotangentError)
def a_function_value_in_an_inner_jvp():
    rg.grad(lambda g, x: rg.jvp(lambda y: g(y), (x,), (1.0,))[1], fns="pairs")(np.sin, 0.5)  # <-


@bad(errors.LeakedTracerError)
def a_function_value_that_is_kept():
    kept = []
    rg.vjp(lambda g, x: (kept.append(g), g(x))[1], np.sin, 0.5, fns="pairs")
    kept[0](0.5)  # <-


@bad(errors.UnsupportedError)
def a_function_value_called_by_keyword():
    rg.vjp(lambda g: g(x=0.5), lambda x: x, fns="pairs")  # <-


@bad(errors.UnsupportedError)
def a_function_value_that_writes_into_its_argument():
    def doubled(x):
        x *= 2.0
        return x

    rg.vjp(lambda g, x: np.sum(g(x) * x), doubled, X, fns="pairs")  # <-


@bad(errors.UnsupportedError)
def a_function_value_in_a_loop_of_unknown_length():
    def f(g, x):
        return rg.while_loop(lambda c: c < 10.0, lambda c: c + g(c) ** 2 + 1.0, x)  # <-

    rg.vjp(f, np.sin, 0.5, fns="pairs")


@bad(errors.UnsupportedError)
def a_function_value_in_a_branch_within_a_trace():
    def f(x):
        run = lambda g, y: rg.cond(y > 0.0, lambda: g(y), lambda: y)  # noqa: E731 - one line
        return rg.vjp(run, np.sin, x, fns="pairs")[1](1.0)[0].pair(np.cos)  # <-

    rg.jit(f)(0.5)


@bad(errors.OptionError)
def a_form_of_cotangents_that_there_is_not():
    rg.grad(lambda g: g(0.5), fns="lists")  # <-


@bad(errors.OptionError)
def a_learner_that_there_is_not():
    rg.functions.fit_pairs(lambda x, a=1.0: a * x, [(1.0, 1.0)], "adam")  # <-


@bad(errors.OptionError)
def a_function_without_captures_to_learn():
    rg.functions.fit_pairs(np.sin, [(1.0, 1.0)])  # <-


@bad(errors.TreeError)
def a_number_as_the_cotangent_of_a_function():
    rg.vjp(lambda a: lambda x: a * x, 2.0)[1](3.0)  # <-


@bad(errors.TreeError)
def triples_as_the_cotangent_of_a_function():
    rg.vjp(lambda a: lambda x: a * x, 2.0)[1]([(1.0, 2.0, 3.0)])  # <-


@bad(errors.TreeError)
def a_number_as_the_tangent_of_a_function():
    rg.jvp(lambda g: g(0.5), (np.sin,), (1.0,))  # <-


@bad(errors.ShapeError)
def a_pair_of_another_shape():
    rg.functions.FunctionCotangent([(0.5, np.ones(2))]).pull_into(lambda x, a=1.0: a * x)  # <-


@bad(errors.CapturedTracerError)
def a_traced_value_that_closure_conversion_does_not_find():
    class Box:
        value: Any

    def f(x):
        box = Box()
        box.value = x
        return rg.functions.closure_convert(lambda y: box.value * y, 1.0)  # <-

    rg.jit(f)(2.0)


# --------------------------------------------------------------------------------------------- functions in files


@bad(errors.SavedFileError)
def a_file_that_is_no_saved_function():
    rg.load(__file__)  # <-


@bad(errors.SavedFileError)
def a_file_that_is_not_there():
    rg.load("nowhere.rg")  # <-


@bad(errors.OptionError)
def a_function_saved_before_its_shapes_are_known():
    rg.grad(lambda x: np.sum(x)).save("nowhere.rg")  # <-


@bad(errors.OptionError)
def an_export_into_a_file_that_is_no_module():
    rg.grad(square_sum).export("grad-loss.py", X)  # <-


@bad(errors.UnsupportedError)
def an_export_of_random_numbers():
    rng = np.random.default_rng(0)
    rg.jit(lambda x: x * rng.normal()).export("nowhere.py", 1.0)  # <-


@bad(errors.ChangedError)
def a_committed_derivative_of_another_function():
    with TemporaryDirectory() as folder, chdir(folder):
        rg.grad(square_sum).export("slope.py", X)
        check("slope.py", lambda name: lambda x: np.sum(x**3))  # <-


# ------------------------------------------------------------------------------------------- the package's own


@bad(errors.ParseError)
def a_text_that_is_no_graph():
    rg.ir.parse("graph f(%x: f64[3]) {\n  %0 = nonsense %x : f64[3]\n  return %0\n}\n")
