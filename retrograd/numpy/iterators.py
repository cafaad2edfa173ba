"""NumPy's iterators over the elements of traced arrays: np.nditer and np.ndenumerate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Self

import numpy as np

from ..tracer.array import Tracer, shadow_of
from ..tracer.class_methods import Method, methods
from ..tracer.creation import entered, fresh, holds_tracers
from ..tracer.interception import substitutes
from ..tracer.trace import unsupported

Function = Callable[..., Any]
Place = tuple[int, ...]
NDITER: Any = np.nditer  # whose flags are more than the types of literals
RAVELLED: Any = np.ravel_multi_index


class Places:
    """The elements of a traced array, each with its place: what ``np.ndenumerate`` goes through."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self._places = np.ndindex(*array.shape)
        self._next = next(self._places, None)

    @property
    def coords(self) -> Place:
        """The place of the next element."""
        return self._next or ()

    def __next__(self) -> Any:
        if self._next is None:
            raise StopIteration
        found, self._next = self._array[self._next], next(self._places, None)
        return found


def _enumerate(original: Function, self: Any, arr: Any) -> None:
    """``np.ndenumerate(arr)`` inside a trace."""
    if holds_tracers(arr):
        self.iter = Places(entered(arr))
    else:
        original(self, arr)


class Elements:
    """Stands for ``np.nditer`` over traced arrays: the places are those of NumPy's iterator over the examples.

    An element is a view without axes, which can be written into if its operand has the flag ``readwrite`` or
    ``writeonly``. An operand that is None is made as NumPy would make it.
    """

    def __init__(
        self, op: Any, flags: Iterable[str] = (), op_flags: Any = None, order: str = "K", **options: Any
    ) -> None:
        self._single = not isinstance(op, (list, tuple))
        given = [op] if self._single else list(op)
        wanted = set(flags)
        for name, value in options.items():
            raise unsupported(f"np.nditer with {name}={value!r} over traced values", "leave it out")
        if unknown := wanted - {"multi_index", "c_index", "f_index", "refs_ok", "zerosize_ok", "copy_if_overlap"}:
            raise unsupported(
                f"np.nditer with the flag {min(unknown)!r} over traced values", "leave the flag out, or use np.ravel(x)"
            )
        self._write = [_writes(part, x) for part, x in zip(_of_each(op_flags, given), given, strict=True)]
        shadows = [None if x is None else shadow_of(entered(x)) for x in given]
        roles = [["writeonly", "allocate"] if x is None else ["readonly"] for x in shadows]
        self._flags = wanted
        self._it = NDITER(shadows, [*(wanted & {"zerosize_ok"}), "multi_index", "refs_ok"], roles, order=order)
        self.operands = tuple(
            fresh(np.zeros_like(made)) if x is None else entered(x)
            for x, made in zip(given, self._it.operands, strict=True)
        )
        for x, write in zip(self.operands, self._write, strict=True):
            if write and not x.shadow.flags.writeable:
                x[...] = x  # raises the error of such a write
        self._started = False

    def __getattr__(self, name: str) -> Any:
        if name in {"finished", "itersize", "ndim", "nop", "shape", "dtypes", "iterindex", "reset", "iternext"}:
            return getattr(self._it, name)
        if name == "multi_index" and name in self._flags:
            return self._it.multi_index
        if name == "index" and self._flags & {"c_index", "f_index"}:
            order = "C" if "c_index" in self._flags else "F"
            return int(RAVELLED(self._it.multi_index, self._it.shape, order=order))
        if hasattr(np.nditer, name):
            raise unsupported(f"np.nditer(...).{name} over traced values", "loop over the iterator")
        raise AttributeError(name)

    def _element(self, x: Any, write: bool) -> Any:
        shape = self._it.shape
        at = self._it.multi_index[len(shape) - x.ndim :]
        view = x[(*(0 if n == 1 else k for k, n in zip(at, x.shape, strict=True)), ...)]
        if not write:
            view.shadow = view.shadow.view()
            view.shadow.flags.writeable = False
        return view

    @property
    def value(self) -> Any:
        """The present elements, one for each operand; of a single operand its element."""
        found = tuple(self._element(x, w) for x, w in zip(self.operands, self._write, strict=True))
        return found[0] if len(found) == 1 else found

    def __getitem__(self, k: Any) -> Any:
        found = self.value
        return ((found,) if len(self.operands) == 1 else found)[k]

    def __setitem__(self, k: int, value: Any) -> None:
        self[k][...] = value

    def __len__(self) -> int:
        return len(self.operands)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._started and not self._it.finished:
            self._it.iternext()
        self._started = True
        if self._it.finished:
            raise StopIteration
        return self.value

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._it.close()

    def close(self) -> None:
        """End the iteration."""
        self._it.close()


def _of_each(op_flags: Any, given: list[Any]) -> list[Any]:
    """The flags of each operand: one list may be given for all."""
    if op_flags is None:
        return [() for _ in given]
    parts = list(op_flags)
    return [parts] * len(given) if all(isinstance(p, str) for p in parts) else parts


def _writes(flags: Any, operand: Any) -> bool:
    """Whether an operand can be written into."""
    if unknown := set(flags) - {"readonly", "readwrite", "writeonly", "allocate", "no_broadcast"}:
        raise unsupported(f"np.nditer with the flag {min(unknown)!r} of an operand", "leave the flag out")
    return operand is None or bool({"readwrite", "writeonly"} & set(flags))


def _nditer(op: Any, *args: Any, **options: Any) -> Any:
    """``np.nditer``; NumPy's own if nothing is traced."""
    traced = holds_tracers(list(op)) if isinstance(op, (list, tuple)) else isinstance(op, Tracer)
    return Elements(op, *args, **options) if traced else np.nditer(op, *args, **options)


@methods("numpy")
def _of_classes(numpy: ModuleType) -> Iterable[Method]:
    return [Method(np.ndenumerate, "__init__", _enumerate)]


@substitutes("numpy")
def _of_numpy(numpy: ModuleType) -> Mapping[str, Any]:
    return {"nditer": _nditer}
