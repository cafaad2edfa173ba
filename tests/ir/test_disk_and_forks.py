"""A forked child leaves the states of its parent on disk as they are, and does not hold the locks on them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ops.structural.disk import Disk, open_disk


def in_child(act: Callable[[], Any]) -> None:
    child = os.fork()
    if child == 0:
        failed = True
        try:
            act()
            failed = False
        finally:
            os._exit(failed)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture(params=["", "key"], ids=["temporary", "resumable"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = open_disk(str(tmp_path), request.param)
    made.write(0, 1.0)
    made.write(3, 2.0)
    yield made
    made.close()


ACTS: dict[str, Callable[[Disk], Any]] = {
    "close": lambda disk: disk.close(),
    "drop": lambda disk: disk.drop(3),
    "write": lambda disk: disk.write(5, 7.0),
    "write over": lambda disk: disk.write(3, 7.0),
    "again": lambda disk: disk.again().drop(3),
    "end": lambda disk: disk._end.peek()[1](*disk._end.peek()[2]),  # type: ignore[index]  # it is alive
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_child_leaves_the_files_of_its_parent(disk: Disk, act: Callable[[Disk], Any]) -> None:
    before = {path.name: path.read_bytes() for path in disk.folder.iterdir()}
    in_child(lambda: act(disk))
    assert {path.name: path.read_bytes() for path in disk.folder.glob("*.npy")} == before
    assert (list(disk), disk.read(0, 1), disk.read(3, 1)) == ([0, 3], 1.0, 2.0)


def test_a_child_goes_on_with_states_of_its_own(disk: Disk) -> None:
    def act() -> None:
        disk.drop(3)
        disk.write(1, 5.0)
        disk.write(3, 6.0)
        assert [disk.read(i, 1) for i in disk] == [1.0, 5.0, 6.0]
        in_child(lambda: disk.drop(3))
        assert disk.read(3, 1) == 6.0
        disk.close()

    in_child(act)
    assert sorted(path.name for path in disk.folder.iterdir()) == ["state-0.npy", "state-3.npy"]


@pytest.mark.parametrize("resume", [False, True])
def test_a_pullback_works_on_after_a_child_has_dropped_it(tmp_path: Path, resume: bool) -> None:
    plan = rg.Tiered(1, 4, tmp_path, resume)
    _, pullback = rg.vjp(lambda a: np.sum(rg.fori_loop(30, lambda i, c: np.sin(c), a, memory=plan)), np.ones(2))
    expected = pullback(1.0)[0].tobytes()

    def act() -> None:
        nonlocal pullback
        assert pullback(1.0)[0].tobytes() == expected
        del pullback
        gc.collect()

    in_child(act)
    assert pullback(1.0)[0].tobytes() == expected
    del pullback
    gc.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("resume", [False, True])
def test_a_child_that_fails_inside_a_gradient_leaves_the_files(tmp_path: Path, resume: bool) -> None:
    children: list[int] = []
    calls = -1_000_000  # not while it is recorded

    @rg.lens(host=True)
    def forking(x: Any) -> Any:
        def pullback(ct: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 4:
                child = os.fork()
                if child == 0:
                    raise RuntimeError("enough")
                children.append(os.waitpid(child, 0)[1])
            return ct

        return x, pullback

    plan = rg.Tiered(1, 4, tmp_path, resume)
    f = rg.grad(lambda a: np.sum(rg.fori_loop(20, lambda i, c: np.sin(c) + forking(c), a, memory=plan)))
    expected = f(np.ones(2)).tobytes()
    calls, parent = 0, os.getpid()
    try:
        found = f(np.ones(2)).tobytes()
    except RuntimeError:
        os._exit(0 if os.getpid() != parent else 1)
    assert children == [0]
    assert found == expected
    assert list(tmp_path.iterdir()) == []


def test_a_child_leaves_what_another_thread_keeps(tmp_path: Path) -> None:
    written, go_on = threading.Event(), threading.Event()
    write = Disk.write

    def waiting(self: Disk, i: int, *values: Any) -> None:
        write(self, i, *values)
        written.set()
        assert go_on.wait(60)

    plan, found = rg.Tiered(1, 4, tmp_path), []
    f = rg.grad(lambda a: np.sum(rg.fori_loop(20, lambda i, c: np.sin(c), a, memory=plan)))
    expected = f(np.ones(2)).tobytes()
    thread = threading.Thread(target=lambda: found.append(f(np.ones(2)).tobytes()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Disk, "write", waiting)
        thread.start()
        assert written.wait(60)
        patch.undo()

        def act() -> None:
            gc.collect()
            assert f(np.ones(2)).tobytes() == expected  # it sweeps the directory, too

        in_child(act)
        go_on.set()
        thread.join()
    assert found == [expected]
    assert list(tmp_path.iterdir()) == []


EXIT = """
import os, sys
from retrograd.ops.structural.disk import open_disk

disk = open_disk(sys.argv[1], sys.argv[2])
disk.write(0, 1.0)
child = os.fork()
if child == 0:
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
print(disk.read(0, 1))
disk.close()
"""


@pytest.mark.parametrize("key", ["", "key"])
def test_a_child_that_ends_as_python_does_leaves_the_files(tmp_path: Path, key: str) -> None:
    run = subprocess.run([sys.executable, "-c", EXIT, str(tmp_path), key], capture_output=True, text=True, check=False)
    assert run.stdout == "1.0\n", run.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_child_that_outlives_its_parent_holds_no_lock(tmp_path: Path) -> None:
    ready, told = os.pipe()
    parent = os.fork()
    if parent == 0:
        held = open_disk(str(tmp_path), "key")
        held.write(0, 1.0)
        if os.fork() == 0:
            os.write(told, os.getpid().to_bytes(8, "little"))
            signal.pause()
        os._exit(0)
    child = int.from_bytes(os.read(ready, 8), "little")
    os.waitpid(parent, 0)
    try:
        left = open_disk(str(tmp_path), "key")
        assert (left.folder / "state-0.npy").exists()
        left.close()
    finally:
        os.kill(child, signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []
