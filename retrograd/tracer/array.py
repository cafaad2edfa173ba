"""Tracer: the value that a traced function sees in place of an array or a number."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..errors import ControlFlowError, InternalError
from ..ir.builder import Builder, Symbol
from ..ir.evaluate import evaluate, run_node
from ..ir.graph import Node
from ..ir.primitive import Primitive
from ..ir.types import Aval, aval_of
from ..ops.shape import broadcast_to, stop_gradient
from ..where import Where, is_ours, user_site
from .foreign import adviser
from .held import Held
from .mutation import make_traced, read
from .trace import BY_VALUE, OF_NUMBERS, STOPPED, Capture, Storage, Trace, noting_failure, owner

NUMBERS = (bool, int, float, complex, np.generic)


class Tracer(Held):
    """A traced array, NumPy scalar or Python number.

    ``home`` is its trace and ``shadow`` the example value that NumPy computed; ``storage``, ``parent`` and ``op``
    tell where its contents live (see ``mutation``); ``where`` is the user's line that made it.
    """

    __slots__ = ()
    __array_priority__ = 1000.0

    def __init__(
        self,
        home: Trace,
        shadow: Any,
        storage: Storage,
        parent: Tracer | None = None,
        op: tuple[Primitive, Sequence[Symbol], dict[str, Any]] | None = None,
        where: Where | None = None,
    ) -> None:
        self.home, self.shadow, self.storage, self.parent, self.op = home, shadow, storage, parent, op
        self.where = where
        self.symbol: Symbol | None = None
        self.version = -1
        self.viewed = False  # whether a view names it as its parent
        if parent is not None:
            parent.viewed = True
        home.made.append(ref(self))

    if TYPE_CHECKING:  # `protocol` and `ufuncs` install methods and operators

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __pow__(self, other: Any) -> Any: ...

    @property  # type: ignore[misc]  # the answer depends on who asks
    def __class__(self) -> type:
        """``isinstance(t, np.ndarray)`` and ``isinstance(t, float)`` hold in the user's code alone."""
        return Tracer if is_ours(sys._getframe(1)) else type(self.shadow)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shadow.shape if isinstance(self.shadow, ndarray) else ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return aval_of(self.shadow).dtype

    def __len__(self) -> int:
        return len(self.shadow)

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<traced {aval_of(self.shadow)}, example {np.array2string(np.asarray(self.shadow), threshold=8)}>"

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        if is_known(self):
            return np.array(self.shadow)
        owner([self])  # after the trace, this is the fault
        raise adviser().refusal(
            "a traced value reached code that needs a plain array (it was written into an array created outside "
            "the traced function, or passed to a library that does not dispatch to NumPy)",
            "create the array inside the traced function, or use the NumPy function of the same purpose",
        )

    @partial(noting_failure, faults=OF_NUMBERS)
    def _decide(self, kind: str, convert: Callable[[Any], Any]) -> Any:
        """Answer Python's question about the value, and guard it: the graph holds only where the answer is the same."""
        found = convert(self.shadow)
        if self.const:
            return found
        owner([self])
        if not self.home.concrete:
            raise ControlFlowError(
                f"Python asks for the {kind} value of a traced value in a function that is compiled for all values",
                remedy="choose with np.where or rg.cond, or repeat with rg.while_loop",
            )
        self.home.decide(read(self), kind, found, user_site(3)[0])
        return found

    def __bool__(self) -> bool:
        return bool(self._decide("bool", bool))

    def __index__(self) -> int:
        return int(self._decide("int", operator.index))

    def __int__(self) -> int:
        return int(self._decide("int", int))

    def __hash__(self) -> int:
        if isinstance(self.shadow, np.ndarray):
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self._decide("number", lambda x: x.item() if isinstance(x, np.generic) else x))


def wrap(trace: Trace, symbol: Symbol | None, shadow: Any, where: Where | None) -> Tracer:
    """A tracer with memory of its own."""
    return Tracer(trace, shadow, Storage(symbol), where=where)


def wrap_all(trace: Trace, symbols: Sequence[Symbol], shadows: Sequence[Any], where: Where | None) -> list[Tracer]:
    """Wrap the results of a node as tracers; under ``no_grad`` no derivative flows through them."""
    if STOPPED.get():
        symbols = [stop_gradient(symbol) for symbol in symbols]
    return [wrap(trace, symbol, shadow, where) for symbol, shadow in zip(symbols, shadows, strict=True)]


def enter(trace: Trace, x: Any, name: str | None = None) -> Tracer:
    """Make a tracer of a plain array, held by reference and read-only, or of a number."""
    if not isinstance(x, np.ndarray):
        return wrap(trace, None, np.asarray(x), None)
    shadow = x.view()
    shadow.flags.writeable = False
    return wrap(trace, trace.capture(x, hint=name), shadow, None)


def is_known(t: Tracer) -> bool:
    """Whether the example is the value: made of plain numbers, or of captured arrays, which then must not change."""
    return t.const or (t.home.active and t.home.settled(read(t)))


def shadow_of(x: Any) -> Any:
    """The example value of an operand."""
    return x.shadow if isinstance(x, Held) else x


