"""Generated modules: they run on NumPy alone, and at any length."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.executable import Executable
from retrograd.ir import Aval, Graph, evaluate, parse
from retrograd.ir.builder import Builder
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.types import Kind
from retrograd.ops.elementary import sin
from tests.support import values
from tests.support.graphs import built
from tests.support.stages import pipeline

F64 = np.dtype(np.float64)
F3 = Aval((3,), F64)


# --- programs, whose derivatives become files ---------------------------------------------------------------


def springs(k: Any, x: Any) -> Any:
    stretch = np.zeros(len(x) + 1)
    stretch[:-1] += x
    stretch[1:] -= x
    return 0.5 * k * np.sum(stretch**2) + np.sum(np.cos(x))


def network(w: Any, v: Any, x: Any) -> Any:
    hidden = np.tanh(x @ w)
    logits = hidden @ v
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(shifted), axis=1)) - shifted[:, 0])


def recurrence(w: Any, x: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = np.sin(w * h + row)
        return h, h**2

    h, squares = rg.scan(step, np.zeros(4), x)
    return np.sum(h) + np.sum(squares)


def sorting(x: Any) -> Any:
    return np.sum(np.sort(x)[::2] * np.cumsum(x)[::2]) + np.sum(np.where(x > 0, x, x**2))


def pooled(x: Any) -> Any:
    y = np.sin(x) @ np.cos(x)
    z = y @ x
    z[0] = 0.0
    return np.sum(z * y)


rng = np.random.default_rng(0)
PROGRAMS: list[tuple[Any, tuple[Any, ...]]] = [
    (springs, (2.0, rng.standard_normal(5))),
    (network, (rng.standard_normal((3, 4)), rng.standard_normal((4, 2)), rng.standard_normal((6, 3)))),
    (recurrence, (rng.standard_normal(4), rng.standard_normal((5, 4)))),
    (sorting, (rng.standard_normal(8),)),
    (pooled, (rng.standard_normal((100, 100)),)),
]

ALONE = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"retrograd", "optree", "jinja2", "networkx", "scipy"}:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
import runpy
import numpy as np

folder = sys.argv[1]
for number in range(int(sys.argv[2])):
    module = runpy.run_path(f"{folder}/{number}.py")
    given = np.load(f"{folder}/{number}.npz")
    args = [given[f"arg_{k}"] for k in range(len(given.files))]
    args = [float(a) if a.shape == () else a for a in args]
    results = module[sys.argv[3 + number]](*args)
    results = results if isinstance(results, tuple) else (results,)
    np.savez(f"{folder}/{number}_out.npz", *results)
assert not any(name.partition(".")[0] == "retrograd" for name in sys.modules)
"""


def test_the_source_runs_where_retrograd_cannot_be_imported(tmp_path: Path) -> None:
    expected, names = [], []
    for number, (program, args) in enumerate(PROGRAMS):
        compiled = rg.value_and_grad(program, tuple(range(len(args))))
        (tmp_path / f"{number}.py").write_text(compiled.source(*args), encoding="utf-8")
        np.savez(tmp_path / f"{number}.npz", **{f"arg_{k}": a for k, a in enumerate(args)})
        executable = compiled.executable(*args)
        expected.append(executable(*args))
        names.append(executable.module.function)
    command = [sys.executable, "-I", "-W", "error", "-c", ALONE, str(tmp_path), str(len(PROGRAMS)), *names]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for number, results in enumerate(expected):
        found = np.load(tmp_path / f"{number}_out.npz")
        values.assert_same_bits([found[f"arr_{k}"] for k in range(len(results))], [np.asarray(r) for r in results])


