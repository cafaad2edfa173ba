"""Shards on a dask cluster: tasks that dask can compute again, a watch over them, and a new start where that fails."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NoReturn
from uuid import uuid4

from .engines import Counts, Options
from .faults import DistributedError, NoWorkerError, SchedulerLostError, TimeLimitError, WorkerLostError
from .kernels import Kernel, Shipment, needs_dask, plain
from .local_cluster import remove_worker
from .on_worker import Partial, combined, evaluated, lanes_of, placed, placed_partition
from .pace import Pace
from .parcels import Packed, Parted, packed, pickled
from .reduction import blocks
from .shards import Partition, Shard, nbytes_of

TICK = 0.25  # seconds between two looks at the cluster
SILENCE = 2.0  # seconds between heartbeats that are no sign of trouble
ANSWER = 5.0  # seconds that the scheduler has to answer


class LostWork(Exception):  # noqa: N818 - a signal between functions of this file
    """Tasks were cancelled or lost with their workers; ``error`` is raised if this happens too often."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class ClusterEngine:
    """Tasks on the workers of a client.

    All that a task needs comes from tasks: the function, the parameters and the shards. The scheduler holds their
    bytes, so that what dies with a worker is computed again, and only that. Where dask itself gives up, because
    several workers died under one task, the work begins again under new names.
    """

    def __init__(self, client: Any, kernel: Kernel, shards: Sequence[Shard], options: Options) -> None:
        self.client, self.options = client, options
        self._kernel, self._shards, self._numbers = plain(kernel), list(shards), itertools.count()
        self._run = uuid4().hex
        self._shipment: tuple[Shipment, Any] | None = None
        self._data: dict[int, bytes] = {}
        self._placed: dict[int, Any] = {}

    # --- the work -------------------------------------------------------------------------------------------------

    def total(self, parameters: tuple[Any, ...], chosen: Sequence[int], pace: Pace, counts: Counts) -> Partial:
        given = packed(parameters, "a parameter", self._kernel.name)

        def attempt(topic: str) -> Partial:
            root = self._tree(given, chosen, topic, counts)
            found: Partial = self._awaited(root, counts)
            counts.sent += len(given) * len(found.tally.shards)
            counts.received += nbytes_of(found.leaves)
            return found

        with self._listening(pace) as topic:
            total: Partial = self._again(lambda: attempt(topic), counts)
            return total

    def chunks(
        self, shared: tuple[Any, ...], items: Sequence[Any], layout: tuple[bool, ...], pace: Pace, counts: Counts
    ) -> Iterator[Any]:
        common = packed(shared, "an argument", self._kernel.name)
        window = 2 * self._threads() + 2
        waiting: dict[int, Any] = {}
        to_all: Any = None

        def attempt(k: int) -> Any:
            nonlocal to_all
            if to_all is None:
                to_all = self._as_task("shared", common)
                counts.sent += len(common)
            for i in range(k, min(k + window, len(items))):
                if i not in waiting:
                    item = packed(items[i], f"chunk {i}", self._kernel.name)
                    counts.tasks, counts.sent = counts.tasks + 1, counts.sent + len(item)
                    own = self._as_task("chunk", item)
                    waiting[i] = self._submit("map", i, lanes_of, self._shipped(counts), to_all, own, i, layout)
            try:
                return self._awaited(waiting[k], counts)
            except LostWork:
                waiting.clear()
                to_all = None
                raise

        for k in range(len(items)):
            found: Parted = self._again(partial(attempt, k), counts)
            del waiting[k]
            counts.received += nbytes_of(found.leaves)
            pace.advance()
            yield found.whole()

    def close(self) -> None:
        """Let the workers forget the shards and the function."""
        self._forget()
        self._data.clear()
        self._shards = []

    # --- tasks ----------------------------------------------------------------------------------------------------

    def _tree(self, parameters: Packed, chosen: Sequence[int], topic: str, counts: Counts) -> Any:
        """The future of the sum over the chosen shards; all others of the step are held by dask alone."""
        shipment, given = self._shipped(counts), self._as_task("parameters", parameters)
        level = []
        for block in blocks(len(chosen), self.options.group):
            numbers = [int(chosen[i]) for i in block]
            items = [self._item(k, counts) for k in numbers]
            level.append(self._submit("", 0, evaluated, shipment, given, items, numbers, block[0], topic))
        counts.tasks += len(level)
        while len(level) > 1:
            level = [
                self._submit("sum", 0, combined, [level[i] for i in block])
                for block in blocks(len(level), self.options.fan_in)
            ]
            counts.tasks += len(level)
        return level[0]

    def _submit(self, what: str, number: int, function: Callable[..., Any], *args: Any) -> Any:
        """A task under the name of the user's function, which dask's dashboard shows."""
        name = "-".join(filter(None, [self._kernel.name, what or self._kernel.task]))
        return self.client.submit(function, *args, key=(f"{name}-{self._run}", next(self._numbers), number), pure=False)

    def _as_task(self, what: str, x: Any) -> Any:
        return self._submit(what, 0, _itself, x)

    def _shipped(self, counts: Counts) -> Any:
        """The future of the shipment; a new one if the function, or what it holds by value, has changed."""
        shipment = Shipment.of(self._kernel)
        if self._shipment is None or self._shipment[0].digest != shipment.digest:
            self._shipment = shipment, self._as_task("function", shipment)
            counts.sent += len(shipment.payload)
        return self._shipment[1]

    def _item(self, k: int, counts: Counts) -> Any:
        """A shard, as a task takes it: a future, or its pickle if it is to be loaded each time."""
        shard = self._shards[k]
        if k not in self._data:
            bare = Partition(shard.number, None, shard.load) if isinstance(shard, Partition) else shard
            self._data[k] = pickled(bare, f"shard {k}", self._kernel.name)
            counts.sent += len(self._data[k])
        if not isinstance(shard, Partition) and not self.options.keep:
            return self._data[k]
        if k not in self._placed:
            if isinstance(shard, Partition):
                part = self.client.compute(shard.delayed)
                self._placed[k] = self._submit("load", k, placed_partition, self._data[k], k, part)
            else:
                self._placed[k] = self._submit("load", k, placed, self._data[k], k)
        return self._placed[k]

    def _forget(self) -> None:
        self._placed.clear()
        self._shipment = None

    # --- watching -------------------------------------------------------------------------------------------------

    def _again(self, attempt: Callable[[], Any], counts: Counts) -> Any:
        """An attempt, repeated while work is lost; anything else that goes wrong without a scheduler is its loss."""
        for left in reversed(range(self.options.retries + 1)):
            try:
                return attempt()
            except LostWork as lost:
                self._forget()
                if not left:
                    raise lost.error from None
                counts.retries += 1
            except (OSError, TimeoutError) as fault:
                if not isinstance(fault, DistributedError) and not self._scheduler_answers():
                    self._scheduler_lost(fault)
                raise
        raise AssertionError

    def _awaited(self, root: Any, counts: Counts) -> Any:
        """The result of a future, which is released; or its error as it was raised; LostWork if it was lost."""
        try:
            return self._result(root, counts)
        finally:
            root.release()

    def _result(self, root: Any, counts: Counts) -> Any:
        wait = needs_dask().wait
        watch = Lookout(self, counts)
        try:
            while not root.done():
                with suppress(TimeoutError):
                    wait(root, timeout=TICK)
                watch.look()
        except needs_dask().CancelledError as fault:
            self._lost(fault)
        if root.status == "finished":
            return self._gathered(root, watch)
        error: BaseException | None = root.exception() if root.status == "error" else None
        if error is None or isinstance(error, needs_dask().KilledWorker):
            self._lost(error)
        raise error

    def _gathered(self, root: Any, watch: Lookout) -> Any:
        try:
            return root.result(timeout=self.options.time_limit)
        except TimeoutError as fault:
            watch.give_up(next(iter(self.client.who_has([root])[root.key]), ""))
            self._lost(fault)
        except needs_dask().CancelledError as fault:
            self._lost(fault)

    def _lost(self, fault: BaseException | None) -> NoReturn:
        if not self._scheduler_answers():
            self._scheduler_lost(fault)
        error = WorkerLostError(
            f"workers died under {self._kernel.name}, {self.options.retries + 1} times: {fault}",
            remedy="give each worker more memory, or make shards smaller; memory= limits the memory of a gradient",
        )
        raise LostWork(error) from fault

    def _scheduler_answers(self) -> bool:
        """Whether the client is connected, and the scheduler answers."""
        client = self.client
        if client.status != "running":
            return False
        try:
            client.sync(client.scheduler.identity, n_workers=0, callback_timeout=ANSWER)
        except (OSError, TimeoutError, AttributeError):  # the client drops its scheduler as it closes
            return False
        return True

    def _scheduler_lost(self, fault: BaseException | None) -> NoReturn:
        raise SchedulerLostError(
            f"the scheduler no longer answers: {type(fault).__name__ if fault else self.client.status}",
            remedy="connect a new client and call again; rg.distributed.minimize continues with resume=True",
        ) from fault

    def _threads(self) -> int:
        return sum(self.client.nthreads().values())

    @contextmanager
    def _listening(self, pace: Pace) -> Iterator[str]:
        """The topic under which workers tell of each shard, if anybody watches."""
        if not pace.watched:
            yield ""
            return
        topic, seen = f"retrograd-{uuid4().hex}", set[int]()

        def told(event: tuple[float, int]) -> None:
            if event[1] not in seen:
                seen.add(event[1])
                pace.advance()

        self.client.subscribe_topic(topic, told)
        try:
            yield topic
        finally:
            with suppress(OSError, ValueError):  # the scheduler may be gone
                self.client.unsubscribe_topic(topic)
        pace.finish()


