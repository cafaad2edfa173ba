"""Workers that die, hang and join late, a scheduler that goes away, Ctrl-C: the same bits, or an error with a name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.distributed.killing import Killer
from tests.distributed.processes import ROOT, Machines, running, until
from tests.distributed.programs import Slow, bits, by_hand, data, network, weights

pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")
D = rg.distributed
EXPECTED = bits(by_hand(weights(), data()))


def slow_shards(seconds: float) -> list[Slow]:
    return [Slow(k, seconds) for k in range(7)]


@pytest.fixture
def own() -> Iterator[Any]:
    """A client of two workers with nannies, for one test."""
    with D.cluster(2, memory=0) as client:
        yield client


def test_a_worker_that_is_killed_changes_no_bit(own: Any) -> None:
    f = D.value_and_grad(network, own, shards=slow_shards(0.1), keep=False)
    with Killer(own, 1) as killer:
        found = {bits(f(weights()))}
        while not killer.killed:
            found.add(bits(f(weights())))
    found.add(bits(f(weights())))
    assert found == {EXPECTED}


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False])
def test_thirty_workers_that_are_killed_under_nannies_change_no_bit(own: Any, keep: bool) -> None:
    f = D.value_and_grad(network, own, shards=slow_shards(0.05), keep=keep, retries=30)
    found = set()
    with Killer(own, 30) as killer:
        while killer.killed < 30:
            found.add(bits(f(weights())))
    assert found == {EXPECTED}


@pytest.mark.slow
def test_thirty_workers_that_are_killed_without_nannies_change_no_bit(tmp_path: Path) -> None:
    with Machines(tmp_path, 3) as machines, machines.client() as client:
        client.wait_for_workers(3)
        f = D.value_and_grad(network, client, shards=slow_shards(0.05), keep=False, retries=30)
        found = set()
        with Killer(client, 30, machines) as killer:
            while killer.killed < 30:
                found.add(bits(f(weights())))
        assert found == {EXPECTED}


@pytest.mark.slow
def test_a_map_survives_kills(own: Any) -> None:
    x = np.random.default_rng(0).normal(size=(40, 5))
    with Killer(own, 3) as killer:
        found = set()
        while killer.killed < 3:
            found.add(bits(D.map(slow_norm, own, chunk=1, retries=30)(x)))
    assert found == {bits(D.map(slow_norm, chunk=1)(x))}


def slow_norm(x: Any) -> Any:
    for _ in range(40):
        x = np.sin(x) + 0.1 * x
    return np.sum(x**2)


@pytest.mark.slow
def test_a_shard_that_kills_its_workers_is_an_error(own: Any) -> None:
    f = D.value_and_grad(network, own, shards=[*data()[:3], suicide], retries=1)
    with pytest.raises(D.WorkerLostError, match="workers died under network, 2 times") as caught:
        f(weights())
    assert "memory" in caught.value.remedy


def suicide() -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_joins_late_is_used(tmp_path: Path) -> None:
    with Machines(tmp_path, 1) as machines, machines.client() as client:
        client.wait_for_workers(1)
        f = D.value_and_grad(network, client, shards=[Slow(k % 7, 0.3) for k in range(60)], keep=False)
        late = threading.Timer(0.5, machines.add)
        late.start()
        f(weights())
        late.join()
        assert f.report is not None
        assert len(f.report.workers) == 2


@pytest.mark.slow
@pytest.mark.parametrize("nanny", [True, False])
def test_a_worker_that_is_stopped_is_given_up(tmp_path: Path, nanny: bool) -> None:
    with Machines(tmp_path, 2, nanny=nanny) as machines, machines.client() as client:
        client.wait_for_workers(2)
        f = D.value_and_grad(network, client, shards=slow_shards(0.02), time_limit=8.0)
        assert bits(f(weights())) == EXPECTED
        address, pid = next(iter(client.run(os.getpid).items()))
        os.kill(pid, signal.SIGSTOP)
        assert bits(f(weights())) == EXPECTED
        assert f.report is not None
        assert f.report.given_up == (address,)
        assert address not in f.report.workers


@pytest.mark.slow
def test_a_task_that_does_not_end_is_an_error(tmp_path: Path) -> None:
    with Machines(tmp_path, 2) as machines, machines.client() as client:
        client.wait_for_workers(2)
        shards = [Slow(k, 1e6 if k == 3 else 0.0) for k in range(7)]
        f = D.value_and_grad(network, client, shards=shards, time_limit=6.0, retries=1)
        with pytest.raises(D.TimeLimitError, match="a task of network took longer than 6 seconds, on 2 workers"):
            f(weights())


@pytest.mark.slow
def test_a_cluster_without_workers_is_an_error(tmp_path: Path) -> None:
    with Machines(tmp_path) as machines, machines.client() as client:
        f = D.value_and_grad(network, client, shards=data(), patience=1.0)
        with pytest.raises(D.NoWorkerError, match="no worker for 1 seconds"):
            f(weights())
        machines.add()
        client.wait_for_workers(1)
        assert bits(f(weights())) == EXPECTED


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # dask's client goes on to connect
def test_a_descent_goes_on_after_its_scheduler_is_lost(tmp_path: Path) -> None:
    options: dict[str, Any] = {"shards": data(), "steps": 12, "tolerance": 0.0}
    whole = D.minimize(network, weights(), **options)
    path = tmp_path / "steps.rgs"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with Machines(tmp_path / "a", 2) as machines, machines.client() as client:
        client.wait_for_workers(2)

        def kill(step: int, value: float, params: Any) -> None:
            if step == 5:
                machines.scheduler.kill()

        with pytest.raises(D.SchedulerLostError, match="the scheduler no longer answers") as caught:
            D.minimize(network, weights(), client=client, checkpoint=path, every=100, callback=kill, **options)
        assert "resume=True" in caught.value.remedy
    with Machines(tmp_path / "b", 1) as machines, machines.client() as client:
        client.wait_for_workers(1)
        seen: list[int] = []
        found = D.minimize(
            network,
            weights(),
            client=client,
            checkpoint=path,
            resume=True,
            callback=lambda step, value, params: seen.append(step),
            **options,
        )
    assert seen == [6, 7, 8, 9, 10, 11, 12]
    assert bits(found.params) == bits(whole.params)
    assert found.values == whole.values


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import retrograd as rg

def load():
    time.sleep(0.2)
    return (np.ones(3),)

def loss(w, x):
    return np.sum((w * x) ** 2)

def main():
    with rg.distributed.cluster(2, memory=0) as client:
        print(*client.run(os.getpid).values(), flush=True)
        rg.distributed.value_and_grad(loss, client, shards=[load] * 800, keep=False)(np.ones(3))

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    main()
"""


