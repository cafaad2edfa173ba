"""Saved functions: loaded elsewhere they give every bit, are differentiated again, and damaged files are refused."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import warnings
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import OptionError, SavedFileError
from retrograd.export.loading import LoadedFunction
from retrograd.export.saving import from_bytes, to_bytes
from tests.export import mutants
from tests.export.alone import bits
from tests.export.conftest import ROOT, Written, each_program
from tests.export.programs import PROGRAMS, TURNED, X, energy


@pytest.mark.costly
@each_program
def test_a_loaded_function_gives_every_bit_in_another_process(name: str, written: Written) -> None:
    assert written.loaded[name] == written.here[name]


@each_program
def test_a_loaded_function_is_saved_as_the_same_file(name: str, written: Written, tmp_path: Path) -> None:
    case, path = written.cases[name], written.folder / f"{name}.rg"
    loaded = rg.load(path)
    loaded.save(tmp_path / "again.rg", *case.args, **case.kwargs)
    assert (tmp_path / "again.rg").read_bytes() == path.read_bytes()


DIFFERENTIABLE = [
    "gradient",
    "trees",
    "lanes",
    "scan",
    "while_loop",
    "choice",
    "python_loop",
    "decision",
    "checkpointed",
    "complex_constants",
]
DIFFERENTIABLE += ["mutation", "linear_algebra", "with_scipy", "derivative_of_ones_own_kept", "product_with_hessian"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_a_loaded_function_is_differentiated_like_the_function(name: str, written: Written) -> None:
    case, loaded = written.cases[name], rg.load(written.folder / f"{name}.rg")

    def total(f: Any) -> Any:
        return lambda *args: sum(np.sum(np.real(x)) for x in rg.tree.leaves(f(*args)))

    again, wanted = (rg.grad(total(f))(*case.args) for f in (loaded, case.function))
    for x, y in zip(rg.tree.leaves(again), rg.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_loaded_functions_are_mapped_and_nested_and_shown(tmp_path: Path) -> None:
    rg.grad(energy).save(tmp_path / "force.rg", X)
    force = rg.load(tmp_path / "force.rg")
    lanes = np.stack([X, 2.0 * X])
    np.testing.assert_allclose(rg.vmap(force)(lanes), [rg.grad(energy)(x) for x in lanes], rtol=1e-15)
    np.testing.assert_allclose(rg.jacobian(force)(X), rg.hessian(energy)(X), rtol=1e-12)
    assert "cos(x" in force.source(X)
    assert repr(force) == "<loaded energy_grad>"
    assert force.plan(X).peak_bytes >= 0
    assert rg.grad(lambda x: np.sum(force(x)), argnums="x")(X).shape == (3,)
    force.export(tmp_path / "force.py", X)
    assert (tmp_path / "force.py").exists()


def test_a_loaded_function_is_pickled_and_copied(tmp_path: Path) -> None:
    rg.grad(energy).save(tmp_path / "force.rg", X)
    force = rg.load(tmp_path / "force.rg")
    for other in (pickle.loads(pickle.dumps(force)), copy.copy(force), copy.deepcopy(force)):
        assert other(X).tobytes() == force(X).tobytes()


def test_a_loaded_function_is_compiled_once(tmp_path: Path) -> None:
    rg.grad(energy).save(tmp_path / "force.rg", X)
    force = rg.load(tmp_path / "force.rg")
    for _ in range(3):
        force(X)
    assert (force.cache_info().misses, force.cache_info().size) == (1, 1)


def test_settings_of_rounding_are_those_of_the_saved_function(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x * 3.0 * 7.0))

    x = np.linspace(0.0, 1.0, 1000)
    with rg.config(exact=True):
        rg.jit(f).save(tmp_path / "f.rg", x)
        wanted = rg.jit(f)(x)
        exact = rg.jit(f).source(x)
    loaded = rg.load(tmp_path / "f.rg")
    assert loaded(x).tobytes() == wanted.tobytes()
    assert exact != rg.jit(f).source(x)
    assert loaded.source(x).partition("\n\nimport")[2] == exact.partition("\n\nimport")[2]


# --------------------------------------------------------------------------------------------- which call is saved


def test_without_arguments_the_call_that_is_known_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "f.rg"
    f = rg.grad(energy_of_two)
    with pytest.raises(OptionError, match="not been called yet"):
        f.save(path)
    f({"b": X, "a": 2.0})
    f.save(path)
    assert rg.load(path)({"b": X, "a": 2.0})["b"].tobytes() == f({"b": X, "a": 2.0})["b"].tobytes()
    with pytest.raises(rg.errors.TreeError, match="order"):
        rg.load(path)({"a": 2.0, "b": X})
    f({"b": X[:2].copy(), "a": 2.0})
    with pytest.raises(OptionError, match="several signatures"):
        f.save(path)


def test_the_call_that_is_known_keeps_its_layout_and_its_rounding(tmp_path: Path) -> None:
    f = rg.jit(lambda a, x: (a.ravel("K"), np.sum(np.sin(x * 3.0 * 7.0))))
    x = np.linspace(0.0, 1.0, 1000)
    with rg.config(exact=True):
        wanted = f(TURNED, x)
    f.save(tmp_path / "f.rg")
    loaded = rg.load(tmp_path / "f.rg")
    assert bits(loaded(TURNED, x)) == bits(wanted)
    assert bits(wanted[1]) != bits(rg.jit(lambda x: np.sum(np.sin(x * 3.0 * 7.0)))(x))
    with pytest.raises(rg.errors.ShapeError, match="has the strides"):
        loaded(np.ascontiguousarray(TURNED), x)


def energy_of_two(p: Any) -> Any:
    return np.sum(p["b"] ** 2) * p["a"]


def test_without_arguments_fixed_ones_are_asked_for(tmp_path: Path) -> None:
    f = rg.jit(lambda x, n: x**n)
    f(X, 3)
    with pytest.raises(OptionError, match="neither arrays nor floats"):
        f.save(tmp_path / "f.rg")


def test_state_that_has_changed_since_the_call_is_not_saved(tmp_path: Path) -> None:
    state = {"k": 2.0}
    f = rg.jit(lambda x: x * state["k"])
    f(X)
    state["k"] = 3.0
    with pytest.raises(OptionError, match="has changed"):
        f.save(tmp_path / "f.rg")
    f.save(tmp_path / "f.rg", X)
    np.testing.assert_array_equal(rg.load(tmp_path / "f.rg")(X), X * 3.0)


# ---------------------------------------------------------------------------------------------------------- classes


@dataclasses.dataclass
class Weights:
    w: Any


class Spot(NamedTuple):
    x: Any
    y: Any


def test_classes_are_found_by_name_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.rg"
    rg.jit(lambda p, q: Spot(p.w * q.x, q.y)).save(path, Weights(X), Spot(2.0, 3.0))
    found = rg.load(path)(Weights(X), Spot(2.0, 3.0))
    assert type(found) is Spot
    monkeypatch.setitem(globals(), "Spot", namedtuple("Spot", "x z"))  # noqa: PYI024
    with pytest.raises(SavedFileError, match="changed its fields"):
        rg.load(path)
    monkeypatch.delitem(globals(), "Spot")
    with pytest.raises(SavedFileError, match="not imported here"):
        rg.load(path)


def test_loading_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "import dataclasses, typing\nprint('imported')\n@dataclasses.dataclass\nclass P:\n    w: typing.Any\n"
    )
    make = "import loud, numpy as np, retrograd as rg; rg.jit(lambda p: p.w * 2.0).save('f.rg', loud.P(1.0))"
    read = "import retrograd as rg; rg.load('f.rg')"
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", text], cwd=tmp_path, env=here, capture_output=True, text=True, check=False
        )
        for text in (make, read)
    ]
    assert runs[0].stdout == "imported\n", runs[0].stderr
    assert runs[1].stdout == ""
    assert "import loud before rg.load" in runs[1].stderr


# ---------------------------------------------------------------------------------------------------- damaged files


@pytest.fixture(scope="session")
def small(written: Written) -> list[Path]:
    """The saved files that are not large."""
    return [path for path in sorted(written.folder.glob("*.rg")) if path.stat().st_size < 20_000]


class TooLong(BaseException):
    """A mutant took more than its time."""


def _too_long(*_: Any) -> None:
    raise TooLong


def check_mutant(seed: int, small: list[Path]) -> str:
    """A mutant is refused by name, or it is read; if its contents are the old ones, it gives the old bits."""
    path, data, way = mutants.mutant(seed, small)
    found, saved = mutants.outcome(data)
    if found != "read":
        assert found == "refused", (seed, way)
        return found
    assert way.startswith("with_other") or data == path.read_bytes(), (seed, way)
    try:
        function = LoadedFunction(saved).compiled
    except SavedFileError:
        return "refused"
    case = PROGRAMS[path.stem]()
    if to_bytes(saved) == path.read_bytes():
        wanted = bits(case.function(*case.args, **case.kwargs))
        assert bits(function(*case.args, **case.kwargs)) == wanted, (seed, way)
        return "equal"
    return called(function, case)


def called(function: Any, case: Any) -> str:
    """What a call of a function gives whose file was changed, and whose hash is right: an error, or other numbers.

    It must not end the process, nor call what it should not; a loop that was changed may be long.
    """
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(5)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*case.args, **case.kwargs)
    except rg.RetrogradError as fault:
        return type(fault).__name__
    except TooLong:
        return "long"
    except (ArithmeticError, LookupError, TypeError, ValueError, np.linalg.LinAlgError) as fault:  # of NumPy
        return type(fault).__name__
    finally:
        signal.alarm(0)
    return "other"


def test_some_mutants_are_refused_or_what_they_say(small: list[Path]) -> None:
    found = [check_mutant(seed, small) for seed in range(300)]
    assert found.count("refused") > 200


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_mutants_are_refused_or_what_they_say(part: int, small: list[Path]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, hard))
    try:
        found = [check_mutant(seed, small) for seed in range(1000 * part, 1000 * (part + 1))]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert {"refused", "equal", "other"} <= set(found)


def rehashed(data: bytes) -> bytes:
    first, _, body = data.split(b"\n", 2)
    return first + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


BROKEN = {
    "nothing": (lambda data: b"", "not a saved function"),
    "another file": (lambda data: b"\x93NUMPY", "not a saved function"),
    "a later form": (lambda data: data.replace(b"function 1\n", b"function 2\n", 1), "has the format 2"),
    "a flipped bit": (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "its hash differs"),
    "an end that is missing": (lambda data: rehashed(data[:-8]), "do not add up"),
    "a host function": (lambda data: rehashed(data.replace(b"= sin", b"= host", 1)), "contains no function"),
    "an unknown operation": (lambda data: rehashed(data.replace(b"= sin", b"= sun", 1)), "unknown primitive"),
    "a pickle": (lambda data: rehashed(data.replace(b"'<f8'", b"'|O' ", 1)), "array of object"),
    "a shape without data": (lambda data: rehashed(data.replace(b"(3,), }", b"(9,), }", 1)), "has other data"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files_are_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "f.rg"
    rg.jit(lambda x: np.sin(x) * X).save(path, X)
    change, said = BROKEN[kind]
    broken = change(path.read_bytes())
    assert broken != path.read_bytes()
    path.write_bytes(broken)
    with pytest.raises(SavedFileError, match=said) as caught:
        rg.load(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SavedFileError, match="No such file"):
        rg.load(tmp_path / "nowhere.rg")


def test_what_is_too_large_or_too_deep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.rg"
    rg.jit(lambda x: {"a": np.broadcast_to(x, (7, 3))}).save(path, X)
    saved = from_bytes(path.read_bytes())
    deep: Any = ["leaf", 0, [], []]
    for _ in range(100):
        deep = ["list", None, [], [deep]]
    first, line, text, arrays = mutants.parts(path.read_bytes())
    large = text.replace(b"f64[7,3]", b"f64[99999999999999,3]")
    assert large != text
    header = json.loads(line)
    for changed in ((header, large), (header | {"results": deep}, text)):
        with pytest.raises(SavedFileError, match=r"too large|too deeply"):
            from_bytes(mutants.hashed(first, *changed, arrays))
    assert saved.graph.outputs


def test_the_mutants_of_the_tests_are_the_same_each_time(small: list[Path]) -> None:
    assert [mutants.mutant(seed, small)[1] for seed in range(20)] == [
        mutants.mutant(seed, small)[1] for seed in range(20)
    ]
