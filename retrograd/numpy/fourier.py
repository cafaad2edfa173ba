"""``numpy.fft``: axes are first cut or padded with zeros to the wanted lengths, then transformed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ops import fourier
from ..tracer.array import apply, shadow_of
from ..tracer.creation import fresh
from ..tracer.operands import into, lifted, shadow_dtype
from ..tracer.table import implements
from .creation import asarray
from .reductions import as_dtype

Sizes = Sequence[Any] | None
SWAPPED: dict[Any, Any] = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _sized(x: Any, axis: int, n: int) -> Any:
    """Cut or pad ``x`` to ``n`` entries along an axis."""
    m = x.shape[axis]
    if n <= m:
        return x if n == m else x[(*(slice(None),) * axis, slice(n))]
    return np.pad(x, [(0, n - m if k == axis else 0) for k in range(x.ndim)])


def _operand(function: Callable[..., Any], a: Any, *options: Any) -> tuple[Any, Any]:
    """NumPy's result on the example value, or its error; and the operand in single or double precision."""
    like = function(shadow_of(a), *options)
    (x,) = lifted(a)
    return like, x if x.dtype.char in "fdFD" else as_dtype(x, np.dtype("f" if x.dtype.char == "e" else "d"))


def _plan(x: Any, s: Sizes, axes: Any) -> list[tuple[int, int]]:
    """The axes to transform, each with its length; NumPy has checked them."""
    places = range(-len(s) if s is not None else -x.ndim, 0) if axes is None else axes
    chosen = [int(k) % x.ndim for k in places]
    given = [-1] * len(chosen) if s is None else [-1 if n is None else int(n) for n in s]
    return [(k, x.shape[k] if n == -1 else n) for k, n in zip(chosen, given, strict=True)]


def _scale(a: Any, n: int, inverse: bool, norm: Any) -> float:
    """The factor of a transform; NumPy rounds it to the precision of the operand."""
    kind = np.result_type(np.real(np.zeros(1, shadow_dtype(a))).dtype, 1.0)
    norm = SWAPPED[norm] if inverse else norm or "backward"
    return (
        1.0
        if norm == "backward"
        else float(np.reciprocal(np.sqrt(n, dtype=kind) if norm == "ortho" else n, dtype=kind))
    )


def _as_in_double(a: Any, inverse: bool, norm: Any) -> bool:
    """Whether NumPy computes a transform in double: that of halves, and of real singles where it must scale."""
    kind = shadow_dtype(a).char
    return kind == "e" or (kind == "f" and _scale(a, 3, inverse, norm) != 1.0)


def _scaled(spectrum: Any, factor: float) -> Any:
    """Both parts of complex numbers times a factor: complex products would spread infinities to the other part."""
    made = fresh(np.zeros(spectrum.shape, spectrum.dtype))
    made.real[...] = np.multiply(np.real(spectrum), factor)
    made.imag[...] = np.multiply(np.imag(spectrum), factor)
    return made


def _in_double(a: Any, x: Any, step: tuple[int, int], inverse: bool, norm: Any) -> Any:
    """A complex transform of narrow real numbers along one axis."""
    k, n = step
    x = as_dtype(_sized(x, k, n), np.dtype(complex))
    found = apply(fourier.fft, [x], axis=(k,), inverse=inverse, norm="forward" if inverse else "backward")
    return as_dtype(_scaled(found, _scale(a, n, inverse, norm)), np.dtype(np.complex64))


def _complex(x: Any, plan: Sequence[tuple[int, int]], inverse: bool, norm: Any) -> Any:
    """Complex transforms along several axes, the last one first, as in NumPy."""
    if len({k for k, _ in plan}) < len(plan):
        for step in reversed(plan):
            x = _complex(x, [step], inverse, norm)
        return x
    for k, n in plan:
        x = _sized(x, k, n)
    return apply(fourier.fft, [x], axis=tuple(k for k, _ in plan), inverse=inverse, norm=norm or "backward")


def _transform(function: Any, a: Any, s: Sizes, axes: Any, norm: Any, out: Any, inverse: bool) -> Any:
    like, x = _operand(function, a, s, axes, norm)
    plan = _plan(x, s, axes)
    if plan and _as_in_double(a, inverse, norm):
        x, plan = _in_double(a, x, plan[-1], inverse, norm), plan[:-1]
        return into(out, as_dtype(_complex(x, plan, inverse, norm) if plan else x, like.dtype))
    return into(out, as_dtype(_complex(x, plan, inverse, norm), like.dtype) if plan else asarray(a))


