"""Vectors in pieces: the same bits however they are cut, on workers alone, and after workers have died."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.distributed.pinned import one_blas_thread
from retrograd.distributed.reduction import TreeSum, tree_sum
from retrograd.distributed.saved_steps import SavedSteps
from retrograd.distributed.vectors import CHUNK, bounds, joined_sums, products, sums_of_piece
from tests.distributed.killing import Killer
from tests.distributed.processes import Machines
from tests.distributed.programs import bits

pytest.importorskip("distributed")
D = rg.distributed
METHODS: dict[str, dict[str, Any]] = {
    "lbfgs": {"method": "lbfgs", "history": 3},
    "adam": {"method": "adam", "rate": 0.05},
    "momentum in batches": {"method": rg.optim.momentum(0.01), "batch": 2, "seed": 3},
}


def valley(w: Any, a: Any) -> Any:
    """A loss of many parameters, with a minimum at one."""
    return np.sum(a * (w["x"][:, 1:] - w["x"][:, :-1] ** 2) ** 2) + np.sum((1 - w["x"]) ** 2) + np.sum(w["y"] ** 2)


def start(dtype: Any = float) -> Any:
    """308,200 numbers."""
    rng = np.random.default_rng(0)
    return {"x": rng.uniform(0, 1, (512, 600)).astype(dtype), "y": rng.normal(size=1000).astype(dtype)}


def descent(first: Any = None, **options: Any) -> Any:
    given = {"shards": [(float(k),) for k in (1, 2, 4)], "steps": 9, "tolerance": 0.0, **options}
    return D.minimize(valley, start() if first is None else first, **given)


def same(a: Any, b: Any) -> bool:
    return bool(bits(a.params) == bits(b.params) and a.values == b.values)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 37 * CHUNK + 5])
@pytest.mark.parametrize("most", [1, 2, 3, 7, 8, 100])
def test_products_do_not_depend_on_the_cut(size: int, most: int) -> None:
    vectors = np.random.default_rng(1).normal(size=(5, size))
    cut = bounds(size, most, CHUNK)
    assert [a for a, _ in cut] == [0, *(b for _, b in cut[:-1])]
    assert cut[-1][1] == size
    assert len(cut) <= most
    parts = [sums_of_piece(products, a, [[v[a:b] for v in vectors]]) for a, b in cut]
    with one_blas_thread():
        expected = tree_sum(products(list(vectors)))
    assert bits(joined_sums(parts)) == bits(expected)
    np.testing.assert_allclose(expected, vectors @ vectors.T, atol=1e-9 * (size + 1))


def test_a_tree_can_be_cut_anywhere() -> None:
    def add(a: str, b: str) -> str:
        return f"({a}{b})"

    letters = "abcdefghijklmnopqrstuvw"
    for count in range(1, 24):
        for i in range(count + 1):
            for j in range(i, count + 1):
                whole = TreeSum(add)
                for first, part in ((0, letters[:i]), (i, letters[i:j]), (j, letters[j:count])):
                    own = TreeSum(add, first)
                    for letter in part:
                        own.take(letter)
                    for size, term in own.parts:
                        whole.take(term, size)
                assert whole.total() == tree_sum(letters[:count], add)


def test_short_vectors_stay_here_and_long_ones_are_cut_evenly() -> None:
    assert [len(bounds(n, 8)) for n in (0, 2**17, 2**18 - 1, 2**18, 2**20 - 1, 2**24)] == [1, 1, 1, 2, 7, 8]
    lengths = [b - a for a, b in bounds(10**7, 7)]
    assert max(lengths) - min(lengths) < 7 * CHUNK


@pytest.mark.parametrize("name", METHODS)
def test_pieces_on_workers_take_the_steps_of_one_process(client: Any, name: str) -> None:
    one, many = descent(**METHODS[name]), descent(**METHODS[name], client=client, every=4)
    assert same(one, many)
    assert len(one.values) == 9
    assert one.values[-1] < one.values[0]
    assert many.report.shards == METHODS[name].get("batch", 3)


@pytest.mark.parametrize("method", ["lbfgs", "adam"])
def test_single_precision_stays_on_workers(client: Any, method: str) -> None:
    first = start(np.float32)
    found = [descent(first, method=method, steps=4, client=c) for c in (None, client)]
    assert found[1].params["x"].dtype == np.float32
    assert same(*found)


def test_a_mean_is_divided_on_workers(client: Any) -> None:
    assert same(*(descent(reduce="mean", steps=3, client=c) for c in (None, client)))


def test_it_converges_on_workers(client: Any) -> None:
    found = [descent(steps=100, tolerance=0.5, client=c) for c in (None, client)]
    assert found[1].converged
    assert found[1].why == "the gradient is within the tolerance"
    assert same(*found)
    assert found[1].steps < 30


def state_bytes(dask_worker: Any) -> int:
    """On a worker: what it holds of the optimiser's state."""
    return sum(
        x.nbytes
        for key, piece in dask_worker.data.items()
        if "valley-s" in str(key) and isinstance(piece, dict)  # state, and what steps have made of it
        for x in piece.values()
    )


def biggest_on_scheduler(dask_scheduler: Any) -> int:
    """On the scheduler: the bytes of the largest task, with the data that it was sent with."""
    from distributed.protocol.pickle import dumps  # noqa: PLC0415 - there

    return max((len(dumps(task.run_spec)) for task in dask_scheduler.tasks.values() if task.run_spec), default=0)


