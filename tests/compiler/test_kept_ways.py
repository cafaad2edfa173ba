"""Ways that are kept serve calls without a recording, and never with a wrong number."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler import folding, kept_ways, paths, tree_of_ways, waiting
from retrograd.compiler.compiled import Compiled
from retrograd.compiler.paths import Paths
from retrograd.compiler.tree_of_ways import KnownWay, TreeOfWays
from retrograd.errors import ManyPathsWarning
from retrograd.ir.evaluate import evaluate
from retrograd.ir.runners import PreparedGraph
from tests.ways.generated import generated

pytestmark = pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
NEVER = 1 << 60
WEIGHTS = np.array([0.5, -1.5, 2.0, 0.25, 1.0])
STARTS = [(k + 0.3) / 32 for k in range(32)]


@pytest.fixture(autouse=True)
def _ways_are_kept() -> Iterator[None]:
    """From the third one on, whatever they are; nothing is kept with the code of a function."""
    before, rg.config.cache_size = rg.config.cache_size, 0
    with mock.patch.object(waiting, "SHORT", 0), mock.patch.object(folding, "DECISIONS", NEVER):
        yield
    rg.config.cache_size = before


@pytest.fixture
def recordings(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The functions that were recorded, once for each time."""
    found: list[Any] = []
    record = Compiled._record

    def noted(compiled: Compiled, call: Any) -> Any:
        found.append(compiled)
        return record(compiled, call)

    monkeypatch.setattr(Compiled, "_record", noted)
    return found


@pytest.fixture(params=[NEVER, 3.0, 0.0], ids=["never", "sometimes", "at once"])
def compiled_again(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """When ways that come back are compiled."""
    monkeypatch.setattr(kept_ways, "RENT", request.param)
    return request.param


def digits(x: Any, weights: Any) -> Any:
    """One of 32 ways, by the bits of a fraction."""
    total = 0.0 * x
    for k in range(5):
        x = 2.0 * x
        if x >= 1.0:
            x = x - 1.0
            total = total + weights[k] * np.sin(total + x)
        else:
            total = total * weights[k] + 0.5 * x
    return total + x * x


def slope(x: float, weights: Any = WEIGHTS) -> Any:
    """The derivative by central differences; no start is near to where the way changes."""
    return pytest.approx((digits(x + 1e-6, weights) - digits(x - 1e-6, weights)) / 2e-6, rel=1e-7, abs=1e-8)


def test_a_way_that_comes_back_is_not_recorded_again(recordings: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_ways, "RENT", NEVER)
    g = rg.grad(lambda x: digits(x, WEIGHTS))
    for _ in range(3):
        for x in STARTS:
            assert g(x) == slope(x)
    assert len(recordings) == len(STARTS)


@pytest.mark.parametrize("order", [1, -1])
def test_ways_are_taken_into_the_tree_once_one_comes_back(
    order: int, recordings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of those that came first is found there; one of those that came last is recorded once more."""
    monkeypatch.setattr(kept_ways, "RENT", NEVER)
    monkeypatch.setattr(kept_ways, "UNMET", 4)
    added: list[TreeOfWays] = []
    add = TreeOfWays.add
    monkeypatch.setattr(TreeOfWays, "add", lambda tree, *way: (added.append(tree), add(tree, *way))[1])
    g = rg.grad(lambda x: digits(x, WEIGHTS))
    for x in STARTS:
        assert g(x) == slope(x)
    assert len(added) == 4
    for _ in range(2):
        for x in STARTS[::order]:
            assert g(x) == slope(x)
    assert len(recordings) == len(STARTS) + (order == -1)
    assert len(added) == len(STARTS) - 2  # two are compiled as they come


@pytest.mark.parametrize("many", [1, 400, 800, NEVER])
def test_ways_go_whether_they_are_in_the_tree_or_not(
    many: int, recordings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for ``many`` operations, and with what is no longer needed looked for at once."""
    monkeypatch.setattr(kept_ways, "RENT", NEVER)
    monkeypatch.setattr(kept_ways, "MOST", many)
    monkeypatch.setattr(kept_ways, "UNMET", 4)
    monkeypatch.setattr(tree_of_ways, "FEW", 1)
    g = rg.grad(lambda x: digits(x, WEIGHTS))
    for starts in (STARTS, STARTS[-3:], STARTS[::-1], STARTS):
        for x in starts:
            assert g(x) == slope(x)
    assert (len(recordings) == len(STARTS) + 1) == (many == NEVER)


def test_a_tree_keeps_the_operations_of_its_ways_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_of_ways, "FEW", 1)
    tree = TreeOfWays()
    sizes = []
    for k in range(60):
        graph = rg.jit(lambda x, k=k: x * k if x * x > k - 0.5 else x).graph(10.0, stage="traced")
        way = KnownWay(paths.answers(graph))
        assert tree.find({0: 10.0}) is None
        assert tree.add(way, graph, [0])
        assert tree.find({0: 10.0}) is way
        tree.remove(way)
        sizes.append(len(tree._known))
    assert max(sizes) < 12


def test_ways_that_come_back_are_compiled_when_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_ways, "RENT", 2)
    compiled: list[int] = []
    compile_ways = Paths._compile
    monkeypatch.setattr(Paths, "_compile", lambda paths: (compiled.append(len(paths.known)), compile_ways(paths))[1])
    g = rg.grad(lambda x: digits(x, WEIGHTS))
    for _ in range(2):
        for x in STARTS:
            assert g(x) == slope(x)
    assert compiled == [1, 2]
    for _ in range(3):
        for x in STARTS:
            assert g(x) == slope(x)
    assert compiled == [1, 2, 32]


