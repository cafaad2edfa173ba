"""A refusal that the traced function catches is raised again; what plain Python raises can be caught as ever."""

from __future__ import annotations

import array
import contextlib
import datetime as dt
import functools
import hashlib
import inspect
import json
import marshal
import os
import pickle
import random
import re
import statistics
import struct
import textwrap
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.signal import medfilt

import retrograd as rg
from retrograd import errors

X = np.array([1.5, 2.0])
W = np.zeros(2)
FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
FAULTS += (errors.RetrogradError, struct.error)


def write(x: Any) -> float:
    W[0] = x[0]
    return 2.0


REFUSED: dict[str, Callable[[Any], Any]] = {
    "json": lambda x: len(json.dumps({"loss": float(x[0])})),
    "tobytes": lambda x: x.tobytes()[7],
    "text": lambda x: float(str(x[0])),
    "f-string": lambda x: float(f"{x[0]}"),
    "struct": lambda x: struct.pack("d", x[0])[7],
    "Decimal": lambda x: float(Decimal(float(x[0]))),
    "Fraction": lambda x: float(Fraction(float(x[0]))),
    "pickle": lambda x: len(pickle.dumps(x)),
    "bytes": lambda x: bytes(x)[7],
    "memoryview": lambda x: memoryview(x)[0],
    "medfilt": lambda x: medfilt(x, 3)[0],
    "write": write,
}
TABLE: dict[str, Any] = {"dumps": json.dumps, "days": dt.timedelta, "hex": float.hex, "Decimal": Decimal}
REFUSED |= {
    "by a table": lambda x: len(TABLE["dumps"](x[0])),
    "in a list": lambda x: len([json.dumps][0](x[0])),
    "by name": lambda x: len(getattr(json, "du" + "mps")(x[0])),
    "map": lambda x: len(next(map(json.dumps, [x[0]]))),
    "largest of a map": lambda x: len(max(map(json.dumps, [x[0]]))),
    "partial": lambda x: len(functools.partial(json.dumps, indent=1)(x[0])),
    "C by a table": lambda x: TABLE["days"](float(x[0])).seconds,
    "hash": lambda x: len(hashlib.sha256(x).digest()),
    "marshal": lambda x: len(marshal.dumps(float(x[0]))),
    "time": lambda x: time.localtime(float(x[0])).tm_sec,
    "method of a type": lambda x: len(float.hex(float(x[0]))),
    "method of a type in a table": lambda x: len(TABLE["hex"](float(x[0]))),
    "operator of a type": lambda x: float.__add__(float(x[0]), 1.0),
    "special method": lambda x: float(x[0]).__trunc__(),
    "array interface": lambda x: x.__array_interface__["shape"][0],
    "array struct": lambda x: 2.0 * (x.__array_struct__ is not None),
    "dlpack": lambda x: len(np.from_dlpack(x)),
    "Decimal by a table": lambda x: float(TABLE["Decimal"](x[0])),
    "map of Decimal": lambda x: len([*map(Decimal, [x[0]])]),
    "list of a map": lambda x: len(list(map(Decimal, [x[0]]))),
    "map of memoryview": lambda x: len([*map(memoryview, [x])]),
    "statistics": lambda x: statistics.mean([x[0], x[1]]),
    "from_bytes": lambda x: int.from_bytes(x, "big") / 1e99,
}
CATCHABLE: dict[str, Callable[[Any], Any]] = {
    "shapes": lambda x: x + np.zeros(3),
    "reshape": lambda x: x.reshape(3),
    "two elements": lambda x: 2.0 * float(x),
    "one element": lambda x: float(x[:1]),
    "complex of one element": lambda x: complex(x[:1]).real,
    "two axes": lambda x: float(x[:1].reshape(1, 1)),
    "index": lambda x: x[5],
    "list index": lambda x: [1.0, 2.0][x[0]],
    "text and number": lambda x: "a" + x[0],
    "call": lambda x: x(),
    "length": lambda x: len(x[0]),
    "attribute": lambda x: x.nothing,
    "json of an array": lambda x: len(json.dumps(x)),
    "own": lambda x: {}["nothing"],
    "a table of nothing": lambda x: [int][0]("a"),
    "texts by a table": lambda x: float([",".join][0]([x[0]])),
    "call in a table": lambda x: [x][0](),
    "no letter": lambda x: float(next(map(ord, ["ab"]))),
    "special attribute": lambda x: x.__enter__(),
    "name": lambda x: len(x.__name__),
    "dict": lambda x: len(x.__dict__),
    "qualified name": lambda x: len(x.__qualname__),
    "call of the type": lambda x: x.__call__(),
    "order of classes": lambda x: len(x.__mro__),
    "method of str": lambda x: len(str.upper(x)),
    "method of str in a table": lambda x: len([str.upper][0](x[0])),
    "method of dict": lambda x: dict.get(x, 1),
    "method of bytes": lambda x: len(bytes.hex(x)),
    "method of a date": lambda x: len(dt.datetime.isoformat(x)),
    "operator of list": lambda x: len(list.__add__(x, [])),
    "method of float of an array": lambda x: len(float.hex(x)),
    "dedent": lambda x: len(textwrap.dedent(x)),
    "pattern": lambda x: float(re.match("a", x) is None),
    "pattern in a table": lambda x: float([re.match][0]("a", x[0]) is None),
    "mean of an array": lambda x: statistics.mean([x]),
    "mean of an array in a table": lambda x: [statistics.mean][0]([x]),
    "choice": lambda x: random.choice(x[0]),
    "shuffle": lambda x: random.shuffle(x[0]),
    "seed of an array": random.seed,
    "typecode": lambda x: len(array.array(x)),
    "Decimal of an array": lambda x: float(Decimal(x)),
    "Decimal of an array in a table": lambda x: float(TABLE["Decimal"](x)),
    "days of an array in a table": lambda x: TABLE["days"](x).seconds,
}


