"""Creation functions: traced inside a trace, NumPy's own for everyone else, at every moment."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import operator
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy  # noqa: ICN001 - as users do
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.special
from numpy import asarray, ones, pi, zeros

import retrograd as rg
from retrograd.ir.printer import to_text
from retrograd.tracer import interception
from retrograd.tracer.interception import INTERCEPTION, Substituted

X = np.array([1.0, 2.0, 3.0])
PLAIN = {"zeros": np.zeros, "eye": np.eye(2), "rng": np.random.default_rng(0)}  # reached in no way that is followed

CREATED: dict[str, Callable[[], Any]] = {
    "zeros": lambda: np.zeros(3),
    "zeros of a shape": lambda: np.zeros((2, 3), np.float32),
    "ones": lambda: np.ones((2, 1), dtype=int),
    "full": lambda: np.full((2, 2), 0.5),
    "full of an int": lambda: np.full(3, 7),
    "empty and filled": lambda: filled(np.empty((2, 2))),
    "array": lambda: np.array([[1, 2], [3, 4.5]]),
    "array of bools": lambda: np.array([True, False]),
    "array with a dtype": lambda: np.array([1, 2], dtype=np.float16),
    "array with ndmin": lambda: np.array([1.0], ndmin=3),
    "asarray": lambda: np.asarray([1.0, 2.0]),
    "asanyarray": lambda: np.asanyarray([1, 2]),
    "arange": lambda: np.arange(2.0, 5.0, 0.5),
    "arange of ints": lambda: np.arange(4),
    "linspace": lambda: np.linspace(0, 1, 5),
    "logspace": lambda: np.logspace(0, 2, 3),
    "eye": lambda: np.eye(2, 3, k=1),
    "identity": lambda: np.identity(2),
    "tri": lambda: np.tri(3),
    "a nested list of rows": lambda: np.array([np.zeros(2), [1, 2]]),
    "a number": lambda: np.array(2.5),
    "an empty list": lambda: np.array([]),
    "keywords alone": lambda: np.full(shape=(2,), fill_value=1.5, dtype=float),
    "order F": lambda: np.zeros((2, 3), order="F"),
}


def filled(x: Any) -> Any:
    x[...] = 0.25
    return x


def is_as_before() -> bool:
    return type(np) is ModuleType and np.zeros is PLAIN["zeros"] and type(np.zeros(2)) is np.ndarray


@pytest.mark.parametrize("create", CREATED.values(), ids=CREATED.keys())
def test_what_is_created_in_a_trace_is_what_numpy_creates(create):
    expected = create()
    seen = []

    def f(x):
        made = create()
        seen.append(repr(made).startswith("<traced"))
        return made, made.dtype.name, made.shape, x

    found, dtype, shape, _ = rg.jit(f)(X)
    assert seen == [True]
    assert (dtype, shape) == (expected.dtype.name, expected.shape)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("create", CREATED.values(), ids=CREATED.keys())
def test_what_is_created_in_a_trace_takes_traced_values(create):
    def f(x):
        made = create()
        if made.size and made.dtype.kind == "f":
            made[...] = x[0]
            made.reshape(-1)[0] = x[1]
        return made

    np.testing.assert_array_equal(rg.jit(f)(X), f(X), strict=True)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [2, 16, 17, 5000])
@pytest.mark.parametrize("ends", [(-(2**63), 2**63 - 1), (-(2**63), 0), (2**63 - 1, -(2**63)), (5, 2), (2, 2)])
def test_integers_whose_differences_wrap_are_lifted_as_they_are(ends, size):
    def f(x):
        return x * np.array([ends[k % 2] for k in range(size)]), x * np.array([ends[0], *[ends[1]] * (size - 1)])

    x = np.linspace(1.0, 2.0, size)
    for found, expected in zip(rg.jit(f)(x), f(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_traced_value_may_be_what_an_array_is_made_of():
    def f(x):
        return (
            np.array([x[0], 2.0 * x[1]]),
            np.array([[x[0]], [x[2]]], dtype=np.float32),
            np.full((2, 3), x),
            np.full(2, x[0] * 2),
            np.asarray(x),
            np.array(x, ndmin=2),
            np.array(x, dtype=np.float32),
            np.array([x, [1, 2, 3]]),
            np.array((x[0], np.float32(1), 3)),
            np.full_like(x, x[1]),
            np.stack([np.zeros(3), x]),
        )

    for a, b in zip(rg.jit(f)(X), f(X), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    _, pullback = rg.vjp(f, X)
    cts = tuple(np.ones_like(y) for y in f(X))
    counts = [[1, 2, 0], [1, 0, 1], [2, 2, 2], [4, 0, 0], [4, 4, 4], [1, 0, 0], [0, 3, 0], [1, 1, 1]]
    np.testing.assert_array_equal(pullback(cts)[0], np.sum(counts, axis=0))


def test_an_array_made_of_an_array_is_a_copy_and_asarray_is_none():
    def f(x):
        a, b = np.array(x), np.asarray(x)
        a[0] = 10.0
        b[1] = 20.0
        return x, a, b

    for found, expected in zip(rg.jit(f)(X), f(X.copy()), strict=True):
        np.testing.assert_array_equal(found, expected)


NAMES: dict[str, Callable[[], Any]] = {
    "another name": lambda: numpy.zeros(2),
    "an import inside": lambda: imported(),  # noqa: PLW0108 - it is defined below
    "getattr": lambda: getattr(np, "zeros")(2),  # noqa: B009 - as users do
    "a callback": lambda: next(map(np.zeros, [2])),
    "a comprehension": lambda: np.stack([np.zeros(2) for _ in range(1)])[0],
}


def imported() -> Any:
    from numpy import zeros  # noqa: PLC0415 - as users do

    return zeros(2)


@pytest.mark.parametrize("create", NAMES.values(), ids=NAMES.keys())
def test_names_may_be_reached_in_many_ways(create):
    def f(x):
        made = create()
        return made * x[0], x

    np.testing.assert_array_equal(rg.jit(f)(X)[0], np.zeros(2))


def test_a_function_that_cannot_be_followed_makes_plain_arrays_which_refuse_traced_values():
    def f(x):
        made = PLAIN["zeros"](2)
        made[0] = x[0]
        return made

    with pytest.raises(rg.errors.TracerConversionError):
        rg.jit(f)(X)
    np.testing.assert_array_equal(rg.jit(lambda x: PLAIN["zeros"](3) + x)(X), X)


def test_names_that_were_bound_early_are_followed():
    def f(x):
        made = zeros(3)
        made[0] = x[0]
        return made + asarray([x[0], 1.0, x[1]]) * pi

    np.testing.assert_array_equal(rg.jit(f)(X), f(X))
    assert zeros is np.zeros


def test_a_helper_in_another_module_is_followed():
    lines = [
        "from numpy import full as filled",
        "def helper(x):",
        "    y = filled(3, 2.0)",
        "    y[0] = x",
        "    return y",
    ]
    module = ModuleType("somebodys_module")
    exec("\n".join(lines), vars(module))
    sys.modules["somebodys_module"] = module
    try:
        np.testing.assert_array_equal(rg.jit(lambda x: module.helper(x[0]))(X), [1.0, 2.0, 2.0])
        assert module.filled is np.full
    finally:
        del sys.modules["somebodys_module"]


def test_an_early_name_is_numpys_own_for_pickle_and_for_other_threads():
    seen = []

    def f(x):
        assert pickle.loads(pickle.dumps(zeros)) is PLAIN["zeros"]
        assert zeros.__name__ == "zeros"
        assert repr(zeros) == repr(PLAIN["zeros"])
        thread = threading.Thread(target=lambda: seen.append(type(zeros(2))))
        thread.start()
        thread.join()
        return x

    rg.jit(f)(X)
    assert seen == [np.ndarray]


def test_a_name_bound_anew_during_a_trace_stays():
    def f(x):
        globals()["rebound"] = "kept"
        return x + ones(3)

    rg.jit(f)(X)
    try:
        assert rebound == "kept"  # noqa: F821 - bound in the trace
        assert ones is np.ones
    finally:
        del globals()["rebound"]


def test_a_stand_in_that_outlives_its_trace_is_numpys_function():
    kept = []
    rg.jit(lambda x: kept.append(np.zeros) or x)(X)
    assert type(kept[0](3)) is np.ndarray
    assert pickle.loads(pickle.dumps(kept[0])) is np.zeros


def test_a_function_that_ran_often_before_is_traced_right():
    def f(x):
        made = np.zeros(3)
        made[:2] = x[1:]
        return made

    for _ in range(2000):  # the interpreter specialises its bytecode
        f(X)
    compiled = rg.jit(f)
    np.testing.assert_array_equal(compiled(X), f(X))
    for _ in range(2000):
        f(X)
    np.testing.assert_array_equal(rg.grad(lambda x: np.sum(f(x)))(X), [0.0, 1.0, 1.0])
    assert type(f(X)) is np.ndarray


def test_a_function_with_very_many_names_is_traced_right():
    names = [f"name{k}" for k in range(300)]
    lines = [f"    {n} = {k}" for k, n in enumerate(names)]
    uses = "\n".join(f"    x.shape and __builtins__ and {n}" for n in names)
    attributes = "\n".join(f"    if 0: x.attribute{k}" for k in range(300))
    made = "    y = np.zeros(3)\n    y[0] = x[0]"
    source = "\n".join(["def f(x, np):", *lines, attributes, made, uses, "    return y\n"])
    scope: dict[str, Any] = {"__name__": "users_module"}
    exec(compile(source, "users_module.py", "exec"), scope)
    np.testing.assert_array_equal(rg.jit(lambda x: scope["f"](x, np))(X), [1.0, 0.0, 0.0])


def test_a_substitute_is_given_only_where_its_name_is_loaded():
    module = ModuleType("fake")
    module.__dict__.update(double=lambda x: 2 * x, Number=float)
    interception.PROVIDERS["fake"] = [lambda m: {"double": lambda x: "doubled", "Number": lambda x: "number"}]
    cls = Substituted(module).cls
    del interception.PROVIDERS["fake"]

    def f(x):
        seen = [module.double(1), getattr(module, "double")(1), list(map(module.double, [1]))]  # noqa: B009
        seen += [operator.attrgetter("double")(module)(1), vars(module)["double"](1)]
        seen += [module.Number(1), isinstance(1.0, module.Number), module.Number is float, module.Number.fromhex("1")]
        seen += [module.Number("2") if module.Number is float else 0]
        with pytest.raises(AttributeError):
            _ = module.missing
        kept.append(seen)
        return x

    kept = []
    for _ in range(3):  # the interpreter specialises its bytecode
        for _ in range(100):
            f(0)
        assert kept[-1] == [2, 2, [2], 2, 2, 1.0, True, True, 1.0, 2.0]
        module.__class__ = cls
        rg.jit(lambda x: 1.0 * f(x))(0.0)
        assert kept[-1] == ["doubled", "doubled", ["doubled"], 2, 2, "number", True, True, 1.0, "number"]
        module.__class__ = ModuleType


# ------------------------------------------------------------------------------------- as it was, for everyone


def test_numpy_is_as_before_after_a_trace_and_after_one_that_failed():
    before = dict(vars(np))

    def bad(x):
        np.zeros(3)
        raise ZeroDivisionError

    for f in (lambda x: np.zeros(3) + x, bad):
        for transform in (rg.jit, rg.grad, rg.vmap, rg.hessian):
            with contextlib.suppress(ZeroDivisionError):
                transform(lambda x, f=f: np.sum(f(x)))(X)
            assert is_as_before()
    with pytest.raises(KeyboardInterrupt):
        rg.jit(interrupted)(X)
    assert is_as_before()
    assert dict(vars(np)) == before
    assert all(getattr(np, name) is before[name] for name in before)
    assert not INTERCEPTION._holders


def interrupted(x):
    raise KeyboardInterrupt


def test_inside_a_trace_numpys_own_code_and_names_are_numpys():
    def f(x):
        assert vars(np)["zeros"] is PLAIN["zeros"]
        assert sys.modules["numpy"] is np
        assert isinstance(np, ModuleType)
        assert np.float64 is np.dtype(float).type
        assert np.ndarray is type(PLAIN["zeros"](1))
        assert type(np.sum(PLAIN["zeros"](3))) is np.float64
        assert type(np.linalg.inv(PLAIN["zeros"]((2, 2)) + PLAIN["eye"])) is np.ndarray
        assert pickle.loads(pickle.dumps(PLAIN["zeros"])) is PLAIN["zeros"]
        assert pickle.loads(pickle.dumps(PLAIN["eye"])).sum() == 2.0
        assert copy.deepcopy(PLAIN["eye"]) is not PLAIN["eye"]
        assert type(PLAIN["rng"].normal(size=3)) is np.ndarray
        assert type(scipy.linalg.expm(PLAIN["eye"])) is np.ndarray
        assert scipy.optimize.brentq(lambda v: v - 0.5, 0, 1) == pytest.approx(0.5)
        buffer = io.BytesIO()
        np.save(buffer, PLAIN["eye"])
        assert dir(np) == names
        return x

    names = dir(np)
    rg.jit(f)(X)


def test_numpy_may_be_patched_by_others_during_a_trace(monkeypatch):
    calls = []

    def mine(*args, **options):
        calls.append(args)
        return PLAIN["zeros"](*args, **options)

    def f(x):
        np.mean_of_mine = mine
        assert np.mean_of_mine is mine
        del np.mean_of_mine
        monkeypatch.setattr(np, "zeros", mine)
        monkeypatch.undo()
        return np.zeros(3) + x

    np.testing.assert_array_equal(rg.jit(f)(X), X)
    assert np.zeros is PLAIN["zeros"]


def test_traces_may_nest_and_overlap_in_threads():
    seen = []

    def f(x):
        inner = rg.grad(lambda v: np.sum(np.zeros(2) + v))(x[0])
        seen.append(repr(np.zeros(2)).startswith("<traced"))
        return np.ones(3) * inner + x

    barrier = threading.Barrier(4, timeout=30)

    def work(k):
        barrier.wait()
        return rg.jit(f)(X * k)

    with ThreadPoolExecutor(4) as pool:
        for k, found in enumerate(pool.map(work, range(4))):
            np.testing.assert_array_equal(found, X * k + 2.0)
    assert set(seen) == {True}
    assert is_as_before()


# -------------------------------------------------------------------------------- other threads see nothing


def plain_numpy() -> None:
    made = [np.zeros(3), np.array([1.0, 2.0]), np.arange(4), np.linspace(0, 1, 3), np.eye(2), np.full(2, 1.0)]
    assert all(type(a) is np.ndarray for a in made)
    assert type(np.zeros_like(made[0])) is np.ndarray
    assert np.array(made[0]).sum() == 0.0


def random_numbers() -> None:
    generator = np.random.default_rng(0)
    assert type(generator.normal(np.zeros(3), 1.0)) is np.ndarray
    assert type(generator.standard_gamma(2.0, 5)) is np.ndarray
    assert type(generator.permutation(5)) is np.ndarray
    assert type(generator.choice(3, 4)) is np.ndarray
    assert type(generator.multivariate_normal([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])) is np.ndarray


def scientific() -> None:
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert type(scipy.linalg.solve(a, np.ones(2))) is np.ndarray
    assert scipy.optimize.minimize(lambda v: float(np.sum(v**2)), np.ones(2)).success
    assert scipy.integrate.quad(np.sin, 0.0, 1.0)[0] == pytest.approx(1 - np.cos(1.0))
    assert type(scipy.sparse.eye_array(3) @ np.ones(3)) is np.ndarray
    assert type(scipy.special.gamma(np.arange(1.0, 4.0))) is np.ndarray


def linear_algebra() -> None:
    a = np.arange(9.0).reshape(3, 3) + np.eye(3) * 5
    assert type(np.linalg.inv(a)) is np.ndarray
    assert type(np.fft.fft(a)) is np.ndarray
    assert type(np.polyfit(np.arange(4.0), np.arange(4.0), 1)) is np.ndarray
    assert type(np.einsum("ij,jk", a, a)) is np.ndarray
    assert np.histogram(a, bins=3)[0].sum() == 9


def stress(traces: int) -> int:
    """So many traces in this thread while others use NumPy and SciPy; how often the others came round."""
    done = threading.Event()
    rounds: list[int] = []
    faults: list[BaseException] = []

    def work(job: Callable[[], None]) -> None:
        count = 0
        try:
            while not done.is_set():
                job()
                count += 1
        except BaseException as fault:  # noqa: BLE001 - raised in the test
            faults.append(fault)
        rounds.append(count)

    jobs = (plain_numpy, random_numbers, scientific, linear_algebra, hidden_random_numbers)
    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()

    def f(x):
        total = np.zeros(3)
        made = np.array([x[0], 1.0, 2.0]) + np.linspace(0, 1, 3) * math.cos(x[1])
        total += np.full(3, x[1]) * made + np.arange(3) + np.eye(3)[0] + float(x[2]) * zeros(3) * X
        return np.sum(total)

    try:
        expected = to_text(rg.trace(f)(X))
        for _ in range(traces):
            assert to_text(rg.trace(f)(X)) == expected
            assert not faults
    finally:
        done.set()
        for thread in threads:
            thread.join()
    if faults:
        raise faults[0]
    return min(rounds)


def hidden_random_numbers() -> None:
    assert type(np.random.normal(size=3)) is np.ndarray  # noqa: NPY002 - the hidden generator
    assert type(np.random.permutation(4)) is np.ndarray  # noqa: NPY002 - the hidden generator
    assert isinstance(np.random.rand(), float)  # noqa: NPY002 - the hidden generator


def test_other_threads_see_numpys_own_functions_during_traces():
    assert stress(150) > 0
    assert is_as_before()


@pytest.mark.slow
def test_other_threads_see_numpys_own_functions_during_very_many_traces():
    assert stress(10_000) > 10
    assert is_as_before()


CRASH = """
import numpy as np, scipy.interpolate, scipy.linalg, scipy.ndimage, scipy.optimize, scipy.signal, scipy.sparse.linalg
import scipy.spatial, scipy.special, scipy.stats, retrograd as rg
HELD = [np.random.default_rng(0), np.random.RandomState(0), np.eye(3), np.arange(3.0)]

