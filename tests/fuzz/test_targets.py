"""The programs of every generator on the native target: results and derivatives are those of the NumPy target."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import retrograd as rg
from tests.fuzz import (
    test_calls,
    test_control,
    test_decisions,
    test_fronts,
    test_large_loops,
    test_leaving,
    test_one_process,
    test_stateful,
)
from tests.fuzz.calling import Report, examine
from tests.fuzz.calls import draw_call
from tests.fuzz.documented import documented
from tests.fuzz.loops_in_python import compiled_loops
from tests.fuzz.programs import programs
from tests.fuzz.scipy_calls import draw_scipy_call
from tests.fuzz.test_memory_programs import EVERY, Case
from tests.fuzz.test_programs import FUZZ, SEEDS, compiled, inputs
from tests.fuzz.test_typed import ACTIVE, plain, precision, refusals, total
from tests.fuzz.typed import arguments, typed_programs
from tests.programs.control import OURS
from tests.support.folding import loops_from
from tests.support.native import in_a_hurry, needs_compiler
from tests.support.seeds import moved

pytestmark = [
    needs_compiler,
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning"),
    pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning"),
    pytest.mark.filterwarnings("ignore::retrograd.errors.UnusedPlanWarning"),
]
MANY = settings.default.max_examples // 20  # of the slow run
BRIEFLY, VERY_BRIEFLY = (settings(FUZZ, max_examples=max(n, MANY)) for n in (12, 3))


@pytest.fixture(autouse=True, scope="module")
def on_the_native_target() -> Iterator[None]:
    with in_a_hurry():
        yield


def test_every_generator_is_here() -> None:
    here = Path(__file__)
    drawing = {path.stem for path in here.parent.glob("test_*.py") if re.search("@given|seed", path.read_text())}
    assert len(drawing) > 9
    assert [name for name in drawing - {here.stem} if name not in here.read_text()] == []


def by_numpy(f: Callable[..., Any], *args: Any) -> Any:
    with rg.config(backend="numpy"):
        return f(*args)


def stable(f: Callable[..., Any], *args: Any) -> bool:
    """Whether a result does not hang on the last bits of the arguments, which decide about steps and large slopes."""
    moved = [a * (1 + 1e-13) if isinstance(a, (np.ndarray, float)) else a for a in args]
    pairs = zip(leaves(by_numpy(f, *args)), leaves(by_numpy(f, *moved)), strict=True)
    return all(np.allclose(x, y, rtol=1e-10, atol=1e-10, equal_nan=True) for x, y in pairs)


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, (tuple, list)) else [tree]


def agree(f: Callable[..., Any], *args: Any, rtol: float = 1e-9) -> None:
    expected = leaves(by_numpy(f, *args))
    found = leaves(f(*args))
    for x, y in zip(found, expected, strict=True):
        assert (type(x), np.shape(x), np.asarray(x).dtype) == (type(y), np.shape(y), np.asarray(y).dtype)
    size = max((float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y))) for y in expected), default=0.0)
    close = all(
        np.allclose(x, y, rtol=rtol, atol=rtol * (1e-3 + size), equal_nan=True)
        for x, y in zip(found, expected, strict=True)
    )
    assert close or not stable(f, *args), (found, expected)


@BRIEFLY
@given(programs(), SEEDS)
def test_programs(source: str, seed: int) -> None:
    f, args = compiled(source), inputs(seed)
    agree(rg.value_and_grad(f, (0, 1)), *args)
    agree(lambda *a: rg.jvp(f, a, inputs(seed + 1)), *args)


@VERY_BRIEFLY
@given(programs(most=12), SEEDS)
def test_lanes_and_second_derivatives_of_programs(source: str, seed: int) -> None:
    f = compiled(source)
    gradient = rg.grad(f, (0, 1))
    points = [inputs(seed + k) for k in range(3)]
    agree(rg.vmap(gradient), *(np.stack(part) for part in zip(*points, strict=True)))
    agree(lambda *a: rg.jvp(gradient, a, inputs(seed + 1))[1], *points[0], rtol=1e-8)


@pytest.mark.parametrize("front", [test_fronts.by_tensors, test_fronts.by_record])
@VERY_BRIEFLY
@given(programs(), SEEDS)
def test_fronts_of_programs(front: Callable[..., Any], source: str, seed: int) -> None:
    test_fronts.check(front, source, seed)


@BRIEFLY
@given(typed_programs(), SEEDS)
def test_programs_over_all_dtypes(source: str, seed: int) -> None:
    f, args = compiled(source), arguments(seed)
    near = precision(plain(f, args))
    with refusals(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(rg.jit(f), *args, rtol=near)
        traced = rg.jit(total(f))
        gradient = rg.grad(lambda *active: traced(*active, *args[len(ACTIVE) :]), ACTIVE)
        agree(gradient, *args[: len(ACTIVE)], rtol=10 * near)


@VERY_BRIEFLY
@given(typed_programs(calls=True), SEEDS)
def test_programs_over_all_dtypes_with_calls(source: str, seed: int) -> None:
    f, args = compiled(source), arguments(seed)
    near = precision(plain(f, args))
    with refusals(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(rg.jit(f), *args, rtol=near)


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(k, marks=pytest.mark.slow) for k in range(12, 200))])
def test_choices_and_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = test_control.block(rng, test_control.DEPTH)
    p, x = rng.uniform(0.5, 1.2), rng.uniform(-1, 1, 3)
    agree(rg.value_and_grad(lambda p, x: np.sum(program(OURS, p, x) ** 2), (0, 1)), p, x)


@pytest.mark.parametrize("size", test_large_loops.SIZES)
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(k, marks=pytest.mark.slow) for k in range(3, 60))])
def test_loops_over_large_arrays(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    step, x = test_large_loops.block(rng, 3), rng.uniform(-1, 1, size)
    agree(
        rg.value_and_grad(
            lambda p, x: np.sum(OURS.fori_loop(2, lambda i, t: step(OURS, p, t) * 0.6 + x * 0.1, x) ** 2), (0, 1)
        ),
        *(0.8, x),
    )


@BRIEFLY
@given(test_decisions.programs(), st.integers(0, 2**32 - 1), st.sampled_from(test_decisions.SIZES))
def test_decisions_of_python(drawn: tuple[str, Any], seed: int, n: int) -> None:
    program = drawn[1]
    x = np.random.default_rng(seed).standard_normal(n)
    with np.errstate(all="ignore"):
        value, slope = by_numpy(rg.value_and_grad(program), x)
        assume(np.isfinite(value) and np.max(np.abs(slope)) < 1e6)
        agree(rg.value_and_grad(program), x, rtol=1e-8)


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(k, marks=pytest.mark.slow) for k in range(12, 200))])
def test_loops_in_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    with loops_from(8):
        agree(rg.value_and_grad(compiled_loops(seed), (0, 1)), rng.normal(), rng.normal(size=3))


@pytest.mark.parametrize("kind", ["", "host", "regions"])
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(k, marks=pytest.mark.slow) for k in range(3, 60))])
def test_plans_of_memory(seed: int, kind: str, tmp_path: Path) -> None:
    case = Case(seed, tmp_path, (3, 3, 2100), kind)
    with loops_from(20):
        planned = rg.value_and_grad(case.planned(), EVERY)

        def compiled_once(*args: Any) -> Any:  # what the host returns hangs on how often it was called
            case.run(planned, *args)
            return case.run(planned, *args)[0]

        agree(compiled_once, *case.args, rtol=1e-4)  # some of the numbers are float32


def differing(draw: test_calls.Draw, seeds: range) -> dict[int, str]:
    """The calls that have another value, dtype or exception than NumPy's; last bits may be others without ``exact``."""
    report = Report()
    examine([draw(seed, smooth=False) for seed in seeds], report, exact=False)
    new = [d for d in report.differences if documented(d) is None and not d.kind.startswith("bits")]
    return {d.call.seed: str(d) for d in new}