@pytest.mark.costly
@pytest.mark.parametrize("transform", ["jit", "grad", "value_and_grad", "vjp", "jvp", "hessian", "vmap"])
def test_each_transform_keeps_ways(transform: str, compiled_again: Any) -> None:
    def f(x: Any) -> Any:
        return digits(x, WEIGHTS)

    def outcome() -> Any:
        if transform == "vjp":
            return lambda x: rg.vjp(f, x)[1](2.0)[0]
        if transform == "jvp":
            return lambda x: rg.jvp(f, (x,), (2.0,))[1]
        if transform == "vmap":
            return lambda x: rg.vmap(f)(np.array([x, x]))
        return getattr(rg, transform)(f)

    found, unkept = outcome(), outcome()
    with mock.patch.object(kept_ways.KeptWays, "keep", return_value=False):
        expected = [unkept(x) for x in STARTS]
    f.__dict__.clear()  # what was compiled for it
    for _ in range(4):
        for x, other in zip(STARTS, expected, strict=True):
            np.testing.assert_allclose(found(x), other, rtol=1e-12, atol=1e-13)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("seed", range(400))
def test_a_random_program_is_plain_python(seed: int, compiled_again: Any) -> None:
    source, program = generated(seed)
    rng = np.random.default_rng(seed)
    starts = [(*rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 5)) for _ in range(6)]
    with rg.config(exact=True), np.errstate(all="ignore"):
        function, gradient = rg.jit(program), rg.grad(program, (0, 1, 2))
        expected = [rg.grad(program, (0, 1, 2))(*start) for start in starts]
        for _ in range(3):
            for start, slopes in zip(starts, expected, strict=True):
                np.testing.assert_array_equal(function(*start), program(*start), err_msg=source)
                for mine, other in zip(gradient(*start), slopes, strict=True):
                    scale = 1e-11 * (1.0 + float(np.max(np.abs(other))))
                    np.testing.assert_allclose(mine, other, rtol=1e-9, atol=scale, err_msg=source)


