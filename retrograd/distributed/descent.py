"""minimize: L-BFGS, Adam and other methods on gradients over shards, with their state in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..api import tree
from ..eager import optim
from ..errors import NonDifferentiableError, OptionError
from .lbfgs import Lbfgs
from .pace import Pace, Watcher, watcher_of
from .saved_steps import SavedSteps, State
from .sharded import Report, Sharded, value_and_grad

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
        As for ``value_and_grad``, whose further options are taken.
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
        See ``checkpoint``.
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
    watcher = watcher_of(progress)
    with value_and_grad(loss, client, shards=shards, **options) as f:
        descent = _Descent(f, flat, unravel, method, rate, history, batch, seed)
        saved = None if checkpoint is None else SavedSteps(checkpoint, descent.identity | _plainly(options))
        with nullcontext() if saved is None else closing(saved):
            state = None if saved is None else saved.read()
            if state is not None and not resume:
                raise OptionError(
                    f"{os.fspath(checkpoint or '')} contains the state of an earlier run",
                    remedy="continue it by resume=True, or remove the file",
                )
            run = _Run(descent, saved, steps, every, tolerance, callback, Pace(watcher, steps, f.__name__))
            return run.from_state(state)


class _Descent:
    """The steps of a method, on flat arrays: what ``minimize`` does, without ends and files."""

    def __init__(
        self,
        f: Sharded,
        flat: np.ndarray[Any, Any],
        unravel: Callable[[Any], Any],
        method: str | optim.Optimiser,
        rate: float,
        history: int,
        batch: int | None,
        seed: int,
    ) -> None:
        self.f, self.unravel, self._batch, self._seed = f, unravel, batch, seed
        self._lbfgs = Lbfgs(self._evaluate, history) if method == "lbfgs" else None
        self._flat = flat if self._lbfgs is None else flat.astype(float)
        self._optimiser = optim.adam(rate) if isinstance(method, str) else method
        name = method if isinstance(method, str) else "optimiser"
        self.identity: dict[str, Any] = {
            "method": name,
            "number of parameters": flat.size,
            "number of shards": len(f),
            "history": history if name == "lbfgs" else None,
            "rate": rate if name == "adam" else None,
            "batch": batch,
            "seed": seed if batch else None,
            "slots": list(self._optimiser.slots) if name == "optimiser" else None,
        }

    def begin(self) -> State:
        """The state before the first step."""
        if self._lbfgs is not None:
            return self._lbfgs.begin(self._flat)
        return {"x": self._flat, **{k: np.asarray(v) for k, v in self._optimiser.init(self._flat).items()}}

    def steps(self, state: State, done: int) -> Iterator[tuple[State, float, float, str]]:
        """The states after each step, with value and largest slope at the points that the steps leave or reach."""
        if self._lbfgs is not None:
            yield from self._quasi_newton(self._lbfgs, state)
            return
        while True:
            value, slope = self._evaluate(state["x"], self._chosen(done))
            inner = {name: part for name, part in state.items() if name != "x"}
            x, inner = self._optimiser.update(slope, inner, state["x"])
            state = {"x": x, **{k: np.asarray(v) for k, v in inner.items()}}
            done += 1
            yield state, value, np.inf if self._batch else _largest(slope), ""

    def _quasi_newton(self, lbfgs: Lbfgs, state: State) -> Iterator[tuple[State, float, float, str]]:
        while True:
            found = lbfgs.step(state)
            if found is None:
                yield state, float(state["value"]), _largest(state["gradient"]), "no step makes the value smaller"
                return
            state = found
            yield state, float(state["value"]), _largest(state["gradient"]), ""

    def _chosen(self, done: int) -> Sequence[int] | None:
        """The shards of a step: the next ones of a pass through all in random order."""
        if not self._batch:
            return None
        count = len(self.f)
        per_pass = -(-count // self._batch)
        order = np.random.default_rng([self._seed, done // per_pass]).permutation(count)
        at = done % per_pass * self._batch
        return [int(k) for k in order[at : at + self._batch]]

    def _evaluate(self, x: Any, only: Sequence[int] | None = None) -> tuple[float, Any]:
        value, slopes = self.f(self.unravel(x), only=only)
        return float(value), np.asarray(tree.ravel(slopes)[0], x.dtype)


class _Run:
    """A descent with its ends, its file and its watchers."""

    def __init__(
        self,
        descent: _Descent,
        saved: SavedSteps | None,
        steps: int,
        every: int,
        tolerance: float,
        callback: Callable[[int, float, Any], object] | None,
        pace: Pace,
    ) -> None:
        self._descent, self._saved, self._steps, self._every = descent, saved, steps, every
        self._tolerance, self._callback, self._pace = tolerance, callback, pace
        self._values: list[float] = []
        self._state: State | None = None
        self._written = -1  # the number of steps that the file knows

    def from_state(self, state: State | None) -> Minimum:
        """Go on from a state of an earlier run, or begin."""
        if state is not None:
            self._values = state.pop("values").tolist()
            self._written = len(self._values)
            self._pace.advance(len(self._values))
        self._state = self._descent.begin() if state is None else state
        try:
            return self._walk()
        finally:
            self._write()

    def _walk(self) -> Minimum:
        assert self._state is not None
        slopes = self._state.get("gradient")
        if slopes is not None and _largest(slopes) <= self._tolerance:
            return self._minimum(float(self._state["value"]), True, "")
        value = float(self._state["value"]) if slopes is not None else np.nan
        if len(self._values) >= self._steps:
            return self._minimum(self._values[-1] if self._values else value, False, "")
        for state, value, slope, why in self._descent.steps(self._state, len(self._values)):
            if not why:
                self._state = state
                self._values.append(value)
                self._pace.advance()
                if len(self._values) % self._every == 0:
                    self._write()
                if self._callback is not None:
                    self._callback(len(self._values), value, self._descent.unravel(state["x"].copy()))
            if why or slope <= self._tolerance or len(self._values) >= self._steps:
                return self._minimum(value, slope <= self._tolerance, why)
        raise AssertionError

    def _minimum(self, value: float, converged: bool, why: str) -> Minimum:
        assert self._state is not None
        reason = "the gradient is within the tolerance" if converged else why or "all steps are done"
        params = self._descent.unravel(self._state["x"])
        return Minimum(params, value, converged, len(self._values), reason, self._values, self._descent.f.report)

    def _write(self) -> None:
        if self._saved is not None and self._state is not None and self._written != len(self._values):
            self._saved.write(self._state | {"values": np.array(self._values)})
            self._written = len(self._values)


def _largest(slope: Any) -> float:
    return float(np.max(np.abs(slope), initial=0.0))


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


def _plainly(options: dict[str, Any]) -> dict[str, Any]:
    """The options that change the sum."""
    return {"reduce": options.get("reduce", "sum")}


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
