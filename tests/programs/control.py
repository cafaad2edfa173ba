"""Small programs of choices and loops. Each takes a set of operations: retrograd's, or the same in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

import retrograd as rg


def _tree(f: Callable[..., Any], *trees: Any) -> Any:
    """``f`` over the leaves of equal trees."""
    first = trees[0]
    if isinstance(first, dict):
        return {k: _tree(f, *(t[k] for t in trees)) for k in first}
    if isinstance(first, (tuple, list)):
        return type(first)(_tree(f, *parts) for parts in zip(*trees, strict=True))
    return None if first is None else f(*trees)


def _cond(pred: Any, true_fn: Any, false_fn: Any, *operands: Any) -> Any:
    return true_fn(*operands) if pred else false_fn(*operands)


def _switch(index: Any, branches: Sequence[Any], *operands: Any) -> Any:
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def _while_loop(cond: Any, body: Any, init: Any) -> Any:
    while cond(init):
        init = body(init)
    return init


def _fori_loop(n: Any, body: Any, init: Any) -> Any:
    for i in range(int(n)):
        init = body(i, init)
    return init


def _length(xs: Any) -> int:
    while isinstance(xs, (dict, tuple, list)):
        xs = next(iter(xs.values())) if isinstance(xs, dict) else xs[0]
    return len(xs)


def _scan(body: Any, init: Any, xs: Any = None, length: int | None = None, *, reverse: bool = False) -> Any:
    n = _length(xs) if xs is not None else length or 0
    ys: list[Any] = [None] * n
    for t in reversed(range(n)) if reverse else range(n):
        init, ys[t] = body(init, _tree(lambda x, t=t: x[t], xs))
    return init, _tree(lambda *rows: np.stack(rows), *ys) if n else None


def _map(f: Any, xs: Any) -> Any:
    return _scan(lambda c, x: (c, f(x)), None, xs)[1]


def _associative_scan(f: Any, xs: Any) -> Any:
    n = _length(xs)
    row, rows = _tree(lambda x: x[:1], xs), []
    for t in range(n):
        row = f(row, _tree(lambda x, t=t: x[t : t + 1], xs)) if t else row
        rows.append(row)
    return _tree(lambda *parts: np.concatenate(parts), *rows)


def _throw_if(pred: Any, payload: Any = ()) -> None:
    if pred:
        raise rg.errors.Thrown(payload)


def _require(pred: Any, payload: Any = ()) -> None:
    if not pred:
        raise rg.errors.Thrown(payload)


def _try_catch(body: Any, handler: Any, finally_: Any = None) -> Any:
    try:
        value = body()
    except rg.errors.Thrown as thrown:
        value = handler(thrown.payload)
    return finally_(value) if finally_ else value


class _Left(Exception):  # noqa: N818 - a signal
    """A continuation was called: which, and with what."""


def _callcc(body: Any) -> Any:
    def k(value: Any) -> Any:
        raise _Left(k, value)

    try:
        return body(k)
    except _Left as left:
        if left.args[0] is not k:
            raise
        return left.args[1]


PLAIN = SimpleNamespace(
    cond=_cond,
    switch=_switch,
    while_loop=_while_loop,
    fori_loop=_fori_loop,
    scan=_scan,
    map=_map,
    associative_scan=_associative_scan,
    throw_if=_throw_if,
    require=_require,
    try_catch=_try_catch,
    callcc=_callcc,
)
OURS = SimpleNamespace(**{name: getattr(rg, name) for name in vars(PLAIN)})


@dataclass(frozen=True)
class Program:
    """``run(ops, *args)`` gives one number; the ``inputs`` take different ways through it."""

    name: str
    run: Callable[..., Any]
    inputs: tuple[tuple[Any, ...], ...]
    smooth: bool = True  # whether differences make sense at the inputs
    indexed: bool = False  # whether an argument is read by a traced index, which a plain array cannot be

    def with_(self, ops: Any) -> Callable[..., Any]:
        def function(*args: Any) -> Any:
            return self.run(ops, *args)

        return function

    def __str__(self) -> str:
        return self.name


PROGRAMS: list[Program] = []


def program(
    *inputs: Any, smooth: bool = True, indexed: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a program; each input is an argument or a tuple of them."""

    def add(run: Callable[..., Any]) -> Callable[..., Any]:
        given = tuple(x if isinstance(x, tuple) else (x,) for x in inputs)
        PROGRAMS.append(Program(run.__name__, run, given, smooth, indexed))
        return run

    return add


