"""Every bad use raises the named error, at the user's line, with a remedy; and the next good call works."""

from __future__ import annotations

import inspect
import json
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import retrograd as rg
from retrograd import errors
from retrograd.tracer.trace import CURRENT
from tests.errors import control_uses, matrix_uses
from tests.errors.bad_uses import BAD_USES, BadUse, square_sum
from tests.errors.foreign_uses import HANDED_OVER, library

pytestmark = pytest.mark.whole  # a case takes milliseconds

assert control_uses.__doc__  # importing these registers their uses
assert matrix_uses.__doc__
every_bad_use = pytest.mark.parametrize("use", BAD_USES.values(), ids=BAD_USES.keys())
NO_LINE = (errors.ParseError,)  # its message shows the line of the text instead


def marked_line(use: BadUse) -> str:
    lines, first = inspect.getsourcelines(use.culprit)
    marked = [k for k, line in enumerate(lines) if line.rstrip().endswith("# <-")]
    if use.culprit is not use.call:
        marked = [0]  # a lambda, on one line
    (offset,) = marked
    return f"{inspect.getsourcefile(use.culprit)}:{first + offset}"


def raised(use: BadUse) -> errors.RetrogradError:
    with pytest.raises(errors.RetrogradError) as caught:
        use.call()
    return caught.value


@every_bad_use
def test_a_bad_use_raises_its_class_with_code_line_and_remedy(use: BadUse):
    fault = raised(use)
    assert type(fault) is use.error
    assert str(fault).startswith(f"[{use.error.code}] ")
    if use.error not in NO_LINE:
        assert f"\n  at {marked_line(use)}\n  remedy: " in str(fault)
        assert str(fault.where) == marked_line(use)
        assert fault.remedy


@every_bad_use
def test_after_a_bad_use_everything_is_as_before(use: BadUse):
    zeros = np.zeros
    raised(use)
    assert type(np) is ModuleType
    assert np.zeros is zeros
    assert CURRENT.get() is None
    assert type(np.zeros(2)) is np.ndarray
    np.testing.assert_array_equal(rg.grad(square_sum)(np.array([1.0, 2.0])), [2.0, 4.0])


def test_there_are_many_bad_uses():
    assert len(BAD_USES) >= 300


@pytest.mark.parametrize("name", HANDED_OVER)
def test_a_foreign_call_is_named_with_its_alternative(name: str):
    fault = raised(BAD_USES[f"passed to {name}"])
    assert HANDED_OVER[name][1] in fault.remedy
    assert fault.what.split()[0] in inspect.getsource(HANDED_OVER[name][0])


PYPLOT = """
import numpy as np

def plot(y):
    return np.ma.getdata(y)
"""
plots = library("matplotlib", PYPLOT)


def test_the_users_line_is_named_where_it_calls_a_library_that_calls_another():
    def loss(x):
        plots.plot(x)
        return np.sum(x)

    with pytest.raises(errors.TracerConversionError, match=r"^\[RG0203\] plots\.plot got a traced value") as caught:
        rg.grad(loss)(np.ones(3))
    assert "draw the result" in caught.value.remedy
    assert str(caught.value.where) == f"{__file__}:{loss.__code__.co_firstlineno + 1}"


def test_a_function_of_a_library_that_is_traced_itself_is_named():
    for ask in (
        lambda: rg.grad(scipy.optimize.rosen)(np.ones(2)),
        lambda: scipy.optimize.minimize(scipy.optimize.rosen, np.ones(2), jac=rg.grad(scipy.optimize.rosen)),
    ):
        with pytest.raises(errors.TracerConversionError, match=r"scipy\.optimize\.rosen got a traced value") as caught:
            ask()
        assert "minimize" not in caught.value.remedy
        assert str(caught.value.where).startswith(__file__)


KEPT: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "complex": complex,
    "int": int,
    "an f-string": lambda x: f"{x:.2f}",
    "%": lambda x: "%.2f" % x,  # noqa: UP031 - as users write
    "an array": np.asarray,
    "a mean": lambda x: np.mean([x]),
    "a sum": lambda x: x + 1.0,
    "math": math.sin,
    "round": lambda x: round(x, 2),
}


