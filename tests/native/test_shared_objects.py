"""Compiled files: a folder of the user's alone, no damaged or foreign file, no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import shared_objects, target
from retrograd.codegen.native.elements import NoC
from retrograd.codegen.native.shim import SHARED
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
    monkeypatch.setattr(target, "_warned", set())
    target.REFUSALS.clear()
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
    assert home.stat().st_mode & 0o777 == 0o700
    made = {path: path.stat().st_ino for path in home.iterdir()}
    assert sorted(path.suffix for path in made) == [".o", ".so"]
    monkeypatch.setattr(shared_objects, "_loaded", {})
    assert np.array_equal(native_gradient(), first)
    assert {path: path.stat().st_ino for path in home.iterdir()} == made
    info = rg.native_info()
    assert (info.folder, info.files, info.nbytes) == (str(home), 2, sum(path.stat().st_size for path in made))
    assert info.compiler
    assert "-ffp-contract=off" in info.flags
    assert not info.missing


@needs_compiler
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: b"\x7fELF nothing",
        lambda whole: whole[:-100],
        lambda whole: whole + b"x",
        lambda whole: whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:],
    ],
)
def test_a_damaged_file_is_made_again(home: Path, monkeypatch: pytest.MonkeyPatch, damage: Any) -> None:
    first = native_gradient()
    (known,) = home.glob("*.so")
    whole = known.read_bytes()
    known.unlink()
    known.write_bytes(damage(whole))
    monkeypatch.setattr(shared_objects, "_loaded", {})
    assert np.array_equal(native_gradient(), first)
    (again,) = home.glob("*.so")
    assert again.read_bytes() == whole


@needs_compiler
@pytest.mark.parametrize("suffix", [".so", ".o"])
def test_a_folder_in_place_of_a_file_is_replaced(home: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    first = native_gradient()
    for known in [*home.iterdir()]:
        known.unlink()
        if known.suffix == suffix:
            known.mkdir()
            (known / "inside").touch()
    monkeypatch.setattr(shared_objects, "_loaded", {})
    assert np.array_equal(native_gradient(), first)
    assert not target.REFUSALS
    assert all(path.is_file() for path in home.iterdir())


@needs_compiler
def test_what_modules_share_is_compiled_once(home: Path) -> None:
    """Sums, threads, and what serves whole calls; a damaged file is made again."""
    x = np.linspace(0.0, 1.0, 200_000)
    with rg.config(backend="native"):
        found = [rg.value_and_grad(lambda x: np.sum(np.sin(x) * x))(x)]
        made = {path: path.stat().st_ino for path in home.glob("*.o")}
        assert len(made) == len(SHARED)
        found.append(rg.value_and_grad(lambda x: np.sum(np.cos(x) * x))(x))
        assert {path: path.stat().st_ino for path in home.glob("*.o")} == made
        for damaged in made:
            damaged.write_bytes(damaged.read_bytes()[:-1])
        found.append(rg.value_and_grad(lambda x: np.sum(np.exp(-x) * x))(x))
    assert {*home.glob("*.o")} == {*made}
    slopes = [np.sin(x) + x * np.cos(x), np.cos(x) - x * np.sin(x), np.exp(-x) * (1.0 - x)]
    for (value, slope), factor, expected in zip(found, (np.sin(x), np.cos(x), np.exp(-x)), slopes, strict=True):
        np.testing.assert_allclose(value, np.sum(factor * x), rtol=1e-14)
        np.testing.assert_allclose(slope, expected, rtol=1e-14, atol=1e-14)


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


WIDEST = ("-march=native", "-mprefer-vector-width=512")


@pytest.mark.parametrize(
    ("system", "machine", "own", "extension"),
    [
        ("linux", "x86_64", WIDEST, ("-shared",)),
        ("linux", "aarch64", ("-mcpu=native",), ("-shared",)),
        ("darwin", "x86_64", WIDEST, ("-bundle", "-undefined", "dynamic_lookup")),
        ("darwin", "arm64", ("-mcpu=native",), ("-bundle", "-undefined", "dynamic_lookup")),
    ],
)
def test_flags_of_systems(system: str, machine: str, own: tuple[str, ...], extension: tuple[str, ...]) -> None:
    flags = shared_objects.flags_for(system, machine)
    assert flags[-len(own) - len(extension) :] == (*own, *extension)
    assert "-ffp-contract=off" in flags
    assert {"-ffast-math", "-fopenmp"}.isdisjoint(flags)
    assert not any(flag.startswith("-l") for flag in flags)


def test_a_folder_that_others_can_write_to_is_not_used(home: Path) -> None:
    home.mkdir(parents=True)
    for path in (home, home.parent):
        path.chmod(0o777)
        assert shared_objects.folder() != home
        path.chmod(0o770)
        assert shared_objects.folder() != home
        path.chmod(0o700)
        assert shared_objects.folder() == home


def test_new_folders_are_this_users_alone(home: Path) -> None:
    before = os.umask(0)
    try:
        assert shared_objects.folder() == home
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (home, home.parent)] == [0o700, 0o700]


def test_the_folder_of_another_user_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_objects.folder() == home
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert shared_objects.folder() != home


def test_a_folder_of_the_process_that_is_gone_is_made_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETROGRAD_CACHE", "off")
    first = shared_objects.folder()
    assert shared_objects.folder() == first
    first.rename(first.with_name(f"{first.name}-aside"))
    second = shared_objects.folder()
    assert second.is_dir()
    first.with_name(f"{first.name}-aside").rename(first)
    assert shared_objects.folder() == second != first
    first.rmdir()


@needs_compiler
def test_where_nothing_can_be_written_numpy_computes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **options: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.warns(rg.errors.NoCompilerWarning, match="the C compiler failed"):
        found = native_gradient()
    assert np.array_equal(found, rg.grad(slope)(np.arange(4.0)))
    monkeypatch.setenv("RETROGRAD_CACHE", "off")
    monkeypatch.setattr(shared_objects, "_private", {})
    monkeypatch.setattr(tempfile, "mkdtemp", full)
    assert np.array_equal(native_gradient(), found)
    assert target.REFUSALS
    assert all("No space left on device" in why for why in target.REFUSALS)


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
        path = home / f"{k}{'.o' if k % 2 else '.so'}"
        path.write_bytes(b"x" * 100)
        os.utime(path, (k, k))
    monkeypatch.setattr(shared_objects, "LARGEST", 250)
    shared_objects._prune(home, home / "0.so")
    assert sorted(path.name for path in home.iterdir()) == ["0.so", "3.o"]


OUT = 'while [ "$1" != -o ]; do shift; done\n'
BROKEN = {
    "it fails": ("echo no such thing >&2; exit 1", "no such thing"),
    "it tells so in another encoding": ("printf 'erreur : \\351' >&2; exit 1", "erreur"),
    "it is ended": ("kill -9 $$", "the compiler failed"),
    "it hangs": ("exec sleep 100", "it did not end"),
    "it writes nothing": ("exit 0", "something else"),
    "it writes what is no module": (f'{OUT}echo garbage > "$2"', "something else"),
    "it writes another module": (
        f'{OUT}echo "void *PyInit_rg_native(void) {{ return 0; }}" | {{cc}} -shared -fPIC -x c - -o "$2"',
        "something else",
    ),
    "it removes the file": (f'{OUT}rm "$2"', "cannot be kept"),
}


def written(path: Path, script: str) -> str:
    """A compiler that tells its version, and does what a script says."""
    tool = shared_objects.compiler()
    assert tool is not None
    known = script.replace("{cc}", " ".join(tool.command))
    kind = "clang" if "clang" in tool.version else "gcc"  # which have other flags
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && printf "odd \\351 {kind}" && exit 0\n{known}\n')
    path.chmod(0o755)
    return str(path)


@needs_compiler
@pytest.mark.parametrize("how", BROKEN)
def test_a_compiler_that_is_broken_leaves_the_kernels_to_numpy(
    how: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, why = BROKEN[how]
    monkeypatch.setenv("CC", written(tmp_path / "cc", script))
    if "hangs" in how:
        monkeypatch.setattr(shared_objects, "PATIENCE", 0.2)
    with pytest.warns(rg.errors.NoCompilerWarning, match="the C compiler failed"):
        found = native_gradient()
    assert np.array_equal(found, rg.grad(slope)(np.arange(4.0)))
    assert np.array_equal(native_gradient(), found)  # and no second warning
    assert why in rg.native_info().refused[0]
    assert not list(home.iterdir())


@needs_compiler
def test_a_compiler_that_hangs_is_ended_and_not_asked_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it started: it would write into the folder much later."""
    log, late = tmp_path / "log", tmp_path / "late"
    monkeypatch.setenv("CC", written(tmp_path / "cc", f"echo asked >> '{log}'; (sleep 0.8; touch '{late}') & wait"))
    monkeypatch.setattr(shared_objects, "PATIENCE", 0.3)
    monkeypatch.setattr(shared_objects, "_hangs", set())
    with pytest.warns(rg.errors.NoCompilerWarning, match="the C compiler failed"):
        found = native_gradient()
    with rg.config(backend="native"):
        other = rg.grad(lambda x: np.sum(np.exp(x) * 3.0))(np.arange(4.0))
    assert np.array_equal(found, rg.grad(slope)(np.arange(4.0)))
    assert np.array_equal(other, 3.0 * np.exp(np.arange(4.0)))
    assert log.read_text().split() == ["asked"]
    assert ["it did not end within 0.3 seconds" in why for why in rg.native_info().refused] == [True, False]
    assert "not asked again" in rg.native_info().refused[1]
    time.sleep(1.0)
    assert not late.exists()


