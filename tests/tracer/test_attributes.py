"""A traced value has the attributes that the plain value has, whichever way the function asks, and is of its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import errors

MATRIX = np.array([[1.0, 2.0], [3.0, 5.0]])
VALUES = {"array": MATRIX[0], "float": 2.0, "int": 3, "scalar": np.float64(2.0)}
# Those of other libraries, some of which traced values have, too; some of arrays alone; some of all.
NAMES = ["where", "storage", "shadow", "home", "symbol", "op", "parent", "const", "version", "_decide", "nothing"]
NAMES += ["shape", "dtype", "T", "item", "__len__", "real"]


def by_attribute(name: str) -> Callable[[Any], Any]:
    made: dict[str, Any] = {}
    exec(f"def f(x):\n try: x.{name}\n except AttributeError: return x + x\n return 10 * x", made)
    f: Callable[[Any], Any] = made["f"]
    return f


ASKED: dict[str, Callable[[str], Callable[[Any], Any]]] = {
    "attribute": by_attribute,
    "getattr": lambda name: lambda x: 10 * x if getattr(x, name, None) is not None else x + x,
    "getattr in a list": lambda name: lambda x: 10 * x if [getattr][0](x, name, None) is not None else x + x,
    "hasattr": lambda name: lambda x: 10 * x if hasattr(x, name) else x + x,
    "dir": lambda name: lambda x: 10 * x if name in dir(x) else x + x,
}


@pytest.mark.parametrize("how", ASKED)
@pytest.mark.parametrize("kind", VALUES)
def test_it_has_the_attributes_of_the_plain_value(kind: str, how: str) -> None:
    for name in NAMES:
        f = ASKED[how](name)
        assert np.array_equal(rg.jit(f)(VALUES[kind]), f(VALUES[kind])), name


@pytest.mark.parametrize("name", ["__array_interface__", "__array_struct__", "__dlpack__", "__array_wrap__"])
def test_an_attribute_that_traced_values_lack_is_refused(name: str) -> None:
    with pytest.raises(errors.TracerConversionError, match=name):
        rg.jit(lambda x: x if getattr(x, name, None) is None else x + x)(MATRIX)


@pytest.mark.parametrize("store", [lambda x: setattr(x, "where", 1.0), lambda x: exec("x.where = 1.0", {"x": x})])
def test_it_takes_no_attributes(store: Callable[[Any], None]) -> None:
    with pytest.raises(AttributeError, match=r"numpy\.ndarray.*where"):
        rg.jit(lambda x: (store(x), x)[1])(MATRIX)


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "dtype": np.dtype,
    "subtype": lambda x: np.issubdtype(x, float),
    "common dtype": lambda x: np.promote_types(x, float),
    "limits": np.finfo,
    "limits of integers": np.iinfo,
    "spread": lambda x: np.dtype(*[x]),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
def test_it_is_no_dtype(asked: Callable[[Any], Any], kind: str) -> None:
    def f(x: Any) -> Any:
        try:
            asked(x)
        except (TypeError, ValueError):
            return x + x
        return 10 * x

    assert np.array_equal(rg.jit(f)(VALUES[kind]), f(VALUES[kind]))


MEMORY: dict[str, Callable[[Any], Any]] = {
    "bytes": bytes,
    "bytes of a map": lambda m: next(map(bytes, [m])),
    "bytearray": bytearray,
    "from_bytes": lambda m: int.from_bytes(m, "big"),
    "text": lambda m: str(m, "latin1"),
    "join": lambda m: b"".join([m]),
}


@pytest.mark.parametrize("kind", ["array", "matrix", "scalar"])
@pytest.mark.parametrize("taken", MEMORY.values(), ids=MEMORY)
def test_its_memory_is_refused(taken: Callable[[Any], Any], kind: str) -> None:
    def f(m: Any) -> Any:
        try:
            taken(m)
        except TypeError:
            return m + m
        return m

    with pytest.raises(errors.TracerConversionError):
        rg.jit(f)({**VALUES, "matrix": MATRIX}[kind])


def test_the_bytes_of_an_int_are_zeros() -> None:
    assert rg.jit(lambda n: n * len(bytes(n)) * len(bytearray(n)))(3) == 27
