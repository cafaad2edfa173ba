"""Python ints among the arguments: static at first, and traced once they take a second value.

A step number or a count that is only used in arithmetic thus compiles twice, and not at each value. If Python or NumPy
needs an int during tracing, as a length, an index, an axis or an exponent, it stays static: that
shows in the trace, or as an error. A compiled function that ``counts`` traces them from its first call on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast
from weakref import WeakKeyDictionary, WeakSet

from ..errors import ControlFlowError
from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import walk
from ..ops.elementary import pow_, power
from ..ops.structural.guard import guard
from ..tracer.surroundings import Captures
from ..tracer.swallowed import forget_since, refusals
from .cache import Cache
from .compilation import Compilation
from .paths import FINDERS, Found, Once, Paths
from .settings import config
from .sharing import trim
from .signature import Call

MOST = 1 << 53  # the largest int that is traced: floats hold it
MOST_WAYS = 4  # ways of decisions about ints, from which on they are static
NONE: frozenset[int] = frozenset()


@dataclass(eq=False)
class Seen:
    """The ints of one signature: their first values, and the leaves that vary and those that must be known."""

    first: dict[int, int]
    varying: set[int] = field(default_factory=set)
    static: set[int] = field(default_factory=set)
    judged: WeakSet[Paths] = field(default_factory=WeakSet)

    def traced(self, call: Call) -> set[int]:
        """The leaves to trace in a call, which may be the first that shows that they vary."""
        self.varying |= self.new(call)
        return self.varying - self.static

    def new(self, call: Call) -> set[int]:
        """The leaves whose value is not the first."""
        return {i for i, value in self.first.items() if call.leaves[i] != value}


class Known(Once):
    """A way for known ints: those of this call, unless another function or thread has recorded it."""

    def __init__(self, way: Compilation, call: Call) -> None:
        super().__init__(way)
        self._static = call

    def call(self, compiled: Any, leaves: Sequence[Any], captures: Captures, statics: Sequence[Any] = ()) -> Any:
        """The result of what was recorded, or of a recording with static ints."""
        before = refusals()
        try:
            return super().call(compiled, leaves, captures, statics)
        except ControlFlowError:
            forget_since(before)
            found: Found = compiled.found(self._static)
            return found.paths.call(compiled, *found.operands)

    def way(self, compiled: Any, leaves: Sequence[Any], captures: Captures, statics: Sequence[Any]) -> Compilation:
        """What is shown of it: the recording with static ints, which later calls run."""
        found: Found = compiled.found(self._static)
        return found.paths.way(compiled, *found.operands)


_seen: WeakKeyDictionary[Cache[Any], dict[Hashable, Seen]] = WeakKeyDictionary()


def find(compiled: Any, call: Call) -> Found:
    """The paths of a call, with ints that vary as traced values where that can be recorded."""
    kept, plainly = _ints(call), cast(Callable[[Call], Found], compiled.found)
    if not kept:
        return plainly(call)
    general = _with_traced(call, {*kept})
    seen = _seen_so_far(compiled._cache, general, kept)
    if getattr(compiled, "counts", False):
        seen.varying |= {*kept}
    varying = seen.traced(call)
    if not varying:
        return plainly(call)
    before = refusals()
    try:
        found = plainly(general if len(varying) == len(kept) else _with_traced(call, varying))
    except Exception:  # noqa: BLE001 - whatever it is: if it is not for the int, it is raised again
        forget_since(before)
        seen.static |= varying
        return plainly(call)
    paths = found.paths
    many = isinstance(paths, Paths) and len(paths.known) > MOST_WAYS
    if isinstance(paths, Paths) and paths.known and (many or paths not in seen.judged):
        seen.judged.add(paths)
        way = next(iter(paths.known.values()))
        if asked := _asked(found.call, way.recorded.graph, varying, many):
            seen.static |= asked
            serves = len(paths.known) == 1 and seen.new(call)  # this recording, for this value, which may not come back
            return found._replace(paths=Known(way, call)) if serves else plainly(call)
    return found


def as_known(compiled: Any, call: Call) -> Call:
    """A call as its paths are kept, if there are any."""
    kept = _ints(call)
    seen = _seen.get(compiled._cache, {}).get((config.now(), _with_traced(call, {*kept}).key)) if kept else None
    return call if seen is None else _with_traced(call, (seen.varying | seen.new(call)) - seen.static)


def _ints(call: Call) -> list[int]:
    """The leaves that may be traced although they are Python ints."""
    if type(call) is not Call:
        return []
    return [i for i, x in enumerate(call.leaves) if type(x) is int and abs(x) <= MOST and i not in call.unread]


def _seen_so_far(cache: Cache[Any], general: Call, kept: list[int]) -> Seen:
    signatures = _seen.setdefault(cache, {})
    key = config.now(), general.key
    seen = signatures.get(key)
    if seen is None:
        seen = signatures.setdefault(key, Seen({i: general.leaves[i] for i in kept}))
        trim(signatures, config.cache_size + 1)
    return seen


def _with_traced(call: Call, more: set[int]) -> Call:
    return replace(call, traced=tuple(sorted({*call.traced, *more})))


def _asked(call: Call, graph: Graph, varying: set[int], many: bool) -> set[int]:
    """The leaves whose values Python asked for: other than for a decision, or if there are ``many``, at all.

    Exponents of what is traced count, too: NumPy raises to small constant powers in ways of its own.
    """
    inputs = zip(call.traced, graph.inputs, strict=False)
    of = {v: frozenset({i} if i in varying else {-1}) for i, v in inputs}  # -1: of other arguments, too
    return {i for node in graph.nodes for i in _asked_by(node, of, many)} & varying


def _asked_by(node: Node, of: dict[Value, frozenset[int]], many: bool) -> Iterator[int]:
    found = NONE.union(*(of.get(v, NONE) for v in node.inputs))
    of.update(dict.fromkeys(node.outputs, found))
    if node.prim in (power, pow_):
        base, exponent = (of.get(v, NONE) for v in node.inputs)
        if exponent and (base or node.inputs[0].aval.shape):
            yield from exponent
    elif -1 not in found and any(n.prim is guard and (many or n.attrs["kind"] != "bool") for n in walk(node)):
        yield from found


FINDERS.append(find)