@pytest.mark.parametrize(("program", "args"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_the_source_says_what_it_takes_and_returns(program: Any, args: tuple[Any, ...]) -> None:
    source = rg.grad(program).source(*args)
    assert source.startswith(f'"""{program.__name__}_grad(')
    assert source.endswith("\n")
    assert "retrograd" not in source.partition('"""\n\n')[2]


# --- length and depth ---------------------------------------------------------------------------------------


def long_chain(n: int) -> Graph:
    b = Builder()
    x = y = b.input(F3, "x")
    for k in range(n):
        y = REGISTRY[("sin", "neg", "add", "mul")[k % 4]](*([y] if k % 4 < 2 else [y, x]))
    return b.graph("chain", [y])


def test_a_chain_of_thousands_of_operations_is_compiled() -> None:
    graph = long_chain(3000)
    executable = Executable(pipeline(graph))
    assert executable.module.source.count("\n") > 2000
    assert max(line.count("(") for line in executable.module.source.splitlines()) <= 3
    args = [np.array([0.1, 0.2, 0.3])]
    values.assert_same_bits(executable(*args), evaluate(graph, args))


def test_a_gradient_through_a_chain_of_thousands_of_operations_is_compiled() -> None:
    def chain(x: Any) -> Any:
        y = x
        for _ in range(1000):
            y = np.sin(y) * 1.01 + x
        return np.sum(y)

    x = np.array([0.1, 0.2, 0.3])
    found = rg.grad(chain)(x)
    step = 1e-6
    slopes = [(chain(x + step * e) - chain(x - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(found, slopes, rtol=1e-6)


def test_an_empty_graph_and_one_without_results_are_compiled() -> None:
    nothing = Executable(parse("graph f(%x: f64[3]) {\n  return\n}"))
    assert nothing(np.ones(3)) == ()
    number = Executable(parse("graph f() {\n  %0 = const {value=1.5} : f64\n  return %0\n}"))
    assert number() == (1.5,)
    assert isinstance(number.function(), np.float64)


# --- functions of a module ----------------------------------------------------------------------------------


def called_twice() -> Graph:
    inner = Builder()
    x = inner.input(F3, "x")
    body = inner.graph("layer", [sin(x) * x])
    b = Builder()
    y = b.input(F3, "x")
    for _ in range(2):
        (y,) = b.emit(REGISTRY["call"], [y.value], {"body": body})
    return b.graph("net", [y])


def test_a_function_that_is_called_twice_is_emitted_once() -> None:
    executable = Executable(called_twice())
    source = executable.module.source
    assert (source.count("def layer("), source.count("= layer(")) == (1, 2)
    args = [np.arange(3.0)]
    values.assert_same_bits(executable(*args), evaluate(executable.graph, args))


def test_the_bodies_of_a_function_that_is_called_twice_stay_one_through_all_passes() -> None:
    assert Executable(pipeline(called_twice())).module.source.count("def layer(") == 1


def test_functions_and_variables_of_one_name_do_not_collide() -> None:
    inner = Builder()
    x = inner.input(F3, "net")
    body = inner.graph("net", [sin(x)])
    b = Builder()
    y = b.input(F3, "net")
    (out,) = b.emit(REGISTRY["call"], [y.value], {"body": body}, ["net"])
    executable = Executable(b.graph("net", [out]))
    args = [np.arange(3.0)]
    values.assert_same_bits(executable(*args), evaluate(executable.graph, args))


def nested(depth: int) -> Graph:
    """Loops of one step in loops, with a sine in the innermost."""
    b = Builder()
    x = b.input(F3, "x")
    if depth == 0:
        return b.graph("body", [sin(x)])
    attrs = {"arrays": 0, "body": nested(depth - 1), "carry": 1, "consts": 0, "length": 1, "reverse": False}
    return b.graph("body", b.emit(REGISTRY["scan"], [x.value], attrs))


@pytest.mark.parametrize("depth", [1, 6, 18, 19, 20, 21, 45])
def test_loops_nest_as_deep_as_one_likes(depth: int) -> None:
    executable = Executable(nested(depth))
    args = [np.arange(3.0)]
    values.assert_same_bits(executable(*args), [np.sin(args[0])])


# --- literals -----------------------------------------------------------------------------------------------

NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.1, 1e300, 5e-324, -2.5, float("nan"), float("inf"), -float("inf")]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("dtype", [np.dtype(code) for code in ("f8", "f4", "f2", "c16", "c8")], ids=str)
@pytest.mark.parametrize("name", ["add", "power", "maximum", "div"])
@pytest.mark.parametrize("kind", ["array", "scalar"])
def test_numbers_on_either_side_keep_every_bit(kind: Kind, name: str, dtype: np.dtype[Any], number: float) -> None:
    aval = Aval((3,), dtype) if kind == "array" else Aval((), dtype, "scalar")
    with np.errstate(all="ignore"):
        graph = built(lambda x: (REGISTRY[name](x, number), REGISTRY[name](number, x)), aval)
        args = [values.as_kind([0.5, -0.0, 3.0] if aval.shape else 0.5, aval)]
        values.assert_same_bits(list(Executable(graph)(*args)), list(evaluate(graph, args)))


def filtered(x: Any) -> Any:
    weights = np.arange(20.0) ** 2
    return np.sum(np.convolve(x, weights) ** 2)


def powers(x: Any) -> Any:
    return np.sum(x ** np.array([1.0, 2.0, 3.0]))


def through_a_call(x: Any) -> Any:
    return rg.jit(filtered)(x) + rg.jit(filtered)(2.0 * x) + np.sum(x * OUTSIDE)


OUTSIDE = np.linspace(0.0, 1.0, 40)


@pytest.mark.parametrize("function", [filtered, powers, through_a_call], ids=lambda f: f.__name__)
def test_arrays_made_in_the_function_stand_in_the_source(function: Any) -> None:
    x = np.linspace(0.5, 1.5, 3 if function is powers else 40)
    gradient = rg.grad(function)
    source = gradient.source(x)
    assert "=constant_" in source
    scope: dict[str, Any] = {}
    exec(source, scope)
    outside = [OUTSIDE] if function is through_a_call else []
    found = scope[gradient.executable(x).module.function](x, *outside)
    np.testing.assert_array_equal(found, gradient(x))


def test_the_header_says_that_a_module_with_states_in_files_needs_retrograd() -> None:
    def f(x: Any) -> Any:
        step = lambda c, _: (np.sin(c), None)  # noqa: E731
        return np.sum(rg.scan(step, x, length=6, memory=rg.Tiered(ram=1, disk=2))[0])

    source = rg.grad(f).source(np.ones(3))
    assert "import retrograd.ops.structural.disk" in source
    assert "runs on NumPy and retrograd, which keeps states in files." in source
    assert "runs on NumPy alone." in rg.grad(lambda x: np.sum(x**2)).source(np.ones(3))