def draw(x):
    new, old, eye, v = HELD
    getattr(np, "zeros")(3)
    for rng in (new, old):
        for name in dir(rng):
            if name.startswith("_") or name in {"bit_generator", "spawn", "seed", "set_state", "tomaxint"}:
                continue
            for args in ((), (3,), (2.0, 3.0), (v,), ([1, 2], [3, 4]), (2, 3, 4)):
                try:
                    getattr(rng, name)(*args)
                except Exception:
                    pass
    return x

def f(x):
    _, _, eye, v = HELD
    scipy.linalg.expm(eye); scipy.linalg.solve(eye, v); scipy.linalg.lu(eye); scipy.linalg.schur(eye)
    scipy.spatial.cKDTree(eye).query(v); scipy.spatial.ConvexHull(np.random.RandomState(1).rand(8, 2))
    scipy.ndimage.gaussian_filter(eye, 1.0); scipy.signal.lfilter([1.0], [1.0, 0.5], v)
    scipy.interpolate.CubicSpline(v, v)(0.5); scipy.stats.norm.rvs(size=3, random_state=0)
    scipy.sparse.linalg.spsolve(scipy.sparse.csc_matrix(eye), v); scipy.special.comb(5, 2)
    scipy.optimize.minimize(lambda p: float(np.asarray(p) @ np.asarray(p)), HELD[3] + 1.0)
    return x * 2.0

