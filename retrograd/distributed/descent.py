"""minimize: L-BFGS, Adam and other methods on gradients over shards, with their state in a file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import numpy as np

from ..api import tree
from ..eager import optim
from ..errors import NonDifferentiableError, OptionError
from .cluster_engine import ClusterEngine
from .descent_steps import DescentMethod, DescentState, Optimising, by_entries
from .faults import DistributedError
from .lbfgs import Lbfgs
from .lookout import LostWork
from .pace import Pace, Watcher, watcher_of
from .saved_steps import SavedSteps
from .sharded import Report, Sharded, value_and_grad
from .spread import OnWorkers
from .vectors import InThisProcess, LossAt, Vector, Vectors, bounds, named

METHODS = ("lbfgs", "adam")


@dataclass(frozen=True)
class Minimum:
    """The result of ``minimize``: ``params``, their ``value``, and ``why`` it stopped.

    ``converged`` says whether the gradient is within the tolerance. ``values`` are those of all steps, of earlier runs
    too; ``steps`` counts these. ``report`` tells of the last gradient.
    """

    params: Any
    value: float
    converged: bool
    steps: int
    why: str
    values: list[float] = field(repr=False)
    report: Report | None = field(repr=False)


def minimize(
    loss: Any,
    start: Any,
    *,
    shards: Any,
    client: Any = None,
    method: str | optim.Optimiser = "lbfgs",
    steps: int = 100,
    tolerance: float = 1e-6,
    rate: float = 1e-3,
    history: int = 10,
    batch: int | None = None,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 10,
    resume: bool = False,
    callback: Callable[[int, float, Any], object] | None = None,
    progress: bool | Watcher | None = None,
    **options: Any,
) -> Minimum:
    """Minimise a sum or mean of a loss over shards.

    Parameters
    ----------
    loss : callable or path
        As for ``value_and_grad``.
    start : tree
        The first parameters, floating-point arrays and numbers.
    shards, client, progress, **options
        As for ``value_and_grad``, whose further options are taken. The workers of a client also hold the optimiser's
        vectors, in pieces, if these are long.
    method : "lbfgs", "adam" or Optimiser
        L-BFGS, Adam with ``rate``, or an optimiser of ``rg.optim``.
    steps : int
        The most steps in all.
    tolerance : float
        It ends once no entry of the gradient is larger.
    rate : float
        The rate of Adam.
    history : int
        The number of pairs that L-BFGS keeps.
    batch : int, optional
        The number of shards in a step, in an order that ``seed`` decides, another for each pass. Not for L-BFGS.
    seed : int
        The seed of that order.
    checkpoint : path, optional
        A file that gets the optimiser's state after each ``every`` steps, and whenever the run ends, by an error or
        Ctrl-C too.
    every : int
        See ``checkpoint``. With long vectors on workers, these steps at most are repeated when a worker dies.
    resume : bool
        Whether the run goes on from the file, with the bits of a run that was never interrupted. Without a file it
        begins.
    callback : callable, optional
        ``callback(step, value, params)`` is called after each step.

    Returns
    -------
    Minimum
        The parameters, their value, and why it ended.

    Raises
    ------
    OptionError, NonDifferentiableError
        If an option or a parameter is wrong.
    SnapshotError
        If the file cannot be written or read.
    DistributedError
        If the cluster cannot go on. Errors of ``value_and_grad`` are raised here.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> def loss(w, x, y):
    ...     return np.sum((x @ w - y) ** 2)
    >>> shards = [(np.eye(2), np.array([1.0, 2.0])), (np.ones((1, 2)), np.array([3.0]))]
    >>> found = rg.distributed.minimize(loss, np.zeros(2), shards=shards)
    >>> found.converged, found.params.round(6)
    (True, array([1., 2.]))
    """
    _check(method, steps, every, history, batch, tolerance, checkpoint, resume)
    flat, unravel = _flat(start)
    flat = flat.astype(float) if method == "lbfgs" else flat
    watcher = watcher_of(progress)
    with ExitStack() as stack:
        f = stack.enter_context(value_and_grad(loss, client, shards=shards, **options))
        optimiser = None if method == "lbfgs" else optim.adam(rate) if method == "adam" else method
        assert not isinstance(optimiser, str)
        vectors = _vectors(f, flat, unravel, optimiser)
        identity = {
            "method": method if isinstance(method, str) else "optimiser",
            "number of parameters": flat.size,
            "number of shards": len(f),
            "history": history if method == "lbfgs" else None,
            "rate": rate if method == "adam" else None,
            "batch": batch,
            "seed": seed if batch else None,
            "slots": None if isinstance(method, str) else list(method.slots),
            "reduce": "mean" if f.mean else "sum",
        }
        path = checkpoint
        if path is None and vectors.elsewhere:  # to begin again from, when a worker has died
            path = Path(stack.enter_context(_folder()), "steps.rgs")
        saved = None if path is None else stack.enter_context(closing(SavedSteps(path, identity, flat.size)))
        if saved is not None and not resume and saved.read() is not None:
            raise OptionError(
                f"{os.fspath(checkpoint or '')} contains the state of an earlier run",
                remedy="continue it by resume=True, or remove the file",
            )
        return _Run(
            f,
            flat,
            unravel,
            vectors,
            Lbfgs(vectors, history)
            if optimiser is None
            else Optimising(vectors, optimiser, partial(_chosen, len(f), batch, seed)),
            _Ends(steps, every, tolerance, keep=checkpoint is not None),
            saved,
            callback,
            Pace(watcher, steps, f.__name__),
        ).go()


@contextmanager
def _folder() -> Iterator[str]:
    """A folder for the time of this block. A forked child that leaves the block, too, lets its parent's folder be."""
    path, process = mkdtemp(prefix="retrograd-"), os.getpid()
    try:
        yield path
    finally:
        if os.getpid() == process:
            shutil.rmtree(path, ignore_errors=True)


