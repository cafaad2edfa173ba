"""np.vectorize and np.frompyfunc: Python functions that are called once for each element, and traced through."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ..tracer.array import Tracer, shadow_of
from ..tracer.class_methods import Method, methods
from ..tracer.creation import fresh, holds_tracers, joined
from ..tracer.operands import as_array, astype
from ..tracer.trace import unsupported
from ..tracer.ufunc_options import OF_PYTHON
from .creation import asarray

Function = Callable[..., Any]


def _elements(x: Any, shape: tuple[int, ...]) -> list[Any]:
    """The elements of an operand as Python numbers, stretched to a shape."""
    if not isinstance(x, Tracer):
        return list(np.broadcast_to(np.asarray(x, object), shape).flat)
    places = np.broadcast_to(np.arange(x.size).reshape(x.shape), shape)
    flat = np.reshape(x, (-1,))
    made = {k: flat[k].item() for k in np.unique(places).tolist()}
    return [made[k] for k in places.ravel().tolist()]


def _objects(items: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """An array of objects that holds these."""
    made = np.ndarray(len(items), object)
    for k, item in enumerate(items):
        made[k] = item
    return made.reshape(shape)


def _gathered(items: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """The results for all elements as one array, with the conversions of an array of objects."""
    like = _objects([shadow_of(item) for item in items], shape).astype(dtype)  # NumPy's own errors
    numbers = like.dtype.kind in "biufc"
    if not holds_tracers(list(items)):
        return fresh(like) if numbers else like
    if not numbers:
        raise unsupported(f"an array of traced values with the dtype {like.dtype}", "name a dtype of numbers in otypes")
    parts = [astype(np.reshape(as_array(item), ()), like.dtype) for item in items]
    return np.reshape(joined(parts), shape)


def _results(found: Any, count: int) -> tuple[Any, ...]:
    """What one call returns, as that many results."""
    if count == 1:
        return (found,)
    if not isinstance(found, tuple) or len(found) != count:
        raise ValueError(f"the function returns something else than {count} results")
    return found


def _for_each(function: Function, operands: Sequence[Any], otypes: Any, cache: bool) -> Any:
    """``np.vectorize``: one call for each element; without ``otypes`` one more, which tells the dtypes."""
    operands = [joined(x) for x in operands]
    shape = np.broadcast_shapes(*(np.shape(shadow_of(x)) for x in operands))
    first: list[Any] = []
    if otypes is None:
        if not all(np.size(shadow_of(x)) for x in operands):
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        found = function(*(np.reshape(asarray(x), (-1,))[0] for x in operands))
        first = [found] if cache else []
        many = found if isinstance(found, tuple) else (found,)
        otypes = [np.asarray(shadow_of(item)).dtype.char for item in many]
    lines = list(zip(*(_elements(x, shape) for x in operands), strict=True))
    calls = [*first, *(function(*line) for line in lines[len(first) :])]
    columns = [_results(found, len(otypes)) for found in calls]
    made = [
        _gathered([row[k] for row in columns], shape, np.dtype(dtype) if dtype else None)
        for k, dtype in enumerate(otypes)
    ]
    return made[0] if len(made) == 1 else tuple(made)


def _axes(side: str) -> list[list[str]]:
    """The names of the axes of each operand, or of each result: ``(n,m),()``."""
    return [re.findall(r"\w+", part) for part in re.findall(r"\(([^)]*)\)", side)]


def _for_each_core(function: Function, operands: Sequence[Any], signature: str, otypes: Any) -> Any:
    """``np.vectorize`` with a signature: one call for each place along the axes that it does not name."""
    ins, outs = map(_axes, signature.split("->"))
    if len(operands) != len(ins):
        raise TypeError(f"wrong number of positional arguments: expected {len(ins)}, got {len(operands)}")
    operands = [asarray(x) for x in operands]
    sizes: dict[str, int] = {}
    for x, axes in zip(operands, ins, strict=True):
        _name_sizes(sizes, x.shape, axes)
    lead = np.broadcast_shapes(*(x.shape[: x.ndim - len(axes)] for x, axes in zip(operands, ins, strict=True)))
    operands = [np.broadcast_to(x, (*lead, *(sizes[a] for a in axes))) for x, axes in zip(operands, ins, strict=True)]
    places = list(itertools.product(*map(range, lead)))
    rows = [_results(function(*(x[at] for x in operands)), len(outs)) for at in places]
    if not rows and (otypes is None or any(a not in sizes for axes in outs for a in axes)):
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` and all output axes are known")
    made = []
    for k, axes in enumerate(outs):
        items = [asarray(row[k]) for row in rows]
        if items:
            _name_sizes(sizes, items[0].shape, axes)
        shape = tuple(sizes[a] for a in axes)
        dtype = np.dtype(otypes[k]) if otypes is not None else items[0].dtype
        parts = [astype(np.broadcast_to(item, shape), dtype) for item in items]
        made.append(np.reshape(np.stack(parts), (*lead, *shape)) if parts else fresh(np.zeros((*lead, *shape), dtype)))
    return made[0] if len(made) == 1 else tuple(made)


def _name_sizes(sizes: dict[str, int], shape: tuple[int, ...], axes: Sequence[str]) -> None:
    """Take note of the lengths of named axes, the last of a shape; one name has one length."""
    if len(shape) < len(axes):
        raise ValueError(f"{len(shape)}-dimensional argument does not have enough dimensions for {tuple(axes)!r}")
    for name, n in zip(axes, shape[len(shape) - len(axes) :], strict=True):
        if sizes.setdefault(name, n) != n:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {n!r} vs {sizes[name]!r}")


def _call(original: Function, self: Any, *args: Any, **options: Any) -> Any:
    """``np.vectorize(...)(*args)`` inside a trace."""
    if not callable(self.pyfunc):  # a decorator that takes its function now
        return original(self, *args, **options)
    places = [k for k in range(len(args)) if k not in self.excluded]
    names = [name for name in options if name not in self.excluded]

    def function(*items: Any) -> Any:
        given, named = list(args), dict(options)
        for k, item in zip(places, items, strict=False):
            given[k] = item
        named.update(zip(names, items[len(places) :], strict=True))
        return self.pyfunc(*given, **named)

    operands = [*(args[k] for k in places), *(options[name] for name in names)]
    if self.signature is not None:
        return _for_each_core(function, operands, self.signature, self.otypes)
    return _for_each(function, operands, self.otypes, self.cache) if operands else function()


def of_python(ufunc: Any, *inputs: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
    """A ufunc that ``np.frompyfunc`` made; the results have the dtype of the numbers, where NumPy's hold objects."""
    if out is not None or where is not True or options:
        raise unsupported(f"{ufunc.__name__} with options", "use the results of the plain call")
    inputs = tuple(map(joined, inputs))
    shape = np.broadcast_shapes(*(np.shape(shadow_of(x)) for x in inputs))
    operands = [_objects(_elements(x, shape), shape) for x in map(_plain, inputs)]
    found = ufunc(*operands)
    made = tuple(map(_numbers, found if isinstance(found, tuple) else (found,)))
    return made if ufunc.nout > 1 else made[0]


def _plain(x: Any) -> Any:
    """An operand as NumPy takes it: an array or a number, whose elements become objects."""
    return x if isinstance(x, Tracer) else np.asarray(x)


def _numbers(found: Any) -> Any:
    """An array of objects as a traced array, if it holds traced values."""
    if not isinstance(found, np.ndarray) or not holds_tracers(items := list(_flat(found))):
        return found
    if not all(np.ndim(shadow_of(joined(item))) == 0 for item in items):
        raise unsupported("a ufunc of a Python function that returns traced arrays or lists", "return numbers")
    return np.reshape(joined([as_array(item) for item in items]), found.shape)


def _flat(objects: np.ndarray[Any, Any]) -> Iterable[Any]:
    return (objects[at] for at in itertools.product(*map(range, objects.shape)))


OF_PYTHON.append(of_python)


@methods("numpy")
def _of_numpy(numpy: ModuleType) -> Iterable[Method]:
    return [Method(np.vectorize, "__call__", _call)]