V = np.array([0.5, -1.25, 2.0])
W = np.array([[0.3, -0.2, 0.1], [0.0, 0.4, 0.2], [-0.5, 0.1, 0.3]])

# --- choices ----------------------------------------------------------------------------------------------


@program(2.0, -3.0, 0.5)
def logarithm_or_line(ops: Any, x: Any) -> Any:
    return ops.cond(x > 0, np.log, lambda v: -v, x)


@program(2.0, -3.0)
def nested_choice(ops: Any, x: Any) -> Any:
    return ops.cond(x > 0, lambda v: ops.cond(v > 1, lambda u: u**2, lambda u: u**3, v) + v, lambda v: np.exp(v) * v, x)


@program(0.7, -0.7)
def closures_over_traced_values(ops: Any, x: Any) -> Any:
    y = np.sin(x)
    return ops.cond(x > 0, lambda: y * x, lambda: y - x * x)


@program((V, 1.5), (-V, -0.5))
def branches_of_arrays(ops: Any, v: Any, k: Any) -> Any:
    out = ops.cond(np.sum(v) > 0, lambda a: np.tanh(a * k), lambda a: a[::-1] * k**2, v)
    return np.sum(out * np.arange(1.0, 4.0))


@program((2.0, 3.0), (-2.0, 3.0))
def branches_of_trees(ops: Any, x: Any, y: Any) -> Any:
    out = ops.cond(x > 0, lambda a, b: {"p": a * b, "q": (a, b)}, lambda a, b: {"p": a - b, "q": (b * b, a)}, x, y)
    return out["p"] * out["q"][0] + out["q"][1]


@program(0.3, 1.3, 2.3, 7.3, -1.0)
def switch_of_four(ops: Any, x: Any) -> Any:
    i = np.floor(x).astype(np.int64)
    return ops.switch(i, [np.sin, np.cos, lambda v: v**3, lambda v: np.exp(-v)], x)


@program(0.3, 1.3)
def switch_of_two(ops: Any, x: Any) -> Any:
    return ops.switch(np.floor(x).astype(np.int64), [lambda v: v * v, lambda v: 1 / v], x) * x


@program((1.0, 2.0), (2.0, 1.0))
def sorted_pair(ops: Any, a: Any, b: Any) -> Any:
    low, high = ops.cond(a < b, lambda p, q: (p, q), lambda p, q: (q, p), a, b)
    return low * 3 + high**2


@program(np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]), np.array([2.5, 3.0, 1.0]))
def sorting_network(ops: Any, v: Any) -> Any:
    def swap(a: Any, b: Any) -> Any:
        return ops.cond(a <= b, lambda p, q: (p, q), lambda p, q: (q, p), a, b)

    a, b, c = v[0], v[1], v[2]
    a, b = swap(a, b)
    b, c = swap(b, c)
    a, b = swap(a, b)
    return a + b**2 + c**3


@program(1.0, -1.0)
def a_branch_that_ignores_its_operand(ops: Any, x: Any) -> Any:
    return ops.cond(x > 0, lambda v: 3.0, lambda v: v * 2.0, x) + x


@program(4.0, 0.0, -1.0, smooth=False)
def no_derivative_of_the_branch_not_taken(ops: Any, x: Any) -> Any:
    return ops.cond(x > 0, np.sqrt, lambda v: v * 0.0, x) * 2.0 + x


