"""Plain Python control flow: whatever way the inputs go, values and gradients are those of the plain program.

Each program gets inputs that go different ways, in random order; in a second round nothing is recorded again.
"""

# ruff: noqa: SIM108, TRY301 - programs as people write them

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.tracer import trace as tracing

# Off every point where a program turns: differences must not cross it.
A = np.array([0.53, -1.47, 2.11])
B = np.array([1.13, 1.92, 3.07])
C = np.array([-1.03, -0.27, -3.13])
WAYS = (A, B, C, 0.27 * A, B[::-1].copy())
STARTS = (0.31, 2.07, -1.53, 7.13, 41.3)


def absolute(x):
    return x if x > 0 else -x


def sign_of_the_sum(x):
    if np.sum(x) > 0:
        y = np.sin(x)
    else:
        y = x**2
    return np.sum(y)


def three_ways(x):
    if x[0] > 0.7:
        return np.sum(x)
    if x[1] < 0:
        return np.sum(x * x)
    return np.prod(x)


def nested_ifs(x):
    y = x * 2
    if x[0] > 0:
        if x[1] > 0:
            y = y + x[2]
        else:
            y = y * x[2]
    elif x[2] < -1:
        y = np.exp(y)
    return np.sum(y)


def elementwise_branches(x):
    total = 0.0
    for v in x:
        if v > 0:
            total = total + v**3
        else:
            total = total - v
    return total


def halve_until_small(x):
    while x > 1.0:
        x = x * 0.5
    return x * x


def newton_square_root(a):
    a = a * a + 1.0
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def bisection(c):
    low, high = -10.0 - abs(c), 10.0 + abs(c)
    for _ in range(40):
        middle = 0.5 * (low + high)
        if middle**3 - c > 0:
            high = middle
        else:
            low = middle
    x = 0.5 * (low + high)
    return x - (x**3 - c) / (3 * x**2)  # a last Newton step carries the derivative


def fixed_point(a):
    x = 1.0
    for _ in range(200):
        new = np.cos(x) + 0.1 * np.tanh(a)
        if abs(new - x) < 1e-10:
            break
        x = new
    return x


def early_return_in_a_loop(x):
    total = 0.0
    for i in range(3):
        total = total + x[i] ** 2
        if total > 3.0:
            return total * x[0]
    return total


def skip_some(x):
    total = 0.0
    for v in x:
        if v < 0:
            continue
        total = total + np.sqrt(v)
    return total + np.sum(x)


def loop_with_else(x):
    for v in x:
        if v < -1.0:
            result = v * v
            break
    else:
        result = np.sum(x)
    return result


def fill_by_sign(x):
    y = np.zeros(3)
    for i in range(3):
        if x[i] > 0:
            y[i] = x[i] ** 2
        else:
            y[i] = np.sin(x[i])
    return np.sum(y * y)


def running_maximum(x):
    best = x[0]
    for v in x[1:]:
        best = max(best, v)
    return best**2


def pythons_max(x):
    return max(x[0], x[1] ** 2, 0.5) * min(x)


def pythons_sorted(x):
    a, b, c = sorted(x)
    return a * 1.0 + b * 2.0 + c * 3.0


def pythons_any_and_all(x):
    if all(v > 0 for v in x):
        return np.sum(np.log(x))
    if any(v > 0 for v in x):
        return np.sum(x**3)
    return np.sum(x)


def and_or_not(x):
    if x[0] > 0 and x[1] > 0:
        return x[0] * x[1]
    if not x[2] > 0 or x[0] > 5:
        return x[2] ** 2
    return np.sum(x)


def chained_comparison(x):
    return np.sum(x) if 0 < x[0] < 0.75 else np.sum(x**2)


def conditional_expression(x):
    return np.sum(x * (2.0 if np.mean(x) > 0 else 3.0))


def largest_element(x):
    return x[np.argmax(x)] ** 2


def as_many_as_the_integer_part(x):
    y = 1.0
    for _ in range(int(abs(x))):
        y = y * np.sin(x)
    return y + x


def floor_as_an_index(x):
    coefficients = [1.0, 2.0, 3.0, 4.0]
    return coefficients[int(np.clip(x, 0, 3))] * x


