"""Eager arrays: NumPy's operators, protocols and methods on known values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import ShapeError, TracerConversionError, UnsupportedError
from ..tracer.operators import COMPARISONS
from ..tracer.untraced import MUTATORS
from .operations import ArrayLike

BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "divmod": np.divmod,
    "pow": operator.pow,
}
UNARY: dict[str, Callable[..., Any]] = {"neg": np.negative, "pos": np.positive, "abs": np.abs, "invert": np.invert}
METHODS: tuple[Callable[..., Any], ...] = (
    np.sum,
    np.prod,
    np.mean,
    np.var,
    np.std,
    np.max,
    np.min,
    np.any,
    np.all,
    np.argmax,
    np.argmin,
    np.argpartition,
    np.choose,
    np.conjugate,
    np.searchsorted,
    np.cumsum,
    np.cumprod,
    np.argsort,
    np.dot,
    np.ravel,
    np.squeeze,
    np.swapaxes,
    np.take,
    np.repeat,
    np.diagonal,
    np.trace,
    np.round,
    np.copy,
)
WRITING = ("__delitem__", "fill", "partition", "put", "resize", "setfield", "sort")  # methods that change an array
PLACES = (np.argwhere, np.flatnonzero, np.nonzero)  # their results are plain, since their shapes depend on data


def _astype(x: Any, dtype: Any) -> Any:
    return x.astype(dtype)


class Eager(ArrayLike):
    """Operations on a known value: each runs at once, and ``apply`` of the class records it."""

    __slots__ = ()
    __array_priority__ = 2000.0
    __hash__ = None  # type: ignore[assignment]  # like ndarray: == is elementwise

    def apply(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run a NumPy function; some of its arguments are arrays of this class."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.data)

    @property
    def ndim(self) -> int:
        return np.ndim(self.data)

    @property
    def size(self) -> int:
        return int(np.size(self.data))

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.asarray(self.data).dtype

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's name
        return self.apply(np.transpose, (self,), {})

    @property
    def mT(self) -> Any:  # noqa: N802 - NumPy's name
        if self.ndim < 2:
            raise ShapeError(
                f"mT is asked of an array of shape {self.shape}, which holds no matrices",
                remedy="use an array with two dimensions or more",
            )
        return self.apply(np.matrix_transpose, (self,), {})

    @property
    def real(self) -> Any:
        return self.apply(np.real, (self,), {})

    @property
    def imag(self) -> Any:
        return self.apply(np.imag, (self,), {})

    @property
    def flat(self) -> Any:
        """The elements in order, as an array of one dimension."""
        return self.flatten()

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def item(self, *at: Any) -> Any:
        """The one element, or the one at an index, as a Python number, which has no derivative."""
        return self.data.item(*at)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers, which have no derivative."""
        return self.data.tolist()

    def nonzero(self) -> tuple[np.ndarray[Any, Any], ...]:
        """The places of elements that are not zero, as plain arrays."""
        return np.nonzero(self.data)

    def clip(self, min: Any = None, max: Any = None, **options: Any) -> Any:
        return self.apply(np.clip, (self, min, max), options)

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        if out is not None:
            raise _immutable()
        return self.apply(np.compress, (condition, self, axis), {})

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        return self.apply(np.reshape, (self, shape[0] if len(shape) == 1 else shape), _other(order))

    def transpose(self, *axes: Any) -> Any:
        if not axes or axes == (None,):
            return self.T
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return self.apply(np.transpose, (self, order), {})

    def flatten(self, order: Any = "C") -> Any:
        return self.apply(np.ravel, (self,), _other(order))

    def astype(
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        wanted = np.dtype(dtype)
        if not np.can_cast(self.dtype, wanted, casting):
            raise TypeError(f"cannot cast a {type(self).__name__} of {self.dtype} to {wanted} by casting={casting!r}")
        return self.apply(_astype, (self, wanted), {})

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "at" or options.get("out") is not None:
            raise _immutable()
        return self.apply(ufunc if method == "__call__" else getattr(ufunc, method), inputs, options)

    def __array_function__(
        self, function: Any, types: Iterable[type], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        if function in MUTATORS or kwargs.get("out") is not None:
            raise _immutable()
        if function in PLACES:
            return function(*(x.data if isinstance(x, Eager) else x for x in args), **kwargs)
        return self.apply(function, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self.apply(operator.getitem, (self, _places(index)), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        raise _immutable()

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(self.data == (item.data if isinstance(item, Eager) else item)))

    def __format__(self, spec: str) -> str:
        """A number as a number; an array takes no format but the empty one, as in NumPy."""
        return super().__format__(spec) if isinstance(self.data, np.ndarray) else format(self.data, spec)

    def __round__(self, digits: int | None = None) -> Any:
        if isinstance(self.data, np.ndarray) or self.dtype.kind == "c":
            raise TypeError(f"a {type(self).__name__} of {self.dtype}{list(self.shape)} has no __round__: use np.round")
        if digits is not None:
            return self.apply(np.round, (self, digits), {})
        return round(self._convert() if self.dtype.kind == "f" else self.data)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __index__(self) -> int:
        return operator.index(self.data)

    def __int__(self) -> int:
        if self.dtype.kind in "fc":
            self._convert()
        return int(self.data)

    def __float__(self) -> float:
        return float(self._convert())

    def __complex__(self) -> complex:
        return complex(self._convert())

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        return np.array(self._convert())

    def _convert(self) -> Any:
        """Raise an error: code that needs a plain value would lose the derivative."""
        raise TracerConversionError(
            f"a {type(self).__name__} reached code that needs a plain array or number, where its derivative would be "
            "lost",
            remedy="use the NumPy function of the same purpose, or pass x.data",
        )


def _places(index: Any) -> Any:
    """An index in which positions of true elements replace masks, whose values are known."""
    parts = index if isinstance(index, tuple) else (index,)
    found: list[Any] = []
    for part in parts:
        data = part.data if isinstance(part, Eager) else part
        if isinstance(data, np.ndarray) and data.ndim and data.dtype == np.bool_:
            found.extend(data.nonzero())
        else:
            found.append(part)
    return tuple(found) if isinstance(index, tuple) or len(found) > 1 else found[0]


def _immutable() -> UnsupportedError:
    return UnsupportedError(
        "an eager array is read-only, since other values may depend on it",
        remedy="compute a new one: np.where, np.concatenate, x = x + y",
    )


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: self.apply(function, (self, other), {})


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: self.apply(function, (other, self), {})


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """``x += y`` makes a new number; an array refuses, since NumPy would change its views, too."""

    def call(self: Eager, other: Any) -> Any:
        if isinstance(self.data, np.ndarray):
            raise _immutable()
        return self.apply(function, (self, other), {})

    return call


def _other(order: Any) -> dict[str, Any]:
    """The option ``order``, where it is not the usual one."""
    return {} if order == "C" else {"order": order}


def _writing(self: Eager, *_: Any, **__: Any) -> Any:
    raise _immutable()


def _of_one(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: self.apply(function, (self,), {})


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Eager, *args: Any, **kwargs: Any) -> Any:
        return self.apply(function, (self, *args), kwargs)

    return method


def install() -> None:
    """Give Eager its operators and methods."""
    methods = {f"__{name}__": _operator(function) for name, function in {**BINARY, **COMPARISONS}.items()}
    methods |= {f"__r{name}__": _reflected(function) for name, function in BINARY.items()}
    methods |= {f"__i{name}__": _in_place(function) for name, function in BINARY.items() if name != "divmod"}
    methods |= {f"__{name}__": _of_one(function) for name, function in UNARY.items()}
    methods |= {f.__name__.removeprefix("a") if f in (np.amax, np.amin) else f.__name__: _method(f) for f in METHODS}
    methods |= {"conj": methods["conjugate"], **dict.fromkeys(WRITING, _writing)}
    for name, method in methods.items():
        setattr(Eager, name, method)


install()