@program((V,), (-V,))
def a_write_in_a_branch(ops: Any, v: Any) -> Any:
    def written(a: Any) -> Any:
        a = a.copy()
        a[0] = a[1] * a[2]
        a[1:] *= 2.0
        return a

    return np.sum(ops.cond(v[0] > 0, written, lambda a: a * a, v) ** 2)


@program((V,))
def choices_in_a_map(ops: Any, v: Any) -> Any:
    return np.sum(ops.map(lambda x: ops.cond(x > 0, np.log, np.sin, x), v) * v)


@program(1.5, 0.5)
def a_choice_between_loops(ops: Any, x: Any) -> Any:
    def long(v: Any) -> Any:
        return ops.fori_loop(5, lambda i, c: np.sin(c) + v, v)

    return ops.cond(x > 1, long, lambda v: ops.scan(lambda c, _: (c * v, None), v, None, 3)[0], x)


@program((1.0, 2.0), (-1.0, 2.0))
def chained_choices(ops: Any, x: Any, y: Any) -> Any:
    p = ops.cond(x > 0, lambda: x * y, lambda: y)
    q = ops.cond(p > 1.5, lambda: p * p, lambda: np.exp(p))
    return ops.cond(q > 3, lambda: q + x, lambda: q * x)


@program((V, np.int64(7)), (V, np.int64(1)), indexed=True)
def a_branch_that_fails_where_it_is_not_taken(ops: Any, v: Any, n: Any) -> Any:
    return ops.cond(n < 3, lambda: v[n] * v[0], lambda: np.sum(v * v))


# --- while loops --------------------------------------------------------------------------------------------


@program(2.0, 3.0, 10.0, 0.3)
def newton_root(ops: Any, a: Any) -> Any:
    return ops.while_loop(lambda x: abs(x * x - a) > 1e-13 * (1 + a), lambda x: 0.5 * (x + a / x), 1.0 * a + 0.1)


@program(5.0, 1.0, 27.0, smooth=False)
def halvings(ops: Any, x: Any) -> Any:
    value, n = ops.while_loop(lambda c: c[0] > 1, lambda c: (c[0] / 2, c[1] + 1), (x, 0))
    return value * (n + 1)


@program(0.2, 0.9, 3.0)
def no_step_for_some(ops: Any, x: Any) -> Any:
    return ops.while_loop(lambda c: c < 1, lambda c: c * 1.7 + 0.1 * x, x)


@program((V, 0.4), (-V, 0.4), (V * 10, 0.1))
def array_carry(ops: Any, v: Any, k: Any) -> Any:
    def body(c: Any) -> Any:
        return np.tanh(W @ c) * k + 0.5 * c

    return np.sum(ops.while_loop(lambda c: np.sum(c * c) > 0.1, body, v) * np.arange(1.0, 4.0))


@program((1.1, 13), (0.9, 4), (2.0, 0))
def power_by_squaring(ops: Any, x: Any, n: Any) -> Any:
    def body(c: Any) -> Any:
        base, k, out = c
        return base * base, k // 2, ops.cond(k % 2 == 1, lambda: out * base, lambda: out)

    return ops.while_loop(lambda c: c[1] > 0, body, (x, n, 1.0))[2]


@program(0.5, 0.1, 0.9)
def fixed_point_of_cosine(ops: Any, a: Any) -> Any:
    x, _ = ops.while_loop(lambda c: abs(c[0] - c[1]) > 1e-14, lambda c: (a * np.cos(c[0]), c[0]), (a, a + 1.0))
    return x * x


@program((0.0, 2.0), (0.5, 3.0), smooth=False)
def bisection(ops: Any, low: Any, high: Any) -> Any:
    def body(c: Any) -> Any:
        a, b = c
        mid = 0.5 * (a + b)
        return ops.cond(mid**3 - 2 > 0, lambda: (a, mid), lambda: (mid, b))

    a, b = ops.while_loop(lambda c: c[1] - c[0] > 1e-3, body, (low, high))
    return a + b


