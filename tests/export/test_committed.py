"""A committed derivative is checked: what changed is told, and what only looks different passes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.cli import main
from retrograd.export.committed import origin_of, remade
from tests.export.conftest import ROOT
from tests.support.native import needs_compiler

SOURCE = """
import dataclasses
import typing

import numpy as np
import retrograd as rg

SCALE = 3.0
TABLE = np.cos(np.arange(100.0))


@dataclasses.dataclass
class Params:
    w: typing.Any
    b: typing.Any


def loss(x, k):
    return np.sum(np.sin(x) ** 2) * k * SCALE


def tabled(x):
    return np.sum(x * TABLE)


def decided(x):
    if np.sum(x) > 0:
        return np.sum(x**2)
    return np.sum(x)


def of_params(p):
    assert isinstance(p, Params)
    return np.sum(p.w) ** 2 * p.b


def drawing(x):
    return np.sum(x) * np.random.normal()


slope = rg.grad(loss, argnums=1)
both = rg.jit(rg.value_and_grad(loss, argnums=(0, 1)))
lanes = rg.vmap(rg.grad(loss), in_axes=(0, None))


@rg.grad
def decorated(x):
    return np.sum(x**3)


class Spring:
    @rg.jit
    def energy(x):
        return np.sum(x**2)
