"""Workers that are killed while they work."""

from __future__ import annotations

import random
import threading
import time
from typing import Any, Self

import psutil

from tests.distributed.processes import Machines


class Killer:
    """Kills a worker by signal 9 now and then, until it has killed so many, and adds one where no nanny does."""

    def __init__(self, client: Any, most: int, machines: Machines | None = None, pause: float = 0.2) -> None:
        self.client, self.most, self.machines, self.pause = client, most, machines, pause
        self.killed = 0
        self.since: dict[str, float] = {}
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.random = random.Random(0)

    def run(self) -> None:
        while self.killed < self.most and not self.stop.wait(self.pause * (0.5 + self.random.random())):
            found = self.workers()
            if len(found) >= 2:
                self.random.choice(found).kill()
                self.killed += 1
                if self.machines is not None:
                    self.machines.add()

    def workers(self) -> list[Any]:
        """Processes of workers that have run for a while: one that dies while it begins may stay away."""
        now, ports = time.monotonic(), set[int]()
        for address in self.client.scheduler_info(n_workers=-1)["workers"]:
            if now - self.since.setdefault(address, now) > 1.0:
                ports.add(int(address.rpartition(":")[2]))
        return [p for p in psutil.Process().children(recursive=True) if _ports_of(p) & ports]

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *fault: object) -> None:
        self.stop.set()
        self.thread.join()


def _ports_of(process: Any) -> set[int]:
    try:
        return {c.laddr.port for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
    except psutil.Error:
        return set()
