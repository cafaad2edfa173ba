"""Functions over shards: value_and_grad and hvp, summed over shards on any number of workers to the same bits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..api import tree
from ..api.memory import bytes_of
from ..compiler.signature import Argnums
from ..errors import OptionError
from ..where import warn
from .cluster_engine import ClusterEngine
from .engines import Counts, Engine, Options, ThreadEngine
from .faults import UnequalWorkersWarning
from .heard import give
from .kernels import Kernel, check_argnums, function_of
from .on_worker import Partial, Tally
from .pace import Pace, Watcher, watcher_of
from .parcels import Parted
from .shards import Shard, shards_of


@dataclass(frozen=True)
class Report:
    """A report of the last call: ``print`` it.

    ``retries`` counts how often work was begun again by us; dask computes again what died with a worker on its own.
    ``sent`` and ``received`` are the client's bytes: parameters once for each worker that took part, the function and
    shards when they are placed, and the result. ``seconds`` is wall time, ``busy`` the time of each worker.
    """

    name: str
    shards: int
    tasks: int
    retries: int
    given_up: tuple[str, ...]
    workers: dict[str, int]
    busy: dict[str, float]
    environments: tuple[str, ...]
    sent: int
    received: int
    seconds: float

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.shards} shards in {self.tasks} tasks, {self.seconds:.3g} s",
            f"  begun again {self.retries} times, workers given up: {', '.join(self.given_up) or 'none'}",
            f"  bytes sent {self.sent:,}, received {self.received:,}",
        ]
        lines += [f"  {w}: {n} shards, {self.busy[w]:.3g} s" for w, n in sorted(self.workers.items())]
        return "\n".join([*lines, *(f"  on {e}" for e in self.environments)])


class Sharded:
    """A function of parameters, summed over shards. Call it; ``report`` tells of the last call; ``close()`` ends it."""

    def __init__(
        self,
        kernel: Kernel,
        client: Any,
        shards: Sequence[Shard],
        mean: bool,
        options: Options,
        watcher: Watcher | None,
    ) -> None:
        self._kernel, self.mean, self._watcher = kernel, mean, watcher
        self.engine = engine_of(client, kernel, shards, options)
        self._count = len(shards)
        self._told = False
        self.report: Report | None = None
        self.__name__ = f"{kernel.name}_{kernel.kind}"

    def __repr__(self) -> str:
        return f"<{self._kernel.kind} of {self._kernel.name} over {self._count} shards>"

    def __len__(self) -> int:
        """The number of shards."""
        return self._count

    def __call__(self, *parameters: Any, only: Iterable[int] | None = None) -> Any:
        """The sum or mean over all shards; over those numbered ``only``, in this order, if they are given."""
        if self._kernel.kind == "value_and_grad":
            check_argnums(self._kernel.argnums, len(parameters))
        chosen, counts, start = self.chosen(only), Counts(), time.perf_counter()
        pace = Pace(self._watcher, len(chosen), self._kernel.name)
        found: Partial = self.engine.total(parameters, chosen, pace, counts)
        self.tell(len(chosen), counts, found.tally, time.perf_counter() - start)
        leaves = [x / len(chosen) for x in found.leaves] if self.mean else found.leaves
        if isinstance(found.form, bytes):
            return Parted(tuple(leaves), found.form).whole()
        return tree.unflatten(found.form, leaves)

    def tell(self, shards: int, counts: Counts, tally: Tally, seconds: float) -> None:
        """Report a call, and warn of what its workers warned of."""
        self.report = reported(self._kernel.name, shards, counts, tally, seconds)
        self._told = self._told or warned(self.report)
        give(tally.heard)

    def close(self) -> None:
        """Let workers forget shards and function; the client stays open."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def chosen(self, only: Iterable[int] | None) -> Sequence[int]:
        """The numbers of the shards that a call takes; OptionError for others."""
        if only is None:
            return range(self._count)
        given: Any = only  # whatever the user gave
        numbers = [*given] if isinstance(given, Iterable) else []
        chosen = [int(k) for k in numbers if isinstance(k, (int, np.integer)) and 0 <= k < self._count]
        if not chosen or len(chosen) != len(numbers):
            raise OptionError(
                f"only={numbers or given!r:.80} does not fit {self._count} shards",
                remedy="give at least one shard number",
            )
        return chosen


