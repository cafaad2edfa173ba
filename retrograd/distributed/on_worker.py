"""Code that runs on workers, or in this process instead: it evaluates shards and sums their results."""

from __future__ import annotations

import pickle
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

from ..api import tree
from ..compiler.block_threads import THREADS
from ..compiler.compiled import Compiled
from ..tracer.generators import UNORDERED
from ..where import FOREIGN, Packages
from .faults import TravelError
from .heard import MOST, Heard, listening
from .kernels import KERNELS, Conditions, Shipment, needs_dask
from .parcels import Packed, Parted, form_of, parted
from .pinned import environment, one_blas_thread
from .reduction import added, tree_sum
from .shards import Partition, Shard, as_shipped

LIBRARIES = Packages(FOREIGN.packages | {"tornado", "cloudpickle", "tblib"})  # whose lines are not the user's
HERE = "this process"
MOST_TEXT = 4000  # of an error that is sent as text; dask cuts longer ones
T = TypeVar("T")


@dataclass
class Tally:
    """Who did what for a result: shards and seconds by worker, the environments of the workers, and their warnings."""

    shards: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    environments: dict[str, str] = field(default_factory=dict)
    heard: frozenset[Heard] = frozenset()

    @classmethod
    def of(cls, address: str, start: float, heard: Iterable[Heard] = ()) -> Tally:
        """One piece of work, which a worker began at this time."""
        seconds = time.perf_counter() - start
        return cls({address: 1}, {address: seconds}, {address: environment()}, frozenset(heard))

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        shards, seconds = dict(self.shards), dict(self.seconds)
        for worker, count in other.shards.items():
            shards[worker] = shards.get(worker, 0) + count
            seconds[worker] = seconds.get(worker, 0.0) + other.seconds[worker]
        heard = self.heard if other.heard <= self.heard else frozenset(sorted(self.heard | other.heard, key=str)[:MOST])
        return Tally(shards, seconds, self.environments | other.environments, heard)


class Partial(NamedTuple):
    """The sum of the results of some shards: its leaves, the structure or a pickle of it, and who computed them."""

    leaves: tuple[Any, ...]
    form: Any
    tally: Tally


class Loaded(NamedTuple):
    """The arguments of a shard, which stay with a worker, and what was warned of while they were loaded."""

    arguments: tuple[Any, ...]
    heard: frozenset[Heard] = frozenset()


class Parameters(Protocol):
    """The parameters of a step, as they arrive at a worker."""

    @property
    def content(self) -> tuple[Any, ...]:
        """The parameters themselves; a process makes them once."""


def joined(a: Partial, b: Partial) -> Partial:
    """The sum of two partial sums."""
    return Partial(added(a.leaves, b.leaves), a.form, a.tally.plus(b.tally))


def evaluated(
    shipment: Shipment, parameters: Parameters, items: Sequence[Any], numbers: Sequence[int], first: int, topic: str
) -> Partial:
    """A task: a block of shards with these numbers, evaluated one after the other, and summed.

    An item is a shard that stays with the workers, or its pickle. ``first`` counts the shards before the block; who
    listens to the topic is told of each that is done.
    """
    worker, address, threads = _place()
    kernel = kernel_of(shipment, threads, address)

    def each() -> Iterator[Partial]:
        for place, (item, k) in enumerate(zip(items, numbers, strict=True), first):
            shard = placed(item, k) if isinstance(item, bytes) else item
            heard = set(shard.heard)
            with listening(heard):
                part = one_shard(kernel, shipment.conditions, parameters.content, shard.arguments, k, address)
            yield part._replace(tally=replace(part.tally, heard=frozenset(heard)))
            if topic:
                worker.log_event(topic, place)

    found: Partial = tree_sum(each(), joined)
    return found._replace(form=form_of(found.form))


def one_shard(
    kernel: Compiled, conditions: Conditions, parameters: tuple[Any, ...], shard: tuple[Any, ...], k: int, address: str
) -> Partial:
    """The result of one shard, computed with one thread of BLAS and the client's settings."""
    start = time.perf_counter()
    value = blamed(f"shard {k}", address, conditions.apply, computed, kernel, (*parameters, *shard))
    leaves, spec = tree.flatten(value)
    return Partial(tuple(leaves), spec, Tally.of(address, start))


