"""Calls whose arguments and results stay in the same arrays give what other calls give, on each target."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import ShapeError, UnsupportedError
from tests.support.native import needs_compiler

RNG = np.random.default_rng(0)
pytestmark = [needs_compiler, pytest.mark.usefixtures("all_in_c")]


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def tree(state: Any, scale: float) -> Any:
    return {"sum": np.sum(state["a"] * scale) + state["b"][0], "rows": state["a"] - scale}


def numbers(x: float, y: Any, n: int) -> Any:
    return np.sin(x) * y * n, x + 1.0


CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a gradient": (rg.value_and_grad(rosenbrock, backend="native"), (RNG.normal(size=5),)),
    "a tree": (rg.jit(tree, backend="native"), ({"a": RNG.normal(size=(3, 4)), "b": [RNG.normal(size=2)]}, 2.5)),
    "numbers": (rg.jit(numbers, backend="native"), (0.5, np.float32(2.0), 3)),
    "complex": (rg.jit(lambda z: z * z.conj(), backend="native"), (RNG.normal(size=3) + 1j,)),
    "masks": (rg.jit(lambda m, k: (m & (k > 1), k + 2), backend="native"), (RNG.random(9) > 0.5, np.arange(9))),
    "workspaces": (rg.value_and_grad(lambda x: np.sum(np.cumsum(np.sin(x)) ** 2), backend="native"), (np.ones(9000),)),
    "parts": (rg.jit(lambda x: np.exp(x) * np.sin(x), backend="native"), (RNG.normal(size=200_000),)),
}


def same(found: Any, expected: Any) -> bool:
    """Whether arrays hold what results do."""
    found, expected = rg.tree.flatten(found)[0], rg.tree.flatten(expected)[0]
    return len(found) == len(expected) and all(
        np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype
        for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("name", CALLS)
def test_buffered_calls_are_c_and_give_the_same_bits(name: str) -> None:
    function, args = CALLS[name]
    call = function.buffered(*args)
    assert isinstance(call.run, BuiltinFunctionType)
    for _ in range(3):
        assert call.run() is call.results
        assert same(call.results, function(*args))
        for buffer, x in zip(rg.tree.flatten(call.args)[0], rg.tree.flatten(args)[0], strict=True):
            if isinstance(buffer, np.ndarray) and buffer.dtype.kind in "fc":
                buffer[...] = 0.5 * buffer
                args = rg.tree.map(lambda y, x=x, b=buffer: like(b, y) if y is x else y, args)


def like(buffer: Any, x: Any) -> Any:
    """What an array holds, as the kind of another argument."""
    return buffer.copy() if isinstance(x, np.ndarray) else type(x)(buffer)


def test_arguments_are_copied_and_keywords_are_there() -> None:
    x = np.ones(3)
    call = rg.jit(lambda x, c: x * c, backend="native").buffered(x, c=2.0)
    call.args[0][:] = 5.0
    call.kwargs["c"][...] = 3.0
    assert call.run().tolist() == [15.0, 15.0, 15.0]
    assert x.tolist() == [1.0, 1.0, 1.0]


SCALE = 2.0


def scaled(x: Any) -> Any:
    return (x * SCALE) ** 2 + x - 1.0


def test_what_the_function_reads_is_tested_at_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    call = rg.jit(scaled, backend="native").buffered(np.ones(2))
    assert isinstance(call.run, BuiltinFunctionType)
    for scale in (2.0, 5.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        assert call.run().tolist() == [scale**2] * 2


def test_another_code_is_seen() -> None:
    def f(x: Any) -> Any:
        return x * x + x + 1.0

    call = rg.jit(f, backend="native").buffered(np.ones(2))
    assert isinstance(call.run, BuiltinFunctionType)
    f.__code__ = (lambda x: x * x + x + 2.0).__code__
    assert call.run().tolist() == [4.0, 4.0]


def test_captured_arrays_and_cells_go_the_general_way() -> None:
    weights = np.ones(2)
    call = rg.jit(lambda x: x * weights, backend="native").buffered(np.ones(2))
    weights[:] = 7.0
    assert call.run().tolist() == [7.0, 7.0]


def test_other_ways_are_gone() -> None:
    """The answer of a decision may be another one."""
    call = rg.value_and_grad(lambda x: x * x if x > 0 else -x, backend="native").buffered(2.0)
    call.args[0][...] = -3.0
    assert [float(x) for x in call.run()] == [3.0, -1.0]
    call.args[0][...] = 4.0
    assert [float(x) for x in call.run()] == [16.0, 8.0]


def test_arrays_of_another_shape_are_noticed() -> None:
    call = rg.jit(lambda x: x * x + 2.0 * x, backend="native").buffered(np.ones(1000))
    assert isinstance(call.run, BuiltinFunctionType)
    call.args[0].resize(2, refcheck=False)
    with pytest.raises(ShapeError, match=r"other shapes or other dtypes[^$]*make another buffered call"):
        call.run()
    call.args[0].resize(1000, refcheck=False)
    call.results.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        call.run()


def test_numpy_has_the_same_calls() -> None:
    call = rg.value_and_grad(rosenbrock).buffered(np.ones(4))
    assert not isinstance(call.run, BuiltinFunctionType)
    call.args[0][:] = 0.5
    assert call.run() is call.results
    assert same(call.results, rg.value_and_grad(rosenbrock)(np.full(4, 0.5)))


def test_traced_functions_neither_make_nor_run_them() -> None:
    """They would not see what happens in the arrays."""
    inner = rg.jit(lambda x: x * x + x)
    with pytest.raises(UnsupportedError, match=r"test_buffered_calls.py[^$]*call the function itself"):
        rg.grad(lambda x: inner.buffered(x).run())(1.0)
    for backend in ("numpy", "native"):
        call = rg.jit(lambda x: x * x + x, backend=backend).buffered(1.0)
        with pytest.raises(UnsupportedError, match="runs a buffered call"):
            rg.jit(lambda x, call=call: x * call.run())(3.0)


def test_indices_out_of_bounds_are_named() -> None:
    call = rg.jit(lambda x, k: x[k] * x[k] + x[k], backend="native").buffered(np.arange(4.0), np.array([1, 3]))
    assert isinstance(call.run, BuiltinFunctionType)
    assert call.run().tolist() == [2.0, 12.0]
    call.args[1][0] = 9
    with pytest.raises(IndexError):
        call.run()
    call.args[1][0] = 0
    assert call.run().tolist() == [0.0, 12.0]


def test_threads_with_calls_of_their_own() -> None:
    """Each has its own arrays; workspaces are not shared."""
    f = rg.value_and_grad(lambda x: np.sum(np.cumsum(np.sin(x)) ** 2), backend="native")
    expected, found = [f(np.full(9000, float(k))) for k in range(4)], [True] * 4

    def work(k: int) -> None:
        call = f.buffered(np.full(9000, float(k)))
        for _ in range(50):
            found[k] = found[k] and same(call.run(), expected[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found)
