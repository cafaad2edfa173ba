"""Operations: calls of NumPy functions, divided into a static part and operands, and recorded."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from ..compiler.cache import Cache
from ..errors import InternalError, OptionError, RecordMismatchError, UnsupportedError
from ..ir.graph import Graph
from ..ir.types import Aval, aval_of
from ..tracer.array import Tracer
from ..tracer.record import record
from ..tracer.trace import traceable
from ..tracer.tree import Spec, flatten, unflatten

STATIC = frozenset([bool, int, str, NoneType, type, type(Ellipsis), type(np._NoValue)])
DYNAMIC = frozenset([np.ndarray, float, complex, np.float64, np.float32])
OPERAND = "operand"
LARGEST = 10_000  # the most operations that are kept; then they are recorded anew

_known: Cache[Operation] = Cache()


class ArrayLike:
    """The common root of eager arrays; ``arraylike`` gives it NumPy's protocols and methods."""

    __slots__ = ()

    data: Any


class Request(NamedTuple):
    """A call of a NumPy function.

    ``key`` is its static part; ``operands`` are its arrays and floating-point numbers in order, eager ones included;
    ``call`` makes the call with values in their place.
    """

    name: str
    key: Hashable
    operands: Sequence[Any]
    call: Callable[..., Any]


def request(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], cls: type[ArrayLike]
) -> Request:
    """Take a call apart. Its eager operands must be of the class ``cls``."""
    key: list[Any] = [function]
    operands: list[Any] = []
    for a in args:
        kind = type(a)
        if isinstance(a, cls) or kind in DYNAMIC:
            operands.append(a)
            key.append(OPERAND)
        elif kind in STATIC or (kind is tuple and all(type(x) is int for x in a)):
            key.append((kind, a))
        else:
            return _request_of_tree(function, args, kwargs, cls)
    for name, a in kwargs.items():
        if type(a) not in STATIC and not (type(a) is tuple and all(type(x) is int for x in a)):
            return _request_of_tree(function, args, kwargs, cls)
        key.append((name, type(a), a))
    call = partial(function, **kwargs) if kwargs else function
    if len(operands) < len(args):
        call = _with_static(call, [(k is OPERAND, a) for k, a in zip(key[1 : 1 + len(args)], args, strict=True)])
    return Request(name_of(function), tuple(key), operands, call)


def _with_static(call: Callable[..., Any], parts: Sequence[tuple[bool, Any]]) -> Callable[..., Any]:
    static = [(on, None if on else a) for on, a in parts]

    def run(*values: Any) -> Any:
        rest = iter(values)
        return call(*[next(rest) if on else a for on, a in static])

    return run


def _request_of_tree(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], cls: type[ArrayLike]
) -> Request:
    """Take a call apart that has containers among its arguments: lists of arrays, indices."""
    leaves, spec = flatten((tuple(args), dict(kwargs)))
    dynamic = [_is_operand(x, cls) for x in leaves]
    static = [None if on else x for x, on in zip(leaves, dynamic, strict=True)]

    def call(*values: Any) -> Any:
        rest = iter(values)
        plain, options = unflatten(spec, [next(rest) if on else x for on, x in zip(dynamic, static, strict=True)])
        return function(*plain, **options)

    parts = [OPERAND if on else _static_key(x) for on, x in zip(dynamic, leaves, strict=True)]
    operands = [x for x, on in zip(leaves, dynamic, strict=True) if on]
    return Request(name_of(function), (function, spec, *parts), operands, call)


def name_of(function: Callable[..., Any]) -> str:
    """The name of an operation."""
    return getattr(function, "__name__", "operation")


def copied(x: Any, dtype: Any = None) -> Any:
    """A copy of an array, a list or a number; UnsupportedError for arrays of other classes, such as masked ones."""
    if isinstance(x, np.ndarray):
        traceable(x)
    return np.array(x, dtype)