class Lookout:
    """Looks at the cluster from time to time: are there workers, and does each one finish its tasks in time."""

    def __init__(self, engine: ClusterEngine, counts: Counts) -> None:
        self._engine, self._counts = engine, counts
        self._client, self._options = engine.client, engine.options
        self._worked = self._looked = time.monotonic()
        self._tasks: dict[str, tuple[set[Any], float]] = {}
        self._most = TICK if self._options.time_limit is None else min(TICK, self._options.time_limit / 4)

    def look(self) -> None:
        """Raises NoWorkerError or SchedulerLostError; gives up workers that hang."""
        now = time.monotonic()
        if self._client.status != "running":
            self._engine._lost(None)
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
            self._engine._lost(fault)
        return found

    def _ours(self, key: Any) -> bool:
        return isinstance(key, tuple) and str(key[0]).endswith(self._engine._run)

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
            for address in self._silent(max(limit / 2, SILENCE)) or [min(late)[1]]:
                self.give_up(address)
            self._tasks.clear()
            if len(self._counts.given_up) > self._options.retries:
                raise TimeLimitError(
                    f"a task of {self._engine._kernel.name} took longer than {limit:g} seconds, on "
                    f"{len(self._counts.given_up)} workers: {', '.join(self._counts.given_up)}",
                    remedy="increase time_limit=, make shards smaller, or look for an endless loop",
                )

    def _silent(self, seconds: float) -> list[str]:
        """Workers that were last heard of so much earlier than others."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        seen = {address: worker["last_seen"] for address, worker in workers.items()}
        return [address for address, then in seen.items() if then < max(seen.values()) - seconds]

    def give_up(self, address: str) -> None:
        """Take a worker that hangs out of the cluster; its tasks go to others."""
        self._counts.given_up.append(address)
        if address:
            remove_worker(self._client, address)


def _itself(x: Any) -> Any:
    return x
