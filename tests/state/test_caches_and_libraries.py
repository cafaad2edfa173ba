"""Caches that a trace fills, objects of libraries, long containers, and places that become one object.

Each program is text, as in ``test_changed_places``.
"""

from __future__ import annotations

import copy
import enum
import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.state.oracle import changes_take_effect

PROGRAMS = {
    # What an object of a library answers, and what is in its slots.
    "property of a library": """
import calendar
c = calendar.Calendar()
f = lambda x: (c.firstweekday + 1) * x + getattr(c, "firstweekday") * x
--
c.setfirstweekday(3)
""",
    "property of a library's class above": """
import calendar
class Own(calendar.Calendar): pass
c = Own()
f = lambda x: (c.firstweekday + 1) * x
--
c.setfirstweekday(3)
""",
    "array behind a property of a library": """
class Calendar:
    __module__ = "calendar"
    table = property(eval("lambda self: self.held", {"__name__": "calendar"}))
c = Calendar()
c.held = np.ones(2)
f = lambda x: np.sum(c.table) * x
--
c.held[0] = 3.0
c.held = np.full(2, 4.0)
c.held = np.full(3, 4.0)
""",
    "property of a library that the function itself changes": """
import calendar
c = calendar.Calendar()
def f(x):
    first = c.firstweekday
    c.setfirstweekday(first + 3)
    second = c.firstweekday
    c.setfirstweekday(first)
    return first * x + 10.0 * second * x
--
c.setfirstweekday(2)
""",
    "slots of a library": """
import fractions, operator
q = fractions.Fraction(1, 2)
f = lambda x: float(operator.attrgetter("numerator")(q)) * x
--
q._numerator = 3
""",
    "a module that is none": """
import sys
class Settings: k = 2.0
sys.modules["settings_object"] = Settings()
def f(x):
    import settings_object
    return settings_object.k * x
--
sys.modules["settings_object"].k = 5.0
sys.modules["settings_object"] = Settings()
""",
    # Long containers are compared at once.
    "many arrays, of other shapes": """
M = [np.arange(6.0).reshape(2, 3)] * 64
f = lambda x: sum(m.shape[0] for m in M) * x
--
M[:] = [np.arange(6.0).reshape(3, 2)] * 64
M[0] = np.arange(6.0)
""",
    "many NumPy numbers, of another type": """
M = [np.int64(4607182418800017408)] * 64
f = lambda x: float(M[0]) * x
--
M[0] = np.float64(1.0)
M[0] = 1.0
""",
    "many entries, one of them of another type": """
M = {k: np.float32(k) for k in range(80)}
f = lambda x: sum(2.0 if type(v) is float else 1.0 for v in M.values()) * x
--
M[3] = 3.0
M[3] = np.float64(3.0)
""",
    "many lists in a list": """
M = [[1.0, np.float64(2.0)] for _ in range(80)]
f = lambda x: sum(type(v) is float for row in M for v in row) * x
--
M[3][1] = 2.0
M[3][1] = [2.0]
""",
    "a list that holds itself": """
M = [1.0] * 80
M.append(M)
f = lambda x: M[0] * len(M) * x
--
M[0] = 3.0
""",
    # A cache is filled during the trace.
    "cached property": """
import functools
class Table:
    @functools.cached_property
    def a(self): return np.full(2, 2.0)
t = Table()
f = lambda x: np.sum(t.a) * x
--
t.a[0] = 9.0
del t.a
t.a *= 3.0
""",
    "cached property of a list": """
import functools
class Table:
    @functools.cached_property
    def a(self): return [np.full(2, 2.0), 1.0]
t = Table()
f = lambda x: np.sum(t.a[0]) * t.a[1] * x
--
t.a[0][0] = 9.0
t.a[1] = 4.0
t.a[0] += 1.0
""",
    "cached array that decides": """
import functools
class Table:
    @functools.cached_property
    def a(self): return np.full(2, 2.0)
t = Table()
f = lambda x: 3.0 * x if t.a[0] > 5.0 else 4.0 * x
--
t.a[0] = 9.0
""",
    "filled by __getattr__": """
class Table:
    def __getattr__(self, n):
        v = self.__dict__[n] = np.full(2, 2.0)
        return v
t = Table()
f = lambda x: np.sum(t.a) * x
--
t.a[:] = 1.0
""",
    "filled by __getattr__ with an assignment": """
class Table:
    def __getattr__(self, n):
        self.a = np.full(2, 2.0)
        return self.a
t = Table()
f = lambda x: np.sum(t.a) * x
--
t.a[:] = 1.0
""",
    "filled by a descriptor": """
class Lazy:
    def __get__(self, obj, cls=None):
        if obj is None: return self
        v = obj.__dict__["a"] = np.full(2, 2.0)
        return v
class Table: a = Lazy()
t = Table()
f = lambda x: np.sum(t.a) * x
--
t.a[:] = 1.0
""",
    "filled by __missing__": """
class Table(dict):
    def __missing__(self, k):
        v = self[k] = np.full(2, 2.0)
        return v
t = Table()
f = lambda x: np.sum(t["a"]) * x
--
t["a"][:] = 1.0
""",
    "filled by a factory": """
import collections
t = collections.defaultdict(lambda: np.full(2, 2.0))
f = lambda x: np.sum(t["a"]) * x
--
t["a"][:] = 1.0
""",
    "filled on demand": """
class Net:
    params = None
    def loss(self, x):
        if self.params is None:
            self.params = [np.zeros(2), np.ones(2)]
        a, b = self.params
        return np.sum(a + b) * x
net = Net()
f = net.loss
--
for p in net.params: p += 1.0
for p in net.params: p *= 2.0; p -= 0.5; p /= 4.0; p **= 2
""",
    "filled with numbers": """
class Net: n = None
net = Net()
def f(x):
    if net.n is None:
        net.n = np.arange(3)
    return np.sum(net.n) * x
--
net.n <<= 2
net.n |= 1; net.n ^= 3; net.n //= 2; net.n %= 7; net.n &= 6
""",
    # Two places that were two objects become one, and the function writes into one of them.
    "two attributes with one object": """
class N:
    def __init__(self, k): self.k = k
class W:
    def __init__(self, a, b): self.a, self.b = a, b
    def f(self, x):
        k, self.a.k = self.a.k, 5.0
        t = self.b.k * x
        self.a.k = k
        return t
w = W(N(1.0), N(1.0))
f = w.f
--
w.b = w.a
w.a = N(1.0)
""",
    "two globals with one object": """
class N:
    def __init__(self, k): self.k = k
A, B = N(1.0), N(1.0)
def f(x):
    first = B.k
    k, A.k = A.k, 5.0
    second = B.k
    A.k = k
    return first * x + 10.0 * second * x
--
B = A
B = N(1.0)
""",
    "two globals with one dict": """
A, B = {"k": 1.0}, {"k": 1.0}
def f(x):
    k, A["k"] = A["k"], 5.0
    t = B["k"] * x
    A["k"] = k
    return t
--
B = A
B = dict(A)
""",
    "traced values in one object": """
class N:
    def __init__(self, k): self.k = k
A, B = N(1.0), N(1.0)
def f(x):
    k, A.k = A.k, 5.0 * x
    t = B.k * x
    A.k = k
    return t if isinstance(B, N) and A is not B else 7.0 * x
--
B = A
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_change_takes_effect(name: str) -> None:
    changes_take_effect(name, PROGRAMS[name])


class Size(enum.Enum):
    SMALL = 1.0
    LARGE = 2.0


class Strict:
    """A descriptor that answers for objects alone."""

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        return obj.__dict__["held"]


class Holder:
    value = Strict()

    def __init__(self, held: Any) -> None:
        self.__dict__["held"] = held


@pytest.mark.parametrize(
    "f",
    [
        lambda x: Size(2.0).value * x,
        lambda x: sum(size.value for size in Size) * x,
        lambda x: [*Size][1].value * x,
        lambda x: Holder(3.0).value * x,
        lambda x: Holder(x).value * x,
    ],
)
def test_descriptors_that_answer_for_objects_alone(f: Callable[[Any], Any]) -> None:
    assert rg.jit(f)(3.0) == f(3.0)
    assert rg.grad(f)(3.0) == pytest.approx((f(3.0 + 1e-6) - f(3.0 - 1e-6)) / 2e-6)


def test_a_cache_that_is_filled_settles_at_the_second_trace() -> None:
    class Table:
        @functools.cached_property
        def a(self) -> Any:
            return np.full(3, 2.0)

    t = Table()
    slope = rg.grad(lambda x: t.a @ x)
    for k in range(5):
        t.a[0] = k
        np.testing.assert_array_equal(slope(np.ones(3)), [k, 2.0, 2.0])
    assert slope.cache_info().misses == 1


class Scratch:
    a: Any


@pytest.mark.parametrize("name", ["a", "__dict__"])
def test_what_a_function_writes_itself_settles_at_the_first(name: str) -> None:
    s = Scratch()

    def f(x: Any) -> Any:
        if name == "a":
            s.a = np.full(3, 2.0)
        else:
            s.__dict__["a"] = np.full(3, 2.0)
        return s.a @ x

    slope = rg.grad(f)
    for _ in range(5):
        np.testing.assert_array_equal(slope(np.ones(3)), [2.0, 2.0, 2.0])
        s.a[0] = 9.0
    assert slope.cache_info().misses == 1


HISTORIES = {  # each step sets a global, or clears the cache
    "one number after the other": ("n = 2", "n = 1", "n = 3", "n = 2"),
    "what is remembered stays": ("n = 2", "k = 5.0", "n = 1", "n = 2"),
    "another function, too": ("n = 2; m = 2", "k = 5.0", "m = 1", "n = 1"),
    "cleared": ("n = 2", "g.cache_clear()", "k = 5.0; g.cache_clear()", "n = 1"),
}


@pytest.mark.parametrize("transform", [rg.jit, rg.grad, rg.value_and_grad])
@pytest.mark.parametrize("size", [1, 2, None])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_function_with_a_cache_runs_when_it_does_in_plain_python(name: str, size: int | None, transform: Any) -> None:
    """Nothing is asked that the program would not ask now, which may drop what is remembered."""

    def world() -> dict[str, Any]:
        text = f"""
ran = []
k, n, m = 2.0, 1, 1
@functools.lru_cache(maxsize={size})
def g(n):
    ran.append(n)
    return k * n
def f(x):
    return (g(n) + 0.5 * m) * x
"""
        names: dict[str, Any] = {"functools": functools, "__name__": "program"}
        exec(text, names)
        return names

    plain, watched = world(), world()
    compiled = transform(watched["f"])
    expected = transform(lambda x, k: k * x)  # linear
    for step in ("pass", *HISTORIES[name]):
        for names in (plain, watched):
            exec(step, names)
        for _ in range(2):
            assert compiled(3.0) == expected(3.0, plain["f"](1.0))
            assert watched["ran"] == plain["ran"]
            compiled.explain_retrace(3.0)


def test_code_that_another_thread_gives_a_function_stays() -> None:
    first, then = threading.Event(), threading.Event()

    def helper(x: Any) -> Any:
        return x + 1.0

    def new(x: Any) -> Any:
        return 10.0 * x

    def f(x: Any) -> Any:
        y = helper(x)
        first.set()
        assert then.wait(20.0)
        return y

    def patch() -> None:
        assert first.wait(20.0)
        helper.__code__ = new.__code__
        then.set()

    thread = threading.Thread(target=patch)
    thread.start()
    compiled = rg.jit(f)
    assert compiled(2.0) == 3.0
    thread.join()
    assert helper.__code__ is new.__code__
    assert (helper(2.0), compiled(2.0)) == (20.0, 20.0)


def test_an_array_that_was_made_inside_is_used_as_an_array() -> None:
    memo: dict[str, Any] = {}

    def f(x: Any) -> Any:
        if "a" not in memo:
            memo["a"] = np.arange(6)
        return np.sum(memo["a"]) * x

    compiled = rg.jit(f)
    assert compiled(1.0) == 15.0
    made, plain = memo["a"], np.arange(6)
    assert bytes(made) == bytes(plain)
    np.testing.assert_array_equal(divmod(made, 4), divmod(plain, 4))
    np.testing.assert_array_equal(divmod(7, made + 1), divmod(7, plain + 1))
    copies = copy.copy(made), copy.deepcopy(made), np.array(made)
    made += 1
    made @= np.eye(6, dtype=int)
    assert memo["a"] is made
    for other in copies:
        np.testing.assert_array_equal(other, plain)
    assert compiled(1.0) == 21.0
    made.shape = (2, 3)
    assert (made.shape, made.sum(axis=0).tolist()) == ((2, 3), [5, 7, 9])
    assert compiled(1.0) == 21.0


LIBRARY = """
class View:
    def __init__(self, of): self.of = of
    def __mul__(self, x): return self.of.k * x
class Est:
    def __init__(self, k): self.k = k
    def method(self, x): return self.k * x
    @property
    def half(self): return self.k / 2
    @property
    def bound(self): return self.method
    @property
    def view(self): return View(self)
    @property
    def function(self): return lambda x: self.k * x
    @property
    def parts(self): return [self.k, 1.0]
    @property
    def strict(self):
        if self.k > 5: raise ValueError("k")
        return self.k
"""


def _strict(est: Any, x: Any) -> Any:
    try:
        return est.strict * x
    except ValueError:
        return -x


def _below(library: Any) -> Any:
    class Below(library["Est"]):
        @property
        def half(self) -> Any:
            return 3 * super().half

    return Below


@pytest.mark.parametrize(
    "use",
    [
        lambda est, x: est.half * x,
        lambda est, x: est.bound(x),
        lambda est, x: est.view * x,
        lambda est, x: est.function(x),
        lambda est, x: sum(est.parts) * x,
        _strict,
    ],
    ids=["number", "method", "object", "function", "list", "error"],
)
@pytest.mark.parametrize("below", [False, True], ids=["of the library", "of the user"])
def test_what_properties_of_a_library_give_is_seen(below: bool, use: Callable[[Any, Any], Any]) -> None:
    library: dict[str, Any] = {"__name__": "calendar"}
    exec(compile(LIBRARY, "<library>", "exec"), library)
    made = _below(library) if below else library["Est"]
    held = {"est": made(2.0)}
    compiled = rg.jit(lambda x: use(held["est"], x))

    def replaced() -> None:
        held["est"] = made(9.0)

    for change in (None, lambda: setattr(held["est"], "k", 8.0), replaced, lambda: setattr(held["est"], "k", 1.0)):
        if change is not None:
            change()
        for _ in range(2):
            assert compiled(3.0) == use(held["est"], 3.0)
    before = compiled.cache_info().misses
    assert compiled(4.0) == use(held["est"], 4.0)
    assert compiled.cache_info().misses == before


def test_deeply_nested_numbers_are_compared() -> None:
    deep: Any = np.float64(1.0)
    for _ in range(600):
        deep = [deep]
    data = [deep] + [1.0] * 70
    compiled = rg.jit(lambda x: len(copy.copy(data)) * x)
    assert (compiled(1.0), compiled(2.0)) == (71.0, 142.0)
    data.append(2.0)
    assert compiled(1.0) == 72.0


def test_a_function_with_a_cache_of_its_own_making_is_compiled():
    def paths(a):
        @functools.cache
        def count(i, j):
            return 1.0 if i == 0 or j == 0 else count(i - 1, j) * a[i] + count(i, j - 1)

        return count(2, 2)

    slope = rg.grad(paths)
    for a in np.arange(9.0).reshape(3, 3):
        differences = [(paths(a + h) - paths(a - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(slope(a), differences, rtol=1e-6, atol=1e-6)
    assert slope.cache_info().misses == 1


def test_a_cache_that_is_made_inside_and_kept_outside_is_asked_again():
    kept, factor = {}, [2.0]

    def f(x):
        if "scale" not in kept:
            kept["scale"] = functools.cache(lambda k: factor[0] * k)
        return x * kept["scale"](3)

    compiled = rg.jit(f)
    for value in (2.0, 5.0, 7.0):
        factor[0] = value
        assert compiled(1.0) == f(1.0)
        kept["scale"].cache_clear()
        assert compiled(1.0) == f(1.0) == 3.0 * value


def test_a_function_that_clears_a_cache_sees_each_state():
    gain = 1.0

    @functools.cache
    def scaled(n):
        return n * gain

    def f(x):
        found = x * scaled(2)
        scaled.cache_clear()
        return found

    compiled = rg.jit(f)
    for gain in (1.0, 5.0, 7.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rg.errors.UnwatchedWarning)
            assert compiled(1.0) == 2.0 * gain