@program(1.0, 2.5)
def adaptive_steps(ops: Any, y0: Any) -> Any:
    def body(c: Any) -> Any:
        t, y, h = c
        k1 = -y * y
        k2 = -((y + h * k1) ** 2)
        error = abs(0.5 * h * (k2 - k1))
        good = error < 1e-2
        return ops.cond(good, lambda: (t + h, y + 0.5 * h * (k1 + k2), h * 1.3), lambda: (t, y, h * 0.5))

    return ops.while_loop(lambda c: c[0] < 1, body, (0.0, y0, 0.4))[1]


@program((6.0, 4.0), (9.0, 6.5), smooth=False)
def euclid(ops: Any, a: Any, b: Any) -> Any:
    return ops.while_loop(lambda c: c[1] > 1e-9, lambda c: (c[1], c[0] - c[1] * np.floor(c[0] / c[1])), (a, b))[0]


@program(0.7, 1.4)
def nested_while_loops(ops: Any, x: Any) -> Any:
    def outer(c: Any) -> Any:
        total, k = c
        inner, _ = ops.while_loop(lambda d: d[1] < k, lambda d: (np.sin(d[0]) + x * total, d[1] + 1), (x, 0))
        return total + inner * 0.1, k + 1

    return ops.while_loop(lambda c: c[1] < 4, outer, (x, 0))[0]


@program((V,), (V * 4,))
def a_scan_in_a_while_loop(ops: Any, v: Any) -> Any:
    def body(c: Any) -> Any:
        s, n = c
        return ops.scan(lambda d, x: (np.sin(d) * 0.9 + x * 0.1, None), s, v)[0], n + 1

    return ops.while_loop(lambda c: c[1] < 3, body, (v[0], 0))[0]