class _Ends(NamedTuple):
    """When a run ends: after so many steps, or at such a gradient. Its state is saved after each ``every`` steps.

    ``keep`` says whether the last state is wanted, too.
    """

    steps: int
    every: int
    tolerance: float
    keep: bool


class _Run:
    """A descent with its ends, its file and its watchers."""

    def __init__(
        self,
        f: Sharded,
        flat: Vector,
        unravel: Callable[[Any], Any],
        vectors: Vectors,
        method: DescentMethod,
        ends: _Ends,
        saved: SavedSteps | None,
        callback: Callable[[int, float, Any], object] | None,
        pace: Pace,
    ) -> None:
        self._f, self._flat, self._unravel, self._vectors, self._method = f, flat, unravel, vectors, method
        self._ends, self._saved, self._callback, self._pace = ends, saved, callback, pace
        self._state: DescentState | None = None  # None before the first step, and after it was lost
        self._done = 0  # steps up to this state; an interrupt may come when only its value is noted
        self._values: list[float] = []
        self._written = -1  # the number of steps that the file knows
        self._told = 0  # and the callback

    def go(self) -> Minimum:
        """The steps from the state in the file, or from the start."""
        try:
            while True:
                found: Minimum | None = self._vectors.again(self._walk)
                if found is not None:
                    return found
        except BaseException as fault:
            try:
                self._write(last=True)
            except Exception as further:  # noqa: BLE001 - pieces were lost, or the disk is full
                fault.add_note(f"The last state could not be written: {further}")
            raise

    def _walk(self) -> Minimum | None:
        """The steps to the end; of vectors elsewhere, to the next state in the file, from which they are placed anew.

        So no step depends on tasks of long ago, which dask would keep to compute them again.
        """
        try:
            if self._state is None:
                self._begin()
            return self._steps()
        except (LostWork, DistributedError):
            if self._vectors.elsewhere:
                self._state = None
            raise

    def _begin(self) -> None:
        found = None if self._saved is None else self._saved.read()
        if found is None:
            self._values, self._done = [], 0
            start = self._vectors.placed(lambda first, last: {"x": self._flat[first:last]})
            self._state = self._method.begin(start)
            return
        self._values, self._done = found.values, len(found.values)
        self._written, self._told = self._done, max(self._told, self._done)
        self._pace.advance(self._told - self._pace.done)
        self._state = DescentState(found.numbers, self._vectors.placed(found.read))

    def _steps(self) -> Minimum | None:
        assert self._state is not None
        began, numbers = self._done, self._state.numbers
        value = numbers.get("value", self._values[-1] if self._values else np.nan)
        largest, why = numbers.get("largest", np.inf), ""
        while True:
            converged = largest <= self._ends.tolerance
            if converged or why or self._done >= self._ends.steps:
                self._write(last=True)
                return self._minimum(value, converged, why)
            if self._vectors.elsewhere and began < self._done == self._written:
                self._state = None
                return None
            state, value, largest, why = self._method.step(self._state, self._done)
            if not why:
                self._values.append(value)
                self._state, self._done = state, self._done + 1
                self._write()
                self._tell(value)

    def _tell(self, value: float) -> None:
        """Say that a step is done, if it was not done before."""
        if self._done <= self._told:
            return
        self._told = self._done
        self._pace.advance()
        if self._callback is not None:
            self._callback(self._done, value, self._unravel(self._point()))

    def _point(self) -> Vector:
        assert self._state is not None
        return np.concatenate([*self._vectors.collected(self._vectors.each(named, self._state.vectors, name="x"))])

    def _minimum(self, value: float, converged: bool, why: str) -> Minimum:
        reason = "the gradient is within the tolerance" if converged else why or "all steps are done"
        params = self._unravel(self._point())
        return Minimum(params, value, converged, self._done, reason, self._values, self._f.report)

    def _write(self, last: bool = False) -> None:
        """Write the state, if it is the turn of this step, or the last one that is wanted."""
        wanted = self._ends.keep if last else self._done % self._ends.every == 0
        if self._saved is None or self._state is None or not wanted or self._written == self._done:
            return
        pieces = self._vectors.collected(self._state.vectors)
        self._saved.write(self._state.numbers, self._values[: self._done], pieces)
        self._written = self._done


