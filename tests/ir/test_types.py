"""Types: avals of concrete values, and their text."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from retrograd.errors import ParseError
from retrograd.ir.parser import parse_type
from retrograd.ir.types import DTYPES, Aval, aval_of
from retrograd.where import Where

F64 = np.dtype(np.float64)

TEXTS: list[tuple[Any, str]] = [
    (np.ones((3, 2)), "f64[3,2]"),
    (np.array(1.0), "f64[]"),
    (np.float64(1.0), "f64"),
    (1.0, "float"),
    (True, "bool"),
    (3, "int"),
    (1j, "complex"),
    (np.bool_(True), "b8"),
    (np.int8(1), "i8"),
    (np.zeros((0, 4), np.uint16), "u16[0,4]"),
    (np.zeros(2, np.longlong), "i64[2]"),
    (np.float16(1), "f16"),
    (np.complex64(1), "c64"),
    ([np.ones(3), np.ones(3)], "f64[3]*2"),
    ([[1.0, 2.0, 3.0]] * 4, "float*4*3"),
]


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=[t for _, t in TEXTS])
def test_a_value_has_a_type_and_the_type_a_text(value: Any, text: str) -> None:
    assert str(aval_of(value)) == text
    assert parse_type(text) == aval_of(value)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("form", ["{}[3,2]", "{}[]", "{}", "{}[4]*7", "{}*?", "{}[2]*3*?"])
def test_the_text_of_every_dtype_and_form_is_read_back(name: str, form: str) -> None:
    text = form.format(name)
    aval = parse_type(text)
    assert str(aval) == text
    assert aval.dtype == DTYPES[name]


def test_the_names_of_dtypes_count_bits() -> None:
    assert {name: dtype.itemsize * 8 for name, dtype in DTYPES.items()} == {name: int(name[1:]) for name in DTYPES}


@pytest.mark.parametrize(
    "text", ["", "f64[", "f64[3", "f64]3[", "f64[a]", "f[3]", "float[3]", "F64", "f64 [3]", "f64[3] "]
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="is not a type") as caught:
        parse_type(text)
    assert "write for example f64[3,2]" in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "text",
        None,
        [],
        {},
        int,
        np.array(["a"]),
        np.array([None]),
        np.zeros(2, ">f8"),
        np.datetime64("2020-01-01"),
        np.zeros(2, [("a", "f8")]),
        np.longdouble(1),
        np.str_("a"),
    ],
    ids=lambda v: ascii(repr(v)),
)
def test_what_cannot_be_traced_has_no_type(value: object) -> None:
    with pytest.raises(TypeError):
        aval_of(value)


def test_sizes_count_elements_and_bytes() -> None:
    aval = Aval((3, 2), np.dtype(np.float32))
    assert (aval.ndim, aval.size, aval.nbytes) == (2, 6, 24)
    assert (Aval((), F64).size, Aval((0, 5), F64).nbytes) == (1, 0)
    assert aval.stacked(5).nbytes == 120
    assert aval.stacked(-1).nbytes == 24


def test_lists_of_steps_nest() -> None:
    aval = Aval((3,), F64)
    assert aval.stacked(2).stacked(4).steps == (4, 2)
    assert aval.stacked(2).stacked(4).unstacked() == aval.stacked(2)
    assert aval.stacked(2).unstacked() == aval
    with pytest.raises(ValueError, match="is not a list of steps"):
        aval.unstacked()


def test_only_floating_point_can_be_differentiated() -> None:
    inexact = {name for name, dtype in DTYPES.items() if Aval((), dtype).inexact}
    assert inexact == {"f16", "f32", "f64", "c64", "c128"}


def test_a_line_of_the_user_prints_with_or_without_its_folder() -> None:
    where = Where("/home/someone/model.py", 12)
    assert (str(where), where.short) == ("/home/someone/model.py:12", "model.py:12")


@pytest.mark.parametrize("file", ["a\nb.py", "a#b.py", "a\x00b", "a\u2028b", "a{b}", "a\rb"])
def test_the_short_form_of_a_line_is_harmless(file: str) -> None:
    short = Where(file, 1).short
    assert short.isprintable()
    assert not set(short) & set("#{}")


def test_equal_types_have_one_hash_which_another_process_shares() -> None:
    long, quad = Aval((2,), np.dtype("l")), Aval((2,), np.dtype("q"))
    assert long == quad
    assert hash(long) == hash(quad)
    code = (
        "import numpy as np; from retrograd.ir.types import Aval; print(hash(Aval((2, 3), np.dtype('f8'), steps=(4,))))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] == f"{hash(Aval((2, 3), F64, steps=(4,)))}\n".encode()