@program((V,), (V * 0.1,))
def a_while_loop_in_a_scan(ops: Any, v: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        d = ops.while_loop(lambda d: d < 2, lambda d: d * 1.5 + x * x, 0.5 + c * 0.01)
        return d, d * x

    last, ys = ops.scan(body, 1.0, v)
    return last + np.sum(ys**2)


@program((V, 3), (V, 0), (V, 1))
def a_counter_as_the_only_condition(ops: Any, v: Any, n: Any) -> Any:
    out, _ = ops.while_loop(lambda c: c[1] < n, lambda c: (np.sin(c[0]) * v, c[1] + 1), (v, 0))
    return np.sum(out)


@program(0.3, 0.8)
def a_flag_as_the_carry(ops: Any, x: Any) -> Any:
    def body(c: Any) -> Any:
        y, _ = c
        y = y * y + x
        return y, y < 2

    return ops.while_loop(lambda c: c[1], body, (x, np.True_))[0]


@program((V, np.array([1.0, 2.0, 4.0])))
def conjugate_gradients(ops: Any, b: Any, d: Any) -> Any:
    a = W @ W.T + np.diag(d)

    def body(c: Any) -> Any:
        x, r, p, k = c
        ap = a @ p
        alpha = (r @ r) / (p @ ap)
        new = r - alpha * ap
        return x + alpha * p, new, new + (new @ new) / (r @ r) * p, k + 1

    x, *_ = ops.while_loop(lambda c: c[3] < 2, body, (np.zeros(3) + 0 * b, b, b, 0))
    return np.sum(x * x)


@program(2.0, 0.2)
def invariants_of_a_loop(ops: Any, x: Any) -> Any:
    def body(c: Any) -> Any:
        y, n = c
        return np.sin(y) * np.exp(x) + np.linalg.det(np.eye(2) * x), n + 1

    return ops.while_loop(lambda c: c[1] < 3, body, (x, 0))[0]


# --- counted loops ---------------------------------------------------------------------------------------------


@program(1.1, -0.4)
def horner(ops: Any, x: Any) -> Any:
    return ops.fori_loop(6, lambda i, c: c * x + i, 0.0)


@program((V,), indexed=True)
def reads_by_the_index(ops: Any, v: Any) -> Any:
    return ops.fori_loop(3, lambda i, c: c * v[i] + np.sin(v[i]), 1.0)


@program((V,), indexed=True)
def writes_by_the_index(ops: Any, v: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        c = c.copy()
        c[i] = c[i] * c[i - 1] + v[i]
        return c

    return np.sum(ops.fori_loop(3, body, v * 2) ** 2)


@program((0.9, np.int64(4)), (0.9, np.int64(0)), (1.3, np.int64(1)))
def as_many_steps_as_an_operand(ops: Any, x: Any, n: Any) -> Any:
    return ops.fori_loop(n, lambda i, c: np.sin(c) * x + i * 0.1, x)


@program((0.9, np.int64(3)), (0.9, np.int64(2)))
def counted_loops_nest(ops: Any, x: Any, n: Any) -> Any:
    return ops.fori_loop(n, lambda i, c: ops.fori_loop(i, lambda j, d: d * x + j * 0.3, c) + x, x)


@program(0.5)
def no_steps(ops: Any, x: Any) -> Any:
    return ops.fori_loop(0, lambda i, c: np.log(c - 1), x) * x


@program((np.arange(1.0, 7.0),), indexed=True)
def prime_sieve_weights(ops: Any, w: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return ops.cond((i % 2 == 0) & (i > 0), lambda: c, lambda: c + w[i] ** 2)

    return ops.fori_loop(6, body, 0.0)


@program((V,))
def trees_in_a_counted_loop(ops: Any, v: Any) -> Any:
    out = ops.fori_loop(3, lambda i, c: {"a": c["b"] * v, "b": (c["a"] + i) * 0.5}, {"a": v, "b": v * v})
    return np.sum(out["a"] * out["b"])


@program((V, 0.1))
def momentum(ops: Any, v: Any, rate: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        x, m = c
        m = 0.9 * m + (W @ x - 1.0)
        return x - rate * m, m

    x, _ = ops.fori_loop(5, body, (v, v * 0))
    return np.sum(x**2)


# --- scans, maps, partial sums ----------------------------------------------------------------------------------


@program((np.array([1.0, 0.0, 0.5]), 0.02))
def lorenz(ops: Any, s: Any, h: Any) -> Any:
    def body(c: Any, _: Any) -> Any:
        x, y, z = c
        return (x + h * 10 * (y - x), y + h * (x * (28 - z) - y), z + h * (x * y - 2.5 * z)), x

    last, xs = ops.scan(body, (s[0], s[1], s[2]), None, 6)
    return np.sum(xs) + last[2]


@program((V, 0.4))
def recurrent_cell(ops: Any, h: Any, k: Any) -> Any:
    xs = np.linspace(-1, 1, 12).reshape(4, 3)
    last, ys = ops.scan(lambda c, x: (np.tanh(W @ c + x * k), c), h, xs)
    return np.sum(last) + np.sum(ys**2)


@program((V,))
def a_reversed_scan_of_choices(ops: Any, v: Any) -> Any:
    return ops.scan(lambda c, x: (ops.cond(x > 0, lambda: c * x, lambda: c - x), None), 1.0, v, reverse=True)[0]


@program((np.array([0.1, 0.6, 0.3, 0.8, 0.2]),))
def early_exit_by_a_flag(ops: Any, v: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        total, done = c
        total = ops.cond(done, lambda: total, lambda: total + x * x)
        return (total, done | (total > 0.4)), None

    return ops.scan(body, (0.0, np.False_), v)[0][0]


@program((V,))
def squares_by_map(ops: Any, v: Any) -> Any:
    return np.sum(ops.map(lambda x: x**2 * v[0], v))


@program((V,))
def trees_by_map(ops: Any, v: Any) -> Any:
    out = ops.map(lambda x: {"a": np.sin(x["p"]), "b": x["q"] * v}, {"p": v, "q": v * v})
    return np.sum(out["a"]) + np.sum(out["b"] ** 2)


@program((V,), (np.array([0.3]),), (np.arange(1.0, 8.0),), (np.arange(1.0, 9.0),))
def running_products(ops: Any, v: Any) -> Any:
    return np.sum(ops.associative_scan(np.multiply, v) * v)


@program((np.stack([W, W.T, np.eye(3) + W, W @ W]),))
def products_of_matrices(ops: Any, ms: Any) -> Any:
    return np.sum(ops.associative_scan(np.matmul, ms)[-1] ** 2)


@program((np.arange(1.0, 6.0), np.linspace(-1, 1, 5)))
def a_linear_recurrence_in_parallel(ops: Any, a: Any, b: Any) -> Any:
    out = ops.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a * 0.3, b))
    return np.sum(out[1] ** 2)


@program((V, 0.3), (-V, 1.3))
def attention_over_steps(ops: Any, q: Any, k: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        top, total, out = c
        s = q[0] * x * k
        new = ops.cond(s > top, lambda: s, lambda: top)
        scale, weight = np.exp(top - new), np.exp(s - new)
        return (new, total * scale + weight, out * scale + weight * x), None

    (_, total, out), _ = ops.scan(body, (q[0] * 0 - 9.0, q[0] * 0, q[0] * 0), q)
    return out / total


@program((V,))
def dynamic_programming(ops: Any, costs: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        best, other = c
        step = ops.cond(best < other, lambda: best + x, lambda: other + x * x)
        return (step, best), step

    (best, _), trail = ops.scan(body, (0.3, 0.7), costs)
    return best + np.sum(trail**2)


@program((V, np.int64(2)), (V, np.int64(0)))
def truncated_sum_of_a_series(ops: Any, v: Any, n: Any) -> Any:
    return np.sum(ops.fori_loop(n, lambda i, c: c + v ** (i + 1) / (i + 1), v * 0))


@program((1.5, 0.2), (0.5, 0.2))
def a_loop_in_both_branches(ops: Any, x: Any, k: Any) -> Any:
    def up(v: Any) -> Any:
        return ops.while_loop(lambda c: c < 5, lambda c: c * 2 + k, v)

    def down(v: Any) -> Any:
        return ops.while_loop(lambda c: c > 0.1, lambda c: c * 0.5 * (1 - k), v)

    return ops.cond(x > 1, up, down, x) * x


@program((V,))
def gradients_inside_a_loop(ops: Any, v: Any) -> Any:
    slope = rg.grad(lambda x: np.sum(np.sin(W @ x) * v))
    return np.sum(ops.fori_loop(3, lambda i, x: x - 0.1 * slope(x), v) ** 2)


@program((V, 2.0), (V, -2.0))
def an_outer_gradient_over_a_choice(ops: Any, v: Any, k: Any) -> Any:
    inner = rg.grad(lambda x: ops.cond(k > 0, lambda u: np.sum(u**3) * k, lambda u: np.sum(np.exp(u * k)), x))
    return np.sum(inner(v) ** 2)


# --- throwing and leaving -----------------------------------------------------------------------------------------


@program(0.5, 2.0, -3.0)
def inverse_sine_or_itself(ops: Any, x: Any) -> Any:
    y = 2 * x

    def body() -> Any:
        ops.throw_if((x < -1) | (x > 1), y)
        return y * np.arcsin(x)

    return ops.try_catch(body, lambda p: p)


@program((V, 2.0), (-V, 2.0), (V, -1.0))
def two_places_to_throw(ops: Any, v: Any, k: Any) -> Any:
    def body() -> Any:
        ops.require(np.sum(v) > 0, {"why": v[0], "more": (k, 1.0)})
        y = np.log(np.sum(v)) * v
        ops.throw_if(k < 0, {"why": y[1], "more": (k * k, 2.0)})
        return np.sum(np.sqrt(k) * y)

    return ops.try_catch(body, lambda p: p["why"] * p["more"][0] + p["more"][1], lambda value: value**2 + k)


@program(np.array([1.1, 1.5, 2.0, 4.0]), np.array([0.1, 0.2, 0.3, 0.4]), np.array([9.0, 1.0, 1.0, 1.0]))
def a_scan_that_throws(ops: Any, xs: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        ops.throw_if(c > 3, (c, x))
        return c + x, c * x

    def run() -> Any:
        last, ys = ops.scan(body, 0.5, xs)
        return last * np.sum(ys)

    return ops.try_catch(run, lambda p: p[0] * p[1] ** 2)


@program((2.0, 0.1), (2.0, 3.0), (0.5, 0.1))
def newton_that_gives_up(ops: Any, a: Any, start: Any) -> Any:
    def body(c: Any) -> Any:
        x, n = c
        ops.throw_if(n > 6, x)
        return 0.5 * (x + a / x), n + 1

    def run() -> Any:
        return ops.while_loop(lambda c: abs(c[0] ** 2 - a) > 1e-12, body, (start, 0))[0]

    return ops.try_catch(run, lambda x: x * a)


@program((1.0, 2.0), (-1.0, 2.0), (-1.0, -2.0))
def throwing_in_branches(ops: Any, x: Any, y: Any) -> Any:
    def bad() -> Any:
        ops.throw_if(y < 0, x * y)
        return x - y

    return ops.try_catch(lambda: ops.cond(x > 0, lambda: np.log(x) * y, bad) ** 2, lambda p: p + 1.0)


@program(0.5, 1.5, 2.5)
def a_catch_in_a_catch(ops: Any, x: Any) -> Any:
    def inner() -> Any:
        ops.throw_if(x > 1, x * 3)
        return x**2

    def handler(p: Any) -> Any:
        ops.throw_if(p > 6, p * p)
        return p + x

    return ops.try_catch(lambda: ops.try_catch(inner, handler) * 2.0, lambda q: q * x)


@program(np.array([0.5, 0.3, 2.5, 0.1]), np.array([0.5, 0.3, 0.2, 0.1]), np.array([3.0, 0.3, 0.2, 0.1]), indexed=True)
def a_search_that_stops(ops: Any, v: Any) -> Any:
    def search(k: Any) -> Any:
        return ops.fori_loop(4, lambda i, c: ops.cond(v[i] > 2, lambda: k(c * v[i]), lambda: c + v[i] ** 2), 1.0) * 2.0

    return ops.callcc(search)


@program(3.0)
def leaving_at_once(ops: Any, x: Any) -> Any:
    return ops.callcc(lambda k: 1 + k(x**2) * 100)


@program((2.0, 1.0), (-2.0, 1.0), (-2.0, -1.0))
def leaving_one_of_two(ops: Any, x: Any, y: Any) -> Any:
    def outer(k: Any) -> Any:
        def inner(j: Any) -> Any:
            return ops.cond(x > 0, lambda: j(x * y), lambda: ops.cond(y > 0, lambda: k(y**3 * x), lambda: x - y))

        return ops.callcc(inner) ** 2

    return ops.callcc(outer) + x


@program(np.array([0.2, 0.4, 0.8]), np.array([0.2, 1.4, 0.8]))
def a_while_loop_that_is_left(ops: Any, v: Any) -> Any:
    def body(k: Any) -> Any:
        def step(c: Any) -> Any:
            u, n = c
            u = ops.cond(np.max(u) > 1, lambda: k(np.sum(u) * n), lambda: u * 1.2)
            return u, n + 1

        return np.sum(ops.while_loop(lambda c: c[1] < 3, step, (v, 0))[0] ** 2)

    return ops.callcc(body)
