"""A watch over the tasks of a cluster: are there workers, does the scheduler answer, and does each task end in time."""

from __future__ import annotations

import time
from typing import Any, NoReturn, Protocol

from .engines import Counts, Options
from .faults import NoWorkerError, TimeLimitError
from .local_cluster import remove_worker

TICK = 0.25  # seconds between two looks at the cluster
SILENCE = 2.0  # seconds between heartbeats that are no sign of trouble
ANSWER = 5.0  # seconds that the scheduler has to answer


class LostWork(Exception):  # noqa: N818 - a signal between functions of this package
    """Tasks were cancelled or lost with their workers; ``error`` is raised if this happens too often."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class WatchedEngine(Protocol):
    """Work on a cluster, as far as it is watched: whose tasks, for whom, and what is said if they are lost."""

    client: Any
    options: Options
    run: str

    @property
    def name(self) -> str:
        """The user's function."""

    def lost(self, fault: BaseException | None) -> NoReturn:
        """Raises the error that tells what was lost."""


class Lookout:
    """Looks at the cluster from time to time: are there workers, and does each one finish its tasks in time."""

    def __init__(self, engine: WatchedEngine, counts: Counts) -> None:
        self._engine, self._counts = engine, counts
        self._client, self._options = engine.client, engine.options
        self._worked = self._looked = time.monotonic()
        self._tasks: dict[str, tuple[set[Any], float]] = {}
        self._most = TICK if self._options.time_limit is None else min(TICK, self._options.time_limit / 4)

    def look(self) -> None:
        """Raises NoWorkerError or SchedulerLostError; gives up workers that hang."""
        now = time.monotonic()
        if self._client.status != "running":
            self._engine.lost(None)
        if now - self._looked < self._most:
            return
        self._looked = now
        processing = self._asked()
        if processing:
            self._worked = now
        elif now - self._worked > self._options.patience:
            raise NoWorkerError(
                f"the cluster has had no worker for {self._options.patience:g} seconds",
                remedy="start workers, or increase patience=",
            )
        if self._options.time_limit is not None:
            ours = {address: {key for key in keys if self._ours(key)} for address, keys in processing.items()}
            self._give_up_what_hangs(ours, now)

    def _asked(self) -> dict[str, Any]:
        try:
            client = self._client
            found: dict[str, Any] = client.sync(client.scheduler.processing, workers=None, callback_timeout=ANSWER)
        except (OSError, TimeoutError, AttributeError) as fault:
            self._engine.lost(fault)
        return found

    def _ours(self, key: Any) -> bool:
        return isinstance(key, tuple) and str(key[0]).endswith(self._engine.run)

    def _give_up_what_hangs(self, processing: dict[str, set[Any]], now: float) -> None:
        """A worker hangs if it has had tasks all the time, and finished none within the limit.

        It may have waited for data from a worker that is silent: then this one hangs, and the others get new time.
        """
        limit = self._options.time_limit
        assert limit is not None
        late = []
        for address, keys in processing.items():
            before, since = self._tasks.get(address, (set(), now))
            if not before or before - keys:
                since = now
            self._tasks[address] = keys, since
            if keys and now - since > limit:
                late.append((since, address))
        if late:
            if not self.give_up_silent():
                self.give_up(min(late)[1])
            self._tasks.clear()
            if len(self._counts.given_up) > self._options.retries:
                raise TimeLimitError(
                    f"a task of {self._engine.name} took longer than {limit:g} seconds, on "
                    f"{len(self._counts.given_up)} workers: {', '.join(self._counts.given_up)}",
                    remedy="increase time_limit=, make shards smaller, or look for an endless loop",
                )

    def give_up_silent(self) -> bool:
        """Give up workers that were last heard of much earlier than others; whether there are some."""
        seconds = max((self._options.time_limit or 0.0) / 2, SILENCE)
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        seen = {address: worker["last_seen"] for address, worker in workers.items()}
        silent = [address for address, then in seen.items() if then < max(seen.values()) - seconds]
        for address in silent:
            self.give_up(address)
        return bool(silent)

    def give_up(self, address: str) -> None:
        """Take a worker that hangs out of the cluster; its tasks go to others."""
        self._counts.given_up.append(address)
        if address:
            remove_worker(self._client, address)
