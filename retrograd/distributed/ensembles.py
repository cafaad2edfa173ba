"""Maps over ensembles, and Jacobians by their rows: batches in chunks, on any number of workers with the same bits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..api import tree
from ..api.eval_shape import eval_shape
from ..api.memory import bytes_of
from ..errors import NonDifferentiableError, OptionError, ShapeError
from .engines import Counts, Options
from .faults import ResultTooLargeError
from .heard import give
from .kernels import JacobianRow, Kernel, function_of
from .on_worker import Tally
from .pace import Pace, Watcher, watcher_of
from .sharded import Report, engine_of, options_of, reported, warned
from .shards import nbytes_of

CHUNKS = 64  # of a map, unless the user says how many lanes a chunk has
SHARE = 0.5  # of the available memory that results may take, unless the user gives a limit


class Ensemble:
    """A function of lanes, in chunks. Call it like what ``rg.vmap`` returns; ``report`` tells of the last call."""

    def __init__(
        self,
        function: Callable[..., Any],
        client: Any,
        in_axes: Any,
        chunk: int | None,
        limit: float | str | None,
        watcher: Watcher | None,
        options: Options,
    ) -> None:
        self._axes, self._chunk, self._watcher = in_axes, chunk, watcher
        self._limit = None if limit is None else bytes_of(limit)
        self._function, self._client, self._options = function, client, options
        self._told = False
        self.report: Report | None = None
        self.__name__ = f"{Kernel('map', function).name}_map"

    def __call__(self, *args: Any) -> Any:
        layout = self._layout(len(args))
        own = [x for x, mine in zip(args, layout, strict=True) if mine]
        shared = tuple(x for x, mine in zip(args, layout, strict=True) if not mine)
        lanes = _lanes(own)
        size = self._chunk or -(-lanes // CHUNKS)
        items = [
            tuple(tree.map(lambda x, k=k: np.asarray(x)[k : k + size], part) for part in own)
            for k in range(0, lanes, size)
        ]
        kernel = Kernel("map", self._function, lanes=tuple(0 if mine else None for mine in layout))
        engine = engine_of(self._client, kernel, (), self._options)
        counts, start = Counts(), time.perf_counter()
        pace = Pace(self._watcher, len(items), kernel.name)
        found: list[Any] = []
        tally = Tally()
        try:
            for part, done in engine.chunks(shared, items, layout, pace, counts):
                if not found:
                    self._check(nbytes_of(part) * lanes // min(size, lanes), lanes)
                found.append(part)
                tally = tally.plus(done)
        finally:
            engine.close()
        self.report = reported(kernel.name, len(items), counts, tally, time.perf_counter() - start)
        self._told = self._told or warned(self.report)
        give(tally.heard)
        return tree.map(lambda *parts: np.concatenate(parts), *found)

    def _layout(self, count: int) -> tuple[bool, ...]:
        """For each argument, whether each lane has its own."""
        axes = self._axes if isinstance(self._axes, tuple) else (self._axes,) * count
        if len(axes) != count or any(a not in (0, None) or isinstance(a, bool) for a in axes) or 0 not in axes:
            raise OptionError(
                f"in_axes={self._axes!r} for {count} arguments",
                remedy="give 0 for each batched argument, and None for each shared one",
            )
        return tuple(a == 0 for a in axes)

    def _check(self, needed: int, lanes: int) -> None:
        """ResultTooLargeError if all results are larger than the limit; all parts and the whole are held at once."""
        limit = int(SHARE * bytes_of("available")) if self._limit is None else self._limit
        if 2 * needed > limit:
            raise ResultTooLargeError(
                f"the results of {lanes:,} batch elements take {needed:,} bytes, and twice that while they are joined; "
                f"{limit:,} bytes are allowed",
                needed=2 * needed,
                remedy="reduce within the function, map fewer elements at once, or increase limit=",
            )


def map(
    function: Any,
    client: Any = None,
    *,
    in_axes: Any = 0,
    chunk: int | None = None,
    limit: float | str | None = None,
    progress: bool | Watcher | None = None,
    **options: Any,
) -> Ensemble:
    """``rg.vmap`` over processes: batch elements in chunks, each computed by ``rg.vmap`` on a worker.

    The bits depend on ``chunk`` and on nothing else: neither on the workers nor on retries.

    Parameters
    ----------
    function : callable or path
        The function of one batch element, or a file that ``save`` wrote.
    client : dask client, optional
        Without it, threads of this process compute.
    in_axes : 0, None or tuple
        0 or None for each argument; batch elements stand along the first axis.
    chunk : int, optional
        The number of batch elements in a chunk, by default a 64th of them.
    limit : int or str, optional
        The most bytes of all results, by default half of the available memory. More is an error after the first chunk.
    progress : bool or callable, optional
        True for a bar, or a function of a ``ShardProgress``.
    **options
        ``retries``, ``time_limit`` and ``patience``, as for ``value_and_grad``.

    Returns
    -------
    Ensemble
        A function of the batched arguments.

    Raises
    ------
    OptionError, ShapeError
        If an option or an argument is wrong.
    ResultTooLargeError
        If all results together exceed the limit.
    DistributedError
        If the cluster cannot go on. Errors of the function are raised here.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> def fall(height, g):
    ...     return np.sqrt(2 * height / g)
    >>> rg.distributed.map(fall, in_axes=(0, None))(np.array([5.0, 20.0]), 10.0)
    array([1., 2.])
    """
    if chunk is not None and (type(chunk) is not int or chunk < 1):
        raise OptionError(f"chunk={chunk!r}", remedy="give a number of batch elements, at least 1")
    watcher = watcher_of(progress)
    return Ensemble(function_of(function), client, in_axes, chunk, limit, watcher, options_of(options))


def jacobian(
    function: Any,
    client: Any = None,
    *,
    chunk: int | None = None,
    limit: float | str | None = None,
    progress: bool | Watcher | None = None,
    **options: Any,
) -> Callable[[Any], Any]:
    """The Jacobian of a function of one array, in chunks of rows, each row a gradient.

    Parameters
    ----------
    function, client, limit, progress, **options
        As for ``map``.
    chunk : int, optional
        The number of rows in a chunk.

    Returns
    -------
    callable
        It takes the argument. Its result has the shape of the function's result, followed by that of the argument. Its
        size is known before anything is computed.

    Raises
    ------
    OptionError, ShapeError, ResultTooLargeError, DistributedError
        As for ``map``.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.distributed.jacobian(lambda x: x[:1] * x[1:])(np.array([2.0, 3.0, 4.0]))
    array([[3., 2., 0.],
           [4., 0., 2.]])
    """
    plain = function_of(function)
    rows = map(JacobianRow(plain), client, in_axes=(0, None), chunk=chunk, limit=limit, progress=progress, **options)

    def matrix(x: Any) -> Any:
        point = np.asarray(x)
        if point.dtype.kind != "f":
            raise NonDifferentiableError(f"an array of {point.dtype}", remedy="pass floating-point numbers")
        out = eval_shape(plain, point)
        if not hasattr(out, "shape"):
            raise ShapeError("the function does not return one array", remedy="return one array")
        count = int(np.prod(out.shape))
        rows._check(count * point.nbytes, count)
        return rows(np.arange(count), point).reshape((*out.shape, *point.shape))

    return matrix


def _lanes(own: Sequence[Any]) -> int:
    """The number of lanes, which all leaves of the arguments that have lanes agree on."""
    sizes = {np.shape(x)[0] if np.ndim(x) else -1 for x in tree.leaves(list(own))}
    if len(sizes) != 1 or min(sizes) < 1:
        raise ShapeError(
            f"the arguments have {sorted(sizes)} batch elements along their first axes",
            remedy="give each the same number of batch elements, at least 1",
        )
    return sizes.pop()