def list_of_choices(x):
    functions = [np.sin, np.cos, np.tanh]
    return np.sum(functions[np.argmin(x)](x))


def states_in_a_dict(x):
    state = {"position": x[0], "speed": x[1]}
    for _ in range(4):
        if state["position"] > 1:
            state["speed"] = -abs(state["speed"])
        state["position"] = state["position"] + 0.3 * state["speed"]
    return state["position"] * state["speed"]


def states_in_a_tuple(x):
    low, high = x[0], x[1]
    for _ in range(3):
        low, high = (low, high) if low < high else (high, low)
        low = low + 0.5 * high
    return low * high


def bouncing_ball(height):
    y, v, t = abs(height) + 1.037, 0.0, 0
    while t < 30:
        v = v - 0.1
        y = y + 0.1 * v
        if y < 0:
            y, v = -y, -0.9 * v
        t += 1
    return y


def adaptive_steps(x):
    t, h, y = 0.0, 0.4, x
    while t < 1.0:
        full = y + h * np.sin(y)
        half = y + 0.5 * h * np.sin(y)
        half = half + 0.5 * h * np.sin(half)
        if abs(full - half) > 1e-2 and h > 0.05:
            h = h * 0.5
            continue
        y, t = half, t + h
    return y


def ackermann_like(x):
    def ackermann(m, n):
        if m == 0:
            return n + 1
        if n == 0:
            return ackermann(m - 1, 1)
        return ackermann(m - 1, ackermann(m, n - 1))

    return x ** ackermann(1, 2) if x > 0 else x * ackermann(1, 1)


def recursion_on_values(x):
    def collatz(v, depth):
        if v < 1.0 or depth > 12:
            return v
        return collatz(v * 0.5, depth + 1) if v > 4.0 else collatz(v - 0.7, depth + 1)

    return collatz(x, 0) ** 2


def divide_and_conquer(x):
    def product(v):
        if len(v) == 1:
            return v[0]
        half = len(v) // 2
        left, right = product(v[:half]), product(v[half:])
        return left * right if left > 0 else left + right

    return product(x)


def quicksort(x):
    def ordered(v):
        if len(v) < 2:
            return v
        pivot, rest = v[0], v[1:]
        return [*ordered([e for e in rest if e < pivot]), pivot, *ordered([e for e in rest if e >= pivot])]

    a, b, c = ordered(list(x))
    return a + b * b + c**3


def sorting_network(x):
    y = [x[0], x[1], x[2]]
    for i, j in ((0, 1), (1, 2), (0, 1)):
        if y[j] < y[i]:
            y[i], y[j] = y[j], y[i]
    return y[0] + 2.0 * y[1] * y[2]


def bubble_sort_in_place(x):
    y = x.copy()
    for i in range(3):
        for j in range(2 - i):
            if y[j] > y[j + 1]:
                y[j], y[j + 1] = y[j + 1], y[j]
    return np.sum(y * np.array([1.0, 10.0, 100.0]))


def generator(x):
    def positives():
        for v in x:
            if v > 0:
                yield v * v

    return sum(positives(), 0.0) + np.sum(x)


def try_except(x):
    try:
        if x < 0:
            raise ValueError("negative")
        return x**2
    except ValueError:
        return -x
    finally:
        pass


def exception_through_frames(x):
    def checked(v):
        if v > 1.5:
            raise OverflowError
        return np.exp(v)

    total = 0.0
    for v in x:
        try:
            total = total + checked(v)
        except OverflowError:
            total = total + 2.0 * v
    return total


def with_and_finally(x):
    log = []
    try:
        y = x * 2.0
        if y > 1.0:
            return y**2
    finally:
        log.append(1)
    return y + len(log)


def while_with_break(x):
    k = 0
    while True:
        x = x * 0.8
        k += 1
        if abs(x) < 1.0 or k > 20:
            break
    return x * k


def matching(x):
    match [bool(v > 0) for v in x]:
        case [True, True, *_]:
            return x[0] * x[1]
        case [False, *_]:
            return np.sum(x**2)
        case _:
            return x[2] ** 3