def test_each_worker_holds_a_part_of_the_state_and_the_scheduler_none(client: Any) -> None:
    seen: list[tuple[list[int], int]] = []

    def look(step: int, value: float, params: Any) -> None:
        seen.append(([*client.run(state_bytes).values()], client.run_on_scheduler(biggest_on_scheduler)))

    descent(method="lbfgs", history=3, steps=5, every=100, client=client, callback=look)
    vectors = 308_200 * 8 * (2 + 2 * 3)
    held, in_scheduler = seen[-1]
    assert sum(held) >= vectors
    assert max(held) < 0.9 * sum(held)
    assert in_scheduler < 100_000


@pytest.mark.parametrize("name", METHODS)
def test_a_file_goes_on_anywhere(client: Any, tmp_path: Path, name: str) -> None:
    whole = descent(**METHODS[name])
    for k, (first, second) in enumerate([(None, client), (client, None), (client, client)]):
        path = tmp_path / f"{k}.rgs"
        options = {**METHODS[name], "checkpoint": path, "every": 2, "resume": True}
        assert descent(**options, steps=5, client=first).steps == 5
        assert same(descent(**options, client=second), whole)
        assert same(descent(**options, client=second), whole)  # there is nothing left to do


@pytest.mark.parametrize("fault", [KeyboardInterrupt, LookupError])
def test_what_stops_a_descent_on_workers_loses_no_step(client: Any, tmp_path: Path, fault: type[BaseException]) -> None:
    path = tmp_path / "steps.rgs"

    def stop(step: int, value: float, params: Any) -> None:
        if step == 7:
            raise fault

    with pytest.raises(fault):
        descent(checkpoint=path, every=100, callback=stop, client=client)
    seen: list[int] = []
    found = descent(checkpoint=path, resume=True, client=client, callback=lambda step, value, params: seen.append(step))
    assert seen == [8, 9]
    assert same(found, descent())


def test_an_error_in_the_loss_ends_a_descent_on_workers(client: Any) -> None:
    def loss(w: Any, a: Any) -> Any:
        if a > 3:
            raise LookupError("no such shard")
        return valley(w, a)

    with pytest.raises(LookupError, match="no such shard") as caught:
        D.minimize(loss, start(), shards=[(1.0,), (4.0,)], client=client)
    assert caught.value.__notes__[0].startswith("shard 1, on worker")


def squares(w: Any, a: Any) -> Any:
    return np.sum(a * w**2)


def test_rules_of_users_see_all_entries(client: Any) -> None:
    """A rule that is not ours may not treat each entry alone, so that it must not see pieces."""
    normed = rg.optim.Optimiser((), lambda step, g, p: (p - g / np.sqrt(np.sum(g**2)),))
    first = np.linspace(0.0, 1.0, 300_000)
    found = [D.minimize(squares, first, shards=[(1.0,)], method=normed, steps=3, client=c) for c in (None, client)]
    assert same(*found)


@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_workers_that_are_killed_change_no_bit(kills: int) -> None:
    options: dict[str, Any] = {"steps": 15, "history": 3}
    whole = descent(**options)
    seen: list[int] = []
    with D.cluster(3, memory=0) as client, Killer(client, kills) as killer:
        while True:
            seen.clear()
            found = descent(
                **options, client=client, every=2, retries=30, callback=lambda step, value, params: seen.append(step)
            )
            assert same(found, whole)
            assert seen == [*range(1, 16)]
            if killer.killed == kills:
                break


@pytest.mark.slow
@pytest.mark.parametrize("nanny", [True, False])
def test_a_worker_that_is_stopped_is_given_up(tmp_path: Path, nanny: bool) -> None:
    whole = descent(steps=12)
    with Machines(tmp_path, 3, nanny=nanny) as machines, machines.client() as client:
        client.wait_for_workers(3)
        pids = client.run(os.getpid)

        def stop(step: int, value: float, params: Any) -> None:
            if step == 6:  # the state has just been written, and is to be placed
                os.kill(next(iter(pids.values())), signal.SIGSTOP)

        found = descent(steps=12, client=client, every=3, time_limit=6.0, callback=stop)
    assert same(found, whole)
    assert found.report.given_up == (next(iter(pids)),)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # dask's client goes on to connect
def test_after_the_scheduler_is_lost_a_descent_goes_on_from_its_last_state(tmp_path: Path) -> None:
    path = tmp_path / "steps.rgs"
    with Machines(tmp_path, 2) as machines, machines.client() as client:
        client.wait_for_workers(2)

        def kill(step: int, value: float, params: Any) -> None:
            if step == 5:
                machines.scheduler.kill()

        with pytest.raises(D.SchedulerLostError, match="the scheduler no longer answers"):
            descent(client=client, checkpoint=path, every=3, callback=kill)
    seen: list[int] = []
    found = descent(checkpoint=path, resume=True, callback=lambda step, value, params: seen.append(step))
    assert seen == [4, 5, 6, 7, 8, 9]
    assert same(found, descent())


def test_pieces_are_written_in_one_step(tmp_path: Path) -> None:
    """An error while pieces arrive leaves the file as it was."""
    path = tmp_path / "steps.rgs"
    saved = SavedSteps(path, {}, 4)
    saved.write({"value": 0.1}, [1.0, np.inf], [{"x": np.arange(4.0)}])

    def pieces() -> Any:
        yield {"x": np.zeros(2)}
        raise LookupError

    with pytest.raises(LookupError):
        saved.write({"value": 0.2}, [], pieces())
    found = saved.read()
    saved.close()
    assert found is not None
    assert (found.numbers, found.values) == ({"value": 0.1}, [1.0, np.inf])
    assert found.read(1, 3)["x"].tolist() == [1.0, 2.0]
    assert [p.name for p in tmp_path.iterdir()] == ["steps.rgs"]