@pytest.mark.parametrize("use", KEPT)
def test_a_value_that_is_kept_after_its_trace_is_told_as_such(use):
    kept = []
    rg.grad(lambda x: kept.append(np.sum(x)) or np.sum(x))(np.ones(3))
    with pytest.raises(errors.LeakedTracerError, match="after that trace has ended"):
        KEPT[use](kept[0])
    assert "example 3" in str(kept[0])


@pytest.mark.parametrize("transform", [rg.grad, rg.value_and_grad, rg.jacfwd, rg.jacrev, rg.jacobian, rg.hessian])
@pytest.mark.parametrize("wrong", [np.ones(3), 1.0, True, None, [0, 0.5], range(2)])
def test_arguments_that_stand_in_the_place_of_argnums_are_refused_at_once(transform, wrong):
    with pytest.raises(errors.ArgnumsError, match=f"argnums of {transform.__name__} is of type") as caught:
        transform(np.sum, wrong)
    assert f"{transform.__name__}(f)(x)" in caught.value.remedy
    with pytest.raises(errors.ArgnumsError):
        transform(argnums=wrong)


def test_a_call_without_arguments_asks_for_them():
    f = rg.grad(np.sum)
    for ask in (f, f.source, f.graph, f.plan):
        with pytest.raises(errors.ArgnumsError, match="arguments that this call passes: none") as caught:
            ask()
        assert "pass the arguments of the function" in caught.value.remedy
    with pytest.raises(TypeError, match=r"square_sum_hvp\(\) missing 1 required positional argument: 'v'"):
        rg.hvp(square_sum)(np.ones(3))


def test_the_remedy_for_texts_suits_texts():
    with pytest.raises(errors.UnsupportedError, match="dtype <U1") as caught:
        rg.grad(lambda x, s: x[s == "a"].sum())(np.ones(2), np.array(["a", "b"]))
    assert "a mask" in caught.value.remedy


ROOT = str(Path(__file__).parents[2]) + "/"
MESSAGES = Path(__file__).with_name("messages.txt")


def shown(use: BadUse) -> str:
    """A message without what differs from run to run: places, numbers of traces, addresses."""
    text = str(raised(use)).replace(ROOT, "")
    text = re.sub(r"(?<=\.py):\d+", "", text)
    return re.sub(r"(?<=\btrace )\d+|(?<=\blambda_)\d+|(?<=0x)[0-9a-f]+", "…", text)


def test_messages_are_those_of_the_snapshot(request: pytest.FixtureRequest):
    """After a change of wording: ``pytest tests/errors --accept``, and read the difference."""
    found = "\n\n".join(f"{name}:\n{shown(use)}" for name, use in sorted(BAD_USES.items())) + "\n"
    if request.config.getoption("--accept"):
        MESSAGES.write_text(found, encoding="utf-8")
    assert found.splitlines() == MESSAGES.read_text(encoding="utf-8").splitlines()


def test_no_message_speaks_of_classes_that_users_do_not_know():
    text = MESSAGES.read_text(encoding="utf-8")
    assert not [name for name in ("PyTreeSpec", "optree", "CustomTreeNode", "namespace=") if name in text]


def test_the_message_of_an_error_has_no_internal_frames_before_the_users_line():
    def f(x):
        y = x * 2.0
        return y.tobytes()

    with pytest.raises(errors.UnsupportedError) as caught:
        rg.jit(f)(np.ones(3))
    assert "in f" in str(caught.getrepr(style="native"))


def test_the_same_compiled_object_works_after_an_error():
    @rg.jit
    def f(x, bad):
        return x.tobytes() if bad else x * 2.0

    for _ in range(3):
        with pytest.raises(errors.UnsupportedError):
            f(np.ones(3), True)
        np.testing.assert_array_equal(f(np.ones(3), False), [2.0, 2.0, 2.0])


def test_an_error_of_the_users_own_passes_unchanged():
    class MineErrorError(Exception):
        pass

    def f(x):
        raise MineErrorError(x.shape)

    for transform in (rg.jit, rg.grad, rg.value_and_grad, rg.jacfwd, rg.jacrev, rg.hessian, rg.vmap):
        with pytest.raises(MineErrorError):
            transform(f)(np.ones((3, 2)))
    with pytest.raises(MineErrorError):
        rg.vjp(f, np.ones(3))


