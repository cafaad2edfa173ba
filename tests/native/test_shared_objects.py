"""Compiled files: a folder of the user's alone, no damaged or foreign file, no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import shared_objects, target
from retrograd.codegen.native.elements import NoC
from tests.support.native import needs_compiler

PROGRAM = """
import numpy as np, retrograd as rg
with rg.config(backend="native"):
    print(rg.grad(lambda x: np.sum(np.sin(x) * x))(np.arange(3.0)).tolist())
"""


def slope(x: Any) -> Any:
    return np.sum(np.exp(x) * x * x)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that nothing was loaded from."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shared_objects, "_loaded", {})
    return tmp_path / "retrograd" / "native"


def native_gradient() -> np.ndarray[Any, Any]:
    """The gradient of a function with code of its own, which nothing was compiled for."""
    code = compile("lambda x: np.sum(np.exp(x) * x * x)", "<fresh>", "eval")
    with rg.config(backend="native"):
        found: np.ndarray[Any, Any] = rg.grad(eval(code, {"np": np}))(np.arange(4.0))
    return found


@needs_compiler
def test_a_file_is_compiled_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = native_gradient()
    (known,) = home.glob("*.so")
    assert home.stat().st_mode & 0o777 == 0o700
    made = known.stat().st_ino
    monkeypatch.setattr(shared_objects, "_loaded", {})
    assert np.array_equal(native_gradient(), first)
    assert [path.stat().st_ino for path in home.iterdir()] == [made]
    info = rg.native_info()
    assert (info.folder, info.files, info.nbytes) == (str(home), 1, next(home.iterdir()).stat().st_size)
    assert info.compiler
    assert "-ffp-contract=off" in info.flags
    assert not info.missing


@needs_compiler
@pytest.mark.parametrize("damage", [b"", b"\x7fELF nothing", b"x" * 5000])
def test_a_damaged_file_is_made_again(home: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes) -> None:
    first = native_gradient()
    (known,) = home.glob("*.so")
    whole = known.read_bytes()
    known.unlink()
    known.write_bytes(damage)
    monkeypatch.setattr(shared_objects, "_loaded", {})
    assert np.array_equal(native_gradient(), first)
    (again,) = home.glob("*.so")
    assert len(again.read_bytes()) == len(whole)


@needs_compiler
def test_the_file_of_another_kernel_is_not_loaded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even with a name that fits its contents."""
    first = native_gradient()
    (known,) = home.glob("*.so")
    with rg.config(backend="native"):
        rg.grad(lambda x: np.sum(np.exp(x) * 3.0))(np.arange(4.0))
    (other,) = set(home.glob("*.so")) - {known}
    foreign = known.with_name(f"{known.stem.partition('-')[0]}-{other.stem.partition('-')[2]}.so")
    other.rename(foreign)
    known.unlink()
    monkeypatch.setattr(shared_objects, "_loaded", {})
    assert np.array_equal(native_gradient(), first)
    assert [path.name for path in home.glob("*.so")] == [known.name]


@needs_compiler
def test_without_a_home_that_can_be_written_to_kernels_are_in_a_private_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for home in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        monkeypatch.setattr(shared_objects, "_loaded", {})
        np.testing.assert_allclose(native_gradient(), rg.grad(slope)(np.arange(4.0)), rtol=1e-14)
        assert list(shared_objects.folder().glob("*.so"))
    (tmp_path / "home").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    home = shared_objects.folder()
    assert tmp_path in home.parents
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != home)  # as for a disk that cannot be written to
    assert shared_objects.folder() != home


@pytest.mark.parametrize(
    ("system", "machine", "own", "extension"),
    [
        ("linux", "x86_64", "-march=native", ("-shared",)),
        ("linux", "aarch64", "-mcpu=native", ("-shared",)),
        ("darwin", "x86_64", "-march=native", ("-bundle", "-undefined", "dynamic_lookup")),
        ("darwin", "arm64", "-mcpu=native", ("-bundle", "-undefined", "dynamic_lookup")),
    ],
)
def test_flags_of_systems(system: str, machine: str, own: str, extension: tuple[str, ...]) -> None:
    flags = shared_objects.flags_for(system, machine)
    assert flags[-1 - len(extension) :] == (own, *extension)
    assert "-ffp-contract=off" in flags
    assert {"-ffast-math", "-fopenmp"}.isdisjoint(flags)
    assert not any(flag.startswith("-l") for flag in flags)


def test_a_folder_that_others_can_write_to_is_not_used(home: Path) -> None:
    home.mkdir(parents=True)
    home.chmod(0o777)
    assert shared_objects.folder() != home
    home.chmod(0o700)
    assert shared_objects.folder() == home


def test_a_link_in_place_of_the_folder_is_not_used(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    home.parent.mkdir()
    home.symlink_to(tmp_path / "elsewhere")
    assert shared_objects.folder() != home


def test_the_cache_can_be_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETROGRAD_CACHE", "off")
    private = shared_objects.folder()
    assert private.stat().st_mode & 0o777 == 0o700
    assert not home.exists()


def test_the_oldest_files_go_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(parents=True)
    for k in range(4):
        path = home / f"{k}.so"
        path.write_bytes(b"x" * 100)
        os.utime(path, (k, k))
    monkeypatch.setattr(shared_objects, "LARGEST", 250)
    shared_objects._prune(home, home / "0.so")
    assert sorted(path.name for path in home.iterdir()) == ["0.so", "3.so"]


@needs_compiler
def test_a_compiler_that_fails_leaves_the_kernel_to_numpy(home: Path, tmp_path: Path, monkeypatch: Any) -> None:
    bad = tmp_path / "cc"
    bad.write_text('#!/bin/sh\n[ "$1" = --version ] && echo bad 1.0 && exit 0\necho no such thing >&2; exit 1\n')
    bad.chmod(0o755)
    monkeypatch.setenv("CC", str(bad))
    target.REFUSALS.clear()
    np.testing.assert_allclose(native_gradient(), rg.grad(slope)(np.arange(4.0)), rtol=1e-14)
    assert "no such thing" in rg.native_info().refused[0]
    assert not list(home.glob("*.making*"))


def test_without_a_compiler_a_warning_names_the_remedy_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(target, "_warned", set())
    with pytest.warns(rg.errors.NoCompilerWarning, match="Install gcc or clang, or name one in CC"):
        found = native_gradient()
    np.testing.assert_allclose(found, rg.grad(slope)(np.arange(4.0)), rtol=1e-15)
    assert np.array_equal(native_gradient(), found)
    with pytest.raises(NoC, match="no C compiler"):
        shared_objects.functions("", 0, [])
    info = rg.native_info()
    assert info.compiler == ""
    assert "Install gcc or clang" in info.missing


@needs_compiler
def test_two_processes_at_once(tmp_path: Path) -> None:
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    runs = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    told = {run.communicate()[0] for run in runs}
    assert len(told) == 1
    assert told.pop().startswith("[0.0, ")


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_process_calls_the_kernels_of_its_parent(home: Path) -> None:
    with rg.config(backend="native"):
        f = rg.grad(slope)
        expected = f(np.arange(4.0))
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(f(np.arange(4.0)), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0
