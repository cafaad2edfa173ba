"""Random operands of calls as source text: all dtypes, layouts and small shapes, numbers, lists, nan, inf and -0.0."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats

BOOLS, INTS = ("bool",), ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS, COMPLEX = ("float16", "float32", "float64"), ("complex64", "complex128")
DTYPES = (*BOOLS, *INTS, *FLOATS, *COMPLEX)
COMMON = ("float64",) * 6 + ("float32", "complex128", "int64", "bool")
SHAPES = (
    (),
    (1,),
    (3,),
    (3,),
    (4,),
    (2, 3),
    (3, 3),
    (2, 2),
    (3, 1),
    (1, 3),
    (2, 1, 3),
    (2, 2, 2),
    (0,),
    (0, 3),
    (2, 0),
)
LAYOUTS = ("C", "C", "C", "F", "strided", "reversed", "transposed", "broadcast")
SPECIAL = (float("nan"), float("inf"), -float("inf"), -0.0, 0.0)
SCOPE = {"np": np, "scipy": scipy, "math": math, "nan": math.nan, "inf": math.inf}  # what calls may name


@dataclass(frozen=True)
class Operand:
    """Source text of a value, and of another one with the same dtype, shape and layout."""

    texts: tuple[str, str]
    role: str  # "traced", "captured" or "literal"
    layout: str = "C"

    def value(self, which: int) -> Any:
        return eval(self.texts[which], dict(SCOPE))


def entry(rng: random.Random, kind: str, special: float) -> Any:
    """A number for an array of that kind of dtype."""
    if kind == "b":
        return rng.random() < 0.5
    if kind in "iu":
        least = 0 if kind == "u" else -4
        return rng.randint(least, 5) if rng.random() > special / 4 else 120
    if kind == "c":
        return complex(entry(rng, "f", special / 2), entry(rng, "f", special / 2))
    return rng.choice(SPECIAL) if rng.random() < special else round(rng.uniform(-2, 2), 3)


def entries(rng: random.Random, kind: str, shape: tuple[int, ...], special: float) -> Any:
    """Nested lists of that shape."""
    if not shape:
        return entry(rng, kind, special)
    return [entries(rng, kind, shape[1:], special) for _ in range(shape[0])]


def text_of(value: Any) -> str:
    """Source of nested lists of numbers; ``complex(nan, -0.0)`` where the usual text means another number."""
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    return repr(value)


def array_text(rng: random.Random, dtype: str, shape: tuple[int, ...], layout: str, special: float) -> str:
    """Source of an array."""

    def plain(shape: tuple[int, ...]) -> str:
        if 0 in shape:
            return f"np.zeros({shape}, np.{dtype})"
        return f"np.array({text_of(entries(rng, np.dtype(dtype).kind, shape, special))}, np.{dtype})"

    if not shape or layout == "C":
        return plain(shape)
    if layout == "F":
        return f"np.asfortranarray({plain(shape)})"
    if layout == "strided":
        return f"np.repeat({plain(shape)}, 2, axis=-1)[..., ::2]"
    if layout == "reversed":
        return f"{plain(shape)}[::-1]"
    if layout == "transposed":
        return f"{plain(shape[::-1])}.T"
    return f"np.broadcast_to({plain((1, *shape[1:]))}, {shape})"


def draw_operand(
    rng: random.Random,
    shape: tuple[int, ...],
    dtypes: tuple[str, ...] = (),
    *,
    role: str = "",
    special: float | None = None,
    array: bool = False,
) -> Operand:
    """An operand of that shape; unless it must be an array, a number or a list of numbers now and then."""
    dtype = rng.choice(dtypes or (COMMON if rng.random() < 0.6 else DTYPES))
    role = role or rng.choice(("traced", "traced", "traced", "captured", "literal"))
    if special is None:
        special = rng.choice((0.0, 0.0, 0.2))
    kind = np.dtype(dtype).kind
    if not array and ((not shape and rng.random() < 0.7) or (len(shape) == 1 and rng.random() < 0.12)):
        wrap = f"np.{dtype}({{}})" if not shape and rng.random() < 0.5 else "{}"
        texts = [wrap.format(text_of(entries(rng, kind, shape, special))) for _ in range(2)]
        if wrap == "{}" and kind in "biu":
            texts[1] = texts[0]  # bools are static, and other ints may be another version
        return Operand((texts[0], texts[1]), role)
    layout = rng.choice(LAYOUTS) if shape else "C"
    first, second = (array_text(rng, dtype, shape, layout, special) for _ in range(2))
    return Operand((first, second), role, layout)
