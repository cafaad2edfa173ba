"""Steps: the calls of NumPy that a program makes on traced values, as they are compared with earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ...ir.builder import attr_key
from ...ir.graph import Value
from ...where import Where
from ..array import Tracer
from ..trace import SMALL, Trace

PLAIN = frozenset({int, float, bool, str, type(None), type(Ellipsis)})  # which never change
DTYPES = (type, np.dtype)


class Unlike(Exception):  # noqa: N818 - a signal, not an error
    """A call that is not compared."""


class Contents(NamedTuple):
    """What stands for an operand that depends on no input."""

    kind: Any
    contents: bytes


def described(x: Any, leaves: list[Any]) -> Any:
    """What an argument is, but for traced values and arrays, which join ``leaves``; Unlike for what is not compared."""
    kind = type(x)
    if kind is Tracer or kind is ndarray:
        leaves.append(x)
        return kind
    if kind in PLAIN or kind is complex:
        return (kind, attr_key(x))
    if kind is tuple or kind is list:
        return (kind, *[described(e, leaves) for e in x])
    if kind is dict:
        return (kind, *[(name, described(e, leaves)) for name, e in x.items()])
    if kind is slice:
        return (kind, *[described(e, leaves) for e in (x.start, x.stop, x.step)])
    if isinstance(x, np.generic) and not isinstance(x, np.object_):
        return (kind, x.tobytes())
    if isinstance(x, DTYPES) or kind is np.ufunc:
        return (kind, x)
    raise Unlike


def pair_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
    """For each of two operands what it is: traced, or a number, or None for another; none if they are not two."""
    if kwargs or len(args) != 2:
        return ()
    return [Tracer if type(x) is Tracer else PlainOperand(x) if type(x) in (int, float) else None for x in args]


def plain(x: Any) -> Any:
    """An argument with example values in place of traced ones."""
    kind = type(x)
    if kind is Tracer:
        return x.shadow
    if kind is tuple or kind is list:
        return kind([plain(e) for e in x])
    if kind is dict:
        return {name: plain(e) for name, e in x.items()}
    if kind is slice:
        return slice(plain(x.start), plain(x.stop), plain(x.step))
    return x


def value_of(t: Tracer) -> Value | None:
    """The present value of a tracer in the graph; None if there is none, or it must be computed first."""
    if t.parent is None:
        return t.storage.symbol.value if t.storage.symbol is not None else None
    return t.symbol.value if t.symbol is not None and t.version == t.storage.version else None


def source_of(x: Any, trace: Trace) -> Any:
    """What a leaf is in the graph: a value, a captured array, or the contents of a small one that is none.

    A captured array must not change until the recording is over, so it is the same if it is the same object.
    """
    if type(x) is ndarray:
        captured = trace.captures.get(id(x))
        return x if captured is not None and captured.payload is x else contents_of(x)
    if x.const:
        return contents_of(x.shadow)
    value = value_of(x)
    if value is None or x.home is not trace:
        raise Unlike
    return value


def contents_of(shadow: Any) -> Contents:
    """The contents of an operand that depends on no input; Unlike if they are many."""
    if isinstance(shadow, ndarray):
        if shadow.size > SMALL or shadow.dtype.kind not in "biufc":
            raise Unlike
        return Contents((ndarray, shadow.shape, shadow.dtype, shadow.strides), shadow.tobytes())
    if isinstance(shadow, np.generic):
        return Contents(type(shadow), shadow.tobytes())
    if type(shadow) not in (bool, int, float, complex):
        raise Unlike
    return Contents((type(shadow), attr_key(shadow)), b"")


class Made(NamedTuple):
    """A traced value that a step makes: what its example is like, and of which operand it is a view."""

    value: Value
    kind: Any
    viewed: int | None
    op: Any
    where: Where | None


def like(shadow: Any) -> Any:
    """The class of an example value, and how an array lies in memory."""
    if type(shadow) is ndarray:
        return shadow.shape, shadow.dtype, shadow.strides, shadow.base is None, shadow.flags.writeable
    return type(shadow)


def made(t: Any, leaves: Sequence[Any], trace: Trace) -> Made:
    """What a call has made; Unlike for what is no traced value of its own."""
    if type(t) is not Tracer or t.const or t.home is not trace or any(t is x for x in leaves):
        raise Unlike
    value = value_of(t)
    if value is None:
        raise Unlike
    if t.parent is None:
        return Made(value, like(t.shadow), None, None, t.where)
    assert t.op is not None
    prim, rest, attrs = t.op
    at = next((k for k, x in enumerate(leaves) if x is t.parent), None)
    if at is None or rest:
        raise Unlike
    return Made(value, like(t.shadow), at, (prim, rest, attrs), t.where)


class PlainOperand:
    """A number that is an operand. Zeros are compared another way, for they have a sign."""

    __slots__ = ("number",)

    def __init__(self, number: Any) -> None:
        self.number = number

    def is_like(self, x: Any) -> bool:
        """Whether this is the same number."""
        return x is self.number or (type(x) is type(self.number) and x == self.number and x != 0)


class Given:
    """The arguments of a call, before it runs; Unlike if it is not compared."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], trace: Trace) -> None:
        self.leaves: list[Any] = []
        self.key = described((args, kwargs), self.leaves)
        self.sources = tuple([source_of(x, trace) for x in self.leaves])
        self.pair = pair_of(args, kwargs)
        self._versions = self._present()

    def _present(self) -> list[int]:
        return [x.storage.version for x in self.leaves if type(x) is Tracer]

    @property
    def written(self) -> bool:
        """Whether the call wrote into an argument."""
        return self._versions != self._present()


class NumPyCall:
    """A call: of what, with which arguments, what it made, and the nodes of the graph that came with it."""

    __slots__ = ("end", "form", "key", "makes", "pair", "sources", "start", "what")

    def __init__(self, what: Any, given: Given, found: Any, nodes: tuple[int, int], trace: Trace) -> None:
        if given.written:
            raise Unlike
        self.what, self.key, self.sources, self.pair = what, given.key, given.sources, given.pair
        self.form: Any = type(found) if type(found) is not Tracer and isinstance(found, (tuple, list)) else None
        self.makes = tuple([made(t, given.leaves, trace) for t in ([found] if self.form is None else found)])
        self.start, self.end = nodes

    @property
    def code(self) -> Any:
        """Equal for calls of one kind with results of one kind."""
        avals = tuple([m.value.aval for m in self.makes])
        return self.what, self.key, len(self.sources), self.form, avals, tuple([m.kind for m in self.makes])


def depends(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an argument is more than plain numbers that were made inside."""
    leaves: list[Any] = []
    try:
        described((args, kwargs), leaves)
    except Unlike:
        return True
    return not all(type(x) is Tracer and x.const for x in leaves)