def test_a_foreign_error_that_is_not_about_a_traced_value_passes_unchanged():
    plain = np.ones(2)

    def of_a_set(x):
        return json.dumps({"a": {1, 2}}), x

    def of_a_plain_array(x):
        return json.dumps(plain), x

    def of_the_user(x):
        raise ValueError(f"no Tracer can be {type(x)}")

    for f, error in ((of_a_set, TypeError), (of_a_plain_array, TypeError), (of_the_user, ValueError)):
        with pytest.raises(error) as caught:
            rg.jit(f)(np.ones(2))
        assert not isinstance(caught.value, errors.RetrogradError)


def test_a_refusal_that_the_traced_function_catches_is_raised_at_its_end():
    @rg.jit
    def f(x):
        try:
            return x.tobytes()
        except TypeError:
            return x * 2.0

    with pytest.raises(errors.UnsupportedError, match="tobytes"):
        f(np.ones(2))


def test_an_error_that_plain_numpy_has_too_can_be_caught_in_the_traced_function():
    @rg.jit
    def f(x):
        try:
            return x + np.zeros(3)
        except ValueError:
            return x * 2.0

    np.testing.assert_array_equal(f(np.ones(2)), [2.0, 2.0])


def test_numpys_own_errors_keep_their_class():
    x = np.ones(3)
    for wrong, error in [
        (lambda v: v + np.zeros(4), ValueError),
        (lambda v: v @ np.zeros((4, 2)), ValueError),
        (lambda v: v.reshape(2, 2), ValueError),
        (lambda v: v[5], IndexError),
        (lambda v: v[0, 0], IndexError),
        (lambda v: v["a"], IndexError),
        (lambda v: v[1.0], IndexError),
        (lambda v: v[..., ...], IndexError),
        (lambda v: np.sum(v, axis=1), ValueError),
        (lambda v: np.concatenate([v, np.ones((2, 2))]), ValueError),
        (lambda v: v.no_such_method(), AttributeError),
        (lambda v: v + "a", TypeError),
        (lambda v: len(v[0]), TypeError),
        (lambda v: iter(v[0]), TypeError),
        (lambda v: v.item(), ValueError),
        (hash, TypeError),
        (lambda v: np.squeeze(v, 0), ValueError),
        (lambda v: v.astype(int, casting="safe"), TypeError),
    ]:
        with pytest.raises(error):
            wrong(x)
        with pytest.raises(error):
            rg.jit(wrong)(x)


def test_a_gradient_that_is_zero_warns_once_at_the_users_line():
    f = rg.grad(lambda x: np.sum(np.zeros(3)))

    def call():
        return [f(np.ones(3)) for _ in range(3)]  # the line to be named

    with pytest.warns(errors.IndependentOutputWarning) as caught:
        slopes = call()
    np.testing.assert_array_equal(slopes, np.zeros((3, 3)))
    (warning,) = caught
    assert (warning.filename, warning.lineno) == (__file__, call.__code__.co_firstlineno + 1)


def test_warnings_of_compiled_calls_pass_through_pythons_warnings():
    """Python 3.13 imports ``warnings`` by the function that generated source has for imports."""
    f = rg.jit(lambda x: np.log(x) * 2.0 + x)
    f(np.ones(20))
    with pytest.warns(RuntimeWarning, match="invalid value encountered in log"):
        f(-np.ones(20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="invalid value"):
            f(-np.ones(20))


class Model:
    def __init__(self) -> None:
        self.a = np.ones(3)


MODEL = Model()
CAPTURED: dict[str, tuple[Callable[[], Any], str]] = {
    "json.dumps": (lambda: len(json.dumps(MODEL.a.tolist())), "store the result"),
    "json.dumps of a dict": (lambda: len(json.dumps({"a": MODEL.a.tolist()}, indent=1)), "store the result"),
    "flags": (lambda: MODEL.a.flags.writeable, "use a NumPy function"),
    "base": (lambda: MODEL.a.base is None, "use a NumPy function"),
}


@pytest.mark.parametrize(("use", "remedy"), CAPTURED.values(), ids=CAPTURED)
def test_uses_of_captured_arrays_are_refused_as_those_of_arguments(use, remedy):
    with pytest.raises(rg.RetrogradError, match=f"remedy: .*{remedy}"):
        rg.jit(lambda x: x * use())(1.0)
    assert rg.jit(lambda x: x * np.ones(3).flags.writeable)(1.0) == 1.0
