"""A trace: one run of a function on example values, recorded as a graph."""

from __future__ import annotations

import functools
import itertools
import math
import sys
import zlib
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from weakref import ref

import numpy as np

from ..errors import CapturedWriteError, LeakedTracerError, RecordMismatchError, TraceLengthError, UnsupportedError
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Value
from ..ir.primitive import TRANSFORMS
from ..ir.types import Aval, aval_of, in_order
from ..ops.shape import iota, reshape_to
from ..ops.structural.guard import guard
from ..where import Where, user_site
from .around import Around, kept
from .foreign import adviser
from .held import Held

SMALL = 16  # elements up to which an array made inside the trace becomes a constant node

F = TypeVar("F", bound=Callable[..., Any])

CURRENT: ContextVar[Trace | None] = ContextVar("retrograd_trace", default=None)
STOPPED: ContextVar[bool] = ContextVar("retrograd_no_grad", default=False)
MADE_UP: ContextVar[bool] = ContextVar("retrograd_made_up", default=False)  # the function does not run on its examples
READER: ContextVar[Any] = ContextVar("retrograd_reader", default=None)  # takes note of what is read of outside
kept(CURRENT, STOPPED, MADE_UP, READER)
_number = itertools.count(1)


class Storage:
    """The memory behind tracers that share it: its current value in the graph, and how often it was written.

    ``symbol`` is None while only plain numbers were written into it: then the example value is the value. ``hint`` is
    the variable that an array made inside the trace was first bound to.
    """

    __slots__ = ("hint", "symbol", "version")

    def __init__(self, symbol: Symbol | None) -> None:
        self.symbol = symbol
        self.version = 0
        self.hint: str | None = None


@dataclass(eq=False)
class Capture:
    """A value from outside: an array of the user's, or a symbol of the enclosing trace with its example value.

    With ``made``, an array made inside the trace that is too large for a constant node: nobody else holds it.
    """

    payload: Any
    symbol: Symbol
    shadow: Any
    made: bool = False


class Stateful(NamedTuple):
    """How traces take in objects that change as they are used, such as random generators."""

    classes: tuple[type, ...]
    stand_in: Callable[[Any, str | None], Any]  # what stands for one inside a trace, given its name
    capture: Callable[[Trace, Any], Symbol]  # makes one a trailing input
    example: Callable[[Trace, Any], Any]  # the copy that a trace and the traces inside it use
    repeatable: Callable[[Callable[..., Any], Sequence[Any]], Callable[..., Any]]  # code that sets them back on failure
    rewinding: Callable[[Trace], Callable[[], None]]  # a function that sets the examples back to their present states
    watch: Callable[[], Any]  # made for one trace: it may ``add`` an object that others change unseen, and ``check``


STATEFUL: list[Stateful] = []


def stateful(x: Any) -> Stateful | None:
    """How traces take in this object; None if they do not, or if it has no state."""
    return next((kind for kind in STATEFUL if issubclass(type(x), kind.classes)), None)


