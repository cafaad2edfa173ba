"""``scipy.fft`` for traced arrays, by the transforms of ``numpy.fft``, which compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numpy.reductions import as_dtype
from ..tracer.operands import shadow_dtype
from ..tracer.trace import unsupported
from .dispatch import Function, rest_of, stands_for

ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
SHIFTS = ("fftshift", "ifftshift")


def _by_numpy(name: str) -> Function:
    transform = getattr(np.fft, name)

    def call(
        x: Any, *args: Any, overwrite_x: bool = False, workers: Any = None, plan: Any = None, **options: Any
    ) -> Any:
        if len(args) > (1 if name in SHIFTS else 3):
            raise unsupported(f"scipy.fft.{name} with overwrite_x or workers by position", "pass them by name")
        narrow = name not in SHIFTS and shadow_dtype(x).char == "e"  # SciPy widens halves
        return transform(as_dtype(x, np.dtype(np.float32)) if narrow else x, *args, **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"``scipy.fft.{name}`` by ``numpy.fft.{name}``."
    return stands_for(f"scipy.fft.{name}")(call)


TRANSFORMS = {name: _by_numpy(name) for name in (*ONE_AXIS, *SEVERAL, *SHIFTS)}
__getattr__ = rest_of("scipy.fft", TRANSFORMS)