def by_except(g: Callable[[Any], Any], x: Any) -> Any:
    try:
        return x[0] * g(x)
    except FAULTS:
        return -x[0]


def by_suppress(g: Callable[[Any], Any], x: Any) -> Any:
    y = -x[0]
    with contextlib.suppress(*FAULTS):
        y = x[0] * g(x)
    return y


def in_a_branch(g: Callable[[Any], Any], x: Any) -> Any:
    return rg.cond(x[0] > 0, lambda x: by_except(g, x), lambda x: x[1], x)


def in_a_loop(g: Callable[[Any], Any], x: Any) -> Any:
    return rg.fori_loop(0, 2, lambda i, c: c + by_except(g, x), 0.0)


def in_a_gradient(g: Callable[[Any], Any], x: Any) -> Any:
    return np.sum(rg.grad(lambda x: by_except(g, x))(x))


def around_a_gradient(g: Callable[[Any], Any], x: Any) -> Any:
    try:
        return np.sum(rg.grad(lambda x: x[0] * g(x))(x))
    except FAULTS:
        return -x[0]


def after_it_another(g: Callable[[Any], Any], x: Any) -> Any:
    def inner(x: Any) -> Any:
        by_except(g, x)
        raise KeyError(0)

    try:
        return rg.jit(inner)(x)
    except KeyError:
        return x[1]


TRANSFORMS = {"jit": rg.jit, "grad": rg.grad, "vmap": lambda f: lambda x: rg.vmap(f)(np.stack([x, x]))}
PLACES = (by_except, by_suppress, in_a_branch, in_a_loop, in_a_gradient, around_a_gradient, after_it_another)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("place", [by_except, by_suppress])
def test_a_refusal_that_is_caught_is_raised_again(place: Callable[..., Any], name: str) -> None:
    with pytest.raises((errors.TracerError, errors.UserError)) as raised:
        rg.jit(lambda x: place(REFUSED[name], x))(X)
    assert raised.value.remedy
    assert "test_swallowed.py" in str(raised.value.where)
    assert any("caught this error" in note for note in raised.value.__notes__)
    assert np.all(W == 0.0)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_so_it_is_in_nested_traces_and_under_every_transform(transform: str, place: Callable[..., Any]) -> None:
    with pytest.raises(errors.UnsupportedError, match="tobytes"):
        TRANSFORMS[transform](lambda x: place(REFUSED["tobytes"], x))(X)


