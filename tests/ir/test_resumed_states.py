"""A gradient takes up the states of a killed one only if these are its own, bit for bit."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ops.structural.disk import Disk, open_disk

Gradient = Callable[..., Any]
A, B = np.array([0.3, 0.4]), np.array([0.5, 0.7])


def gradient(memory: Any, **changes: Any) -> Any:
    """The gradient of a loop; each of the changes makes another program."""
    chosen = dict.fromkeys(("which", "reverse", "n", "factor", "by", "attribute", "dtype", "inner", "saved", "backend"))
    chosen |= {"which": 0, "n": 20, "factor": 1.0, "by": 1.5, "attribute": 0, "dtype": float, "backend": "numpy"}
    what = chosen | changes
    emit = f"np.multiply({{0}}, {what['factor']}) + {{extra}}"
    diff = [rg.push(lambda t, out, x, extra: t * what["factor"])]
    op = rg.primitive("rescaled", emit=emit, shape=lambda x, extra: x, diff=diff)
    by = what["by"]

    def step(carry: Any, x: Any) -> Any:
        c, d = carry
        if what["inner"]:
            c = rg.fori_loop(what["inner"], lambda i, c: np.sin(c) + 0.01 * i, c, memory=memory)
        return (np.sin(op(c, extra=what["attribute"])) + 0.1 * x, by * np.cos(d)), np.sum(d) if what["saved"] else None

    def loss(a: Any, b: Any, xs: Any) -> Any:
        (a, b), ys = rg.scan(step, (a, b), xs, reverse=bool(what["reverse"]), memory=memory)
        wanted, rest = (a, b) if what["which"] == 0 else (b, a)
        return np.sum(wanted**2) + (np.sum(ys) if what["saved"] else 0.0), rest

    xs = (np.arange(what["n"]) / what["n"]).astype(what["dtype"])
    with rg.config(backend=what["backend"]):
        f = rg.value_and_grad(loss, argnums=what["which"], has_aux=True)
        return f(A.astype(what["dtype"]), B.astype(what["dtype"]), xs)


CHANGES: list[dict[str, Any]] = [
    {},
    {"which": 1},
    {"reverse": True},
    {"n": 11},
    {"n": 30},
    {"factor": 2.0},
    {"by": 1.25},
    {"by": np.array([1.5, 1.6])},
    {"by": np.array([1.5, 1.7])},
    {"attribute": 1},
    {"dtype": np.float32},
    {"inner": 5},
    {"inner": 7},
    {"saved": True},
    {"backend": "native"},
]
PAIRS = random.Random(3).sample(list(itertools.permutations(range(len(CHANGES)), 2)), 10)
KNOWN = [(0, 1), (0, 2), (0, 5), (0, 9), (1, 0)]  # pairs that shared their states once


def killed(run: Callable[[], Any], after: int) -> None:
    """Run in another process, which ends without any cleaning after so many actions on states."""
    child = os.fork()
    if child == 0:
        left = itertools.count(after - 1, -1)

        def counted(plain: Any) -> Any:
            def act(*args: Any) -> None:
                plain(*args)
                if next(left) == 0:
                    os._exit(0)

            return act

        for name in ("write", "drop"):
            setattr(Disk, name, counted(getattr(Disk, name)))
        run()
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def bits(found: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in rg.tree.flatten(found)[0]]


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the states from which first sweeps went on."""
    found: list[int] = []
    resumed = Disk.resumed

    def noting(self: Disk, *args: Any) -> Iterator[Any]:
        for verb, i, j in resumed(self, *args):
            if verb == "fetch":
                found.append(i)
            yield verb, i, j

    monkeypatch.setattr(Disk, "resumed", noting)
    return found


@pytest.mark.parametrize(("first", "second"), dict.fromkeys([*KNOWN, *PAIRS]))
def test_no_program_takes_up_states_of_another(tmp_path: Path, fetched: list[int], first: int, second: int) -> None:
    memory = rg.Tiered(1, 4, tmp_path, resume=True)
    expected = bits(gradient(memory, **CHANGES[second]))
    killed(lambda: gradient(memory, **CHANGES[first]), 3 + first)
    assert bits(gradient(memory, **CHANGES[second])) == expected
    if not CHANGES[first].get("inner") and not CHANGES[second].get("inner"):  # equal loops inside may share theirs
        assert not fetched


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_program_takes_up_its_own_states_and_gives_the_same_bits(
    tmp_path: Path, fetched: list[int], change: dict[str, Any]
) -> None:
    memory = rg.Tiered(1, 4, tmp_path, resume=True)
    expected = bits(gradient(memory, **change))
    for after in (2, 11):
        fetched.clear()
        killed(lambda: gradient(memory, **change), after)
        assert bits(gradient(memory, **change)) == expected
        assert fetched


def counted(directory: Path) -> Gradient:
    """The gradient of a loop whose steps read their number."""
    memory = rg.Tiered(1, 4, directory, resume=True)
    return rg.grad(lambda a: np.sum(rg.fori_loop(20, lambda i, c: np.sin(c) * 1.05 + 0.01 * i, a, memory=memory)))


def test_a_loop_that_reads_the_number_of_its_step_is_taken_up(tmp_path: Path, fetched: list[int]) -> None:
    f = counted(tmp_path)
    expected = bits(f(A))
    killed(lambda: f(A), 4)
    assert bits(f(A)) == expected
    assert fetched