class Trace:
    """One trace. ``parent`` is the enclosing trace; ``concrete`` is False if examples must not decide branches."""

    def __init__(self, name: str, parent: Trace | None, concrete: bool = True, max_nodes: int | None = None) -> None:
        self.name = name
        self.number = next(_number)
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.concrete: bool = concrete and (parent is None or parent.concrete)
        self.runs = self.concrete and not MADE_UP.get()  # on its examples: what fails on them fails for the user
        self.active = True
        self.frame = 0  # the id of the frame that records, which stands below all that is traced
        self.gathers = False  # a branch or a loop body, which records all that happens in it
        self.max_nodes: float = max_nodes or (math.inf if parent is None else parent.max_nodes)
        self.asked = 0  # operations
        self.quick = self.max_nodes  # operations up to which they need no look at what was recorded before
        self.builder = Builder()
        self.captures: dict[Any, Capture] = {}
        self.reader = READER.get()
        self.made: list[ref[Any]] = [] if parent is None else parent.made  # all tracers
        self.decided: dict[tuple[Value, str], Any] = {}
        self._contents: dict[str, dict[Value, bool]] = {}
        self.tainted = False  # an operation failed on these examples; on others it may not
        self._lifted: dict[int, tuple[Storage, int, Symbol]] = {}
        self._sums: dict[int, tuple[int, Where | None]] = {}  # checksum, line of the first use

    def __str__(self) -> str:
        return f"trace {self.number} of {self.name}"

    def count(self, operations: int = 1) -> None:
        """Count operations that the program asks for, also those that merge; TraceLengthError beyond ``max_nodes``."""
        self.asked += operations
        if self.asked > self.max_nodes or len(self.builder.nodes) > self.max_nodes:
            loops = adviser().loops(sys._getframe(1), self.frame)
            place = f", in the {'loops' if loops[1:] else 'loop'} at {' and '.join(map(str, loops))}" if loops else ""
            raise TraceLengthError(
                f"the trace of {self.name} has more than {self.max_nodes} operations{place}",
                remedy="repeat with rg.scan, rg.fori_loop or rg.while_loop, or raise rg.config.max_nodes",
            )

    def descends_from(self, other: Trace) -> bool:
        trace: Trace | None = self
        while trace is not None and trace is not other:
            trace = trace.parent
        return trace is other

    def constant(self, value: Any) -> Symbol:
        """A number or NumPy scalar as a constant of its own type."""
        return self.builder.constant(value, aval_of(value))

    def capture(self, array: Any, aval: Aval | None = None, *, made: bool = False, hint: str | None = None) -> Symbol:
        """Make an array from outside, or a list of steps with this aval, a trailing input; it is held by reference."""
        found = self.captures.get(id(array))
        if found is None:
            symbol = self.builder.input(aval or traceable(array), hint)
            found = self.captures[id(array)] = Capture(array, symbol, array, made)
            if isinstance(array, np.ndarray) and not made:
                self._sums[id(array)] = (_checksum(array), user_site()[0])
        return found.symbol

    def keep(self, array: np.ndarray[Any, Any]) -> Symbol:
        """Make a copy of an array that was made inside the trace a trailing input."""
        return self.capture(array.copy(), made=True)

    def capture_symbol(self, symbol: Symbol, shadow: Any) -> Symbol:
        """Make a value of the enclosing trace a trailing input."""
        found = self.captures.get(symbol.value)
        if found is None:
            hint = symbol.value.hint
            found = self.captures[symbol.value] = Capture(symbol, self.builder.input(symbol.aval, hint), shadow)
        return found.symbol

    def lift(self, array: np.ndarray[Any, Any], storage: Storage | None = None) -> Symbol:
        """Enter an array made inside the trace by its present contents: as a constant, a range or a trailing input."""
        if not in_order(array):
            plain = np.array(array, order="C")
            relaid: Symbol = TRANSFORMS.relaid(self.lift(plain, storage), array, plain)
            return relaid
        flat = array.reshape(-1)
        if flat.size == 0 or (flat.view(f"V{flat.itemsize}")[:1] == flat.view(f"V{flat.itemsize}")).all():
            fill = flat[0].item() if flat.size else 0
            return self.builder.constant(fill, Aval(array.shape, array.dtype))
        if flat.size <= SMALL:
            return self.builder.constant(array)
        if array.dtype == np.int64 and ((steps := np.diff(flat)) == steps[0]).all():
            return reshape_to(self._counted(int(flat[0]), int(steps[0]), flat.size), array.shape)
        if storage is None:
            return self.keep(array)
        known = self._lifted.get(id(storage))
        if known is None or known[1] != storage.version:
            known = self._lifted[id(storage)] = (storage, storage.version, self.keep(array))
        return known[2]

    def decide(self, symbol: Symbol, kind: str, expected: Any, where: Where | None) -> None:
        """Emit a guard: Python was told an answer about a value, and the graph holds only where it is the same."""
        if (symbol.value, kind) in self.decided or self._follows_from_contents(symbol.value):
            return
        self.decided[symbol.value, kind] = expected
        self.builder.where = where
        self.builder.emit(guard, (symbol.value,), {"kind": kind, "expected": expected, "lanes": False}, avals=())

    def settled(self, symbol: Symbol) -> bool:
        """Whether a value follows from captured arrays alone; the graph then holds for their present contents only."""
        return self.concrete and self._follows_from_contents(symbol.value, "biufc")

    def _follows_from_contents(self, value: Value, kinds: str = "iub") -> bool:
        """Whether a value follows from captured arrays of these kinds; then the recording relies on their contents."""
        if not self.captures or not self._is_contents(value, kinds):
            return False
        made, by_value = self.builder.made, {c.symbol.value: c for c in self.captures.values()}
        stack, seen = [value], {value}
        while stack:
            at = stack.pop()
            if at in made:
                stack.extend(v for v in made[at].inputs if v not in seen)
                seen.update(made[at].inputs)
            elif (at, "contents") not in self.decided:
                self.decided[at, "contents"] = None
                if self.reader is not None:
                    self.reader.rely_on(by_value[at].payload)
        return True

    def _is_contents(self, value: Value, kinds: str) -> bool:
        """Whether a value was computed from such arrays and numbers alone; the answer for each value is remembered."""
        known = self._contents.setdefault(kinds, {})
        stack = [value]
        while stack:
            at = stack[-1]
            node = self.builder.made.get(at)
            if at in known:
                stack.pop()
            elif node is None or node.prim.effect:
                known[at] = node is None and self._captures_array(at, kinds)
            elif any(known.get(v) is False for v in node.inputs):
                known[at] = False
            else:
                unknown = [v for v in node.inputs if v not in known]
                stack.extend(unknown[:1])
                if not unknown:
                    known[at] = True
        return known[value]

    def constant_of(self, t: Held) -> Any:
        """What plain Python would hold in place of a tracer that depends on no input; None for others."""
        if t.const:
            return t.shadow
        value = t.storage.symbol.value if t.parent is None and t.storage.symbol is not None else None
        found = next((c.payload for c in self.captures.values() if c.symbol.value is value), None)
        if isinstance(found, np.ndarray):
            return found
        return t.shadow if value is not None and self._is_contents(value, "biufc") else None

    def _captures_array(self, value: Value, kinds: str) -> bool:
        payload = next((c.payload for c in self.captures.values() if c.symbol.value is value), None)
        return isinstance(payload, np.ndarray) and payload.dtype.kind in kinds

    def _counted(self, start: int, step: int, size: int) -> Symbol:
        """The result of ``np.arange`` of integers as nodes, so that its contents need not travel with the graph."""
        count: Symbol = self.builder.emit(iota, (), {"aval": Aval((size,), np.dtype(np.int64))})[0]
        count = count if step == 1 else count * step
        return count if start == 0 else count + start

    def recording(self, around: Around) -> Recording:
        """The block in which this is the current trace; ``around`` prepares NumPy for it."""
        return Recording(self, around)

    def finish(self, inputs: Sequence[Symbol], outputs: Sequence[Symbol]) -> Graph:
        """The recorded graph: its inputs, then the captures; CapturedWriteError if a captured array has changed."""
        for capture in self.captures.values():
            known, where = self._sums.get(id(capture.payload), (None, None))
            if known is not None and known != _checksum(capture.payload):
                raise CapturedWriteError(
                    "a captured array that meets traced values here was changed while the function was traced, by code "
                    "that compiled functions do not run again",
                    where=where,
                    remedy="create the array inside the traced function, or write into a copy: x = x.copy()",
                )
        captured = [c.symbol.value for c in self.captures.values()]
        ordered = (*(s.value for s in inputs), *captured)
        return Graph(self.name, ordered, tuple(self.builder.nodes), tuple(s.value for s in outputs))