@pytest.mark.parametrize("command", ["cc '", " ", "/", "no-such-compiler", "false", "sh -c 'sleep 100' x"])
def test_what_is_no_compiler_is_none(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects, "ANSWER", 0.2)
    monkeypatch.setenv("CC", command)
    assert shared_objects.compiler() is None


@needs_compiler
def test_nobody_sees_a_file_before_it_is_whole(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("CC", written(tmp_path / "cc", f"{{cc}} \"$@\" && ls '{home}' >> '{log}'"))
    native_gradient()
    assert sorted(Path(line).suffix for line in log.read_text().splitlines()) == [".making", ".making", ".o"]
    assert sorted(path.suffix for path in home.iterdir()) == [".o", ".so"]


def test_what_an_ended_process_left_half_made_goes(home: Path) -> None:
    home.mkdir(parents=True)
    for name in ("old.making", "new.making", "last.so"):
        (home / name).touch()
    os.utime(home / "old.making", (0, 0))
    shared_objects._prune(home, home / "last.so")
    assert sorted(path.name for path in home.iterdir()) == ["last.so", "new.making"]


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


CHILDREN = """
import os, sys, threading
import numpy as np, retrograd as rg
from retrograd.codegen.native import shared_objects

home = shared_objects.folder()
held, done = threading.Event(), threading.Event()

def compiling():
    with shared_objects._lock:
        held.set()
        done.wait()

threading.Thread(target=compiling).start()
held.wait()
child = os.fork()
if child == 0:
    slope = rg.grad(lambda x: np.sum(np.sin(x) * x), backend="native")
    slope(np.arange(3.0))
    assert shared_objects.folder() != home
    sys.exit(0)
done.set()
assert os.waitpid(child, 0)[1] == 0
assert home.is_dir()
print(home)
"""


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_process_compiles_and_leaves_its_parents_folder() -> None:
    """Also if a thread of the parent compiles when it is made."""
    env = {**os.environ, "RETROGRAD_CACHE": "off"}
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", CHILDREN]
    told = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 0, told.stderr
    assert not Path(told.stdout.strip()).exists()
