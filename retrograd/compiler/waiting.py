"""Waiting: which further paths through a function are compiled, and when.

All paths of a signature are compiled as one, so compiling each at once would cost the square of their number.
While they are short together, each is compiled at once. Later ones are kept and interpreted (``kept_ways``). A path
that cannot be kept, as it draws or calls the host, is traced each time and waits: a path must come back, and paths must
come back often enough. So a path that is followed once costs its trace, and all compilations
together cost as much as a few of the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .compilation import INSPECTORS, Compilation
from .folding import consider, folds
from .inside import Callee
from .kept_ways import kept_ways
from .paths import Paths
from .postponed import Postponed, decides_often
from .settings import config

SHORT = 500  # nodes of all ways up to which they are compiled as they come
MOST_MET = 4096  # ways of which is remembered that they were gone once


class Way(NamedTuple):
    """A way with the answers that its guards expect, and what its recording has read."""

    answers: Any
    compilation: Compilation
    reads: tuple[Any, ...]


class Waiting:
    """The ways of one signature that are not compiled: those that were gone once, by hash, and those that came back."""

    def __init__(self) -> None:
        self.met: dict[int, None] = {}
        self.back: dict[Any, Way] = {}
        self.returns = 0  # since ways were compiled last

    def again(self, answers: Any) -> bool:
        """Whether a way was gone before; from now on, it was."""
        known = hash(answers) in self.met
        self.met[hash(answers)] = None
        if len(self.met) > MOST_MET:
            del self.met[next(iter(self.met))]
        return known


def joining(
    compiled: Callee, statics: Sequence[Any], paths: Paths, answers: Any, way: Compilation, reads: tuple[Any, ...]
) -> list[Way]:
    """The ways to compile now, after one was recorded that is not among the compiled ones."""
    known, most = len(paths.known), config.max_traces
    new = Way(answers, way, reads)
    doubtful = decides_often(way.recorded.graph) and _is_interpreted_cheaply(way)
    if not known:
        consider(paths, way)
        if doubtful:
            kept_ways(paths).put_off(way, reads)
        return [new]
    if not folds(paths) and not kept_ways(paths).waits and not doubtful:
        nodes = sum(len(each.recorded.graph.nodes) for each in (*paths.known.values(), way))
        if known < min(2, most) or (nodes <= SHORT and known < most):
            return [new]
    if kept_ways(paths).keep(compiled, statics, way, reads) or folds(paths):
        return []
    waiting: Waiting = vars(paths).setdefault("waiting", Waiting())
    if not waiting.again(answers) or known >= most:
        return []
    waiting.back[answers] = new
    waiting.returns += 1
    if waiting.returns < known // 2 and len(waiting.back) < most - known:
        return []
    found = [each for each in waiting.back.values() if all(read.holds() for read in each.reads)]
    waiting.back.clear()
    waiting.returns = 0
    return found[-(most - known) :]


def _is_interpreted_cheaply(way: Compilation) -> bool:
    """Whether the result of a way costs little without compiling it, and promises nothing on memory."""
    return isinstance(way.derived, Postponed) or way.derived.graph is way.recorded.graph


INSPECTORS["joining"] = joining