def value_and_grad(
    loss: Any,
    client: Any = None,
    *,
    shards: Any,
    argnums: Argnums = 0,
    reduce: str = "sum",
    load: Callable[[Any], tuple[Any, ...]] | None = None,
    memory: float | str | None = None,
    nan_safe: bool = False,
    progress: bool | Watcher | None = None,
    **options: Any,
) -> Sharded:
    """The sum or mean over shards of a loss and of its gradient.

    Results have the same bits with a client or without, for any number of workers, in any order, and after retries.

    Parameters
    ----------
    loss : callable or path
        It is called as ``loss(*parameters, *shard)``: a function, or a file that ``save`` wrote.
    client : dask client, optional
        Its workers compute; without it, threads of this process.
    shards : sequence or dask collection
        A shard is a tuple of arguments, a function without arguments that returns one, or the path of an ``.npy`` or
        ``.npz`` file; with ``load`` whatever that takes. A dask array, bag or tuple of arrays with equal chunks of rows
        gives its partitions.
    argnums : int or tuple of int
        The differentiated parameters.
    reduce : "sum" or "mean"
        The mean divides the sum by the number of shards.
    load : callable, optional
        It makes the tuple of arguments of a shard.
    memory : int or str, optional
        A budget for the gradients of one process, shared by its threads.
    nan_safe : bool
        As for ``rg.grad``.
    progress : bool or callable, optional
        True for a bar, or a function of a ``ShardProgress``.
    **options
        ``group`` shards in one task and ``fan_in`` sums in one task, powers of two. ``keep=False`` loads shards at each
        call. ``retries``, and in seconds ``time_limit`` of a task and ``patience`` without workers.

    Returns
    -------
    Sharded
        ``f(*parameters)`` returns ``(value, gradient)``.

    Raises
    ------
    OptionError, TreeError, ArgnumsError
        If an option or an argument is wrong.
    DistributedError
        If the cluster cannot go on. Errors of the loss are raised here.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> def loss(w, x, y):
    ...     return np.sum((x @ w - y) ** 2)
    >>> shards = [(np.eye(2), np.zeros(2)), (2 * np.eye(2), np.ones(2))]
    >>> f = rg.distributed.value_and_grad(loss, shards=shards)
    >>> f(np.array([1.0, 2.0]))
    (np.float64(15.0), array([ 6., 16.]))
    """
    budget = None if memory is None else bytes_of(memory)
    chosen = tuple(argnums) if isinstance(argnums, list) else argnums
    kernel = Kernel("value_and_grad", function_of(loss), chosen, budget, nan_safe)
    return _sharded(kernel, client, shards, reduce, load, progress, options)


def hvp(
    loss: Any,
    client: Any = None,
    *,
    shards: Any,
    reduce: str = "sum",
    load: Callable[[Any], tuple[Any, ...]] | None = None,
    progress: bool | Watcher | None = None,
    **options: Any,
) -> Sharded:
    """The Hessian of a loss in its first argument times a vector, as a sum or mean over shards.

    Parameters
    ----------
    loss, client, shards, reduce, load, progress, **options
        As for ``value_and_grad``.

    Returns
    -------
    Sharded
        ``f(w, v)`` returns the product.

    Raises
    ------
    OptionError, TreeError, ArgnumsError, DistributedError
        As for ``value_and_grad``.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> f = rg.distributed.hvp(lambda w, x: np.sum((w * x) ** 3), shards=[(1.0,), (2.0,)])
    >>> f(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 54., 108.])
    """
    return _sharded(Kernel("hvp", function_of(loss)), client, shards, reduce, load, progress, options)


def _sharded(
    kernel: Kernel, client: Any, shards: Any, reduce: str, load: Any, progress: Any, options: dict[str, Any]
) -> Sharded:
    if reduce not in ("sum", "mean"):
        raise OptionError(f"reduce={reduce!r}", remedy="choose 'sum' or 'mean'")
    return Sharded(kernel, client, shards_of(shards, load), reduce == "mean", options_of(options), watcher_of(progress))


def options_of(options: dict[str, Any]) -> Options:
    """The options that say how work is cut and retried; OptionError for others."""
    unknown = set(options) - set(Options.__dataclass_fields__)
    if unknown:
        raise OptionError(
            f"there is no option {min(unknown)!r}", remedy=f"choose from {', '.join(Options.__dataclass_fields__)}"
        )
    return Options(**options)


def engine_of(client: Any, kernel: Kernel, shards: Sequence[Shard], options: Options) -> Engine:
    """Threads of this process, or the workers of a client; OptionError for what is neither."""
    if client is None:
        return ThreadEngine(kernel, shards, options)
    if not all(hasattr(client, name) for name in ("submit", "scheduler", "restart_workers")):
        raise OptionError(
            f"client is a {type(client).__name__}", remedy="pass dask's Client, or None for threads of this process"
        )
    if client.asynchronous:
        raise OptionError("the client is asynchronous", remedy="create it by Client(..., asynchronous=False)")
    return ClusterEngine(client, kernel, shards, options)


def reported(name: str, shards: int, counts: Counts, tally: Tally, seconds: float) -> Report:
    """The report of a call."""
    return Report(
        name=name,
        shards=shards,
        tasks=counts.tasks,
        retries=counts.retries,
        given_up=tuple(counts.given_up),
        workers=tally.shards,
        busy=tally.seconds,
        environments=tuple(sorted(set(tally.environments.values()))),
        sent=counts.sent,
        received=counts.received,
        seconds=seconds,
    )


def warned(report: Report) -> bool:
    """Warn of workers that may round differently; whether there are some."""
    if len(report.environments) < 2:
        return False
    environments = "; ".join(report.environments)
    warn(
        f"the workers differ, so the last bits depend on which worker computes a shard: {environments}",
        UnequalWorkersWarning,
    )
    return True
