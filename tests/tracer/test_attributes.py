"""A traced value has the attributes that the plain value has, whichever way the function asks, and is of its kind."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import SimpleNamespace
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


class Scene:
    gain, shadow, original = 3.0, 0.5, 7.0


SCENE = Scene()
# Where the traced value, or the function of NumPy's, is not the argument of which the call asks something.
ELSEWHERE: dict[str, Callable[[Any], Any]] = {
    "default": lambda x: x * getattr(SCENE, "gain", x),
    "default of a missing one": lambda x: x * getattr(SCENE, "loss", x),
    "default of a module": lambda x: np.sum(getattr(np, "missing", np.dot)(x, x)),
    "default, a function": lambda x: 2.0 * getattr(SCENE, "act", np.tanh)(x),
    "spread": lambda x: x * getattr(SCENE, "gain", *[x]),
    "spread name": lambda x: x * getattr(*[SCENE, "gain", x]),
    "name": lambda x: getattr(SCENE, x),
    "name of hasattr": lambda x: hasattr(SCENE, x),
    "name of setattr": lambda x: setattr(SCENE, x, 1.0),
    "name of delattr": lambda x: delattr(SCENE, x),
    "name of its own": lambda x: getattr(x, x, x),
    "function as name": lambda x: getattr(SCENE, np.tanh, 0.0),  # type: ignore[call-overload]  # so it is refused
    "stored": lambda x: (setattr(kept := SimpleNamespace(), "gain", x), kept.gain)[1],
    "function stored": lambda x: (setattr(kept := SimpleNamespace(), "act", np.tanh), kept.act(x))[1],
    "base": lambda x: type("Made", x, {}),  # type: ignore[arg-type]  # so it is refused
    "name of a class": lambda x: type(x, (), {}),  # type: ignore[arg-type]  # so it is refused
    "second of is_": lambda x: x * operator.is_(SCENE, x),
    "second of is_not": lambda x: x * operator.is_not(None, x),
    "function of is_": lambda x: x * operator.is_(SCENE, np.tanh),
    "second type": lambda x: np.issubdtype(float, x),
    "named type": lambda x: np.issubdtype(arg2=x, arg1=float),
    "second to promote": lambda x: np.promote_types(float, x),
    "class": lambda x: isinstance(SCENE, x),
    "name that is a subclass of str": lambda x: x * getattr(x, np.str_("ndim"), 5),
}
WRONG: dict[str, Callable[[Any], Any]] = {
    "id of two": lambda x: id(x, x),
    "id by name": lambda x: id(obj=x),
    "is_ of one": lambda x: x * operator.is_(x),
    "is_not of three": lambda x: operator.is_not(x, x, x),
    "type of two": lambda x: type(x, x),
    "hasattr of one": lambda x: x * hasattr(x),
    "getattr of one": lambda x: x * getattr(x),
    "getattr of four": lambda x: getattr(x, "a", 1, 2),
    "getattr by name": lambda x: getattr(x, "a", default=x),
    "setattr of two": lambda x: setattr(x, "a"),
    "delattr": lambda x: delattr(x, "nothing"),
    "dir of two": lambda x: dir(x, x),
    "vars": vars,
    "vars of a function": lambda x: vars(np.zeros),
    "finfo of none": lambda x: np.finfo(x, x),
}


def outcome(f: Callable[[Any], Any], x: Any) -> tuple[Any, ...]:
    try:
        return "gives", np.array(f(x)).tolist()
    except Exception as error:  # noqa: BLE001 - whatever plain Python raises
        return type(error), str(error)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", [*ELSEWHERE, *WRONG])
def test_a_traced_value_at_any_place_of_a_call(name: str, kind: str) -> None:
    f = (ELSEWHERE | WRONG)[name]
    assert outcome(rg.jit(f), VALUES[kind]) == outcome(f, VALUES[kind])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: getattr(np.zeros, "original", x),
        lambda x: x * hasattr(np.zeros, "_substitute"),
        lambda x: np.zeros.original,  # type: ignore[attr-defined]  # so it is refused
        lambda x: x * SCENE.original,
    ],
)
def test_a_function_of_numpy_has_no_further_attributes(f: Callable[[Any], Any]) -> None:
    assert outcome(rg.jit(f), MATRIX) == outcome(f, MATRIX)


@pytest.mark.parametrize(
    "read",
    [
        lambda model, x: x * getattr(model, "gain", x),
        lambda model, x: x * getattr(model, "gain", *[x]),
        lambda model, x: x * getattr(model, np.str_("gain"), x),
    ],
)
def test_the_attribute_is_read_in_a_call_with_a_traced_default(read: Callable[[Any, Any], Any]) -> None:
    model = SimpleNamespace(gain=3.0)
    f = rg.jit(lambda x: read(model, x))
    assert f(2.0) == 6.0
    model.gain = 5.0
    assert f(2.0) == 10.0
    del model.gain
    assert f(2.0) == 4.0


def test_a_bytearray_by_name_is_refused() -> None:
    with pytest.raises(errors.TracerConversionError):
        rg.jit(lambda x: x * len(bytearray(source=x)))(MATRIX)
