"""Exported modules run without retrograd, give every bit of the compiled call, and refuse other arguments."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import OptionError, UnsupportedError
from retrograd.export import standalone
from retrograd.export.module_parts import LITERAL
from tests.export.conftest import Written, each_program
from tests.export.programs import PROGRAMS, TABLE, X


def module_of(function: Any, folder: Path, *args: Any, name: str = "made", **kwargs: Any) -> tuple[ModuleType, Any]:
    """The module of an exported function, and its function."""
    path = folder / f"{name}.py"
    function.export(path, *args, **kwargs)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look there
    spec.loader.exec_module(module)
    del sys.modules[path.stem]
    return module, getattr(module, module.RECORD["function"])


@each_program
def test_a_module_gives_every_bit_without_retrograd(name: str, written: Written) -> None:
    assert written.alone[name] == written.here[name]


@each_program
def test_a_module_holds_no_trace_of_the_package(name: str, written: Written) -> None:
    tree = ast.parse((written.folder / f"{name}.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    known = {"numpy", "scipy", "__future__", "ast", "dataclasses", "hashlib", "math", "pathlib", "sys", "typing"}
    assert {module.partition(".")[0] for module in imported} <= known


def test_the_self_test_runs_by_itself_and_fails_for_other_numbers(written: Written) -> None:
    path = written.folder / "gradient.py"
    run = subprocess.run([sys.executable, "-I", str(path)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "gradient.py: 1 results as expected\n")
    wrong = written.folder / "wrong_gradient.py"
    wrong.write_text(path.read_text(encoding="utf-8").replace("sin(x", "cos(x"), encoding="utf-8")
    run = subprocess.run([sys.executable, "-I", str(wrong)], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout.startswith("wrong_gradient.py: result 0 is [")


def test_the_function_has_types_shapes_and_names(tmp_path: Path) -> None:
    _, f = module_of(rg.value_and_grad(lambda w, k, *, n: np.sum(w**n) * k), tmp_path, X, 2.0, n=2)
    assert str(inspect.signature(f)) == (
        "(w: 'NDArray[np.float64]', k: 'float', *, n: 'int') -> 'tuple[np.float64, NDArray[np.float64]]'"
    )
    assert f.__doc__ is not None
    assert "w: array of dtype float64 and shape (3,)" in f.__doc__
    assert "n: always 2" in f.__doc__


def test_what_was_read_is_frozen_and_the_docstring_says_so(tmp_path: Path) -> None:
    state = {"k": np.array([1.0, 2.0, 3.0])}
    module, f = module_of(rg.jit(lambda x: x * state["k"]), tmp_path, X)
    before = f(X)
    state["k"] = np.zeros(3)
    np.testing.assert_array_equal(f(X), before)
    assert "was frozen when it was exported" in str(module.__doc__)
    assert "array of dtype float64 and shape (3,)" in str(module.__doc__).partition("frozen when")[2]


# ------------------------------------------------------------------------------------------- arguments of other kinds


class Pair(NamedTuple):
    a: Any
    b: Any


def taken(x: Any, k: Any, p: Any, pair: Any, n: Any) -> Any:
    return np.sum(x) * k + p["u"] * p["v"] + pair.a[0] * n


GOOD: dict[str, Any] = {
    "x": np.ones((2, 3)),
    "k": 2.0,
    "p": {"u": 1.0, "v": np.float64(2.0)},
    "pair": Pair([1.0], (2.0,)),
    "n": 3,
}
OTHERS: dict[str, tuple[str, Any]] = {
    "another shape": ("x", np.ones((3, 2))),
    "another dtype": ("x", np.ones((2, 3), np.float32)),
    "another byte order": ("x", np.ones((2, 3), ">f8")),
    "another layout": ("x", np.ones((3, 2)).T),
    "a list": ("x", [[1.0, 1.0, 1.0]] * 2),
    "a class of arrays": ("x", np.ma.ones((2, 3))),
    "an int": ("k", 2),
    "a number of NumPy": ("k", np.float64(2.0)),
    "an array of no axes": ("k", np.array(2.0)),
    "a number of Python": ("p", {"u": 1.0, "v": 2.0}),
    "another key": ("p", {"u": 1.0, "w": np.float64(2.0)}),
    "another order": ("p", {"v": np.float64(2.0), "u": 1.0}),
    "another class": ("pair", ([1.0], (2.0,))),
    "another length": ("pair", Pair([1.0, 2.0], (2.0,))),
    "another container": ("pair", Pair((1.0,), (2.0,))),
    "another value": ("n", 4),
    "an equal value of another type": ("n", 3.0),
    "a bool": ("n", True),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, Any, Any]:
    """A function in a module, and saved."""
    folder = tmp_path_factory.mktemp("kept")
    f = rg.jit(taken)
    f.save(folder / "taken.rg", **GOOD)
    return *module_of(f, folder, **GOOD, name="taken"), rg.load(folder / "taken.rg")


@pytest.mark.parametrize("kind", OTHERS)
def test_other_arguments_are_refused_by_name(kind: str, kept: tuple[ModuleType, Any, Any]) -> None:
    module, f, loaded = kept
    name, x = OTHERS[kind]
    other = {**GOOD, name: x}
    with pytest.raises(module.ArgumentError, match=name):
        f(**other)
    with pytest.raises((rg.errors.UserError, TypeError), match=r"saved for|C order|array"):
        loaded(**other)


def test_the_right_arguments_are_taken(kept: tuple[ModuleType, Any, Any]) -> None:
    assert kept[1](**GOOD) == kept[2](**GOOD) == taken(**GOOD)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_fixed_numbers_are_told_apart_by_their_sign(zero: float, tmp_path: Path) -> None:
    f = rg.jit(lambda x, k: np.arctan2(x * 0.0, k), static_argnames="k")
    module, g = module_of(f, tmp_path, X, k=zero)
    f.save(tmp_path / "f.rg", X, k=zero)
    loaded = rg.load(tmp_path / "f.rg")
    np.testing.assert_array_equal(g(X, k=zero), f(X, k=zero))
    np.testing.assert_array_equal(loaded(X, k=zero), f(X, k=zero))
    with pytest.raises(module.ArgumentError):
        g(X, k=-zero)
    with pytest.raises(rg.errors.ShapeError):
        loaded(X, k=-zero)


def test_another_way_of_a_decision_is_refused(tmp_path: Path) -> None:
    f = rg.grad(lambda x: np.sum(x**2) if x[0] > 0 else np.sum(x))
    f(-X), f(X)  # that both ways are known does not matter
    module, g = module_of(f, tmp_path, X)
    np.testing.assert_array_equal(g(X), f(X))
    with pytest.raises(module.OtherWayError, match="makes other decisions"):
        g(-X)
    f.save(tmp_path / "f.rg", X)
    loaded = rg.load(tmp_path / "f.rg")
    for _ in range(2):
        with pytest.raises(rg.errors.ControlFlowError, match="makes other decisions"):
            loaded(-X)
        np.testing.assert_array_equal(loaded(X), f(X))


def test_arguments_that_share_memory_with_one_that_is_written_are_refused(tmp_path: Path) -> None:
    def f(x: Any, y: Any) -> Any:
        x[0] = 5.0
        return np.sum(x * y)

    module, g = module_of(rg.grad(f), tmp_path, X, X + 1.0)
    with pytest.raises(module.ArgumentError, match="shares memory"):
        g(X, X)
    rg.grad(f).save(tmp_path / "f.rg", X, X + 1.0)
    with pytest.raises(UnsupportedError, match="shares memory"):
        rg.load(tmp_path / "f.rg")(X, X)


def test_a_throw_has_its_payload(tmp_path: Path) -> None:
    case = PROGRAMS["requirement_in_a_loop"]()
    module, f = module_of(case.function, tmp_path, *case.args)
    with pytest.raises(module.ThrownPayload) as thrown:
        f(X * 40.0)
    with pytest.raises(rg.errors.Thrown) as wanted:
        case.function(X * 40.0)
    assert thrown.value.payload == wanted.value.payload


# ------------------------------------------------------------------------------------------------- arrays and texts


def test_large_arrays_lie_beside_the_module_and_belong_to_it(tmp_path: Path) -> None:
    large = np.cos(np.arange(LITERAL + 1.0))
    f = rg.jit(lambda x: x * large)
    module_of(f, tmp_path, 2.0)
    assert (tmp_path / "made.npz").exists()
    np.savez(tmp_path / "made.npz", c0=large * 2.0)
    run = subprocess.run([sys.executable, "-I", str(tmp_path / "made.py")], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "made.npz is not the file written with made.py" in run.stderr


def test_small_arrays_stand_in_the_module(tmp_path: Path) -> None:
    module_of(rg.jit(lambda x: x * X), tmp_path, 2.0)
    assert not (tmp_path / "made.npz").exists()


def test_a_large_argument_is_drawn_again_unless_the_function_fails_on_such_numbers(tmp_path: Path) -> None:
    x = np.linspace(1.0, 2.0, 200)
    module_of(rg.grad(lambda x: np.sum(np.log(x))), tmp_path, x, name="drawn")
    assert not (tmp_path / "drawn.npz").exists()
    assert "_seeded(0, 1.0, 2.0, (200,), np.float64)" in (tmp_path / "drawn.py").read_text(encoding="utf-8")
    module, _ = module_of(rg.grad(lambda x: np.sum(x) if x[0] == 1.0 else x[0]), tmp_path, x, name="kept")
    assert (tmp_path / "kept.npz").exists()
    np.testing.assert_array_equal(module._example()[0][0], x)


def test_two_exports_are_the_same_file(tmp_path: Path) -> None:
    f = rg.grad(lambda x: np.sum(np.outer(x, x) * np.arange(100.0).reshape(10, 10)))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        f.export(tmp_path / name / "f.py", np.ones(10))
        f(np.ones(10))
    for file in ("f.py", "f.npz"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


WORDS = ['"""', "\\", "\n", "'", "{x}", "é", "\u2028", "__import__('os')", "#", "%s"]


