"""What a program of the collection is: a function as its author would write it, arguments, and how it is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Program:
    """A plain NumPy function of one vector or array of parameters with a scalar result.

    ``start`` is where it is differentiated. ``minimise`` is a bound that scipy.optimize.minimize must reach with the
    gradient; ``autograd`` says whether HIPS autograd can differentiate it unchanged.
    """

    function: Callable[..., Any]
    start: np.ndarray[Any, Any]
    rest: tuple[Any, ...] = ()
    minimise: float | None = None
    autograd: bool = False
    rtol: float = 2e-5

    @property
    def name(self) -> str:
        return self.function.__name__