try:
    rg.jit(draw)(HELD[3])
except rg.errors.UnsupportedError:  # one of the many that were caught
    print("refused")
print(rg.jit(f)(HELD[3]))
"""


def test_compiled_code_that_is_called_during_a_trace_does_not_crash():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CRASH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "refused\n[0. 2. 4.]\n"


def test_a_thread_started_in_a_trace_is_outside_of_it():
    types = []

    def f(x):
        thread = threading.Thread(target=lambda: types.append((type(np.zeros(2)), rg.jit(np.sin)(0.0))))
        thread.start()
        thread.join()
        return np.zeros(3) + x

    np.testing.assert_array_equal(rg.jit(f)(X), X)
    assert types == [(np.ndarray, 0.0)]


def test_importing_retrograd_leaves_numpy_alone():
    check = "assert type(np) is types.ModuleType and np.zeros is zeros"
    program = f"import numpy as np, types; zeros = np.zeros; import retrograd; {check}"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_no_array_of_objects_ever_appears():
    """Everything that could shred a traced value into an array of objects is refused."""
    shredders = [
        lambda x: np.array([x[0], x[1]], dtype=object),
        lambda x: np.array([x[0], "a"]),
        lambda x: np.array([x[0], None]),
        lambda x: np.array([x, object()]),
        lambda x: np.array([{"a": x}]),
        lambda x: np.asarray([[x[0], []]], dtype=object),
        lambda x: np.full(3, x[0], dtype=object),
        lambda x: np.full((3,), x, dtype="O"),
        lambda x: PLAIN["zeros"](3, object) + x,
        lambda x: X.astype(object) * x,
        lambda x: x.astype(object),
        lambda x: np.vectorize(lambda v: v, otypes=[object])(x * 2),
        lambda x: np.frompyfunc(lambda v: [v], 1, 1)(x * 2),
        lambda x: np.array(list(x), dtype=object),
        lambda x: np.r_[x[0], None],
        lambda x: np.fromiter(list(x), dtype=object),
        lambda x: np.where(x > 1, x, None),
        lambda x: np.append(x, None),
        lambda x: np.concatenate([x, np.array([None])]),
    ]
    for shred in shredders:
        with pytest.raises((rg.RetrogradError, TypeError, ValueError)):
            rg.jit(shred)(X)


def test_arrays_of_records_made_in_a_trace_are_a_named_error():
    def program(x):
        records = np.zeros(3, dtype=[("a", float)])
        records["a"] = x
        return records["a"]

    with pytest.raises(rg.errors.UnsupportedError, match="cannot be traced"):
        rg.jit(program)(np.ones(3))
    with pytest.raises(rg.errors.UnsupportedError, match="cannot be traced"):
        rg.jit(lambda s: s["a"] * 2)(np.zeros(3, dtype=[("a", float)]))
