"""The index of a loop, and other traced ints, have the methods of Python's int, or refuse with a remedy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

Function = Callable[..., Any]

COMPUTED: dict[str, Function] = {
    "bit_length": lambda i: i.bit_length(),
    "bit_count": lambda i: i.bit_count(),
    "as_integer_ratio": lambda i: i.as_integer_ratio()[0] + 7 * i.as_integer_ratio()[1],
    "numerator": lambda i: i.numerator + i.denominator,
    "real": lambda i: i.real + i.imag + i.conjugate(),
    "round": lambda i: round(i) + round(i, 2),
    "round to tens": lambda i: round(3 * i, -1),
    "round to hundreds": lambda i: round(25 * i, -2),
    "pow": lambda i: pow(i % 99, 2) + pow(i % 99, 3, None),
    "divmod": lambda i: divmod(i, 3)[0] + 5 * divmod(i, -3)[1],
    "bits": lambda i: (i ^ 1) + (~i << 2) + (i >> 1) + (i & 3) + (i | 8),
    "quotients": lambda i: i // -2 + -i % 3,
    "math": lambda i: math.trunc(i) + math.floor(i) + math.ceil(i),
}
INTS = [0, 1, 2, 5, 15, 25, 255, 256, -1, -7, -256, 2**52 + 1]
LARGE = [2**53 - 1, 2**53, 2**62 - 1, 2**62, 2**63 - 2, -(2**62), -(2**63)]


@pytest.mark.parametrize("f", COMPUTED.values(), ids=COMPUTED)
def test_the_index_of_a_loop_is_an_int(f: Function) -> None:
    for i in INTS:
        assert int(rg.fori_loop(i, i + 1, lambda j, c: c + f(j), 0)) == f(i)


@pytest.mark.parametrize("f", COMPUTED.values(), ids=COMPUTED)
def test_int_arguments_that_vary(f: Function) -> None:
    compiled = rg.jit(f)
    for i in INTS:
        found = compiled(i)
        assert found == f(i)
        assert type(found) is int


@pytest.mark.parametrize("i", LARGE)
def test_bits_of_large_ints(i: int) -> None:
    found = rg.fori_loop(i, i + 1, lambda j, c: c + 100 * j.bit_length() + j.bit_count(), 0)
    assert int(found) == 100 * i.bit_length() + i.bit_count()


@pytest.mark.parametrize("name", ["bit_count", "numerator", "denominator"])
def test_numbers_of_numpy(name: str) -> None:
    def f(x: Any) -> Any:
        found = getattr(x[0], name)
        return found() if callable(found) else found

    x = np.array([12, 5])
    found, plain = rg.jit(f)(x), f(x)
    assert found == plain
    assert type(found) is type(plain)
    assert rg.jit(lambda x: round(x[0], -1))(x) == 10
    assert type(rg.jit(lambda x: round(x[0]))(x)) is int


REFUSED: dict[str, Function] = {
    "pow of an index": lambda i: pow(i, 3, 5),
    "pow by an index": lambda i: pow(3, i, 5),
    "pow modulo an index": lambda i: pow(3, 2, i + 1),
    "to_bytes": lambda i: len(i.to_bytes(2, "big")),
    "isqrt": lambda i: 2 * math.isqrt(i),
    "comb": lambda i: math.comb(i, 2),
    "hex": lambda i: len(hex(i)),
    "a format": lambda i: len(f"{i:03d}"),
    "a range": lambda i: len(range(i)),
    "a slice": lambda i: np.sum(np.arange(9.0)[i : i + 2]),
}


@pytest.mark.parametrize("f", REFUSED.values(), ids=REFUSED)
def test_what_needs_the_number_itself_is_refused_in_loops(f: Function) -> None:
    with pytest.raises(rg.RetrogradError, match="remedy: "):
        rg.fori_loop(4, lambda i, c: c + f(i), 0)
    compiled = rg.jit(f)
    for i in (1, 2, 3):
        assert compiled(i) == f(i)


def test_arrays_and_floats_lack_the_methods_of_ints() -> None:
    for name in ("bit_length", "numerator", "to_bytes", "bit_count"):
        assert rg.jit(lambda x, name=name: x if hasattr(x, name) else 2 * x)(1.5) == 3.0
        assert rg.jit(lambda x, name=name: x if hasattr(x, name) else 2 * x)(np.ones(2))[0] == 2.0
    with pytest.raises(TypeError, match="3rd argument"):
        rg.jit(lambda x: pow(x, 2, 5))(2.0)
