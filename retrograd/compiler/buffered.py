"""Calls whose arguments and results stay in the same arrays: nothing is taken apart, and nothing is made.

If one kernel is all of a function, C runs it on these arrays. All else goes the general way, whose results are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ..errors import ShapeError, UnsupportedError
from ..tracer.array import NUMBERS
from ..tracer.trace import CURRENT
from ..tracer.tree import Spec, flatten, unflatten
from .compiled import member
from .native_calls import of_kernel
from .paths import FINDERS, Found, Paths
from .signature import is_traced

Result_co = TypeVar("Result_co", covariant=True)


class BufferedCall(NamedTuple, Generic[Result_co]):
    """A call that reads its arguments from arrays and writes its results into arrays.

    ``run()`` computes ``results`` of what stands in ``args`` and ``kwargs`` now, and returns them. These are the
    arguments and results of the call, with an array of its own in place of each array and each number.
    """

    run: Callable[[], Result_co]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: Result_co


@member
def buffered(self: Any, /, *args: Any, **kwargs: Any) -> BufferedCall[Any]:
    """A call whose arguments and results stay in the same arrays, for loops that call a small function often.

    On the native target, a call of a function that is one kernel takes 0.1 µs beyond the computation. Elsewhere it
    takes as long as another call, and a copy of its results. One thread at a time may run it.

    Parameters
    ----------
    *args, **kwargs
        The arguments of a call. They are copied. Numbers become arrays without axes. Where C runs the call, it keeps
        to the settings that are in force now.

    Returns
    -------
    BufferedCall
        Write into the arrays in ``args`` and ``kwargs``, call ``run()``, and read its result, which is ``results``: the
        same arrays each time.

    Raises
    ------
    UnsupportedError
        In a traced function, which does not see what happens in these arrays.
    RetrogradError
        Whatever a call with these arguments raises.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> call = rg.value_and_grad(lambda x: np.sum(x * x)).buffered(np.array([1.0, 2.0]))
    >>> (x,) = call.args
    >>> x[:] = 3.0, 4.0
    >>> call.run()
    (array(25.), array([6., 8.]))
    """
    _check_apart()
    leaves, spec = flatten((args, kwargs))
    buffers = _Buffers(self, leaves, spec)
    given, named = unflatten(spec, buffers.leaves)
    return BufferedCall(_in_c(self, buffers) or buffers.run, given, named, buffers.results)


class _Buffers:
    """The arrays of a call, and the call itself the general way."""

    def __init__(self, compiled: Any, leaves: Sequence[Any], spec: Spec) -> None:
        self.compiled, self.spec = compiled, spec
        self.leaves = [np.array(x, order="C") if is_traced(x) else x for x in leaves]
        self.plain = [_plain(x) for x in leaves]
        args, kwargs = self.arguments()
        found, self.form = flatten(compiled(*args, **kwargs))
        self.outs = [np.array(x, order="C") if isinstance(x, (np.ndarray, *NUMBERS)) else x for x in found]
        self.results = unflatten(self.form, self.outs)

    def arguments(self) -> Any:
        """The arguments as the function takes them: numbers, and the arrays themselves."""
        return unflatten(self.spec, [plain(x) for plain, x in zip(self.plain, self.leaves, strict=True)])

    def run(self) -> Any:
        """Compute the results of the present arguments."""
        _check_apart()
        args, kwargs = self.arguments()
        found, form = flatten(self.compiled(*args, **kwargs))
        if form != self.form or [_kind(x) for x in found] != [_kind(x) for x in self.outs]:
            raise ShapeError(
                "the results of a buffered call have another structure, other shapes or other dtypes than before",
                remedy="call the function itself, or make another buffered call",
            )
        for out, x in zip(self.outs, found, strict=True):
            if isinstance(out, np.ndarray):
                out[...] = x
        return self.results


def _check_apart() -> None:
    if CURRENT.get() is not None:
        raise UnsupportedError("a traced function makes or runs a buffered call", remedy="call the function itself")


def _kind(x: Any) -> Any:
    """What the array of a result must have in common with it."""
    return (np.shape(x), np.asarray(x).dtype) if isinstance(x, (np.ndarray, *NUMBERS)) else type(x)


def _plain(x: Any) -> Callable[[Any], Any]:
    """What a function takes in place of the array that stands for an argument."""
    if isinstance(x, np.ndarray) or not is_traced(x):
        return lambda buffer: buffer
    return (lambda buffer: buffer[()]) if isinstance(x, np.generic) else lambda buffer: buffer.item()


def _in_c(compiled: Any, buffers: _Buffers) -> Callable[[], Any] | None:
    """C that runs the only kernel of a function on the arrays; None if it does more, or reads more than globals."""
    args, kwargs = buffers.arguments()
    given, _ = flatten((args, kwargs))
    found: Found = FINDERS[-1](compiled, compiled._take(args, kwargs))
    paths, user = found.paths, compiled._user
    if not isinstance(paths, Paths) or paths.executable is None:
        return None
    bind, reads = of_kernel(paths, "bind"), getattr(paths._relied, "plain", None)
    if bind is None or reads is None or found.captures or type(user) is not FunctionType:
        return None
    if paths.settings.exact or paths.settings.debug_nans:
        return None
    (way,), code = paths.known.values(), paths.code
    operands = _places(found.call.values(), given, buffers.leaves)
    marks = [object() for _ in code.graph.outputs]
    results = _places(marks, flatten(way.assemble(marks))[0], buffers.outs)
    arrays = sum(isinstance(x, np.ndarray) for x in buffers.outs)
    if operands is None or results is None or (len(operands), len(results)) != (len(code.graph.inputs), arrays):
        return None
    seen = tuple([(of, was() if of is None or type(of) is FunctionType else was) for of, was in reads])
    run: Callable[[], Any] = bind((CURRENT, user, seen, buffers.run, buffers.results, *operands, *results))
    return run


def _places(wanted: Sequence[Any], among: Sequence[Any], arrays: Sequence[Any]) -> list[Any] | None:
    """The arrays that stand for objects among others; None if one of them is not there once."""
    places = [[k for k, x in enumerate(among) if x is one] for one in wanted]
    return None if any(len(found) != 1 for found in places) else [arrays[k] for (k,) in places]