def tracers_in(operands: Sequence[Any]) -> list[Tracer]:
    """The tracers among operands."""
    return [x for x in operands if type(x) is Tracer]


def settled(operands: Sequence[Any]) -> bool:
    """Whether all operands are plain numbers, so that the result is known while tracing."""
    return all(x.const if type(x) is Tracer else not isinstance(x, (ndarray, Capture)) for x in operands)


def symbol_in(trace: Trace, x: Any) -> Symbol:
    """Turn an operand into a symbol of ``trace``: a tracer of it or of an enclosing trace, an array or a number."""
    if isinstance(x, Tracer):
        if x.home is trace:
            return read(x)
        if x.const:
            return trace.lift(x.shadow) if isinstance(x.shadow, np.ndarray) else trace.constant(x.shadow)
        assert trace.parent is not None
        return trace.capture_symbol(symbol_in(trace.parent, x), x.shadow)
    if isinstance(x, Held):  # of a trace that has ended
        x = x.shadow
    return trace.capture(x) if isinstance(x, np.ndarray) else trace.constant(x)


def same_memory(a: Any, b: Any) -> bool:
    """Whether two example values are views of one array."""
    return isinstance(a, ndarray) and isinstance(b, ndarray) and _base(a) is _base(b)


def _base(a: Any) -> Any:
    while (base := getattr(a, "base", None)) is not None:  # of sliding windows, an object that holds the array
        a = base
    return a


@noting_failure
def apply(prim: Primitive, operands: Sequence[Any], example: Any = None, **attrs: Any) -> Tracer:
    """Record a primitive; run it on the example values unless ``example`` already holds its result."""
    trace = owner(tracers_in(operands))
    where, hint = user_site(2)
    if settled(operands):
        scratch = Trace("constants", None)
        symbols = [scratch.builder.input(aval_of(shadow_of(x))) for x in operands]
        out = prim(*symbols, **attrs)
        shadow = run_node(scratch.builder.made[out.value], [shadow_of(x) for x in operands])[0]
        return _wrapped(trace, prim, operands, symbols, attrs, None, shadow, where)
    trace.builder.where = where
    if prim.alias is not None and isinstance(base := operands[prim.alias], Tracer) and base.home is trace:
        make_traced(base)  # the index of the view may be traced
    symbols = [symbol_in(trace, x) for x in operands]
    if example is None:
        out = prim(*symbols, **attrs)
        shadow = run_on_examples(trace, trace.builder.made[out.value], operands)[0]
        check_aval(prim, out, shadow)
    else:
        out, shadow = trace.builder.emit(prim, [s.value for s in symbols], attrs, avals=(aval_of(example),))[0], example
    if out.value.hint is None:
        out.value.hint = hint
    if STOPPED.get():
        out = stop_gradient(out)
    return _wrapped(trace, prim, operands, symbols, attrs, out, shadow, where)


def run_on_examples(trace: Trace, node: Node, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Run a node on the examples. If it fails where it need not run, the results are zeros."""
    try:
        return run_node(node, [shadow_of(x) for x in operands])
    except BY_VALUE:
        if trace.runs:
            raise
        b = Builder()
        return evaluate(b.graph("zeros", [b.zeros(v.aval) for v in node.outputs]), ())


def check_aval(prim: Primitive, out: Symbol, shadow: Any) -> None:
    """Check that the shape rule predicted what NumPy returned."""
    found = aval_of(shadow)
    if found != out.aval:
        raise InternalError(f"{prim.name} is declared to give {out.aval}, but NumPy gave {found}")


def _wrapped(
    trace: Trace,
    prim: Primitive,
    operands: Sequence[Any],
    symbols: Sequence[Symbol],
    attrs: dict[str, Any],
    out: Symbol | None,
    shadow: Any,
    where: Where | None,
) -> Tracer:
    if prim.alias is not None:
        base = operands[prim.alias]
        if isinstance(base, Tracer) and base.home is trace and same_memory(shadow, base.shadow):
            view = Tracer(trace, shadow, base.storage, base, (prim, symbols[1:], attrs), where)
            view.symbol, view.version = out, base.storage.version
            return view
        if isinstance(base, Tracer) and same_memory(shadow, base.shadow):  # only the enclosing trace may write there
            shadow = shadow.view()
            shadow.flags.writeable = False
    return wrap(trace, out, shadow, where)


def cast_to(x: Any, aval: Aval, trace: Trace) -> Symbol:
    """Turn an operand into a symbol with the dtype and shape of ``aval``."""
    if type(x) is Tracer:
        if x.storage.symbol is None and not isinstance(x.shadow, ndarray):
            return trace.builder.constant(x.shadow, aval)
    elif isinstance(x, NUMBERS):
        return trace.builder.constant(x, aval)
    symbol = symbol_in(trace, x)
    found = symbol.value.aval
    if found.dtype != aval.dtype:
        kind = aval.kind if found.kind != "array" and not aval.shape else "scalar" if not found.shape else "array"
        symbol = trace.builder.coerce(symbol, Aval(found.shape, aval.dtype, kind))
    return symbol if found.shape == aval.shape else broadcast_to(symbol, aval.shape)