@pytest.mark.parametrize("word", WORDS)
def test_texts_of_the_user_stand_in_no_source(word: str, tmp_path: Path) -> None:
    def f(p: Any, how: Any) -> Any:
        return {word: p[word] * 2.0, "how": how}

    f.__name__ = f.__qualname__ = word
    module, g = module_of(rg.jit(f), tmp_path, {word: X}, word)
    assert list(g({word: X}, word)) == [word, "how"]
    assert g({word: X}, word)["how"] == word
    text = (tmp_path / "made.py").read_text(encoding="utf-8")
    assert text.isascii()
    assert "import os" not in re.sub(r'"[^"\n]*"', "", text)
    assert module.__doc__


def test_two_classes_of_one_name_are_refused(tmp_path: Path) -> None:
    class Other:
        class Pair(NamedTuple):
            a: Any
            b: Any

    with pytest.raises(OptionError, match="two classes are called Pair"):
        rg.jit(lambda p, q: p.a * q.b).export(tmp_path / "f.py", Pair(1.0, 2.0), Other.Pair(1.0, 2.0))


def test_arguments_stay_and_results_are_apart_from_them(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        x[0] = 5.0
        return x, x[1:], TABLE, TABLE.T

    _, g = module_of(rg.jit(f), tmp_path, X.copy())
    x = X.copy()
    results = g(x)
    np.testing.assert_array_equal(x, X)
    for y in results:
        y[...] = 9.0
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(g(x)[2], TABLE)


@pytest.mark.parametrize("name", ["a b.py", "class.py", "grad-loss.py", "loss.txt", "loss", "1.py"])
def test_the_file_must_be_a_module(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="file name for a module"):
        rg.jit(np.sin).export(tmp_path / name, 1.0)
    assert not list(tmp_path.iterdir())


def test_a_failing_export_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(UnsupportedError):
        rg.jit(lambda x: x + RNG.normal()).export(path, 1.0)
    assert path.read_text(encoding="utf-8") == "before"


# ------------------------------------------------------------------------------------------------- what is refused


RNG = np.random.default_rng(0)


def hosted() -> Any:
    f = rg.lens(lambda x: (x**2, lambda ct: ct * 2.0 * x), host=True)
    return rg.jit(lambda x: f(x) * 2.0)


class Other:
    """A container that is registered."""

    def __init__(self, x: Any) -> None:
        self.x = x


rg.register_container(Other, lambda o: ((o.x,), None), lambda _, parts: Other(*parts))
COUNT = {"calls": 0}


def counting(x: Any) -> Any:
    COUNT["calls"] += 1
    return x * COUNT["calls"]


def caught(x: Any) -> Any:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return x


REFUSED: dict[str, tuple[Callable[[], Any], tuple[Any, ...], str]] = {
    "draws": (lambda: rg.jit(lambda x: x + RNG.normal()), (1.0,), "random numbers"),
    "hidden draws": (lambda: rg.jit(lambda x: x + np.random.normal()), (1.0,), "random numbers"),  # noqa: NPY002
    "hosts": (hosted, (1.0,), "Python function"),
    "files": (
        lambda: rg.grad(lambda x: rg.fori_loop(9, lambda i, c: np.sin(c), x, memory=rg.Tiered(ram=1, disk=2))),
        (1.0,),
        "in files",
    ),
    "a function as argument": (lambda: rg.grad(lambda f, x: f(x), fns="captures"), (lambda y: y * 2.0, 1.0), "functi"),
    "a function as a fixed argument": (lambda: rg.jit(lambda x, f: f(x)), (1.0, np.sin), "np.ufunc|ufunc"),
    "a container of ones own": (lambda: rg.jit(lambda o: o.x * 2.0), (Other(1.0),), "Other"),
    "a result of ones own": (lambda: rg.jit(lambda x: Other(x * 2.0)), (1.0,), "Other"),
    "state that changes": (lambda: rg.jit(counting), (1.0,), "changes what it reads"),
    "a caught error": (lambda: rg.jit(caught), (np.zeros((2, 2)),), "catches an error"),
    "a result that is a function": (
        lambda: rg.jit(lambda x: rg.vjp(np.sin, x)),
        (1.0,),
        "class function that the function makes",
    ),
    "very large gaps": (lambda: rg.jit(lambda x: x * 2.0), (np.zeros((9, 1 << 20))[:, :1],), "very large gaps"),
    "a generator as argument": (lambda: rg.jit(lambda g: g.normal()), (np.random.default_rng(0),), "random|Generator"),
}


@pytest.mark.parametrize("door", ["export", "save"])
@pytest.mark.parametrize("kind", REFUSED)
def test_what_only_this_process_can_do_is_refused_by_name(kind: str, door: str, tmp_path: Path) -> None:
    make, args, said = REFUSED[kind]
    with pytest.raises(UnsupportedError, match=said) as caught:
        getattr(make(), door)(tmp_path / "f.py", *args)
    assert caught.value.remedy
    assert not list(tmp_path.iterdir())


def test_a_primitive_of_ones_own_is_exported_and_not_saved(tmp_path: Path) -> None:
    cubed = rg.primitive("cubed_for_export", emit="{0} * {0} * {0}", diff=[rg.push(lambda t, out, x: 3.0 * x * x * t)])
    f = rg.grad(lambda x: np.sum(np.sin(cubed(x))))
    _, g = module_of(f, tmp_path, X)
    assert g(X).tobytes() == f(X).tobytes()
    with pytest.raises(UnsupportedError, match="cubed_for_export, which this program declares"):
        rg.jit(lambda x: cubed(x) * 2.0).save(tmp_path / "f.rg", X)


def test_no_function_is_written_while_another_is_traced(tmp_path: Path) -> None:
    inner = rg.jit(np.sin)

    def f(x: Any) -> Any:
        inner.export(tmp_path / "f.py", 1.0)
        return x

    with pytest.raises(OptionError, match="while another one is traced"):
        rg.jit(f)(1.0)


def test_settings_that_watch_calls_leave_no_trace(tmp_path: Path) -> None:
    f = rg.grad(lambda x: np.sum(rg.fori_loop(20, lambda i, c: np.sin(c), x, memory=rg.Snapshots(3))))
    _, plain = module_of(f, tmp_path, X, name="plain")
    with rg.debug_counters(), rg.debug_nans():
        _, watched = module_of(f, tmp_path, X, name="watched")
    assert plain(X).tobytes() == watched(X).tobytes()


def test_what_stands_in_modules_needs_nothing_of_the_package() -> None:
    tree = ast.parse(inspect.getsource(standalone))
    relative = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    assert relative == []
