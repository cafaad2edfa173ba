"""Large intermediate results lie in memory that is kept from call to call: the same bits, and no result lies there."""

from __future__ import annotations

import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy import packing
from retrograd.codegen.numpy.footprint.footprint import Simulation
from retrograd.codegen.numpy.packing import ALIGNED, MORE, pack
from retrograd.codegen.numpy.workspaces import LARGE
from retrograd.compiler import block_threads, kept_workspaces
from retrograd.compiler.executable import Executable
from retrograd.compiler.kept_workspaces import workspace
from retrograd.ir import evaluate
from retrograd.ir.graph import Graph
from retrograd.passes import block_kernels, place_buffers
from tests.codegen.test_blocks import random_program
from tests.programs.mixed import arguments, mixed
from tests.support import values
from tests.support.memory import measured, one_thread

MADE = "= workspace("
N = LARGE // 8  # float64 elements of the smallest array that lies in the workspace
MiB = 2**20


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    """The thread keeps nothing from other tests, and the setting is as before."""
    limit = rg.config.workspace
    rg.config.workspace = 0
    rg.config.workspace = limit
    yield
    rg.config.workspace = limit


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays count as large ones, so that they are reused and laid into the workspace."""
    monkeypatch.setattr("retrograd.codegen.numpy.workspaces.LARGE", 64)
    monkeypatch.setattr(place_buffers, "REUSE", 64)
    monkeypatch.setattr(place_buffers, "POOL", 64)
    monkeypatch.setattr(place_buffers, "FREED", 64)
    monkeypatch.setattr(packing, "MORE", 10.0)


def loss(x: Any, w: Any) -> Any:
    y = np.tanh(x * w) + x
    return np.sum(np.sin(y) * np.exp(-y * y) + y * w)


def poison() -> None:
    for block in kept_workspaces._kept.blocks:
        block[:] = 0xFF  # nan, and the largest integers


def both(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> tuple[Executable, Executable]:
    """The code with a workspace, and without."""
    found = Executable(replace(graph))
    with monkeypatch.context() as patch:
        patch.setattr(packing, "MOST", -1)
        expected = Executable(replace(graph))
    assert MADE not in expected.module.source
    return found, expected


def peaks(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """The peak of the code with a workspace, and without."""
    plan = Executable(replace(graph)).plan
    found = Simulation(plan).peak()
    with monkeypatch.context() as patch:
        patch.setattr(packing, "MOST", -1)
        return found, Simulation(plan).peak()


def check(graph: Graph, args: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> Executable:
    """Equal bits, whatever the memory held before; results share no memory with it, nor with other results."""
    found, expected = both(graph, monkeypatch)
    earlier: list[Any] = []
    for _ in range(3):
        poison()
        results = found(*args)
        for x, y in zip(results, expected(*args), strict=True):
            assert type(x) is type(y)
            np.testing.assert_array_equal(x, y)
        arrays = [x for x in results if isinstance(x, np.ndarray)]
        for block in kept_workspaces._kept.blocks:
            assert not any(np.shares_memory(x, block) for x in arrays)
        assert not any(np.shares_memory(x, y) for x in arrays for y in earlier)
        earlier += arrays
    return found


# --- the layout ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_storage_that_is_live_together_has_places_of_its_own(seed: int, small: None) -> None:
    x, y = np.random.default_rng(seed).normal(size=(2, 50))
    made = Executable(rg.value_and_grad(random_program(seed)).graph(x, y, np.float64(0.3)))
    plan, layout = made.plan, pack(made.plan)
    at = {node.outputs[k]: i for i, node in enumerate(plan.order.nodes) for k in range(len(node.outputs))}
    rows = []
    for value, place in layout.places.items():
        members = [v for v in plan.buffer if plan.buffer[v] == plan.buffer[value]]
        assert set(members) <= layout.members
        assert not set(members) & {*plan.order.inputs, *plan.order.outputs}
        assert place % ALIGNED == 0
        assert place + value.aval.nbytes <= layout.nbytes
        rows.append((at[value], max(plan.last_use[v] for v in members), place, place + value.aval.nbytes))
    for k, (first, last, start, stop) in enumerate(rows):
        for other_first, other_last, other_start, other_stop in rows[:k]:
            together = first <= other_last and other_first <= last
            assert not (together and start < other_stop and other_start < stop)


@pytest.mark.parametrize("seed", range(40))
def test_a_workspace_hardly_adds_to_the_peak(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_kernels, "SHORTEST", 10**12)
    x, y = np.random.default_rng(seed).normal(size=(2, N + 100))
    found, expected = peaks(rg.value_and_grad(random_program(seed)).graph(x, y, np.float64(0.3)), monkeypatch)
    assert found <= expected * (1 + MORE) + 4096


@pytest.mark.parametrize("steps", [2, 10, 40])
@pytest.mark.parametrize("size", [1, 10, 40])
def test_states_that_loops_keep_count(size: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage that is dead while the loop keeps its states would add to the peak."""

    def f(x: Any, y: Any) -> Any:
        big = np.exp(np.sin(x) * 2.0)
        first = np.sum(big * np.cos(big))
        last, _ = rg.scan(lambda c, _: (np.sin(c) * 1.1 + first, None), y, None, length=steps)
        return np.sum(last * last)

    monkeypatch.setattr(block_kernels, "SHORTEST", 10**12)
    x, y = np.random.default_rng(0).normal(size=size * N), np.random.default_rng(1).normal(size=N)
    found, expected = peaks(rg.value_and_grad(f, 1).graph(x, y), monkeypatch)
    assert found <= expected * (1 + MORE) + 4096