def check_values(draw: test_calls.Draw, seeds: range) -> None:
    """What differs on the native target differs on the NumPy target, too."""
    known = by_numpy(differing, draw, seeds)
    new = [text for seed, text in differing(draw, seeds).items() if seed not in known]
    assert not new, f"{len(new)} calls differ; the first:\n{new[0]}"


def test_values_of_calls() -> None:
    check_values(draw_call, range(2000, 2120))
    check_values(draw_scipy_call, range(60))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(200_000, 210_000, 500))
def test_many_values_of_calls(start: int) -> None:
    check_values(draw_call, moved(range(start, start + 500)))
    check_values(draw_scipy_call, moved(range(start, start + 150)))


def test_slopes_of_calls() -> None:
    test_calls.check(draw_call, range(10_000, 10_072), smooth=True)
    test_calls.check(draw_scipy_call, range(10_000, 10_036), smooth=True)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(200_000, 202_000, 200))
def test_many_slopes_of_calls(start: int) -> None:
    test_calls.check(draw_call, moved(range(start, start + 200)), smooth=True)
    test_calls.check(draw_scipy_call, moved(range(start, start + 200)), smooth=True)


def test_state_that_changes_between_calls() -> None:
    test_stateful.check(range(4))


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.slow)])
def test_nests_of_catches_and_continuations(first: int) -> None:
    assert any(test_leaving.check(seed) for seed in moved(range(first, first + (2 if first == 0 else 100))))


@pytest.mark.parametrize("n", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_many_programs_in_one_process(n: int) -> None:
    assert test_one_process.differences(moved(range(n)), in_c=1.0) == []