"""
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, in which commands run."""
    (tmp_path / "program.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["export", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


LOSS = ("program.py:loss", "--arg", "f64[3]", "--arg", "float", "-o", "made.py")


def test_a_derivative_is_written_and_runs(folder: Path, command: Command) -> None:
    assert command(*LOSS) == (0, "made.py is written\n", "")
    run = subprocess.run([sys.executable, "-I", "made.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "made.py: 2 results as expected\n")


def test_an_unchanged_function_passes(command: Command) -> None:
    command(*LOSS)
    for arguments in (("--check", "made.py"), ("program.py:loss", "--check", "made.py"), ("-o", "made.py", "--check")):
        assert command(*arguments) == (0, "made.py matches its function\n", "")


CHANGES = {
    "the function": ("np.sin(x) ** 2", "np.cos(x) ** 2", "no longer matches its function"),
    "the state that it reads": ("SCALE = 3.0", "SCALE = 4.0", "no longer matches its function"),
    "the type of its result": ("np.sum(np.sin(x) ** 2) * k", "np.float32(np.sum(np.sin(x) ** 2))", "np.float64(0.0)"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_fails_and_is_shown(what: str, folder: Path, command: Command) -> None:
    command(*LOSS)
    old, new, said = CHANGES[what]
    change(folder / "program.py", old, new)
    status, out, err = command("--check", "made.py")
    assert (status, out) == (1, "")
    assert err.startswith("[RG0161] made.py ")
    assert said in err
    assert re.search(r"^-    v\d", err, re.MULTILINE)
    assert re.search(r"^\+    v\d", err, re.MULTILINE)
    assert "--renew made.py" in err
    assert command("--renew", "made.py")[0] == 0
    assert command("--check", "made.py") == (0, "made.py matches its function\n", "")


def test_large_constants_are_compared(folder: Path, command: Command) -> None:
    command("program.py:tabled", "--arg", "f64[100]", "-o", "made.py")
    assert command("--check", "made.py")[0] == 0
    change(folder / "program.py", "np.cos(np.arange", "np.sin(np.arange")
    status, _, err = command("--check", "made.py")
    assert status == 1
    assert "for other constants" in err


SAME = {
    "another name": ("program.py", "def loss(x, k):\n    return", "def loss(y, k):\n    x = y\n    return"),
    "other lines": ("program.py", "def loss(x, k):\n", "def loss(x, k):\n\n    # a comment\n\n"),
    "another version": ("made.py", '"retrograd": "0.1.0"', '"retrograd": "0.0.9"'),
    "white space": ("made.py", " = ", "  =  "),
    "comments": ("made.py", "# program.py", "# elsewhere.py"),
    "an older docstring": ("made.py", "Takes:", "It takes:"),
}


@pytest.mark.parametrize("what", SAME)
def test_what_only_looks_different_passes(what: str, folder: Path, command: Command) -> None:
    command(*LOSS)
    file, old, new = SAME[what]
    if what == "white space":
        body, mark, rest = (folder / file).read_text(encoding="utf-8").partition("def _computed")
        (folder / file).write_text(body + mark + rest.replace(old, new, 5), encoding="utf-8")
    else:
        change(folder / file, old, new)
    status, out, err = command("--check", "made.py")
    assert (status, err) == (0, "")
    assert out.startswith("made.py matches its function")
    assert what != "another version" or "versions of retrograd (0.0.9, now 0.1.0)" in out
    assert what != "another name" or "the graph is the same" in out


def test_an_edited_file_fails(folder: Path, command: Command) -> None:
    command(*LOSS)
    text = (folder / "made.py").read_text(encoding="utf-8")
    (folder / "made.py").write_text(text.replace("* 3.0", "* 3.5"), encoding="utf-8")
    status, _, err = command("--check", "made.py")
    assert status == 1
    assert "was edited since it was exported" in err


def test_a_file_that_does_not_run_fails(folder: Path, command: Command) -> None:
    command("program.py:tabled", "--arg", "f64[100]", "-o", "made.py")
    (folder / "made.npz").unlink()
    status, _, err = command("--check", "made.py")
    assert status == 1
    assert "does not run: FileNotFoundError" in err


def test_a_function_that_can_no_longer_be_exported_fails(folder: Path, command: Command) -> None:
    command(*LOSS)
    change(folder / "program.py", "* k * SCALE", "* k * np.random.normal()")
    status, _, err = command("--check", "made.py")
    assert status == 1
    assert "cannot be generated again" in err


def test_a_decision_is_checked_with_arguments_that_go_its_way(folder: Path, command: Command) -> None:
    import importlib.util  # noqa: PLC0415

    spec = importlib.util.spec_from_file_location("program", "program.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    x = -np.linspace(0.5, 1.0, 100)
    rg.grad(program.decided).export("made.py", x)
    assert command("program.py:decided", "--check", "made.py")[0] == 0
    change(folder / "program.py", "return np.sum(x)\n\n\ndef of", "return np.sum(x) * 2.0\n\n\ndef of")
    assert command("program.py:decided", "--check", "made.py")[0] == 1


COMPILED = {
    "slope": ["--arg", "f64[3]", "--arg", "float"],
    "both": ["--arg", "f32[2,2]", "--arg", "float"],
    "lanes": ["--arg", "f64[4,3]", "--arg", "2.5"],
    "decorated": ["--arg", "f64[3]"],
    "Spring.energy": ["--arg", "x=f64[3]"],
}


def test_methods_and_loaded_functions_have_no_name_to_be_found_by(tmp_path: Path) -> None:
    class Spring:
        @rg.grad
        def force(self, x: Any) -> Any:
            return np.sum(x**2)

    assert origin_of(Spring().force)["of"] == ""
    rg.grad(f).save(tmp_path / "f.rg", 2.0)
    assert origin_of(rg.load(tmp_path / "f.rg"))["of"] == ""
    assert origin_of(rg.jit(lambda x: x))["of"] == ""


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_are_exported_as_they_are(name: str, command: Command) -> None:
    status, _, err = command(f"program.py:{name}", *COMPILED[name], "-o", "made.py")
    assert (status, err) == (0, "")
    assert command("--check", "made.py") == (0, "made.py matches its function\n", "")


@pytest.mark.parametrize("transform", ["grad", "value_and_grad", "jit", "hessian"])
def test_a_plain_function_is_exported_under_a_transform(transform: str, command: Command) -> None:
    given = ["program.py:decided", "--arg", "f64[3]", "--transform", transform, "-o", "made.py"]
    status, _, err = command(*given)
    assert (status, err) == (0, "")
    assert command("--check", "made.py")[0] == 0


@pytest.mark.slow
def test_a_script_that_exports_is_checked_by_its_file(folder: Path) -> None:
    script = SOURCE + (
        "\nif __name__ == '__main__':\n"
        "    rg.grad(of_params).export('made.py', Params(np.arange(3.0), 2.0))\n"
        "    rg.value_and_grad(loss, (0, 1)).export('other.py', np.arange(3.0), 2.0)\n"
    )
    (folder / "script.py").write_text(script, encoding="utf-8")
    env = {"PYTHONPATH": str(ROOT)}
    for arguments in (
        ["script.py"],
        ["-m", "retrograd", "export", "--check", "made.py"],
        ["-m", "retrograd", "export", "--check", "other.py"],
    ):
        run = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        assert "matches its function" in run.stdout or arguments == ["script.py"]


WRONG = {
    "no file": (["--check"], "names no file"),
    "no function": (["-o", "made.py"], "needs a function and a file"),
    "a file that is not there": (["--check", "nowhere.py"], "cannot read"),
    "a file of another kind": (["--check", "program.py"], "not a module exported by this version of retrograd"),
    "an argument of no type": (["program.py:loss", "--arg", "float[", "-o", "made.py"], "neither a type nor a value"),
    "an int without its value": (["program.py:loss", "--arg", "int", "-o", "made.py"], "give its value"),
    "a file with another suffix": (
        ["program.py:tabled", "--arg", "f64[100]", "-o", "made.txt"],
        "file name for a module",
    ),
    "a function that is not there": (["program.py:nothing", "-o", "made.py"], "cannot load"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_commands_are_named(what: str, command: Command) -> None:
    arguments, said = WRONG[what]
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    assert said in err


def test_settings_of_rounding_are_those_of_the_export(folder: Path, command: Command) -> None:
    change(folder / "program.py", "return np.sum(x * TABLE)", "return np.sum(np.sin(x * 3.0 * 7.0))")
    given = ("program.py:tabled", "--arg", "f64[5]", "-o", "made.py")
    with rg.config(exact=True):
        command(*given)
    exact = (folder / "made.py").read_text(encoding="utf-8")
    assert command("--check", "made.py") == (0, "made.py matches its function\n", "")
    command(*given)
    assert (folder / "made.py").read_text(encoding="utf-8") != exact


def test_a_function_without_a_name_must_be_named(folder: Path, command: Command) -> None:
    rg.grad(lambda x: x**2).export("made.py", 2.0)
    status, _, err = command("--check", "made.py")
    assert status == 2
    assert "does not record the function" in err


def f(x: Any) -> Any:
    return np.sum(x**2)


@pytest.mark.parametrize(
    "made",
    [
        rg.grad(f),
        rg.grad(f, argnums=(0,), nan_safe=True, memory="1 MiB"),
        rg.vmap(rg.value_and_grad(f), in_axes=0),
        rg.jit(rg.grad(f), static_argnames="n"),
    ],
    ids=repr,
)
def test_transforms_are_told_and_made_again(made: Any) -> None:
    origin = origin_of(made)
    assert origin["of"] == f"{__name__}:f"
    again = remade(f, origin["transforms"])
    assert (type(again), repr(again)) == (type(made), repr(made))
    assert again._transform == made._transform


@needs_compiler
def test_functions_that_c_serves_are_made_again() -> None:
    made = rg.jit(f, backend="native")
    for _ in range(3):
        made(np.ones(3))
    assert type(made) is not rg.Compiled
    again = remade(f, origin_of(made)["transforms"])
    assert type(again) is rg.Compiled
    assert again._transform == made._transform
