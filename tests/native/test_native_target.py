"""The native target as users meet it: a setting, modules that stay NumPy's, calls that do not fit."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import shared_objects, target
from retrograd.errors import OptionError
from retrograd.ir import evaluate, parse
from retrograd.ir.target import TARGETS
from tests.support import values
from tests.support.native import needs_compiler, results

SUM = parse("""
graph f(%x: f64[2,3], %k: f64) {
  %0 = broadcast %k : f64[2,3]
  %1 = mul %x, %0 : f64[2,3]
  %2 = sin %1 : f64[2,3]
  return %2
}""")


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels with the fallbacks of the test at hand."""
    monkeypatch.setattr(shared_objects, "_loaded", {})


def test_what_runs_c_is_loaded_when_it_is_chosen() -> None:
    program = "import sys, retrograd; print(*(name for name in sys.modules if 'codegen.native' in name))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == ""


def wave(x: Any) -> Any:
    return np.sum(np.sin(x) * np.cos(x))


def test_the_setting_chooses_the_target() -> None:
    assert TARGETS.chosen.name == "numpy"
    with rg.config(backend="native"):
        assert TARGETS.chosen.name == "native"
        with rg.config(exact=True):
            assert TARGETS.chosen.name == "numpy"
    with pytest.raises(OptionError, match="choose from 'numpy', 'native'"):
        rg.config.backend = "fortran"


@needs_compiler
def test_the_source_is_numpys_and_runs_alone() -> None:
    with rg.config(backend="native"):
        source = rg.grad(wave).source(np.ones(3))
    assert "def wave_grad_1(" in source
    scope: dict[str, Any] = {}
    exec(source, scope)
    np.testing.assert_allclose(scope["wave_grad"](np.ones(3)), rg.grad(wave)(np.ones(3)), rtol=1e-14)


@needs_compiler
def test_a_function_that_is_one_kernel_is_the_extension_function() -> None:
    with rg.config(backend="native"):
        function = rg.value_and_grad(wave).executable(np.ones(3)).function
    assert type(function).__name__ == "builtin_function_or_method"
    values.assert_same_bits(list(function(np.ones(3))), list(rg.value_and_grad(wave)(np.ones(3))))


