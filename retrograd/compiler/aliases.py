"""Arguments that share memory: refused if the function writes into one of them, since each is traced separately."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ..ir.primitive import TRANSFORMS
from ..tracer.array import shadow_of
from ..tracer.trace import unsupported

MOST_WORK = 1000  # steps of the search for an element that two arrays share; beyond it they count as sharing


@TRANSFORMS.register("apart")
def apart(run: Callable[..., Any], written: Collection[int]) -> Callable[..., Any]:
    """``run`` behind a check of the arguments at these positions."""

    def checked(*args: Any) -> Any:
        check_apart(args, written)
        return run(*args)

    return checked


@TRANSFORMS.register("check_apart")
def check_apart(values: Sequence[Any], written: Collection[int]) -> None:
    """Raise UnsupportedError if an array that is written into shares memory with another value."""
    arrays = [x if isinstance(x, np.ndarray) else None for x in map(shadow_of, values)]
    for k in written:
        for j, other in enumerate(arrays):
            if j != k and other is not None and arrays[k] is not None and _share(arrays[k], other):
                raise unsupported(
                    "the function writes into an argument that shares memory with another argument, or with an array "
                    "that it reads outside",
                    "pass a copy of one of them, x.copy()",
                )


def _share(a: Any, b: Any) -> bool:
    try:
        return np.shares_memory(a, b, max_work=MOST_WORK)  # type: ignore[arg-type]  # its stubs know two bounds
    except np.exceptions.TooHardError:
        return True
