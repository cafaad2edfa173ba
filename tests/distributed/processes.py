"""A scheduler and workers as plain processes, so that tests can stop, kill and add them one by one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import retrograd as rg

ROOT = Path(rg.__file__).parents[1]


class Machines:
    """A cluster whose processes belong to a test; all of them end with the block."""

    def __init__(self, folder: Path, workers: int = 0, *, nanny: bool = False, options: tuple[str, ...] = ()) -> None:
        self.folder, self.nanny, self.options = folder, nanny, options
        self.file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        address = "127.0.0.1:0"
        self.scheduler = self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", address)
        until(lambda: self.file.exists() and "address" in json.loads(self.file.read_text() or "{}"))
        for _ in range(workers):
            self.add()

    def start(self, what: str, *options: str, **variables: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self.file), *options, *self.options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **variables}
        with (self.folder / f"{what}-{time.monotonic_ns()}.log").open("wb") as log:
            return subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def add(self, **variables: str) -> subprocess.Popen[bytes]:
        """One more worker, with further variables of the environment."""
        nanny = () if self.nanny else ("--no-nanny",)
        self.workers.append(
            self.start("worker", "--nthreads", "1", "--host", "127.0.0.1", "--memory-limit", "0", *nanny, **variables)
        )
        return self.workers[-1]

    def client(self) -> Any:
        """A new client of the scheduler."""
        from distributed import Client  # noqa: PLC0415 - optional

        return Client(scheduler_file=str(self.file), timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, tb: TracebackType | None) -> None:
        for process in (*self.workers, self.scheduler):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in (*self.workers, self.scheduler):
            process.wait(60)


def until(true: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def running(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