def test_a_loop_that_reads_the_number_of_its_step_is_refused_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, write, faults = counted(tmp_path), Disk.write, []
    expected = bits(f(A))

    def writing(self: Disk, *args: Any) -> None:
        monkeypatch.setattr(Disk, "write", write)
        with ThreadPoolExecutor(1) as pool:
            faults.append(pool.submit(f, A).exception())
        write(self, *args)

    monkeypatch.setattr(Disk, "write", writing)
    assert bits(f(A)) == expected
    assert "is running" in str(faults[0])


def test_the_memory_of_a_loop_that_can_be_taken_up_is_predicted(tmp_path: Path) -> None:
    def peak(resume: bool) -> int:
        memory = rg.Tiered(1, 4, tmp_path, resume=resume)
        return rg.grad(lambda a: np.sum(rg.fori_loop(20, lambda i, c: np.sin(c), a, memory=memory))).plan(A).peak_bytes

    assert peak(resume=True) == peak(resume=False) > 0


def test_a_state_of_the_way_back_is_no_state_of_a_first_sweep(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "here")
    disk.folder.mkdir()
    disk.write(0, 1.0, 2.0)
    disk.write(4, 1.0)
    steps = [("store", 0, 0), ("advance", 0, 4), ("store", 4, 4), ("advance", 4, 9)]
    assert list(disk.resumed(steps, 2)) == [("fetch", 0, 0), *steps[1:]]
    assert [path.name for path in disk.folder.iterdir()] == ["state-0.npy"]
    disk.close()


def test_what_only_the_process_knows_is_not_taken_up(tmp_path: Path, fetched: list[int]) -> None:
    def of(by: float) -> Any:
        @rg.lens(host=True)
        def scaled(x: Any) -> Any:
            return by * x, lambda ct: by * ct

        def loss(a: Any, memory: Any) -> Any:
            last, ys = rg.scan(lambda c, _: (np.sin(c), scaled(c)), a, None, 20, memory=memory)
            return np.sum(last), ys

        return lambda memory: rg.grad(lambda a: loss(a, memory), has_aux=True)(A)

    memory = rg.Tiered(1, 4, tmp_path, resume=True)
    killed(lambda: of(1.0)(memory), 3)
    assert bits(of(2.0)(memory)) == bits(of(2.0)(None))
    assert not fetched


OPERANDS = [
    1.0,
    1,
    True,
    1 + 0j,
    2**70,
    -0.0,
    0.0,
    np.float64(1.0),
    np.array(1.0),
    np.ones(2),
    np.ones(2, np.float32),
    np.ones((2, 2)),
    np.ones((2, 2), order="F"),
    np.ones((2, 2, 2)).T,
    [1.0],
    [1.0, 1.0],
    range(1),
    range(2),
    range(0, 4, 2),
    [np.arange(2000.0)],
    [np.where(np.arange(2000) == 1000, 0.0, np.arange(2000.0))],
    (np.ones(2), [np.ones(2)]),
    [np.ones(2), np.ones(2)],
]


def test_operands_that_differ_in_anything_have_folders_of_their_own(tmp_path: Path) -> None:
    disks = [open_disk(str(tmp_path), "key", [x]) for x in OPERANDS]
    assert len({disk.folder for disk in disks}) == len(OPERANDS)
    for disk in disks:
        disk.close()


def test_an_operand_that_cannot_be_told_from_others_is_never_resumed(tmp_path: Path) -> None:
    with pytest.warns(rg.errors.UnusedPlanWarning, match="takes a Generator, which cannot be told from others"):
        disks = [open_disk(str(tmp_path), "key", [np.random.default_rng(0)]) for _ in range(2)]
    assert disks[0].folder != disks[1].folder
    for disk in disks:
        disk.close()


PROGRAM = """
import os, signal, sys
import numpy as np
import retrograd as rg
from retrograd.ops.structural.disk import Disk

place, backend, after = sys.argv[1], sys.argv[2], int(sys.argv[3])
write, resumed, done, taken = Disk.write, Disk.resumed, [0], []

def writing(self, *args):
    write(self, *args)
    done[0] += 1
    if done[0] == after:
        os.kill(os.getpid(), signal.SIGKILL)

def noting(self, *args):
    for action in resumed(self, *args):
        taken.extend(action[1:2] if action[0] == "fetch" else ())
        yield action

Disk.write, Disk.resumed = writing, noting
with rg.config(backend=backend):
    memory = rg.Tiered(1, 6, place, resume=True)
    step = lambda c, x: (np.tanh(c) * 1.01 + np.sin(c) * x, np.sum(c))
    f = rg.grad(lambda c, xs: np.sum(rg.scan(step, c, xs, memory=memory)[0] ** 2))
    print(taken and taken[0], f(np.linspace(0, 1, 50), np.arange(20.0) / 10).tobytes().hex())
"""


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.slow)])
def test_another_process_takes_up_the_states(tmp_path: Path, backend: str) -> None:
    def run(after: int) -> tuple[int, str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), backend, str(after)]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        return found.returncode, found.stdout.rstrip()

    assert run(4) == (-signal.SIGKILL, "")
    resumed, again = run(0), run(0)
    assert resumed[1].split()[0] != "[]"
    assert again[1].split()[0] == "[]"
    assert resumed[1].split()[1] == again[1].split()[1]