def lookup_by_hash(x):
    kinds = {1.0: 2.0, -1.0: 3.0}
    return kinds[np.sign(x)] * x


def memoised(x):
    memo: dict[int, Any] = {}

    def fibonacci(n):
        if n not in memo:
            memo[n] = n * x if n < 2 else fibonacci(n - 1) * 0.5 + fibonacci(n - 2)
        return memo[n]

    return fibonacci(6) if x > 1 else fibonacci(4)


def two_results(x):
    return (np.sum(x), x[0]) if x[0] > 0 else (np.prod(x), x[1])


def assertions(x):
    assert x.shape == (3,)
    assert np.sum(x**2) > 0
    return np.sum(x**2)


def golden_section(x):
    def f(t):
        return (t - x) ** 2 + 0.1 * t**4

    a, b = -50.0, 50.0
    for _ in range(25):
        c, d = b - 0.618 * (b - a), a + 0.618 * (b - a)
        if f(c) < f(d):
            b = d
        else:
            a = c
    t = 0.5 * (a + b)
    for _ in range(3):
        t = t - (2 * (t - x) + 0.4 * t**3) / (2 + 1.2 * t**2)
    return t


def water_filling(x):
    level = np.sum(np.abs(x)) / 3
    count = 3
    for v in np.sort(np.abs(x)):
        if v < level * 0.5:
            count -= 1
            level = level * 1.1
    return level * count


def huber(x):
    total = 0.0
    for v in x:
        size = abs(v)
        total = total + (0.5 * v * v if size < 1.0 else size - 0.5)
    return total


def hinge(x):
    margin = 1.0 - x[0] * x[1]
    if margin <= 0:
        return 0.0 * x[2]
    return margin * x[2]


def polynomial_by_degree(x):
    result = np.sum(x)
    for k in range(int(np.sum(x > 0)) + 1):
        result = result + x[0] ** k * (k + 1)
    return result


def mask_read(x):
    return np.sum(x[x > 0] ** 2)


def nonzero_read(x):
    (places,) = np.nonzero(x > 0)
    return np.sum(x[places]) + len(places)


def where_read(x):
    return np.prod(x[np.where(x < 1.0)])


def flatnonzero_loop(x):
    total = 0.0
    for i in np.flatnonzero(x > -1.0):
        total = total + x[i] ** 2
    return total


def mask_then_shape(x):
    chosen = x[x > 0]
    return np.sum(chosen) / chosen.size if chosen.size else np.sum(x)


def mask_of_a_matrix(x):
    m = np.outer(x, x)
    return np.sum(m[m > 0.5] ** 2)


def compressed(x):
    return np.sum(np.compress(x > 0, x) * 2.0)


def extracted(x):
    return np.sum(np.extract(x < 1.0, x) ** 3)


def argwhere_pairs(x):
    total = 0.0
    for i, j in np.argwhere(np.outer(x, x) > 1.0):
        total = total + x[i] * x[j]
    return total + np.sum(x)


def slice_to_a_traced_bound(x):
    n = np.argmax(x) + 1
    return np.sum(x[:n] ** 2)


def array_of_traced_length(x):
    y = np.zeros(np.argmax(x) + 2)
    y[0] = x[0]
    y[-1] = x[1]
    return np.sum(y * y) * len(y)


def unique_count(x):
    return np.unique(np.round(x)).size * np.sum(x)


VECTORS: list[Callable[[Any], Any]] = [
    sign_of_the_sum,
    three_ways,
    nested_ifs,
    elementwise_branches,
    early_return_in_a_loop,
    skip_some,
    loop_with_else,
    fill_by_sign,
    running_maximum,
    pythons_max,
    pythons_sorted,
    pythons_any_and_all,
    and_or_not,
    chained_comparison,
    conditional_expression,
    largest_element,
    list_of_choices,
    states_in_a_dict,
    states_in_a_tuple,
    divide_and_conquer,
    quicksort,
    sorting_network,
    bubble_sort_in_place,
    generator,
    exception_through_frames,
    matching,
    assertions,
    water_filling,
    huber,
    hinge,
    polynomial_by_degree,
    mask_read,
    nonzero_read,
    where_read,
    flatnonzero_loop,
    mask_then_shape,
    mask_of_a_matrix,
    compressed,
    extracted,
    argwhere_pairs,
    slice_to_a_traced_bound,
    array_of_traced_length,
    unique_count,
]
NUMBERS: list[Callable[[Any], Any]] = [
    absolute,
    halve_until_small,
    newton_square_root,
    bisection,
    fixed_point,
    as_many_as_the_integer_part,
    floor_as_an_index,
    bouncing_ball,
    adaptive_steps,
    ackermann_like,
    recursion_on_values,
    try_except,
    with_and_finally,
    while_with_break,
    lookup_by_hash,
    memoised,
    golden_section,
]
PROGRAMS = [(f, WAYS) for f in VECTORS] + [(f, STARTS) for f in NUMBERS]
every_program = pytest.mark.parametrize(("program", "ways"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])


def differences(function: Callable[[Any], Any], x: Any) -> Any:
    """Central differences of a function of an array or a number."""
    flat = np.atleast_1d(np.array(x, float))
    h = 1e-6
    steps = []
    for i in range(flat.size):
        up, down = flat.copy(), flat.copy()
        up[i] += h
        down[i] -= h
        shape = (lambda v: v) if np.ndim(x) else (lambda v: float(v[0]))
        steps.append((function(shape(up)) - function(shape(down))) / (2 * h))
    return np.array(steps) if np.ndim(x) else steps[0]


def shuffled(ways: tuple[Any, ...]) -> list[Any]:
    order = np.random.default_rng(0).permutation(2 * len(ways))
    return [ways[k % len(ways)] for k in order]


@every_program
def test_values_are_those_of_the_plain_program(program: Callable[[Any], Any], ways: tuple[Any, ...]) -> None:
    compiled = rg.jit(program)
    for x in shuffled(ways):
        np.testing.assert_allclose(compiled(x), program(x), rtol=1e-13)


@every_program
def test_gradients_are_those_of_the_way_taken(program: Callable[[Any], Any], ways: tuple[Any, ...]) -> None:
    gradient = rg.grad(program)
    for x in shuffled(ways):
        np.testing.assert_allclose(gradient(x), differences(program, x), rtol=2e-5, atol=1e-6)


@every_program
def test_forward_mode_agrees_with_reverse_mode(program: Callable[[Any], Any], ways: tuple[Any, ...]) -> None:
    backward, forward = rg.grad(program), rg.jacfwd(program)
    for x in ways:
        np.testing.assert_allclose(forward(x), backward(x), rtol=1e-10, atol=1e-12)