def _turned(c: Any) -> Any:
    return np.sin(c)[::-1] * 0.5 + 0.1 * c * np.cos(c)


def _twice(u: Any, n: int) -> Any:
    return rg.fori_loop(0, n, lambda i, c: rg.fori_loop(0, n - 2, lambda j, d: _turned(d), _turned(c)), u)


LOOPS = {
    "one": lambda u, n: rg.fori_loop(0, n, lambda i, c: _turned(c), u),
    "the one before": lambda u, n: rg.fori_loop(0, n, lambda i, c: (_turned(c[0]) + c[1], c[0]), (u, u))[1],
    "changed places": lambda u, n: rg.fori_loop(0, n, lambda i, c: (_turned(c[1]), c[0] * 0.5), (u, 2.0 * u))[0],
    "rows": lambda u, n: rg.scan(lambda c, _: (_turned(c), c[:5]), u, None, n)[1],
    "backwards": lambda u, n: rg.scan(lambda c, x: (_turned(c) * x, None), u, np.arange(n) * 0.3, reverse=True)[0],
    "in a loop": _twice,
    "one after the other": lambda u, n: LOOPS["one"](LOOPS["one"](u, n), n) + LOOPS["one"](u, n),
}


@pytest.mark.parametrize("name", LOOPS)
def test_states_of_loops_keep_every_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for size, n in ((N + 3, 1), (N + 3, 3), (N + 3, 6), (N - 1, 3)):
        x = np.cos(np.arange(float(size)))
        for loop in (LOOPS[name], lambda u, n: np.sum(np.sin(LOOPS[name](u, n)))):
            f = (rg.jit if loop is LOOPS[name] else rg.grad)(lambda u, loop=loop, n=n: loop(u, n))
            check(f.graph(x), (x,), monkeypatch)
            values.assert_same_bits([f(x)], [np.asarray(evaluate(f.graph(x), [x])[0])])


def test_states_lie_in_kept_memory() -> None:
    """The gradient of a loop has a row for each state but the last; two rows do for cotangents."""
    source = rg.grad(lambda u: np.sum(LOOPS["one"](u, 80))).source(np.ones(N))
    assert f"np.ndarray((79, {N})" in source
    assert f"np.ndarray((2, {N})" in source


def test_a_derivative_that_is_called_later_has_its_states() -> None:
    x = np.cos(np.arange(N + 1.0))
    _, back = rg.vjp(lambda u: LOOPS["one"](u, 80), x)
    first = back(x)
    rg.grad(lambda u: np.sum(LOOPS["one"](u, 80)))(x + 1)
    poison()
    values.assert_same_bits([*back(x)], [*first])


def test_the_memory_of_states_is_predicted() -> None:
    f, x = rg.grad(lambda u: np.sum(LOOPS["one"](u, 80))), np.cos(np.arange(N + 1.0))
    found, predicted = measured(f, x), f.plan(x).peak_bytes
    assert predicted is not None
    assert found - 20_000 <= predicted <= 1.01 * found


