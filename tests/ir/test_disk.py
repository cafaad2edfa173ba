"""States on disk are read back bit for bit, or refused; nothing is left behind, and what was killed can go on."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ops.structural.disk import Disk, open_disk
from retrograd.passes.checkpoint.binomial import binomial_advances

RNG = np.random.default_rng(5)
VALUES = [
    RNG.normal(size=(3, 4)),
    np.asfortranarray(RNG.normal(size=(3, 4))),
    RNG.normal(size=(2, 3, 4)).transpose(1, 2, 0),
    np.zeros((0, 5)),
    np.array(2.5),
    np.float32(1.5),
    np.int64(7),
    0.1,
    3,
    True,
    2 - 1j,
    np.array([1 + 2j, np.nan], np.complex64),
    np.arange(5, dtype=np.int8),
    np.array([-0.0, np.inf, np.nan]),
]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = open_disk(str(tmp_path))
    yield made
    made.close()


def test_values_come_back_bit_for_bit_with_their_kind_and_layout(disk: Disk) -> None:
    disk.write(4, *VALUES)
    for found, expected in zip(disk.read(4, len(VALUES)), VALUES, strict=True):
        assert type(found) is type(expected)
        a, b = np.asarray(found), np.asarray(expected)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
        if b.size:
            assert a.strides == b.strides


def test_states_are_files_of_their_own_until_they_are_dropped(disk: Disk) -> None:
    disk.write(0, 1.0)
    disk.write(7, 2.0)
    assert list(disk) == [0, 7]
    assert sorted(path.name for path in disk.folder.iterdir()) == ["state-0.npy", "state-7.npy"]
    assert disk.read(0, 1) == 1.0
    disk.drop(0)
    assert [path.name for path in disk.folder.iterdir()] == ["state-7.npy"]
    disk.close()
    assert not disk.folder.exists()


def test_a_view_leaves_the_states_below_it(disk: Disk) -> None:
    disk.write(0, 1.0)
    view = disk.again()
    view.write(3, 2.0)
    assert (view.read(0, 1), view.read(3, 1)) == (1.0, 2.0)
    view.drop(0)
    view.drop(3)
    view.close()
    assert disk.read(0, 1) == 1.0


@pytest.mark.parametrize("at", [0, 60, 150, -40, -1])
def test_a_byte_that_changed_is_noticed(disk: Disk, at: int) -> None:
    disk.write(0, np.arange(10.0))
    path = disk.folder / "state-0.npy"
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(rg.errors.SnapshotError, match=r"has changed since it was written|cannot be read back"):
        disk.read(0, 1)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_was_cut_is_noticed(disk: Disk, share: float) -> None:
    disk.write(0, np.arange(1000.0))
    path = disk.folder / "state-0.npy"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(rg.errors.SnapshotError, match=r"has changed since it was written|cannot be read back"):
        disk.read(0, 1)


def test_objects_are_neither_written_nor_read(disk: Disk) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        disk.write(0, np.array([object()]))
    (disk.folder / "state-1.npy").write_bytes(b"\x80\x04}.")
    with pytest.raises(rg.errors.SnapshotError):
        disk.read(1, 1)


def grower(directory: Path, *, ram: int = 2, disk: int = 4, resume: bool = False, n: int = 40, body: Any = None) -> Any:
    def step(c: Any, x: Any) -> Any:
        new = np.sin(c) * 1.05 + x
        return (new if body is None else body(new)), np.sum(new)

    plan = rg.Tiered(ram, disk, directory, resume)

    def loss(u: Any, xs: Any) -> Any:
        last, ys = rg.scan(step, u, xs, memory=plan)
        return np.sum(last**2) + np.sum(ys**3)

    return rg.value_and_grad(loss, argnums=(0, 1))


def plain(u: Any, xs: Any) -> Any:
    def loss(u: Any, xs: Any) -> Any:
        last, ys = rg.scan(lambda c, x: (np.sin(c) * 1.05 + x, np.sum(np.sin(c) * 1.05 + x)), u, xs)
        return np.sum(last**2) + np.sum(ys**3)

    return rg.value_and_grad(loss, argnums=(0, 1))(u, xs)


def assert_same_bits(found: Any, expected: Any) -> None:
    for a, b in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


U = RNG.normal(size=2000)
XS = RNG.normal(size=40)


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(("ram", "disk"), [(1, 1), (2, 4), (1, 60), (50, 1)])
def test_gradients_have_the_same_bits_and_leave_nothing(tmp_path: Path, ram: int, disk: int, resume: bool) -> None:
    f = grower(tmp_path, ram=ram, disk=disk, resume=resume)
    with rg.debug_counters() as counters:
        found = f(U, XS)
    assert_same_bits(found, plain(U, XS))
    assert counters.advances == binomial_advances(40, ram + disk)
    assert list(tmp_path.iterdir()) == []


def test_both_limits_hold_at_every_moment(tmp_path: Path) -> None:
    most = 0

    @rg.lens(host=True)
    def look(x: Any) -> Any:
        nonlocal most
        most = max(most, sum(1 for _ in tmp_path.glob("*/*.npy")))
        return x, lambda ct: ct

    f = grower(tmp_path, ram=2, disk=4, body=look)
    with rg.debug_counters() as counters:
        f(U, XS)
    assert most == 4
    assert counters.snapshots_peak == 6


def test_a_pullback_keeps_its_files_while_it_lives(tmp_path: Path) -> None:
    plan = rg.Tiered(1, 4, tmp_path)
    _, pullback = rg.vjp(lambda u: rg.scan(lambda c, _: (np.sin(c), None), u, None, 20, memory=plan)[0], U)
    first, second = pullback(np.ones(2000)), pullback(np.ones(2000))
    assert first[0].tobytes() == second[0].tobytes()
    assert len(list(tmp_path.glob("*/*.npy"))) == 4
    del pullback
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("at", [5, 39, 55, 90])
def test_files_go_when_an_exception_ends_the_gradient(tmp_path: Path, at: int, resume: bool) -> None:
    calls = -1_000_000  # not while it is recorded

    @rg.lens(host=True)
    def failing(x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise RuntimeError("enough")

        def pullback(ct: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == at:
                raise RuntimeError("enough")
            return ct

        return x, pullback

    f = grower(tmp_path, body=failing, resume=resume)
    f(U, XS)
    calls = 0
    with pytest.raises(RuntimeError, match="enough"):
        f(U, XS)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_named_error(tmp_path: Path) -> None:
    f = grower(tmp_path)
    f(U, XS)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(rg.errors.SnapshotError, match="is full: a state takes 16,000 bytes") as caught:
            f(U, XS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert "test_disk.py" in "".join(caught.value.__notes__)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_went_away_is_a_named_error(tmp_path: Path) -> None:
    place = tmp_path / "here"
    place.mkdir()
    f = grower(place)
    f(U, XS)
    place.rmdir()
    with pytest.raises(rg.errors.SnapshotError, match="No such file or directory"):
        f(U, XS)


def meddling(tmp_path: Path, at: int, harm: Any) -> Any:
    """A gradient in whose ``at``-th evaluation of a step something happens to the folder of its states."""
    calls = -1_000_000  # not while it is recorded

    @rg.lens(host=True)
    def look(x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            (folder,) = tmp_path.iterdir()
            harm(folder)
        return x, lambda ct: ct

    f = grower(tmp_path, ram=1, disk=6, body=look)
    f(U, XS)
    calls = 0
    return f


def cut(folder: Path) -> None:
    for path in folder.glob("*.npy"):
        path.write_bytes(path.read_bytes()[:-100])


def flip(folder: Path) -> None:
    for path in folder.glob("*.npy"):
        data = bytearray(path.read_bytes())
        data[200] ^= 1
        path.write_bytes(data)


def replace_by_folders(folder: Path) -> None:
    for path in folder.glob("*.npy"):
        path.unlink()
        path.mkdir()


def replace_by_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_bytes(b"")


HARMS = [shutil.rmtree, cut, flip, replace_by_folders]


@pytest.mark.parametrize("harm", HARMS, ids=lambda h: h.__name__)
@pytest.mark.parametrize("at", [20, 40])
def test_what_happens_to_the_states_meanwhile_is_a_named_error(tmp_path: Path, harm: Any, at: int) -> None:
    f = meddling(tmp_path, at, harm)
    with pytest.raises(rg.errors.SnapshotError) as caught:
        f(U, XS)
    assert "test_disk.py" in "".join(caught.value.__notes__)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_became_a_file_is_a_named_error(tmp_path: Path) -> None:
    f = meddling(tmp_path, 20, replace_by_a_file)
    with pytest.raises(rg.errors.SnapshotError, match="Not a directory"):
        f(U, XS)


@pytest.mark.parametrize("resume", [False, True])
def test_a_directory_that_cannot_be_written_to_is_a_named_error(tmp_path: Path, resume: bool) -> None:
    place = tmp_path / "here"
    place.mkdir()
    f = grower(place, resume=resume)
    f(U, XS)
    place.rmdir()
    place.write_bytes(b"")
    with pytest.raises(rg.errors.SnapshotError, match="Not a directory") as caught:
        f(U, XS)
    assert "can be written to" in str(caught.value)


def killed(f: Any, after: float) -> None:
    """Run a gradient in another process, and kill that."""
    child = os.fork()
    if child == 0:
        try:
            f(U, XS)
        finally:
            os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


KILLS = [*range(20), *(pytest.param(k, marks=pytest.mark.slow) for k in range(20, 200))]


@pytest.mark.parametrize("seed", KILLS)
def test_a_killed_gradient_leaves_nothing_torn_and_goes_on_to_the_same_bits(tmp_path: Path, seed: int) -> None:
    f = grower(tmp_path, ram=1, disk=8, resume=True)
    expected = f(U, XS)
    start = time.perf_counter()
    f(U, XS)
    killed(f, random.Random(seed).uniform(0, time.perf_counter() - start))
    for folder in tmp_path.iterdir():
        states = sorted(int(path.name[6:-4]) for path in folder.glob("state-*.npy"))
        left = Disk(folder, temporary=False)
        left.own = set(states)
        left._end.detach()
        for i in states:
            left.read(i, 3)
    with rg.debug_counters() as counters:
        assert_same_bits(f(U, XS), expected)
    assert counters.advances <= binomial_advances(40, 9)
    assert list(tmp_path.iterdir()) == []


def test_a_run_goes_on_from_the_last_whole_state(tmp_path: Path) -> None:
    f = grower(tmp_path, ram=1, disk=8, resume=True)
    expected = f(U, XS)
    calls = 0
    write = Disk.write

    def stopping(self: Disk, i: int, *values: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 6:
            os._exit(0)
        write(self, i, *values)

    child = os.fork()
    if child == 0:
        Disk.write = stopping  # type: ignore[method-assign]  # in the other process alone
        f(U, XS)
        os._exit(1)
    os.waitpid(child, 0)
    (folder,) = tmp_path.iterdir()
    states = sorted(int(path.name[6:-4]) for path in folder.iterdir())
    assert len(states) == 5
    damaged = folder / f"state-{states[-1]}.npy"
    damaged.write_bytes(damaged.read_bytes()[:-3])
    with rg.debug_counters() as counters:
        assert_same_bits(f(U, XS), expected)
    assert counters.advances == binomial_advances(40, 9) - states[-2]
    other = f(U + 1.0, XS)
    assert_same_bits(other, plain(U + 1.0, XS))


def test_what_else_lies_in_the_folder_is_removed(tmp_path: Path) -> None:
    f = grower(tmp_path, ram=1, disk=8, resume=True)
    expected = f(U, XS)
    made: list[Path] = []
    write = Disk.write

    def noting(self: Disk, i: int, *values: Any) -> None:
        made.append(self.folder)
        write(self, i, *values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Disk, "write", noting)
        f(U, XS)
    folder = made[0]
    (folder / "state-0.npy").mkdir(parents=True)
    (folder / "below").mkdir()
    (folder / "below" / "state-3.npy").write_bytes(b"")
    (folder / "state-9.77.part").write_bytes(b"half")
    assert_same_bits(f(U, XS), expected)
    assert list(tmp_path.iterdir()) == []


def test_two_processes_in_one_folder_do_not_spoil_each_other(tmp_path: Path) -> None:
    f = grower(tmp_path, ram=1, disk=8, resume=True)
    expected = f(U, XS)
    write = Disk.write
    ready, started = os.pipe()

    def waiting(self: Disk, i: int, *values: Any) -> None:
        write(self, i, *values)
        os.write(started, b".")
        time.sleep(60)

    child = os.fork()
    if child == 0:
        Disk.write = waiting  # type: ignore[method-assign]  # in the other process alone
        f(U, XS)
        os._exit(1)
    os.read(ready, 1)
    with pytest.raises(rg.errors.SnapshotError, match="the same gradient with the same inputs is running"):
        f(U, XS)
    assert_same_bits(f(U + 1.0, XS), plain(U + 1.0, XS))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(list(tmp_path.glob("*/state-0.npy"))) == 1
    with rg.debug_counters() as counters:
        assert_same_bits(f(U, XS), expected)
    assert counters.advances <= binomial_advances(40, 9)
    assert list(tmp_path.iterdir()) == []


def test_threads_with_one_folder_are_right_or_refused(tmp_path: Path) -> None:
    f = grower(tmp_path, ram=1, disk=8, resume=True)
    expected = f(U, XS)

    def attempt(_: int) -> Any:
        try:
            return f(U, XS)
        except rg.errors.SnapshotError as error:
            return error

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(attempt, range(20)))
    right = [x for x in found if not isinstance(x, rg.errors.SnapshotError)]
    assert right
    for x in right:
        assert_same_bits(x, expected)
    assert all("is running" in str(x) for x in found if isinstance(x, rg.errors.SnapshotError))
    assert list(tmp_path.iterdir()) == []


def test_loops_that_begin_alike_have_folders_of_their_own(tmp_path: Path) -> None:
    def product(memory: Any) -> Any:
        def loop(x: Any) -> Any:
            return np.sum(rg.scan(lambda c, _: (np.sin(c) * 1.1, None), x, None, 12, memory=memory)[0])

        return rg.value_and_grad(lambda x, y, z: loop(x) * loop(y) * loop(z) * loop(y), argnums=(0, 1, 2))

    x, y = np.array([0.3, 0.5]), np.array([0.2, 0.5])
    planned = product(rg.Tiered(1, 4, tmp_path, resume=True))
    for starts in ((x, x, x), (x, y, x), (x, x, y)):
        assert_same_bits(planned(*starts), product(None)(*starts))
        assert list(tmp_path.iterdir()) == []


def test_a_run_with_other_inputs_does_not_take_up_what_is_left(tmp_path: Path) -> None:
    f = grower(tmp_path, resume=True)
    killed(f, 0.02)
    assert_same_bits(f(U + 1.0, XS), plain(U + 1.0, XS))


@pytest.mark.parametrize(
    ("plan", "error", "what"),
    [
        (lambda: rg.Tiered(0, 1), rg.errors.OptionError, "Tiered\\(ram=0\\)"),
        (lambda: rg.Tiered(1, 0), rg.errors.OptionError, "Tiered\\(disk=0\\)"),
        (lambda: rg.Tiered(1, 1, "/no/such/folder"), rg.errors.SnapshotError, "there is no directory"),
        (lambda: rg.Tiered(1, 1, resume=True), rg.errors.OptionError, "without a directory"),
    ],
)
def test_tiers_that_cannot_be_are_refused(plan: Any, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        plan()


def test_the_folder_of_a_killed_process_is_swept_and_that_of_a_living_one_is_not(tmp_path):
    program = (
        "import os, signal, sys\n"
        "from retrograd.ops.structural.disk import open_disk\n"
        "disk = open_disk(sys.argv[1])\n"
        "disk.write(0, 1.0)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=False)
    assert run.returncode == -signal.SIGTERM, run.stderr
    (left,) = tmp_path.iterdir()
    first = open_disk(str(tmp_path))
    assert not left.exists()
    second = open_disk(str(tmp_path))
    assert first.folder.exists()
    assert {*tmp_path.iterdir()} == {first.folder, second.folder}
    first.close()
    second.close()
    assert not [*tmp_path.iterdir()]