def _vectors(f: Sharded, flat: Vector, unravel: Callable[[Any], Any], optimiser: optim.Optimiser | None) -> Vectors:
    """Where the vectors lie: on workers if they are long, and the method may work on pieces; else here."""
    if isinstance(f.engine, ClusterEngine) and (optimiser is None or by_entries(optimiser)):
        cut = bounds(flat.size, f.engine.workers())
        if len(cut) > 1:
            return OnWorkers(f, f.engine, cut, flat.dtype, unravel)

    def evaluate(x: Vector, only: Sequence[int] | None) -> LossAt:
        value, slopes = f(unravel(x), only=only)
        slope = np.asarray(tree.ravel(slopes)[0], x.dtype)
        return LossAt(float(value), float(np.max(np.abs(slope), initial=0.0)), [slope])

    return InThisProcess(flat.size, evaluate)


def _chosen(count: int, batch: int | None, seed: int, done: int) -> Sequence[int] | None:
    """The shards of a step: the next ones of a pass through all in random order; None for all."""
    if not batch:
        return None
    per_pass = -(-count // batch)
    order = np.random.default_rng([seed, done // per_pass]).permutation(count)
    at = done % per_pass * batch
    return [int(k) for k in order[at : at + batch]]


def _flat(start: Any) -> tuple[np.ndarray[Any, Any], Callable[[Any], Any]]:
    leaves = tree.leaves(start)
    if not leaves or any(np.asarray(x).dtype.kind != "f" for x in leaves):
        kinds = sorted({str(np.asarray(x).dtype) for x in leaves})
        raise NonDifferentiableError(
            f"the start contains {', '.join(kinds) or 'nothing'}",
            remedy="start from a tree of floating-point arrays and numbers",
        )
    flat, unravel = tree.ravel(start)
    return np.array(flat), unravel


def _check(
    method: Any,
    steps: Any,
    every: Any,
    history: Any,
    batch: Any,
    tolerance: Any,
    checkpoint: Any,
    resume: Any,
) -> None:
    if method not in METHODS and not isinstance(method, optim.Optimiser):
        raise OptionError(f"method={method!r}", remedy="choose 'lbfgs', 'adam' or an optimiser of rg.optim")
    for name, n, least in (("steps", steps, 0), ("every", every, 1), ("history", history, 1)):
        if type(n) is not int or n < least:
            raise OptionError(f"{name}={n!r}", remedy=f"choose a whole number from {least}")
    if batch is not None and (type(batch) is not int or batch < 1 or method == "lbfgs"):
        raise OptionError(
            f"batch={batch!r} with {method!r:.40}", remedy="give a number of shards, with a method other than L-BFGS"
        )
    if not isinstance(tolerance, (int, float)) or not tolerance >= 0:
        raise OptionError(f"tolerance={tolerance!r}", remedy="choose a number from 0")
    if resume and checkpoint is None:
        raise OptionError("resume=True needs a file", remedy="give the file: checkpoint='steps.rgs'")