@pytest.mark.parametrize(("n", "made"), [(N - 1, False), (N, True), (N + 1, True)])
def test_large_arrays_lie_in_it(n: int, made: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = np.random.default_rng(0).normal(size=(2, n))
    graph = rg.value_and_grad(loss, (0, 1)).graph(x, w)
    assert (MADE in check(graph, (x, w), monkeypatch).module.source) == made


# --- bits ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
@pytest.mark.sampled(15)
@pytest.mark.parametrize("seed", range(200))
def test_random_programs_have_the_same_bits(seed: int, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.random.default_rng(seed).normal(size=(2, 30 + seed))
    for mode in (rg.jit, rg.value_and_grad):
        check(mode(random_program(seed)).graph(x, y, np.float64(0.3)), (x, y, np.float64(0.3)), monkeypatch)


@pytest.mark.sampled(15)
@pytest.mark.parametrize("seed", range(60))
def test_loops_branches_and_plans_have_the_same_bits(seed: int, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    f, args = mixed(seed), tuple(arguments())
    plan = (None, rg.Log(), rg.Snapshots(2))[seed % 3]

    def made() -> Any:
        def looped(x: Any, y: Any) -> Any:
            last, _ = rg.scan(lambda c, _: (f(c, y) + 0.1 * c, None), f(x, y), None, length=4, memory=plan)
            return np.sum(rg.cond(np.sum(x) > 0, lambda a: f(a, x), lambda a: a * 2.0, last) ** 2)

        return rg.value_and_grad(looped, (0, 1))

    with monkeypatch.context() as patch:
        patch.setattr(packing, "MOST", -1)
        without = made()
        expected, plain = without(*args), without.source(*args)
        assert MADE not in plain
    found = made()
    found(*args)
    assert (MADE in found.source(*args)) != (found.source(*args) == plain)  # used, or not needed
    for _ in range(2):
        poison()
        for one, other in zip(rg.tree.leaves(found(*args)), rg.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(one, other)


def test_matrices_and_transposed_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, w: Any) -> Any:
        h = np.tanh(x @ w)
        return np.sum(np.exp(h @ w.T) * x) + np.sum(h.T[::2] ** 2)

    x, w = np.random.default_rng(0).normal(size=(200, 150)), np.random.default_rng(1).normal(size=(150, 120)) * 0.1
    graph = rg.value_and_grad(f, (0, 1)).graph(x, w)
    assert MADE in check(graph, (x, w), monkeypatch).module.source
    made = Executable(replace(graph), ordered=False)
    for one, other in zip(made(x, w), made(np.asfortranarray(x), w.T.copy().T), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("number", [1, 2, 3])
def test_blocks_have_the_same_bits(seed: int, number: int, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_kernels, "SHORTEST", 300)
    monkeypatch.setattr(block_kernels, "MOST", 128)
    monkeypatch.setattr(block_kernels, "FEWEST", 1)
    monkeypatch.setattr(block_threads, "WORTH", -1.0)
    x, y = np.random.default_rng(seed).normal(size=(2, 511 + seed))
    graph = rg.value_and_grad(random_program(seed)).graph(x, y, np.float64(0.3))
    before, rg.config.threads = rg.config.threads, number
    try:
        made = check(graph, (x, y, np.float64(0.3)), monkeypatch)
    finally:
        rg.config.threads = before
    assert "in_blocks(" in made.module.source


@one_thread()
def test_a_kernel_lays_its_blocks_into_memory_that_is_kept() -> None:
    x, w = np.random.default_rng(0).normal(size=(2, 100_000))
    f = rg.value_and_grad(loss, (0, 1))
    source = f.source(x, w)
    kernel = source[source.index("def loss_grad_1") : source.index("def loss_grad(")]
    assert "n = len(" in kernel
    assert MADE in kernel
    f(x, w)
    (block,) = kept_workspaces._kept.blocks
    assert block.nbytes < 20 * 16384 * 8
    del block
    assert measured(f, x, w) == pytest.approx(f.plan(x, w).peak_bytes, rel=0.01)


# --- the memory ------------------------------------------------------------------------------------------------


def test_a_thread_keeps_its_memory_for_all_functions() -> None:
    x, w = np.random.default_rng(0).normal(size=(2, N))
    f, g = rg.grad(loss, 1), rg.grad(loss)  # the first needs more
    f(x, w)
    first = [id(block) for block in kept_workspaces._kept.blocks]
    g(x, w)
    f(x, w)
    assert [id(block) for block in kept_workspaces._kept.blocks] == first
    assert measured(f, x, w) == pytest.approx(f.plan(x, w).peak_bytes, rel=0.01)


def test_memory_in_use_is_not_given_twice() -> None:
    first = workspace(MiB)
    array = np.ndarray((4,), np.float64, first, 64)[1:]
    del first
    second = workspace(MiB)
    assert not np.shares_memory(array, second)
    assert len(kept_workspaces._kept.blocks) == 2
    second_array = np.ndarray((4,), np.float64, second)
    del second
    third = workspace(MiB)
    assert not np.shares_memory(third, array)
    assert not np.shares_memory(third, second_array)
    address = array.__array_interface__["data"][0]
    del array, third, second_array
    assert workspace(MiB).__array_interface__["data"][0] <= address


def test_larger_memory_takes_the_place_of_smaller() -> None:
    workspace(1000)
    large = workspace(MiB).nbytes
    assert [block.nbytes for block in kept_workspaces._kept.blocks] == [large]
    assert workspace(1000).nbytes == large


def test_the_limit() -> None:
    rg.config.workspace = MiB
    assert workspace(MiB + 1).nbytes == MiB + 1
    assert kept_workspaces._kept.blocks == []
    workspace(MiB)
    held = [workspace(MiB // 2) for _ in range(5)]
    assert sum(block.nbytes for block in kept_workspaces._kept.blocks) <= MiB
    del held
    rg.config.workspace = MiB // 4
    assert kept_workspaces._kept.blocks == []
    for wrong in (-1, 1.0, True, "1 MB"):
        with pytest.raises(rg.errors.OptionError, match=r"rg\.config\.workspace = (.|\n)*choose a number of bytes"):
            rg.config.workspace = wrong


def test_another_thread_follows_the_limit() -> None:
    kept: list[int] = []
    go, done = threading.Event(), threading.Event()

    def run() -> None:
        workspace(MiB)
        kept.append(len(kept_workspaces._kept.blocks))
        done.set()
        go.wait(60)
        workspace(MiB)
        kept.append(len(kept_workspaces._kept.blocks))

    thread = threading.Thread(target=run)
    thread.start()
    done.wait(60)
    rg.config.workspace = 0
    go.set()
    thread.join(60)
    assert kept == [1, 0]


def test_an_exception_keeps_what_it_shows() -> None:
    def f(x: Any, a: Any) -> Any:
        y = np.exp(np.sin(x) * x)
        return np.sum(y * np.sum(np.linalg.inv(a)) * np.cos(y))

    x, good, bad = np.linspace(0, 1, N), np.eye(2), np.zeros((2, 2))
    g = Executable(rg.value_and_grad(f).graph(x, good))
    value, gradient = g(x, good)
    with pytest.raises(np.linalg.LinAlgError) as caught:
        g(x, bad)
    (frame,) = [f for f, _ in traceback.walk_tb(caught.tb) if f.f_code.co_filename.startswith("<generated")]
    shown = {k: v.copy() for k, v in frame.f_locals.items() if isinstance(v, np.ndarray) and v.size == N}
    assert len(shown) > 3
    for _ in range(2):
        again, gradient_again = g(x, good)
        assert again == value
        np.testing.assert_array_equal(gradient_again, gradient)
    for name, array in shown.items():
        np.testing.assert_array_equal(frame.f_locals[name], array)


def test_threads_have_memory_of_their_own() -> None:
    f = rg.grad(loss, (0, 1))
    points = [np.random.default_rng(k).normal(size=(2, N)) for k in range(4)]
    expected = [f(*point) for point in points]
    wrong: list[int] = []

    def run(k: int) -> None:
        found = [f(*points[k]) for _ in range(20)]
        wrong.extend(k for pair in found for a, b in zip(pair, expected[k], strict=True) if not np.array_equal(a, b))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_call_in_the_middle_of_a_call() -> None:
    inner = rg.grad(lambda x: np.sum(np.sin(x) * np.exp(x)))

    @rg.lens
    def slope(x: Any) -> Any:
        return inner(x) if {float(x[0])} else x, lambda ct: ct

    f = rg.jit(lambda x: np.sum(np.cos(x * 2.0) * slope(x * 1.0) + np.sin(x)))
    x = np.linspace(0.0, 1.0, N)
    expected = np.sum(np.cos(x * 2.0) * (np.cos(x) + np.sin(x)) * np.exp(x) + np.sin(x))
    for _ in range(3):
        poison()
        assert f(x) == pytest.approx(expected, rel=1e-12)
    assert "host" in str(f.graph(x))


def test_source_runs_alone() -> None:
    x, w = np.random.default_rng(0).normal(size=(2, N))
    f = rg.value_and_grad(loss, (0, 1))
    scope: dict[str, Any] = {}
    source = f.source(x, w)
    assert MADE in source
    exec(source, scope)
    name = f.executable(x, w).module.function
    value, (gx, gw) = f(x, w)
    for _ in range(2):
        found = scope[name](x, w)
        for one, other in zip(found, (value, gx, gw), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork here")
def test_a_forked_process_has_memory_of_its_own() -> None:
    program = f"""
import os, numpy as np, retrograd as rg
f = rg.grad(lambda x: np.sum(np.sin(x) * np.exp(x)))
x = np.linspace(0.0, 1.0, {N})
expected = f(x)
child = os.fork()
same = all(np.array_equal(f(x), expected) for _ in range(20))
if child == 0:
    os._exit(0 if same else 3)
assert same and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=120)