@pytest.mark.filterwarnings("ignore:Conversion of an array")  # which is an error since NumPy 2.4
@pytest.mark.parametrize("name", CATCHABLE)
@pytest.mark.parametrize("place", [by_except, by_suppress])
def test_what_plain_python_raises_can_be_caught(place: Callable[..., Any], name: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(place(CATCHABLE[name], x))

    assert rg.jit(f)(X) == f(X)


def test_a_decision_that_a_loop_refuses_cannot_be_caught() -> None:
    def body(c: Any, t: Any) -> Any:
        try:
            return (c + 1.0 if c > 0 else c - 1.0), c
        except TypeError:
            return c * 100.0, c

    with pytest.raises(errors.ControlFlowError):
        rg.jit(lambda x: rg.scan(body, x, np.arange(3.0))[0])(1.0)


def test_another_exception_of_the_function_is_raised_with_the_refusal_as_its_context() -> None:
    def f(x: Any) -> Any:
        with contextlib.suppress(TypeError):
            x.tobytes()
        raise KeyError(7)

    with pytest.raises(KeyError) as raised:
        rg.jit(f)(X)
    assert isinstance(raised.value.__context__, errors.UnsupportedError)


def test_after_it_other_calls_are_traced() -> None:
    def f(x: Any, flag: bool) -> Any:
        return by_except(REFUSED["tobytes"], x) if flag else np.sum(x)

    compiled = rg.jit(f)
    for _ in range(2):
        with pytest.raises(errors.UnsupportedError):
            compiled(X, True)
        assert compiled(X, False) == 3.5


class Table:
    """An object that NumPy takes for an array, of numbers or of an array."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.a, dtype)


@pytest.mark.parametrize("contents", [[1.0, 2.0], np.array([1.0, 2.0]), [1, 2]])
@pytest.mark.parametrize("convert", [np.asarray, np.array, lambda t: np.asarray(t, np.float32)])
def test_an_object_is_converted_as_its_own_method_says(contents: Any, convert: Callable[[Any], Any]) -> None:
    table = Table(contents)

    def f(x: Any) -> Any:
        try:
            return np.sum(convert(table) * x)
        except ValueError:
            return 100.0 * x[0]

    assert rg.jit(f)(X) == 5.5
    np.testing.assert_array_equal(rg.grad(f)(X), [1.0, 2.0])


def test_a_refusal_stays_if_the_handler_runs_what_catches_its_own() -> None:
    """A compiled function that takes a path it has not taken, and a lens that the host calls, forget theirs alone."""

    @rg.jit
    def otherwise(y: Any) -> Any:
        return -y if y > 0 else y * 10.0

    def by_host(y: Any) -> Any:
        return float(str(float(y))), lambda ct: ct

    for handler in (otherwise, rg.lens(by_host), lambda y: y.reshape(7)):

        def f(x: Any, handler: Callable[..., Any] = handler) -> Any:
            otherwise(x - 5.0)
            try:
                n = len(json.dumps(x))
            except TypeError:
                with contextlib.suppress(AttributeError, ValueError):
                    return handler(x)
                return x
            return x * n

        with pytest.raises(errors.TracerConversionError, match=r"json\.dumps"):
            rg.jit(f)(2.0)


def test_a_trace_that_is_too_long_is_no_error_of_the_programs() -> None:
    def f(x: Any, n: int) -> Any:
        y = x
        try:
            for i in range(n):
                y = y * 1.0001 + np.sin(x * i) if i % 7 and (i * i) % 11 else y - 1e-3 * i
        except ValueError:
            return x
        return y

    with rg.config(max_nodes=200), pytest.raises(errors.TraceLengthError):
        rg.jit(f)(2.0, 3000)


def test_what_the_host_calls_may_catch_its_own_errors() -> None:
    """The first try, which is traced, catches a refusal before it fails on another."""

    def host(y: Any) -> Any:
        try:
            n = len(json.dumps(y))
        except TypeError:
            n = -5
        return float(Decimal(y)) * n, lambda ct: 3.0 * ct

    assert rg.lens(host)(2.0) + 1 == 7.0
    assert rg.jit(lambda y: rg.lens(host)(y) + 1)(2.0) == 7.0


NO_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "a path": os.fspath,
    "a file": open,
    "Path": Path,
    "source": inspect.getsource,
    "format": lambda x: f"{x:.2f}",
    "round": round,
}


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_what_takes_no_array_may_be_tried(name: str) -> None:
    def f(x: Any) -> Any:
        try:
            NO_NUMBERS[name](x)
        except TypeError:
            return 2.0 * x
        return x

    np.testing.assert_array_equal(rg.jit(f)(X), f(X))


@pytest.mark.parametrize(
    ("call", "refused"),
    [
        ("json.dumps(x)", True),
        ("str(datetime.timedelta(x))", True),
        ("float.hex(x)", True),
        ("int('a')", False),
        ("x()", False),
        ("','.join([x])", False),
        ("'a' + x", False),
        ("open(x)", False),
    ],
)
def test_code_without_source_is_refused_as_well(call: str, refused: bool) -> None:
    scope: dict[str, Any] = {"json": json, "datetime": dt}
    exec(
        f"def f(x):\n    try:\n        return x * len({call})\n    except (TypeError, ValueError):\n        return -x",
        scope,
    )
    if refused:
        with pytest.raises(errors.TracerConversionError):
            rg.jit(scope["f"])(2.0)
    else:
        assert rg.jit(scope["f"])(2.0) == scope["f"](2.0) == -2.0
