"""Code that runs on workers, or in this process instead: it evaluates shards and sums their results."""

from __future__ import annotations

import pickle
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ..api import tree
from ..compiler.compiled import Compiled
from ..compiler.settings import OVERRIDES, Settings
from ..where import FOREIGN
from .faults import TravelError
from .kernels import KERNELS, Shipment, needs_dask
from .parcels import Packed, Parted, form_of, parted
from .pinned import environment, one_blas_thread
from .reduction import added, tree_sum
from .shards import Partition, Shard, as_shipped

LIBRARIES = FOREIGN | {"dask", "distributed", "tornado", "cloudpickle", "tblib"}  # whose lines are not the user's
HERE = "this process"
MOST_TEXT = 4000  # of an error that is sent as text; dask cuts longer ones
T = TypeVar("T")


@dataclass
class Tally:
    """Who did what for a result: shards and seconds by worker, and the environments of the workers."""

    shards: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    environments: dict[str, str] = field(default_factory=dict)

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        shards, seconds = dict(self.shards), dict(self.seconds)
        for worker, count in other.shards.items():
            shards[worker] = shards.get(worker, 0) + count
            seconds[worker] = seconds.get(worker, 0.0) + other.seconds[worker]
        return Tally(shards, seconds, self.environments | other.environments)


class Partial(NamedTuple):
    """The sum of the results of some shards: its leaves, the structure or a pickle of it, and who computed them."""

    leaves: tuple[Any, ...]
    form: Any
    tally: Tally


def joined(a: Partial, b: Partial) -> Partial:
    """The sum of two partial sums."""
    return Partial(added(a.leaves, b.leaves), a.form, a.tally.plus(b.tally))


def evaluated(
    shipment: Shipment, parameters: Packed, items: Sequence[Any], numbers: Sequence[int], first: int, topic: str
) -> Partial:
    """A task: a block of shards with these numbers, evaluated one after the other, and summed.

    ``first`` counts the shards before the block; who listens to the topic is told of each that is done.
    """
    worker, address, threads = _place()
    kernel = kernel_of(shipment, threads, address)

    def each() -> Iterator[Partial]:
        for place, (item, k) in enumerate(zip(items, numbers, strict=True), first):
            yield one_shard(kernel, shipment.settings, parameters.content, item, k, address)
            if topic:
                worker.log_event(topic, place)

    found: Partial = tree_sum(each(), joined)
    return found._replace(form=form_of(found.form))


def one_shard(
    kernel: Compiled, settings: Settings, parameters: tuple[Any, ...], item: Any, k: int, address: str
) -> Partial:
    """The result of one shard, computed with one thread of BLAS and the client's settings."""
    start = time.perf_counter()
    arguments = placed(item, k) if isinstance(item, bytes) else item
    value = blamed(f"shard {k}", address, computed, kernel, settings, (*parameters, *arguments))
    seconds = time.perf_counter() - start
    leaves, spec = tree.flatten(value)
    return Partial(tuple(leaves), spec, Tally({address: 1}, {address: seconds}, {address: environment()}))


def computed(kernel: Compiled, settings: Settings, arguments: tuple[Any, ...]) -> Any:
    """A call under the client's settings; what it imports while it is compiled is loaded before BLAS is pinned."""
    token = OVERRIDES.set(settings)
    try:
        if not kernel._unpackers:
            kernel.at(*arguments)
        with one_blas_thread():
            return kernel(*arguments)
    finally:
        OVERRIDES.reset(token)


def combined(parts: Sequence[Partial]) -> Partial:
    """A task: neighbouring partial sums, summed in the fixed tree."""
    return tree_sum(parts, joined)  # type: ignore[no-any-return]  # of partial sums


def unpacked(data: bytes, k: int) -> Shard:
    """A shard as the client sent it."""
    found: Shard = blamed(f"unpacking shard {k}", _place()[1], pickle.loads, data)
    return found


def placed(data: bytes, k: int) -> tuple[Any, ...]:
    """A task: the arguments of a shard, which stay with the worker."""
    found: tuple[Any, ...] = as_shipped(blamed(f"loading shard {k}", _place()[1], unpacked(data, k).fetch))
    return found


def placed_partition(data: bytes, k: int, part: Any) -> tuple[Any, ...]:
    """A task: the same of a partition that dask computed."""
    shard = unpacked(data, k)
    assert isinstance(shard, Partition)
    return blamed(f"loading shard {k}", _place()[1], shard.made, part)


def lanes_of(shipment: Shipment, shared: Packed, item: Packed, k: int, layout: tuple[bool, ...]) -> Parted:
    """A task of a map: one chunk of lanes. ``layout`` says which arguments belong to the chunk, and which to all."""
    _, address, threads = _place()
    kernel = kernel_of(shipment, threads, address)
    own, common = iter(item.content), iter(shared.content)
    arguments = tuple(next(own) if mine else next(common) for mine in layout)
    return parted(as_shipped(blamed(f"chunk {k}", address, computed, kernel, shipment.settings, arguments)))


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
        return work(*args)
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


def users_line(fault: BaseException) -> str | None:
    """The last line of the user's own program on the way to an error."""
    found, step = None, fault.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        module = str(step.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if module not in LIBRARIES and not code.co_filename.startswith("<generated"):
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