def _forward_real(function: Any, a: Any, s: Sizes, axes: Any, norm: Any, out: Any) -> Any:
    like, x = _operand(function, a, s, axes, norm)
    *others, (k, n) = _plan(x, s, axes)
    distinct = len({k, *(j for j, _ in others)}) == len(others) + 1
    x = _sized(x, k, n)
    if distinct:
        for j, m in others:
            x = _sized(x, j, m)
    along = (*(j for j, _ in others), k) if distinct else (k,)
    if shadow_dtype(a).char == "e":
        along, distinct = (k,), not others
        found = apply(fourier.rfft, [as_dtype(x, np.dtype(float))], axis=along, norm="backward")
        found = as_dtype(_scaled(found, _scale(a, n, False, norm)), like.dtype)
    else:
        found = apply(fourier.rfft, [x], axis=along, norm=norm or "backward")
    if not distinct:
        found = _complex(found, others, False, norm)
    return into(out, as_dtype(found, like.dtype))


def _inverse_real(function: Any, a: Any, s: Sizes, axes: Any, norm: Any, out: Any) -> Any:
    like, x = _operand(function, a, s, axes, norm)
    *others, (k, n) = _plan(x, s, axes)
    n = like.shape[k] if s is None else n
    if others and _as_in_double(a, True, norm):
        x, others = _in_double(a, x, others[0], True, norm), others[1:]
    elif not others and shadow_dtype(a).char in "ef":
        x = as_dtype(_sized(x, k, n // 2 + 1), np.dtype(complex))
        found = apply(fourier.irfft, [x], axis=(k,), n=n, norm="forward")
        return into(out, as_dtype(np.multiply(found, _scale(a, n, True, norm)), like.dtype))
    x = as_dtype(x, np.result_type(x.dtype, np.complex64))
    distinct = len({k, *(j for j, _ in others)}) == len(others) + 1
    for j, m in others:
        x = _sized(x, j, m) if distinct else _complex(x, [(j, m)], True, norm)
    x = _sized(x, k, n // 2 + 1)
    along = (*(j for j, _ in others), k) if distinct else (k,)
    return into(out, as_dtype(apply(fourier.irfft, [x], axis=along, n=n, norm=norm or "backward"), like.dtype))


def _of_one_axis(function: Any, run: Callable[..., Any], **options: Any) -> None:
    def numpys(a: Any, s: Sizes, axes: Any, norm: Any) -> Any:
        return function(a, None if s is None else s[0], axes[0], norm)

    @implements(function)
    def handler(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        return run(numpys, a, None if n is None else (n,), (axis,), norm, out, **options)


def _of_two_axes(function: Any, run: Callable[..., Any], **options: Any) -> None:
    @implements(function)
    def handler(a: Any, s: Sizes = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
        return run(function, a, s, axes, norm, out, **options)


def _of_many_axes(function: Any, run: Callable[..., Any], **options: Any) -> None:
    @implements(function)
    def handler(a: Any, s: Sizes = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
        return run(function, a, s, axes, norm, out, **options)


for _register, _names in (
    (_of_one_axis, ("fft", "ifft", "rfft", "irfft")),
    (_of_two_axes, ("fft2", "ifft2", "rfft2", "irfft2")),
    (_of_many_axes, ("fftn", "ifftn", "rfftn", "irfftn")),
):
    _fft, _ifft, _rfft, _irfft = (getattr(np.fft, name) for name in _names)
    _register(_fft, _transform, inverse=False)
    _register(_ifft, _transform, inverse=True)
    _register(_rfft, _forward_real)
    _register(_irfft, _inverse_real)


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    np.fft.hfft(shadow_of(a), n, axis, norm)  # NumPy's own error
    return into(out, np.fft.irfft(np.conj(a), n, axis, SWAPPED[norm]))


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    np.fft.ihfft(shadow_of(a), n, axis, norm)  # NumPy's own error
    return into(out, np.conj(np.fft.rfft(a, n, axis, SWAPPED[norm])))


def _shifts(function: Any, x: Any, axes: Any, half: Callable[[int], int]) -> Any:
    function(shadow_of(x), axes)  # NumPy's own error
    chosen = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, (int, np.integer)) else tuple(axes)
    return np.roll(x, tuple(half(x.shape[k]) for k in chosen), chosen)


@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    return _shifts(np.fft.fftshift, x, axes, lambda n: n // 2)


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    return _shifts(np.fft.ifftshift, x, axes, lambda n: -(n // 2))