def computed(kernel: Compiled, arguments: tuple[Any, ...]) -> Any:
    """A call, one of many in any order; what it imports while it is compiled is loaded before BLAS is pinned."""
    token = UNORDERED.set(True)
    try:
        if not kernel._servers:
            kernel.at(*arguments)
        with one_blas_thread(), THREADS.alone():
            return kernel(*arguments)
    finally:
        UNORDERED.reset(token)


def combined(parts: Sequence[Partial]) -> Partial:
    """A task: neighbouring partial sums, summed in the fixed tree."""
    return tree_sum(parts, joined)  # type: ignore[no-any-return]  # of partial sums


def unpacked(data: bytes, k: int) -> Shard:
    """A shard as the client sent it."""
    found: Shard = blamed(f"unpacking shard {k}", _place()[1], pickle.loads, data)
    return found


def placed(data: bytes, k: int) -> Loaded:
    """A task: the arguments of a shard."""
    return _loaded(k, unpacked(data, k).fetch)


def placed_partition(data: bytes, k: int, part: Any) -> Loaded:
    """A task: the same of a partition that dask computed."""
    shard = unpacked(data, k)
    assert isinstance(shard, Partition)
    return _loaded(k, shard.made, part)


def _loaded(k: int, load: Callable[..., Any], *args: Any) -> Loaded:
    heard: set[Heard] = set()
    with listening(heard):
        found = as_shipped(blamed(f"loading shard {k}", _place()[1], load, *args))
    return Loaded(found, frozenset(heard))


def lanes_of(
    shipment: Shipment, shared: Packed, item: Packed, k: int, layout: tuple[bool, ...]
) -> tuple[Parted, Tally]:
    """A task of a map: one chunk of lanes. ``layout`` says which arguments belong to the chunk, and which to all."""
    _, address, threads = _place()
    kernel, start = kernel_of(shipment, threads, address), time.perf_counter()
    own, common = iter(item.content), iter(shared.content)
    arguments = tuple(next(own) if mine else next(common) for mine in layout)
    heard: set[Heard] = set()
    with listening(heard):
        value = blamed(f"chunk {k}", address, shipment.conditions.apply, computed, kernel, arguments)
    return parted(as_shipped(value)), Tally.of(address, start, heard)


def kernel_of(shipment: Shipment, threads: int, address: str) -> Compiled:
    """The kernel of a shipment in this process."""
    return blamed("unpacking the function", address, KERNELS.of, shipment, threads)


def _place() -> tuple[Any, str, int]:
    """The worker that runs this task, its address, and the number of its threads."""
    from distributed import get_worker  # noqa: PLC0415 - on a worker it is loaded

    worker = get_worker()
    return worker, worker.address, worker.state.nthreads


def blamed(what: str, address: str, work: Callable[..., T], *args: Any) -> T:
    """A call whose error says what was at work, where, and at which line of the user's."""
    try:
        return _caught(work, *args)
    except Exception as fault:
        line = users_line(fault)
        note = f"{what}, in {HERE}" if address == HERE else f"{what}, on worker {address}"
        fault.add_note(note + (f", at {line}" if line else ""))
        if address == HERE or _travels(fault):
            raise
        text = "".join(traceback.format_exception(fault)).rstrip()[-MOST_TEXT:]
    raise TravelError(  # here, as it must not refer to the error that cannot be pickled
        f"{note} failed with an error that cannot be pickled:\n{text}",
        where=line,
        remedy="correct the cause named in the error; errors that can be pickled are raised unchanged",
    )


def _caught(work: Callable[..., T], *args: Any) -> T:
    """A call that raises RuntimeError where it would end a worker, or a loop that takes its results."""
    try:
        return work(*args)
    except (StopIteration, SystemExit) as left:
        raise RuntimeError(f"the function raised {left!r}").with_traceback(left.__traceback__) from left


def users_line(fault: BaseException) -> str | None:
    """The last line of the user's own program on the way to an error."""
    found, step = None, fault.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        module = str(step.tb_frame.f_globals.get("__name__", ""))
        if not LIBRARIES[module] and not code.co_filename.startswith("<generated"):
            found = f"{code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    return found


def _travels(fault: BaseException) -> bool:
    """Whether an error arrives as it is, with the errors that led to it."""
    sent = needs_dask("distributed.protocol.pickle")
    try:
        return type(sent.loads(sent.dumps(fault))) is type(fault)
    except Exception:  # noqa: BLE001 - whatever a class of the user's does
        return False
