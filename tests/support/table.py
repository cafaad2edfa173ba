"""The table of NumPy: each function as a call on sample arrays, and what its derivative is.

A row is a line of Python over the names of ``ARGUMENTS``. ``tests/numpy/test_table.py`` runs it over dtypes and
layouts, and ``docs/numpy.md`` is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .linalg_samples import apart
from .sampling import Domain, Rng, Shape, normal

LENGTHS = {"m": 2, "n": 3, "k": 4}


def _definite(rng: Rng, shape: Shape) -> Any:
    """Symmetric positive definite matrices with a simple spectrum."""
    x = apart(rng, shape)
    return (x + np.swapaxes(x, -1, -2)) / 2


# The arguments of calls: their axes, by the names of lengths, and their domain unless a row has its own.
ARGUMENTS: dict[str, tuple[str, Domain | None]] = {
    "x": ("mn", None),
    "y": ("mn", None),
    "z": ("mn", None),
    "v": ("n", None),
    "w": ("n", None),
    "q": ("nk", None),
    "s": ("", None),
    "a": ("nn", apart),
    "h": ("nn", _definite),
    "c": ("mnn", apart),
    "t": ("mnk", None),
}


@dataclass(frozen=True)
class Row:
    """One function. ``derivative`` is "any order", "zero" or "facts" (not a number that could have one).

    ``simple`` says that derivatives need distinct elements or a simple spectrum; ``refused`` names dtypes that NumPy
    takes and retrograd does not, and ``remark`` what else is to know.
    """

    code: str
    domain: Domain = normal
    derivative: str = "any order"
    simple: bool = False
    refused: str = ""
    remark: str = ""

    @property
    def name(self) -> str:
        """``numpy.linalg.inv``, ``numpy.add.reduce`` or ``ndarray.sum``: what is called first, after an assignment."""
        head = re.match(
            r"[\w.]+", self.code.rpartition(":= ")[2].partition(", ")[2] if ":=" in self.code else self.code
        )
        assert head is not None
        first, _, rest = head[0].partition(".")
        return f"{'numpy' if first == 'np' else 'ndarray'}.{rest}"

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arrays."""
        used = set(re.findall(r"(?<![\w.'\"])([a-z])(?![\w'\"=])", self.code))
        return tuple(name for name in ARGUMENTS if name in used)

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The call as a function of its arrays."""
        made: Callable[..., Any] = eval(f"lambda {', '.join(self.arguments)}: {self.code}", {"np": np})
        return made

    def arrays(self, dtype: str, lengths: dict[str, int] | None = None, seed: int = 0) -> list[Any]:
        """Sample arrays; ``lengths`` None means arrays without axes."""
        rng = np.random.default_rng(seed)
        found = []
        for name in self.arguments:
            axes, domain = ARGUMENTS[name]
            shape = () if lengths is None else tuple(lengths[axis] for axis in axes)
            draw = (domain if domain and shape else None) or self.domain
            x = draw(rng, shape)
            if np.dtype(dtype).kind == "c":
                part = rng.uniform(-0.3, 0.3, shape)
                x = x + 1j * (part - np.swapaxes(part, -1, -2) if draw is _definite else part)
            found.append(np.asarray(x).astype(dtype))
        return found


ROWS: list[Row] = []


def rows(text: str, domain: Domain = normal, **fields: Any) -> None:
    """Rows from lines; ``np.sin np.cos`` on a line without parentheses stand for calls with ``x``."""
    for line in filter(None, map(str.strip, text.splitlines())):
        calls = [line] if set("([") & set(line) or line.startswith("x.") else [f"{name}(x)" for name in line.split()]
        ROWS.extend(Row(code, domain, **fields) for code in calls)