@pytest.mark.filterwarnings("ignore::retrograd.errors.RetraceWarning")
def test_what_the_function_reads_changes(compiled_again: Any) -> None:
    scale, weights, table = 2.0, WEIGHTS.copy(), {k: float(k) for k in range(32)}

    def f(x: Any) -> Any:
        k = sum(1 for start in STARTS if x > start + 0.5 / 32)
        return scale * digits(x, weights) + table[k] * x

    g = rg.grad(f)
    rng = np.random.default_rng(0)
    for step in range(12):
        if step % 4 == 1:
            scale += 1.0
        if step % 4 == 2:
            weights = weights + 0.1
        if step % 4 == 3:
            weights[rng.integers(5)] -= 0.3
        table[int(rng.integers(32))] += 1.0
        for k, x in enumerate(STARTS):
            expected = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
            assert g(x) == pytest.approx(expected, rel=1e-6, abs=1e-7), (step, k)


def test_a_captured_array_is_the_one_that_is_there_now(recordings: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_ways, "RENT", NEVER)
    weights = WEIGHTS.copy()
    g = rg.grad(lambda x: digits(x, weights))
    for x in STARTS[:16]:
        assert g(x) == slope(x, weights)
    for change in range(4):
        weights = weights + 0.25 * change
        weights[change] *= 2.0
        for x in STARTS:  # half of them are recorded after the change
            assert g(x) == slope(x, weights)
    assert len(recordings) == len(STARTS)


def test_an_exception_in_between_is_the_users(compiled_again: Any) -> None:
    def f(x: Any, m: Any) -> Any:
        y = digits(x, WEIGHTS)
        if x * 32 // 1 == 7:
            raise KeyError("seven")
        return y * np.linalg.inv(m)[0, 0]

    g = rg.grad(f)
    regular, singular = np.diag([2.0, 4.0]), np.ones((2, 2))
    for _ in range(4):
        for k, x in enumerate(STARTS):
            if k == 7:
                with pytest.raises(KeyError, match="seven"):
                    g(x, regular)
            else:
                with pytest.raises(np.linalg.LinAlgError):
                    g(x, singular)
                assert 2.0 * g(x, regular) == slope(x)


def test_threads_share_kept_ways(compiled_again: Any) -> None:
    g = rg.grad(lambda x: digits(x, WEIGHTS))
    wrong: list[float] = []

    def work(seed: int) -> None:
        order = np.random.default_rng(seed).permutation(np.repeat(STARTS, 4))
        wrong.extend(x for x in order.tolist() if g(x) != slope(x))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_ways_that_were_used_last_are_kept(recordings: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_ways, "RENT", NEVER)
    g = rg.grad(lambda x: digits(x, WEIGHTS))
    for x in STARTS[:10]:
        g(x)
    (kept,) = [vars(paths)["kept_ways"] for versions in g._cache.entries.values() for paths in versions]
    monkeypatch.setattr(kept_ways, "MOST", kept.size)
    g(STARTS[2])  # the oldest that is kept
    for x in STARTS[10:14]:
        assert g(x) == slope(x)
    assert len(recordings) == 14
    assert g(STARTS[2]) == slope(STARTS[2])
    assert len(recordings) == 14
    for x in STARTS[3:6]:
        assert g(x) == slope(x)
    assert len(recordings) == 17
    assert kept.size <= kept_ways.MOST


def test_ways_that_are_compiled_are_those_that_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_ways, "RENT", 1)
    g = rg.grad(lambda x: digits(x, WEIGHTS))
    with rg.config(max_traces=8), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for starts in (STARTS[:8], STARTS[8:16], STARTS[16:24]):
            for _ in range(30):
                for x in starts:
                    assert g(x) == slope(x)
            used = g.at(starts[0]).signature.known  # type: ignore[attr-defined]
            assert len(used) == 8
            answers = {way.recorded.graph: key for key, way in used.items()}
            assert {g.at(x).recorded.graph for x in starts} == set(answers)
    assert [w.category for w in caught] == [ManyPathsWarning]