def _is_operand(x: Any, cls: type[ArrayLike]) -> bool:
    if isinstance(x, (ArrayLike, Tracer)) and not isinstance(x, cls):
        raise RecordMismatchError(
            f"one operation mixes a {cls.__name__} and a {type(x).__name__}",
            remedy="use one kind of arrays in a computation; pass x.data for a constant",
        )
    if isinstance(x, (np.ndarray, np.generic)):
        traceable(x)
        return True
    if hasattr(x, "__array__") and not isinstance(x, (type, ArrayLike)):
        raise UnsupportedError(
            f"one operation mixes a {cls.__name__} and a foreign {type(x).__name__}, which would lose its history",
            remedy="pass np.asarray(x) for a constant",
        )
    return isinstance(x, (cls, float, complex))


def _static_key(x: Any) -> Hashable:
    if isinstance(x, slice):
        return ("slice", _static_key(x.start), _static_key(x.stop), _static_key(x.step))
    try:
        hash(x)
    except TypeError:
        raise OptionError(
            f"an argument of type {type(x).__name__} is neither an array nor hashable",
            remedy="pass arrays, numbers, or containers of them",
        ) from None
    return (type(x), x)


@dataclass(frozen=True, eq=False)
class Operation:
    """A recorded call: its graph takes the operands and then ``captures``, which are arrays.

    ``arrays`` are the positions of arrays and NumPy scalars among the leaves of the result, which has the structure
    ``spec``; only those are results of the graph.
    """

    graph: Graph
    captures: tuple[np.ndarray[Any, Any], ...]
    spec: Spec
    arrays: tuple[int, ...]

    @cached_property
    def avals(self) -> tuple[Aval, ...]:
        """The avals of the results."""
        return self.graph.out_avals

    @cached_property
    def inexact(self) -> bool:
        """Whether any result has cotangents."""
        return any(aval.inexact for aval in self.avals)

    def wrapped(self, result: Any, wrap: Callable[[Any, int], Any]) -> Any:
        """The result with its k-th array x replaced by ``wrap(x, k)``."""
        if self.spec.is_leaf():
            return wrap(result, 0) if self.arrays else result
        leaves = flatten(result)[0]
        for k, i in enumerate(self.arrays):
            leaves[i] = wrap(leaves[i], k)
        return unflatten(self.spec, leaves)


def operation(asked: Request, given: Sequence[Any]) -> Operation:
    """The operation of a request on these operands, recorded when operands of these types are new.

    Raises UnsupportedError or ControlFlowError if NumPy's function cannot be traced.
    """
    if len(_known.entries) > LARGEST:
        _known.entries.clear()
    return _known.get((asked.key, *map(_type_key, given)), lambda: _recorded(asked, given))


def _type_key(x: Any) -> Hashable:
    if type(x) is np.ndarray:
        return x.shape, x.dtype
    return type(x)  # type: ignore[return-value]  # a class is hashable


def _recorded(asked: Request, examples: Sequence[Any]) -> Operation:
    name, call = asked.name, asked.call
    found = record(lambda tracers: call(*tracers), name, examples, [""] * len(examples), concrete=False)
    count = found.out_spec.num_leaves
    shadows = iter(found.shadows)
    outputs = iter(found.graph.outputs)
    arrays, kept = [], []
    for i in range(count):
        if i in found.statics:
            continue
        shadow, output = next(shadows), next(outputs)
        if isinstance(shadow, (np.ndarray, np.generic)):
            arrays.append(i)
            kept.append(output)
    nodes = tuple(replace(node, where=None) for node in found.graph.nodes)  # other lines share the operation
    graph = Graph(name, found.graph.inputs, nodes, tuple(kept))
    plain = flatten(call(*examples))[0]
    if found.tainted or tuple(aval_of(plain[i]) for i in arrays) != graph.out_avals:
        raise InternalError(f"{name} is recorded as {graph}, but does something else")
    return Operation(graph, tuple(c.payload for c in found.captures), found.out_spec, tuple(arrays))