def strided(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide = np.zeros((x.shape[0] * 2, x.shape[1] * 3))
    wide[::2, ::3] = x
    return wide[::2, ::3]


def unaligned(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    room = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(x.shape)
    room[...] = x
    return room


@needs_compiler
@pytest.mark.parametrize(
    "change", [np.asfortranarray, strided, unaligned, lambda x: x[::-1], lambda x: x.astype(">f8")]
)
@pytest.mark.parametrize("k", [0.5, np.float64(0.5), np.array(0.5), 1])
def test_calls_with_other_layouts_and_numbers_have_the_same_results(change: Any, k: Any) -> None:
    def fallback(x: Any, k: Any) -> Any:
        met.append(type(k))
        return np.sin(x * k)

    met: list[type] = []
    (function,) = target.compiled([SUM], [fallback])
    assert function is not None
    x = change(np.arange(6.0).reshape(2, 3))
    (found,) = results(function, SUM, [x, k])
    values.assert_close([found], list(evaluate(SUM, [np.ascontiguousarray(x, np.float64), np.float64(k)])), 1e-15)
    assert bool(met) == (x.dtype.byteorder == ">" or type(k) is int)


@needs_compiler
def test_errors_of_the_numpy_function_come_through() -> None:
    def fallback(*args: Any) -> Any:
        raise KeyError("other operands")

    (function,) = target.compiled([SUM], [fallback])
    assert function is not None
    for args in [(), (np.ones((2, 3)),), (np.ones((3, 2)), 1.0), (None, 1.0), (np.ones((2, 3)), "x")]:
        with pytest.raises(KeyError, match="other operands"):
            function(*args)


@needs_compiler
def test_results_are_new_each_time() -> None:
    with rg.config(backend="native"):
        f = rg.grad(wave)
        x = np.ones(3)
        first, second = f(x), f(2 * x)
    assert first.flags.owndata
    assert first.flags.writeable
    assert not np.shares_memory(first, second)
    assert not np.array_equal(first, second)


@needs_compiler
def test_names_of_the_user_cannot_leave_a_comment(tmp_path: Any) -> None:
    lines = "import numpy as np\ndef f(x):\n    return np.sum(np.sin(x) * x)\n"
    scope: dict[str, Any] = {}
    exec(compile(lines, str(tmp_path / "a*/b\\\n.py"), "exec"), scope)
    target.REFUSALS.clear()
    with rg.config(backend="native"):
        found = rg.grad(scope["f"])(np.ones(3))
    assert not target.REFUSALS
    np.testing.assert_allclose(found, np.sin(1) + np.cos(1), rtol=1e-14)


@needs_compiler
def test_a_kernel_gives_up_where_an_angle_is_too_large() -> None:
    met = []

    def fallback(x: Any) -> Any:
        met.append(x)
        return np.sin(x)

    graph = parse("""
graph f(%x: f64[9]) {
  %0 = sin %x : f64[9]
  return %0
}""")
    (function,) = target.compiled([graph], [fallback])
    assert function is not None
    x = np.linspace(-1e13, 1e13, 9)
    np.testing.assert_allclose(function(x), np.sin(x), rtol=1e-15)
    x[3:5] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(function(x), np.sin(x), rtol=1e-15)
    assert not met
    x[3:5] = 0.0
    x[7] = 1e300
    values.assert_same_bits([function(x)], [np.sin(x)])
    assert len(met) == 1


@needs_compiler
def test_many_divisions_by_few_numbers_are_products() -> None:
    def shares(x: Any) -> Any:
        return x / np.sum(x, axis=1, keepdims=True) / 3.0

    x = np.random.default_rng(0).uniform(1, 2, (4, 30))
    with rg.config(backend="native"):
        names = [node.prim.name for node in rg.jit(shares).graph(x).nodes]
        np.testing.assert_allclose(rg.jit(shares)(x), shares(x), rtol=1e-15)
    assert "div" not in names
    assert "reciprocal" in names
    assert "div" in [node.prim.name for node in rg.jit(shares).graph(x).nodes]


@needs_compiler
def test_the_c_can_be_read() -> None:
    text = rg.grad(wave).source(np.ones(3), language="c")
    assert "static int kernel0(void **p)" in text
    assert "rg_sin(" in text
    assert "/* test_native_target.py:" in text
    assert rg.jit(np.linalg.inv).source(np.eye(2), language="c") == "/* NumPy computes all of this. */\n"
    with pytest.raises(OptionError, match="choose from 'numpy' and 'c'"):
        rg.grad(wave).source(np.ones(3), language="fortran")


@needs_compiler
def test_what_c_has_not_runs_in_blocks_beside_kernels() -> None:
    def f(x: Any) -> Any:
        z = np.sqrt(np.cos(np.sin(np.cos(np.sin(1j * x)))))
        w = np.sin(x) * x + np.cos(x) * 2.0 - x
        return np.sum(np.abs(z)) + np.sum(w * w)

    x = np.random.default_rng(0).normal(size=40_000)
    value, slope = rg.value_and_grad(f)(x)
    with rg.config(backend="native"):
        both = rg.value_and_grad(f)
        again, same = both(x)
        assert "in_blocks(" in both.source(x)  # of kernels, whose names are those of others
        assert "double" in both.source(x, language="c")
    assert again == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(same, slope, rtol=1e-12, atol=1e-12)


@needs_compiler
def test_counted_loops_whose_steps_have_numbers_are_kernels() -> None:
    def f(x: Any) -> Any:
        return np.sum(rg.fori_loop(9, lambda k, v: np.sin(v) * (k + 1.0) * 0.1, x))

    x = np.random.default_rng(0).normal(size=30)
    made = rg.value_and_grad(f, backend="native")
    assert type(made.executable(x).function).__name__ == "builtin_function_or_method"
    value, slope = rg.value_and_grad(f)(x)
    found, same = made(x)
    assert found == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(same, slope, rtol=1e-12)


@needs_compiler
def test_a_kernel_that_c_cannot_have_is_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * np.exp(x) + np.cos(x) * x) + np.sum(np.sort(x) * np.tanh(x))

    x = np.random.default_rng(0).normal(size=40_000)
    plain = rg.value_and_grad(f)
    monkeypatch.setattr("retrograd.codegen.native.kernel_function.LONGEST", 5)
    target.REFUSALS.clear()
    made = rg.value_and_grad(f, backend="native")
    assert "in_blocks(" in made.source(x)  # as the target for the rest would have it
    assert any("operations in a row" in why for why in rg.native_info().refused)
    np.testing.assert_allclose(made(x)[1], plain(x)[1], rtol=1e-12)
    target.REFUSALS.clear()


@needs_compiler
def test_sums_over_steps_are_added_in_place() -> None:
    def f(k: Any, u: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            return np.sin(u * k), None

        return np.sum(rg.scan(step, u, None, 7)[0] ** 2)

    k, u = np.random.default_rng(0).normal(size=(2, 40))
    made = rg.grad(f, argnums=(0, 1), backend="native")
    text = made.source(k, u, language="c")
    now, then = (set(re.findall(rf"double \*{name}(\d+) = ", text)) for name in ("now", "then"))
    assert len(now - then) == 1
    for found, expected in zip(made(k, u), rg.grad(f, argnums=(0, 1))(k, u), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11)


@needs_compiler
def test_parts_of_rolled_arrays_in_loops() -> None:
    def f(u: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            u, total = c
            v = u + 0.1 * (np.roll(u, 1, 0) - np.roll(u, -1, 1))
            return (v, total + np.sum(v[3:5, 2:6] ** 2)), None

        return rg.scan(step, (u, 0.0), None, 5)[0][1]

    u = np.random.default_rng(0).normal(size=(8, 9))
    target.REFUSALS.clear()
    found = rg.grad(f, backend="native")(u)
    assert not target.REFUSALS
    np.testing.assert_allclose(found, rg.grad(f)(u), rtol=1e-12)


@needs_compiler
def test_zeros_win_over_infinities_in_c() -> None:
    def rate(v: Any) -> Any:
        return np.sum(np.sqrt(np.maximum(v, 0.0) * v) / np.where(v > 0, 1.0, np.inf))

    x = np.resize([-1.0, 0.0, 2.0, -0.5], 4_000)
    with np.errstate(all="ignore"):
        found = rg.grad(rate, nan_safe=True, backend="native")(x)
        np.testing.assert_allclose(found, rg.grad(rate, nan_safe=True)(x), rtol=1e-14)
    np.testing.assert_allclose(found, x > 0)


@needs_compiler
@pytest.mark.parametrize("shape", [(), (40,), (6, 7)])
def test_long_chains_are_kernels(shape: tuple[int, ...]) -> None:
    def chain(x: Any) -> Any:
        for k in range(700):
            x = np.sin(x) * 0.9 + 0.1 * (k % 7) if k % 3 else x / (1.5 + k % 5)
        return np.sum(x)

    x = np.random.default_rng(0).normal(size=shape)
    target.REFUSALS.clear()
    made = rg.jit(chain, backend="native")
    np.testing.assert_allclose(made(x), chain(x), rtol=1e-13)
    assert not target.REFUSALS


@needs_compiler
def test_long_chains_of_views_end_no_recursion() -> None:
    def chain(x: Any) -> Any:
        for k in range(400):
            x = np.roll(x, k % 5 + 1) * 0.9 + k % 3
        return x

    x = np.random.default_rng(0).normal(size=20)
    np.testing.assert_allclose(rg.jit(chain, backend="native")(x), chain(x), rtol=1e-12)


@needs_compiler
def test_equal_kernels_are_compiled_once() -> None:
    """Steps that end by a decision are kernels of their own, all of them equal but the first and the last."""

    def relaxed(u: Any) -> Any:
        change = 1.0
        while change > 1e-3:
            old, u = u, 0.5 * u + 0.1 * np.sin(u[::-1])
            change = np.max(np.abs(u - old))
        return np.sum(u * u)

    u = np.linspace(0.1, 1.0, 50)
    gradient = rg.value_and_grad(relaxed, backend="native")
    (value, slope), (expected, other) = gradient(u), rg.value_and_grad(relaxed)(u)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(slope, other, rtol=1e-11)
    calls, text = gradient.source(u), gradient.source(u, language="c")
    kernels = re.findall(r"^static int (kernel\d+)\(", text, re.MULTILINE)
    called = re.findall(r"= (relaxed_grad_\d+)\(", calls)
    assert len(called) > len(kernels) + 3 == len({*called}) + 3
    bodies = [
        re.sub(r"kernel\d+", "", text.partition(f"static int {name}(")[2].partition("\n}\n")[0]) for name in kernels
    ]
    assert len(set(bodies)) == len(bodies)
