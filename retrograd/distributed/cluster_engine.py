"""Shards on a dask cluster: tasks that dask can compute again, a watch over them, and a new start where that fails."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NoReturn
from uuid import uuid4

from .engines import Counts, Options
from .faults import DistributedError, SchedulerLostError, WorkerLostError
from .kernels import Kernel, Shipment, needs_dask, plain
from .lookout import ANSWER, TICK, Lookout, LostWork
from .on_worker import Partial, Tally, combined, evaluated, lanes_of, placed, placed_partition
from .pace import Pace
from .parcels import packed, pickled
from .reduction import blocks
from .shards import Partition, Shard, nbytes_of


class ClusterEngine:
    """Tasks on the workers of a client.

    All that a task needs comes from tasks: the function, the parameters and the shards. The scheduler holds their
    bytes, so that what dies with a worker is computed again, and only that. Where dask itself gives up, because
    several workers died under one task, the work begins again under new names.
    """

    def __init__(self, client: Any, kernel: Kernel, shards: Sequence[Shard], options: Options) -> None:
        self.client, self.options = client, options
        self._kernel, self._shards, self._numbers = plain(kernel), list(shards), itertools.count()
        self.run = uuid4().hex
        self._shipment: tuple[Shipment, Any] | None = None
        self._data: dict[int, bytes] = {}
        self._placed: dict[int, Any] = {}

    @property
    def name(self) -> str:
        """The name of the user's function."""
        return self._kernel.name

    # --- the work -------------------------------------------------------------------------------------------------

    def total(self, parameters: tuple[Any, ...], chosen: Sequence[int], pace: Pace, counts: Counts) -> Partial:
        given = packed(parameters, "a parameter", self.name)

        def attempt(topic: str) -> Partial:
            root = self.tree(self._as_task("parameters", given), chosen, topic, counts)
            found: Partial = self.awaited(root, counts)
            counts.sent += len(given) * len(found.tally.shards)
            counts.received += nbytes_of(found.leaves)
            return found

        with self._listening(pace) as topic:
            total: Partial = self.again(lambda: attempt(topic), counts)
            return total

    def chunks(
        self, shared: tuple[Any, ...], items: Sequence[Any], layout: tuple[bool, ...], pace: Pace, counts: Counts
    ) -> Iterator[tuple[Any, Tally]]:
        common = packed(shared, "an argument", self.name)
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
                    item = packed(items[i], f"chunk {i}", self.name)
                    counts.tasks, counts.sent = counts.tasks + 1, counts.sent + len(item)
                    own = self._as_task("chunk", item)
                    waiting[i] = self.submit("map", i, lanes_of, self._shipped(counts), to_all, own, i, layout)
            try:
                return self.awaited(waiting[k], counts)
            except LostWork:
                waiting.clear()
                to_all = None
                raise

        for k in range(len(items)):
            found, tally = self.again(partial(attempt, k), counts)
            del waiting[k]
            counts.received += nbytes_of(found.leaves)
            pace.advance()
            yield found.whole(), tally

    def close(self) -> None:
        """Let the workers forget the shards and the function."""
        self._forget()
        self._data.clear()
        self._shards = []

    # --- tasks ----------------------------------------------------------------------------------------------------

    def tree(self, given: Any, chosen: Sequence[int], topic: str, counts: Counts) -> Any:
        """The future of the sum over the chosen shards, of that of the parameters; dask alone holds the others."""
        shipment = self._shipped(counts)
        level = []
        for block in blocks(len(chosen), self.options.group):
            numbers = [int(chosen[i]) for i in block]
            items = [self._item(k, counts) for k in numbers]
            level.append(self.submit("", 0, evaluated, shipment, given, items, numbers, block[0], topic))
        counts.tasks += len(level)
        while len(level) > 1:
            level = [
                self.submit("sum", 0, combined, [level[i] for i in block])
                for block in blocks(len(level), self.options.fan_in)
            ]
            counts.tasks += len(level)
        return level[0]

    def submit(self, what: str, number: int, function: Callable[..., Any], *args: Any) -> Any:
        """A task under the name of the user's function, which dask's dashboard shows. What it holds may be large."""
        key = (self._named(what), next(self._numbers), number)
        with needs_dask("dask").config.set({"distributed.admin.large-graph-warning-threshold": sys.maxsize}):
            return self.client.submit(function, *args, key=key, pure=False)

    def scattered(self, what: str, x: Any, counts: Counts) -> Any:
        """The future of what a worker holds, and nobody else: it is lost with the worker."""
        key = f"{self._named(what)}-{next(self._numbers)}"

        async def place() -> Any:
            return await self.client.scatter({key: x}, hash=False, asynchronous=True)

        try:
            return self.client.sync(place, callback_timeout=self.options.time_limit)[key]
        except (OSError, TimeoutError, KeyError) as fault:  # the worker hangs, or has gone meanwhile
            if self._scheduler_answers() and self.options.time_limit is not None:
                Lookout(self, counts).give_up_silent()
            self.lost(fault)

    def _named(self, what: str) -> str:
        return f"{self.name}-{what or self._kernel.task}-{self.run}"

    def _as_task(self, what: str, x: Any) -> Any:
        return self.submit(what, 0, itself, x)

    def _shipped(self, counts: Counts) -> Any:
        """The future of the shipment; a new one if the function, what it holds by value, or a condition has changed."""
        shipment = Shipment.of(self._kernel)
        if self._shipment is None or self._shipment[0] != shipment:
            self._shipment = shipment, self._as_task("code", shipment)
            counts.sent += len(shipment.payload)
        return self._shipment[1]

    def _item(self, k: int, counts: Counts) -> Any:
        """A shard, as a task takes it: a future, or its pickle if it is to be loaded each time."""
        shard = self._shards[k]
        if k not in self._data:
            bare = Partition(shard.number, None, shard.load) if isinstance(shard, Partition) else shard
            self._data[k] = pickled(bare, f"shard {k}", self.name)
            counts.sent += len(self._data[k])
        if not isinstance(shard, Partition) and not self.options.keep:
            return self._data[k]
        if k not in self._placed:
            if isinstance(shard, Partition):
                part = self.client.compute(shard.delayed)
                self._placed[k] = self.submit("load", k, placed_partition, self._data[k], k, part)
            else:
                self._placed[k] = self.submit("load", k, placed, self._data[k], k)
        return self._placed[k]

    def _forget(self) -> None:
        self._placed.clear()
        self._shipment = None

    # --- watching -------------------------------------------------------------------------------------------------

    def again(self, attempt: Callable[[], Any], counts: Counts) -> Any:
        """An attempt, repeated while work is lost; anything else that goes wrong without a scheduler is its loss."""
        for left in reversed(range(self.options.retries + 1)):
            try:
                return attempt()
            except LostWork as work:
                self._forget()
                if not left:
                    raise work.error from None
                counts.retries += 1
            except (OSError, TimeoutError) as fault:
                if not isinstance(fault, DistributedError) and not self._scheduler_answers():
                    self._scheduler_lost(fault)
                raise
        raise AssertionError

    def awaited(self, root: Any, counts: Counts, keep: bool = False) -> Any:
        """The result of a future, which is released; or its error as it was raised; LostWork if it was lost."""
        try:
            return self._result(root, counts)
        finally:
            if not keep:
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
            self.lost(fault)
        if root.status == "finished":
            return self._gathered(root, watch)
        error: BaseException | None = root.exception() if root.status == "error" else None
        if error is None or isinstance(error, needs_dask().KilledWorker):
            self.lost(error)
        raise error

    def _gathered(self, root: Any, watch: Lookout) -> Any:
        try:
            return root.result(timeout=self.options.time_limit)
        except TimeoutError as fault:
            watch.give_up(next(iter(self.client.who_has([root])[root.key]), ""))
            self.lost(fault)
        except needs_dask().CancelledError as fault:
            self.lost(fault)

    def lost(self, fault: BaseException | None) -> NoReturn:
        if not self._scheduler_answers():
            self._scheduler_lost(fault)
        error = WorkerLostError(
            f"workers died under {self.name}, {self.options.retries + 1} times: {fault or 'what they held is lost'}",
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

    def workers(self) -> int:
        """How many workers there are now."""
        return len(self.client.nthreads())

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


def itself(x: Any) -> Any:
    """A task that gives what it is given."""
    return x