class Recording:
    """The block in which a trace is the current one.

    An enclosing ``no_grad`` applies to the results of this recording, not to the operations inside it.
    """

    def __init__(self, trace: Trace, around: Around) -> None:
        self._trace, self._around = trace, around
        self._before = CURRENT.get(), STOPPED.get()

    def __enter__(self) -> Trace:
        self._trace.frame = id(sys._getframe(1))
        CURRENT.set(self._trace)
        STOPPED.set(False)
        self._around.__enter__()
        return self._trace

    def __exit__(self, *_: object) -> None:
        self._trace.active = False
        self._around.__exit__()
        CURRENT.set(self._before[0])
        STOPPED.set(self._before[1])


# Exceptions that NumPy raises for some values and not for others of the same shape and dtype.
BY_VALUE = (ArithmeticError, IndexError, np.linalg.LinAlgError)
OF_NUMBERS = (*BY_VALUE, ValueError)  # the same of Python and its numbers, as int(nan) raises a ValueError


def noting_failure(function: F, faults: tuple[type[Exception], ...] = BY_VALUE) -> F:
    """Wrap a function: a failure that depends on values taints the trace, since other values may not fail."""

    @functools.wraps(function)
    def noted(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except faults:
            taint(CURRENT.get())
            raise

    return noted  # type: ignore[return-value]  # it takes and gives the same


def taint(trace: Trace | None) -> None:
    """Note in a trace and in those around it that what happened holds for these examples only."""
    while trace is not None:
        trace.tainted = True
        trace = trace.parent


def _checksum(array: np.ndarray[Any, Any]) -> int:
    return zlib.crc32(array.data if array.size and array.flags.c_contiguous else array.tobytes())


def traceable(value: Any) -> Aval:
    """The aval of a value that is about to be traced; UnsupportedError for what NumPy's rules do not cover."""
    if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
        raise unsupported(f"an array of the class {type(value).__name__}", "pass np.asarray(x)")
    try:
        return aval_of(value)
    except TypeError as fault:
        remedy = "pass numbers: np.asarray(x, float); in place of texts pass a mask, computed from them outside"
        raise UnsupportedError(str(fault), remedy=remedy) from None


def owner(tracers: Sequence[Held]) -> Trace:
    """The innermost trace among operands; raises named errors for leaked and unrelated tracers."""
    deepest: Trace = tracers[0].home
    if deepest is CURRENT.get():
        for t in tracers:
            if t.home is not deepest:
                break
        else:
            deepest.asked += 1
            if deepest.asked > deepest.max_nodes or len(deepest.builder.nodes) > deepest.max_nodes:
                deepest.count()
            return deepest
    known = [t for t in tracers if not t.const]  # numbers belong to no trace
    deepest = known[0].home if known else deepest if deepest.active else CURRENT.get() or deepest
    for t in known:
        if not t.home.active:
            raise LeakedTracerError(
                f"a value of {t.home} is used after that trace has ended; it was created at {t.where or 'its start'}",
                remedy="return it from the traced function, itself or in a list, tuple, dict or dataclass",
            )
        if t.home.depth > deepest.depth:
            deepest = t.home
    for t in known:
        if not deepest.descends_from(t.home):
            raise RecordMismatchError(
                f"one operation mixes values of {deepest} and of {t.home}",
                remedy="pass the value as an argument of the function that uses it",
            )
    current = CURRENT.get()
    if deepest.active and (current is None or not current.descends_from(deepest)):
        raise RecordMismatchError(
            f"a value of {deepest} is used in another thread",
            remedy="compute with traced values in the thread that traces",
        )
    deepest.count()
    return _gathering(deepest)


def _gathering(deepest: Trace) -> Trace:
    """The trace that records an operation on values of ``deepest``: a body records all that happens in it."""
    trace = CURRENT.get()
    while trace is not None and trace is not deepest:
        if trace.gathers:
            return trace
        trace = trace.parent
    return deepest


def unsupported(what: str, remedy: str) -> UnsupportedError:
    """The error that says, at the user's line, that ``what`` is not supported."""
    return UnsupportedError(f"{what} is not supported", remedy=remedy)
