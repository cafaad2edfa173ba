"""A cluster of processes on this machine, and how a worker that hangs is taken out of any cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from ..errors import OptionError
from .kernels import needs_dask

KILL = 5.0  # seconds that a nanny has to end its worker
CLOSE = 15.0  # seconds that a cluster has to end
AWAY = 10.0  # seconds that a worker may take to come back


@contextmanager
def cluster(
    workers: int = 2, *, memory: float | str = "auto", security: Any = None, dashboard: str | None = None
) -> Iterator[Any]:
    """A client of worker processes on this machine, which end with the block, by Ctrl-C too.

    Each worker has one thread and a nanny, which starts it again if it dies. Processes listen on the loopback interface
    alone. Scripts that use it need ``if __name__ == "__main__":``, as for any pool of processes.

    Parameters
    ----------
    workers : int
        The number of processes.
    memory : int or str
        The limit of one worker, as dask takes it: bytes, a text such as ``"2 GiB"``, ``"auto"``, or 0 for none.
    security : distributed.Security, optional
        For TLS.
    dashboard : str, optional
        An address such as ``"127.0.0.1:8787"``; by default there is none.

    Returns
    -------
    context manager
        It yields dask's client.

    Raises
    ------
    OptionError
        If an option is wrong.
    UnsupportedError
        If dask is not installed.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> with rg.distributed.cluster(2) as client:  # doctest: +SKIP
    ...     rg.distributed.map(np.sin, client)(np.zeros(4))
    array([0., 0., 0., 0.])
    """
    if type(workers) is not int or workers < 1:
        raise OptionError(f"workers={workers!r}", remedy="give the number of processes, at least 1")
    distributed = needs_dask()
    made = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        memory_limit=memory,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0" if dashboard is None else dashboard,  # None would be port 8787
        scheduler_kwargs={"dashboard": dashboard is not None},
        security=security,
    )
    keeper = WorkerKeeper(made, workers)
    try:
        with distributed.Client(made, security=security) as client:
            keeper.start()
            yield client
    finally:
        keeper.stop()
        pids = [nanny.pid for nanny in made.workers.values() if nanny.pid]
        try:
            made.close(timeout=CLOSE)
        except TimeoutError:  # a nanny was interrupted, too, and waits for a worker that is gone
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class WorkerKeeper:
    """Replaces workers that stay away, as workers did that were killed while they began."""

    def __init__(self, made: Any, workers: int) -> None:
        self._made, self._workers = made, workers
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="retrograd keeps workers", daemon=True)

    def start(self) -> None:
        """Watch from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        gone: dict[Any, float] = {}
        while not self._ended.wait(1.0):
            known, now = list(self._made.scheduler_info["workers"].values()), time.monotonic()
            there = {worker["name"] for worker in known}
            gone = {name: gone.get(name, now) for name in self._made.worker_spec if name not in there}
            for name in [name for name, since in gone.items() if now - since > AWAY]:
                del self._made.worker_spec[name], gone[name]
                self._made.scale(self._workers)


def remove_worker(client: Any, address: str) -> None:
    """Take a worker out of the cluster: its nanny ends the process and starts another; without one, it is cut off."""
    with suppress(ValueError, OSError, TimeoutError, RuntimeError, KeyError):  # it has no nanny, or that hangs, too
        client.restart_workers([address], timeout=KILL, raise_for_error=True)
        return
    client.run_on_scheduler(_cut_off, address=address)


async def _cut_off(address: str, dask_scheduler: Any = None) -> None:
    """On the scheduler: forget a worker, and take nothing from it any more."""
    await dask_scheduler.remove_worker(address, stimulus_id=f"retrograd-{uuid4().hex}", close=True)