@every_program
def test_later_rounds_record_nothing(
    program: Callable[[Any], Any], ways: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, gradient = rg.jit(program), rg.value_and_grad(program)
    for x in ways * 4:  # long ways are compiled when they come back
        compiled(x), gradient(x)
    monkeypatch.setattr(tracing.Trace, "__init__", lambda *_: pytest.fail("it is recorded again"))
    for x in ways:
        compiled(x), gradient(x)


def test_results_of_another_structure_on_each_way() -> None:
    def f(x):
        if x[0] > 1:
            return {"a": x, "b": "text"}
        return (x[0], None) if x[0] > 0 else x

    g = rg.jit(f)
    for _ in range(2):
        assert g(np.array([2.0]))["b"] == "text"
        value, nothing = g(np.array([0.5]))
        assert (value, nothing) == (0.5, None)
        np.testing.assert_array_equal(g(np.array([-1.0])), [-1.0])


def test_a_way_without_results_beside_others() -> None:
    g = rg.jit(lambda x: [x] * int(x))
    for _ in range(2):
        assert [g(v) for v in (2.5, 0.5, 1.5)] == [[2.5, 2.5], [], [1.5]]


def test_captures_of_all_ways_are_passed() -> None:
    p, q = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    g = rg.jit(lambda x: p * x if x > 0 else (q * x if x < -1 else p + q))
    for _ in range(2):
        np.testing.assert_array_equal(g(1.0), p)
        np.testing.assert_array_equal(g(-2.0), -2.0 * q)
        np.testing.assert_array_equal(g(-0.5), p + q)
    p[0] = 100.0
    np.testing.assert_array_equal(g(1.0), [100.0, 3.0])


def test_loops_and_calls_before_a_decision_run_once_on_every_way() -> None:
    @rg.subgraph(inline=0)
    def called(x):
        return np.sin(x) * x

    def f(x):
        y = rg.scan(lambda c, _: (np.cos(c), None), called(x), None, 5)[0]
        if y > 0.7:
            return y * 2.0
        return y - x

    g = rg.grad(f)
    for x in (0.3, 2.0, -1.0, 4.0):
        slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
        assert math.isclose(g(x), slope, rel_tol=1e-6)
    assert g.source(0.3).count("np.cos(") <= 2  # one forward loop, one for derivatives


def test_draws_before_a_decision_are_made_once() -> None:
    def program(x, rng):
        e = rng.normal(size=3)
        if np.sum(x * e) > 0:
            return np.sum(x * e)
        return np.sum(x) * rng.normal()

    mine, theirs = np.random.default_rng(0), np.random.default_rng(0)
    g = rg.jit(lambda x: program(x, mine))
    x = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose([g(x) for _ in range(20)], [program(x, theirs) for _ in range(20)], rtol=1e-14)


def test_integers_of_captured_arrays_may_change() -> None:
    starts = np.array([0, 2, 3, 5])

    def f(x):
        return sum((i + 1) * np.sum(x[starts[i] : starts[i + 1]] ** 2) for i in range(3))

    g = rg.grad(f)
    x = np.arange(5.0)
    np.testing.assert_array_equal(g(x), 2 * x * [1, 1, 2, 3, 3])
    starts[1] = 1
    np.testing.assert_array_equal(g(x), 2 * x * [1, 2, 2, 3, 3])


def test_a_user_exception_passes_and_the_next_call_works() -> None:
    class BrokenError(Exception):
        pass

    def f(x):
        if x < 0:
            raise BrokenError("negative")
        return x * x

    g = rg.grad(f)
    for _ in range(2):
        with pytest.raises(BrokenError, match="negative"):
            g(-1.0)
        assert g(3.0) == 6.0


def test_an_error_of_an_operation_may_be_caught() -> None:
    def f(a):
        try:
            return np.sum(a[np.argmax(a) + 1 :][0])
        except IndexError:
            return a[0] * 10.0

    g = rg.grad(f)
    for _ in range(2):
        np.testing.assert_array_equal(g(np.array([3.0, 2.0, 1.0])), [0.0, 1.0, 0.0])
        np.testing.assert_array_equal(g(np.array([1.0, 2.0, 3.0])), [10.0, 0.0, 0.0])


def test_an_error_that_depends_on_values_is_not_compiled_away() -> None:
    table = np.array([1.0, 2.0, 3.0])

    def f(x, k):
        try:
            return x * table[k]
        except IndexError:
            return x * 100.0

    g = rg.jit(f)
    for _ in range(2):
        assert g(2.0, np.int64(7)) == 200.0
        assert g(2.0, np.int64(1)) == 4.0


def test_lanes_that_decide_alike_are_mapped_and_others_refused() -> None:
    def f(x):
        return x * 2.0 if x > 0 else -x

    mapped = rg.vmap(f)
    np.testing.assert_array_equal(mapped(np.array([1.0, 2.0])), [2.0, 4.0])
    np.testing.assert_array_equal(mapped(np.array([-1.0, -2.0])), [1.0, 2.0])
    np.testing.assert_array_equal(mapped(np.array([1.0, 2.0])), [2.0, 4.0])
    with pytest.raises(rg.errors.ControlFlowError, match=r"np\.where"):
        mapped(np.array([1.0, -2.0]))
    np.testing.assert_array_equal(rg.vmap(rg.grad(f))(np.array([-1.0, -2.0])), [-1.0, -1.0])
    np.testing.assert_array_equal(rg.grad(lambda v: np.sum(rg.vmap(f)(v)))(np.array([3.0, 2.0])), [2.0, 2.0])


@pytest.mark.parametrize("lanes", [[1.0, -1.0, 2.0], [-1.0, 1.0, 2.0]])
@pytest.mark.parametrize("outer", [rg.jit, lambda f: rg.grad(lambda x: np.sum(f(x))), lambda f: rg.jit(rg.jit(f))])
def test_lanes_that_decide_otherwise_are_refused_inside_a_trace(outer: Any, lanes: list[float]) -> None:
    """The guard of the inner trace fails for the very values that it was traced with, which is no other path."""
    f = outer(rg.vmap(absolute))
    with pytest.raises(rg.errors.ControlFlowError, match="different Python decisions") as caught:
        f(np.array(lanes))
    assert "test_guards.py" in str(caught.value.where)
    assert np.all(np.isfinite(f(np.array([1.0, 3.0, 2.0]))))
    assert np.all(np.isfinite(f(np.array([-1.0, -3.0, -2.0]))))


def test_compiled_functions_inside_compiled_functions_decide_too() -> None:
    @rg.jit
    def inner(x):
        return np.sin(x) if x > 0 else np.cos(x)

    def outer(x):
        return inner(x) * inner(-x)

    g = rg.grad(outer)
    for x in (0.5, -0.5, 2.0, -3.0):
        sign = math.copysign(1.0, x)
        assert math.isclose(g(x), sign * math.cos(2 * x), rel_tol=1e-12), x


def test_a_compiled_function_may_return_what_it_decided() -> None:
    @rg.jit
    def is_large(x):
        return "large" if x > 1 else "small"

    g = rg.jit(lambda x: x * 2.0 if is_large(x) == "large" else x)
    assert [g(v) for v in (2.0, 0.5, 3.0, 0.25)] == [4.0, 0.5, 6.0, 0.25]


def test_second_derivatives_go_the_way_of_the_first() -> None:
    def f(x):
        return x**3 if x > 0 else x**2

    second = rg.grad(rg.grad(f))
    assert [second(v) for v in (2.0, -1.0, 3.0)] == [12.0, 2.0, 18.0]
    assert rg.hessian(f)(-2.0) == 2.0
    assert rg.jvp(rg.grad(f), (2.0,), (1.0,))[1] == 12.0


def test_too_many_ways_are_interpreted_with_one_warning_that_names_the_line() -> None:
    def f(x):
        y = x
        for _ in range(int(x)):
            y = y * 1.5
        return y

    g = rg.grad(f)
    with rg.config(max_traces=4), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in [*range(10)] * 2:
            assert math.isclose(g(n + 0.5), 1.5**n)
    assert {w.category for w in caught} == {rg.errors.ManyPathsWarning}
    assert f"{__file__}:{f.__code__.co_firstlineno + 2}" in str(caught[0].message)


def test_a_loop_without_end_is_refused_with_its_line() -> None:
    def f(x):
        while x > 0:
            x = x + 1.0
        return x

    with rg.config(max_nodes=500), pytest.raises(rg.errors.TraceLengthError, match=f"{__file__}:"):
        rg.jit(f)(1.0)
    assert rg.jit(f)(-1.0) == -1.0


def test_the_source_reads_like_the_program() -> None:
    g = rg.jit(sign_of_the_sum)
    g(B), g(C)
    source = g.source(B)
    assert "    if not " in source
    assert "miss" not in source
    scope: dict[str, Any] = {}
    exec(source, scope)
    for x in (B, C):
        assert scope["sign_of_the_sum"](x) == sign_of_the_sum(x)


@pytest.mark.parametrize("n", [3, 2048, 100_000])
def test_large_states_keep_every_bit_on_every_way(n: int) -> None:
    def f(x):
        y = x * 2.0
        z = y + 1.0
        if np.sum(y) > 0:
            y += z
            y *= x
        elif np.sum(z) > -n / 2:
            z[1:] = y[:-1]
            y = z * z
        y -= 3.0
        return np.sum(y * y), y

    random = np.random.default_rng(1)
    ways = [random.standard_normal(n) + shift for shift in (1.0, -0.6, -3.0)]
    with rg.config(exact=True):
        g = rg.jit(f)
        for _ in range(2):
            for x in ways:
                for found, expected in zip(g(x), f(x), strict=True):
                    np.testing.assert_array_equal(found, expected)