def test_results_of_kept_ways_are_the_callers_own(compiled_again: Any) -> None:
    def f(x: Any, k: Any) -> Any:
        while k > 0:
            x, k = x[1:], k - 1
        return x, x, x[:1]

    g = rg.jit(f)
    for _ in range(4):
        for k in range(6):
            x = np.arange(10.0)
            results = g(x, float(k))
            for result, expected in zip(results, f(x, k), strict=True):
                np.testing.assert_array_equal(result, expected)
                result[:] = -1.0
            np.testing.assert_array_equal(x, np.arange(10.0))


@pytest.mark.parametrize("keeps", [True, False])
def test_a_pullback_holds_when_arguments_are_written_meanwhile(keeps: bool) -> None:
    def f(x: Any, k: Any) -> Any:
        total = 0.0
        for y in x:
            total = total + y * np.sum(x[1:] * x[:-1])
        while k > 0:
            total, k = total * x[0], k - 1
        return total

    def pulled(k: int, writes: bool) -> Any:
        x = np.arange(1.0, 5.0)
        pull = rg.vjp(f, x, float(k))[1]
        if writes:
            x[:] = 0.0
        return pull(1.0)[0]

    with mock.patch.object(kept_ways, "keepable", return_value=keeps):
        for k in (0, 1, 2, 3, 2, 3):
            np.testing.assert_array_equal(pulled(k, writes=True), pulled(k, writes=False))


def test_gradients_of_kept_ways_can_be_written() -> None:
    def f(x: Any, k: Any) -> Any:
        total = np.sum(x)
        while k > 0:
            total, k = total + np.sum(x), k - 1
        return total

    g = rg.grad(f)
    for k in (0, 1, 2, 3, 2, 3):
        slopes = g(np.ones(4), float(k))
        slopes += 1.0
        np.testing.assert_array_equal(slopes, np.full(4, k + 2.0))


def test_ways_that_draw_are_not_kept(recordings: list[Any]) -> None:
    rng = np.random.default_rng(3)

    def f(x: Any, rng: np.random.Generator) -> Any:
        return digits(x, WEIGHTS) * rng.normal()

    g, plain = rg.grad(f), np.random.default_rng(3)
    for _ in range(3):
        for x in STARTS[:12]:
            normal = plain.normal()
            assert g(x, rng) == pytest.approx(normal * slope(x).expected, rel=1e-6, abs=1e-7)


def test_lanes_that_agree_find_their_way() -> None:
    g = rg.vmap(rg.grad(lambda x: digits(x, WEIGHTS)))
    for _ in range(3):
        for x in STARTS[:12]:
            np.testing.assert_allclose(g(np.array([x, x + 0.1 / 32])), [g(np.array([y]))[0] for y in (x, x + 0.1 / 32)])
        with pytest.raises(rg.errors.ControlFlowError):
            g(np.array([STARTS[0], STARTS[9]]))


PROGRAMS: list[Callable[..., Any]] = [
    lambda x: np.sum(np.sin(x) ** 2.5 + x**3),
    lambda x: rg.scan(lambda c, y: (c * y, c + y), x[0], x),
    lambda x: rg.cond(x[0] > 0, np.sin, np.cos, x),
    lambda x: np.linalg.eigh(np.outer(x, x) + np.diag(x)),
    lambda x: np.concatenate([x[::2], np.sort(x), x * 0.0]),
]


@pytest.mark.parametrize("k", range(len(PROGRAMS)))
def test_a_prepared_graph_is_evaluated(k: int) -> None:
    x = np.array([0.5, 1.5, 2.5])
    graph = rg.trace(PROGRAMS[k])(x)
    first, again = evaluate(graph, [x]), PreparedGraph(graph)
    for _ in range(2):
        for a, b in zip(again([x]), first, strict=True):
            np.testing.assert_array_equal(a, b)
            assert type(a) is type(b)
