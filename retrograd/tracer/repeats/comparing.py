"""An outermost trace records a long program's steps, and compares further ones once they repeat.

While it compares, the graph stands still. A step that is as expected makes a traced value of which only the place is
known; anything else, and whatever else wants to put something into the graph, ends that: what was compared becomes a
loop of the graph, and all goes on as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from math import inf
from typing import Any
from weakref import ref

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ...ir.builder import Builder, Symbol
from ...ir.graph import Node, Value
from ...ir.primitive import Primitive
from ...ir.types import Aval
from ...where import is_foreign
from ..around import kept
from ..array import Tracer
from ..trace import STOPPED, Storage, Trace
from .looped import Looped
from .period import WIDTH, Iteration, NextCall, may_repeat, repeated
from .steps import Contents, Given, NumPyCall, Unlike, contents_of, depends, described, like, plain, value_of

UNWATCHED = 1_000  # operations at the beginning of a recording
LOOK = 1_000  # steps after which repetition is looked for, and again after two and four times as many
REST = 8  # times as many operations as there were go by unnoted if none repeats: noting takes longer than recording
TIDY = 16_384  # traced values after which their list is rid of those that are gone
LIGHT = 40  # steps that are compared count as one towards ``rg.config.max_nodes``

COMPARING: ContextVar[Comparing | None] = ContextVar("retrograd_comparing", default=None)
kept(COMPARING)
Args = tuple[Any, ...]
Run = Callable[..., Any]


class Recordable:
    """A function, method or operator that steps call, with the function for plain values."""

    def __init__(self, plain: Run) -> None:
        self.plain = plain


GONE = ref(Recordable(len))  # to what is no more


class Compared(Value):
    """A value that was not recorded: its place says what it is."""

    __slots__ = ("place",)

    def __init__(self, aval: Aval, hint: str | None, place: int) -> None:
        self.aval, self.hint = aval, hint
        self.place: int | None = place  # None once the value is in the graph


class HeldBuilder(Builder):
    """The builder of a trace that compares: before it changes the graph, the loop is put there."""

    watch: Comparing

    def _ended(self) -> Any:
        """The nodes of values, also of those that were compared."""
        self.watch.end()
        return self.made

    made: Any = property(_ended)  # while this is the class; afterwards it is an attribute again

    def emit(
        self,
        prim: Primitive,
        inputs: Sequence[Value],
        attrs: Any,
        hints: Sequence[str | None] = (),
        avals: Sequence[Aval] | None = None,
    ) -> list[Symbol]:
        self.watch.end()
        return self.emit(prim, inputs, attrs, hints, avals)

    def single(self, prim: Primitive, inputs: tuple[Value, ...], attrs: Any, key: Any, aval: Aval) -> Symbol:
        self.watch.end()
        return self.single(prim, inputs, attrs, key, aval)

    def keep(self, node: Node) -> tuple[Value, ...]:
        self.watch.end()
        return self.keep(node)

    def input(self, aval: Aval, hint: str | None = None) -> Symbol:
        self.watch.end()
        return self.input(aval, hint)


class Comparing:
    """What one recording has done, and what it does again."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.step: Callable[..., Any] = Comparing._begun  # no bound method, which would be a cycle
        self.used = False
        self._busy = False  # within a step, which may be made of others
        self._rest(UNWATCHED)
        self._forget()

    def _rest(self, until: float) -> None:
        """Let the operations up to so many go by."""
        self.rested = until
        self.trace.quick = min(until, self.trace.max_nodes)

    @property
    def watches(self) -> bool:
        """Whether an operation is a step now."""
        return self.trace.asked >= self.rested and not self._busy

    def _whole(self, run: Run, args: Args, kwargs: dict[str, Any]) -> Any:
        """A step as one, whatever it is made of."""
        self._busy, quick = True, self.trace.quick
        self.trace.quick = self.trace.max_nodes
        try:
            return run(*args, **kwargs)
        finally:
            self._busy, self.trace.quick = False, quick

    def _forget(self) -> None:
        self.steps: list[NumPyCall | None] = []
        self.ended = -1  # nodes after the last step
        self.first = self.next = max(LOOK, self.trace.asked // (2 * REST))  # steps after which to look

    def _begun(self, run: Run, what: Recordable, args: Args, kwargs: dict[str, Any]) -> Any:
        """The first step after a rest."""
        if type(self.trace.builder) is not Builder:  # one that keeps equal operations apart
            self._rest(inf)
            return run(*args, **kwargs)
        self._rest(-1)
        self._forget()
        self.step = Comparing._noted
        return self._noted(run, what, args, kwargs)

    # Steps are noted ------------------------------------------------------------------------------------------------

    def _noted(self, run: Run, what: Recordable, args: Args, kwargs: dict[str, Any]) -> Any:
        if self._busy:
            return run(*args, **kwargs)
        nodes, given, step = self.trace.builder.nodes, None, None
        start = len(nodes)
        with suppress(Unlike):
            given = Given(args, kwargs, self.trace)
        found = self._whole(run, args, kwargs)
        if given is not None and not STOPPED.get():
            with suppress(Unlike):
                step = NumPyCall(what, given, found, (start, len(nodes)), self.trace)
        if step is None and start == len(nodes) and not depends(args, kwargs):
            return found
        if start != self.ended:
            self.steps.append(None)
        self.steps.append(step)
        self.ended = len(nodes)
        if len(self.steps) >= self.next:
            self._look()
        return found

    def _look(self) -> None:
        body = repeated(self.steps, self.trace.builder.nodes)
        if body is not None:
            self._begin(body)
        elif None in self.steps[len(self.steps) // 2 :] or self._is_hopeless():
            self._rest(REST * self.trace.asked)
            self.step = Comparing._begun
            self._forget()
        else:
            self.next = 2 * len(self.steps)

    def _is_hopeless(self) -> bool:
        """Whether no longer iteration has begun a second time, or none has come four times in all looks."""
        n = len(self.steps) // self.first
        return n >= 4 or (n >= 2 and not may_repeat(self.steps))

    # Steps are compared ---------------------------------------------------------------------------------------------

    def _begin(self, body: Iteration) -> None:
        self.body, self.used = body, True
        self.wanted = body.steps
        self.at = self.base = 0
        self.tidied = len(self.trace.made)
        self.shared: dict[int, Value] = {}
        self._forget()
        self.step = Comparing._same
        builder: Any = self.trace.builder
        builder.watch = self
        builder.__class__ = HeldBuilder

    def _same(self, run: Run, what: Recordable, args: Args, kwargs: dict[str, Any]) -> Any:
        wanted, failed = self.wanted[self.at], None
        if wanted.what is what and not STOPPED.get():
            try:
                found = self._quickly(wanted, what, args) if wanted.pair is not None else None
                if found is None:
                    leaves = self._as_wanted(wanted, args, kwargs)
                    found = self._made(wanted, leaves, what.plain(*plain(args), **plain(kwargs)))
            except Unlike:
                found = None
            except Exception as fault:  # noqa: BLE001 - NumPy raises it again when the step is recorded
                found, failed = None, fault
            if found is not None:
                self.at += 1
                if self.at == len(self.wanted):
                    self.at = 0
                    self.base += self.body.span
                    if len(self.trace.made) > self.tidied + TIDY:
                        self._tidy()
                return found
        if failed is None and not depends(args, kwargs):
            return self._whole(run, args, kwargs)
        self.end()
        again = self.step(self, run, what, args, kwargs)
        if failed is not None and _is_the_users(failed):
            raise failed
        return again

    def _quickly(self, wanted: NextCall, what: Recordable, args: Args) -> Tracer | None:
        """What an operator makes of two operands; None if they must be looked at more closely."""
        assert wanted.pair is not None
        first, second, place = wanted.pair
        x, y = args
        if type(first) is int:
            if not self._is_at(x, self.base + first):
                return None
            x = x.shadow
        elif not first.is_like(x):
            return None
        if type(second) is int:
            if not self._is_at(y, self.base + second):
                return None
            y = y.shadow
        elif not second.is_like(y):
            return None
        shadow, made = what.plain(x, y), wanted.makes[0][1]
        if type(shadow) is not made.kind:
            return None
        v = Compared(made.value.aval, made.value.hint, self.base + place)
        return Tracer(self.trace, shadow, Storage(Symbol(self.trace.builder, v)), where=made.where)

    def _is_at(self, x: Any, place: int) -> bool:
        """Whether an operand has memory of its own, which holds the compared value of this place."""
        if type(x) is not Tracer or x.parent is not None or (symbol := x.storage.symbol) is None:
            return False
        v = symbol.value
        return type(v) is Compared and v.place == place

    def _tidy(self) -> None:
        """Let references to traced values go that are no more, but not their number; TraceLengthError for too many."""
        made = self.trace.made
        self.trace.count((len(made) - self.tidied) // LIGHT)
        made[self.tidied :] = [r if r() is not None else GONE for r in made[self.tidied :]]
        self.tidied = len(made)

    def _as_wanted(self, wanted: NextCall, args: Args, kwargs: dict[str, Any]) -> list[Any]:
        """The leaves among the arguments; Unlike if these are not as wanted."""
        leaves: list[Any] = []
        if described((args, kwargs), leaves) != wanted.key:
            raise Unlike
        for x, source in zip(leaves, wanted.sources, strict=True):
            if type(source) is ndarray:
                fits = x is source
            elif type(source) is Contents:
                fits = contents_of(x if type(x) is ndarray else x.shadow) == source and (type(x) is ndarray or x.const)
            elif type(source) is int:
                fits = self._place(value_of(x)) == self.base + source and x.home is self.trace
            else:
                fits = value_of(x) is source
            if not fits:
                raise Unlike
        return leaves

    def _place(self, v: Value | None) -> int | None:
        """The place of a value that was compared, or recorded before."""
        if v is None:
            return None
        return v.place if isinstance(v, Compared) and v.place is not None else self.body.place.get(v)

    def _made(self, wanted: NextCall, leaves: list[Any], shadow: Any) -> Any:
        """What the step makes; Unlike if NumPy makes something else of the examples."""
        results = [shadow] if wanted.form is None else shadow
        if wanted.form is not None and len(shadow) != len(wanted.makes):
            raise Unlike
        found = []
        for (source, like_it), example in zip(wanted.makes, results, strict=True):
            if like(example) != like_it.kind:
                raise Unlike
            symbol = Symbol(self.trace.builder, self._value(source, like_it.value))
            if like_it.viewed is None:
                found.append(Tracer(self.trace, example, Storage(symbol), where=like_it.where))
                continue
            base = leaves[like_it.viewed]
            view = Tracer(self.trace, example, base.storage, base, like_it.op, like_it.where)
            view.symbol, view.version = symbol, base.storage.version
            found.append(view)
        if wanted.form is None:
            return found[0]
        return wanted.form._make(found) if hasattr(wanted.form, "_make") else wanted.form(found)

    def _value(self, source: Any, recorded: Value) -> Value:
        if type(source) is not int:
            return recorded
        place, slot = self.base + source, source % self.body.span
        known = self.shared.get(slot)
        if isinstance(known, Compared) and known.place == place:
            return known
        if source < 0:  # an earlier iteration has made it
            if place >= 0:
                raise Unlike
            return self.body.node(place // WIDTH).outputs[place % WIDTH]
        found = Compared(recorded.aval, recorded.hint, place)
        if slot in self.body.shared:
            self.shared[slot] = found
        return found

    def end(self) -> None:
        """Put what was compared into the graph."""
        builder: Any = self.trace.builder
        cls = type(builder)
        if cls is not HeldBuilder:
            return
        del builder.watch
        builder.__class__ = Builder
        self.step = Comparing._noted
        body, alive, recorded, examples = self.body, dict[int, Compared](), dict[int, Value](), dict[int, Any]()
        tracers = [t for r in self.trace.made if (t := r()) is not None and t.home is self.trace]
        for t in tracers:
            for symbol in (t.storage.symbol if t.parent is None else None, t.symbol):
                if symbol is None:
                    continue
                v = symbol.value
                place = self._place(v)
                if place is not None:
                    examples[place] = t.shadow
                    if isinstance(v, Compared) and v.place is not None:
                        alive[place] = v
                    else:
                        recorded[place] = v
        ends = self.base // body.span * body.length + body.length + body.ends[self.at]
        new = Looped(builder, body, ends, alive, self.trace.count).emit(
            recorded, lambda place: _collectable(examples.get(place))
        )
        for v in alive.values():
            v.place = None
        for t in tracers:
            for symbol in (t.storage.symbol, t.symbol):
                if symbol is not None and symbol.value in new:
                    symbol.value = new[symbol.value]
        del self.body, self.wanted, self.shared


def _is_the_users(fault: BaseException) -> bool:
    """Whether an exception comes from the user's code, such as the handler of a signal."""
    at = fault.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and not is_foreign(at.tb_frame)


def _collectable(example: Any) -> bool:
    """Whether a row of an array is of the same kind as the value, and lies in memory as it does."""
    if type(example) is ndarray:
        return example.ndim > 0 and example.flags.c_contiguous
    return isinstance(example, (np.generic, int, float, complex))