@pytest.mark.parametrize(
    ("number", "to_all"),
    [(signal.SIGINT, True), pytest.param(signal.SIGINT, False, marks=pytest.mark.slow),
     pytest.param(signal.SIGKILL, False, marks=pytest.mark.slow)],
    ids=["ctrl-c", "kill -2", "kill -9"],
)  # fmt: skip
def test_no_process_is_left_behind(tmp_path: Path, number: int, to_all: bool) -> None:
    """Ctrl-C in a terminal reaches all processes of the group; ``kill`` reaches one."""
    script = tmp_path / "interrupted.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    program = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert program.stdout is not None
    workers = [int(pid) for pid in program.stdout.readline().split()]
    assert len(workers) == 2
    group = {p.pid for p in psutil.process_iter() if _group_of(p.pid) == program.pid}
    assert group >= {program.pid, *workers}
    said = _ended_by(program, lambda: (os.killpg if to_all else os.kill)(program.pid, number))
    assert program.returncode != 0
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in said
    until(lambda: not any(map(running, group)))


def _ended_by(program: subprocess.Popen[str], signalled: Callable[[], None]) -> str:
    """What a program says when it is ended; Python ignores an interrupt that comes during a finalizer."""
    for _ in range(4):
        signalled()
        try:
            return program.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:
            continue
    return program.communicate(timeout=180)[1]


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None
