"""The same bits from threads and processes, for every way of cutting the work into tasks, and as computed by hand."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from tests.distributed.programs import Slow, bits, by_hand, data, load_by_number, network, weights

pytest.importorskip("threadpoolctl")
D = rg.distributed
CUTS: list[dict[str, Any]] = [{}, {"group": 2}, {"group": 4, "fan_in": 2}, {"group": 8}, {"keep": False}]


@pytest.mark.parametrize("shards", [1, 2, 5, 7, 8])
def test_threads_give_what_a_loop_gives(shards: int) -> None:
    expected = by_hand(weights(), data(shards))
    assert bits(D.value_and_grad(network, shards=data(shards))(weights())) == bits(expected)


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_processes_give_what_a_loop_gives(client: Any, cut: dict[str, Any]) -> None:
    f = D.value_and_grad(network, client, shards=data(), **cut)
    for seed in range(2):
        assert bits(f(weights(seed))) == bits(by_hand(weights(seed), data()))


def test_one_worker_gives_what_two_give() -> None:
    pytest.importorskip("distributed")
    with D.cluster(1, memory=0) as alone, D.value_and_grad(network, alone, shards=data(32)) as f:
        assert bits(f(weights())) == bits(by_hand(weights(), data(32)))
        assert f.report is not None
        assert len(f.report.workers) == 1


def test_the_order_of_the_terms_shows_in_the_bits() -> None:
    """Else the tests above could not fail."""
    plain = [rg.value_and_grad(network)(weights(), *shard) for shard in data()]
    found = {bits(sum(p[1]["a"] for p in order)) for order in (plain, plain[::-1])}
    assert len(found) == 2


def test_the_mean_is_the_sum_divided(client: Any) -> None:
    total = D.value_and_grad(network, shards=data())(weights())
    for c in (None, client):
        mean = D.value_and_grad(network, c, shards=data(), reduce="mean")(weights())
        assert bits(mean) == bits(rg.tree.map(lambda x: x / 7, total))


def test_some_shards(client: Any) -> None:
    expected = by_hand(weights(), [data()[k] for k in (4, 1, 6)])
    for c in (None, client):
        assert bits(D.value_and_grad(network, c, shards=data())(weights(), only=[4, 1, 6])) == bits(expected)


def test_several_parameters(client: Any) -> None:
    def loss(a: Any, b: Any, x: Any) -> Any:
        return np.sum((a * x + b) ** 2)

    x = np.linspace(0, 1, 30)
    shards = [(x[:10],), (x[10:20],), (x[20:],)]
    expected = rg.value_and_grad(loss, (0, 1))(2.0, np.ones(10), x[:10])[1]
    for c in (None, client):
        value, (da, db) = D.value_and_grad(loss, c, shards=shards, argnums=(0, 1))(2.0, np.ones(10))
        assert type(da) is type(expected[0])
        assert db.shape == (10,)
        np.testing.assert_allclose(value, np.sum((2 * x + 1) ** 2), rtol=1e-14)


def test_shards_are_loaded_where_they_are_needed(client: Any, tmp_path: Path) -> None:
    expected = bits(by_hand(weights(), data()))
    for k, (x, y) in enumerate(data()):
        np.savez(tmp_path / f"{k}.npz", x, y)
    files = sorted(tmp_path.glob("*.npz"))
    for c in (None, client):
        for keep in (True, False):
            assert bits(D.value_and_grad(network, c, shards=files, keep=keep)(weights())) == expected
            by_number = D.value_and_grad(network, c, shards=range(7), load=load_by_number, keep=keep)
            assert bits(by_number(weights())) == expected
            called = D.value_and_grad(network, c, shards=[Slow(k) for k in range(7)], keep=keep)
            assert bits(called(weights())) == expected


def test_what_is_kept_is_loaded_once(client: Any, tmp_path: Path) -> None:
    for c in (None, client):
        for keep, loads in ((True, 7), (False, 21)):
            folder = tmp_path / f"{c is None}{keep}"
            folder.mkdir()
            f = D.value_and_grad(network, c, shards=[Slow(k, 0.0, folder) for k in range(7)], keep=keep)
            for _ in range(3):
                f(weights())
            assert len([*folder.iterdir()]) == loads


def test_partitions_of_dask(client: Any) -> None:
    array, bag = pytest.importorskip("dask.array"), pytest.importorskip("dask.bag")
    x, y = (np.concatenate([shard[i] for shard in data()]) for i in (0, 1))
    expected = bits(by_hand(weights(), data()))
    columns = array.from_array(x, chunks=(100, 20)), array.from_array(y, chunks=100)

    def mean(w: Any, x: Any) -> Any:
        return np.sum(np.tanh(x @ w["a"]))

    numbers = bag.from_sequence(range(7), npartitions=7)
    for c in (None, client):
        assert bits(D.value_and_grad(network, c, shards=columns)(weights())) == expected
        one = D.value_and_grad(mean, c, shards=columns[0])(weights())
        assert bits(one) == bits(D.value_and_grad(mean, shards=[shard[:1] for shard in data()])(weights()))
        listed = D.value_and_grad(network, c, shards=numbers, load=lambda part: load_by_number(part[0]))
        assert bits(listed(weights())) == expected


def test_a_saved_graph_is_sent_as_it_is(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "network.rg"
    shards = [tuple(map(np.ascontiguousarray, shard)) for shard in data()]
    rg.jit(network).save(path, weights(), *shards[0])
    expected = bits(by_hand(weights(), shards))
    for loss in (path, rg.load(path)):
        for c in (None, client):
            assert bits(D.value_and_grad(loss, c, shards=shards)(weights())) == expected


def test_products_with_the_hessian(client: Any) -> None:
    w, v = weights(), weights(3)
    one = D.hvp(network, shards=data())(w, v)
    assert bits(D.hvp(network, client, shards=data())(w, v)) == bits(one)
    total = [rg.hvp(lambda w, shard=shard: network(w, *shard))(w, v) for shard in data()]
    np.testing.assert_allclose(one["b"], sum(t["b"] for t in total), rtol=1e-10)


def test_ensembles(client: Any) -> None:
    def swing(x: Any, k: Any) -> Any:
        return {"sin": np.sin(x) * k, "norm": np.sqrt(np.sum(x**2))}

    x = np.random.default_rng(0).normal(size=(50, 6))
    expected = rg.vmap(swing, in_axes=(0, None))(x, 2.0)
    for chunk in (None, 3, 50, 80):
        one = D.map(swing, in_axes=(0, None), chunk=chunk)(x, 2.0)
        assert bits(D.map(swing, client, in_axes=(0, None), chunk=chunk)(x, 2.0)) == bits(one)
        np.testing.assert_allclose(one["norm"], expected["norm"], rtol=1e-14)
        assert one["sin"].shape == (50, 6)


def test_rows_of_jacobians(client: Any) -> None:
    def f(x: Any) -> Any:
        return np.sin(x)[:, None] * x + x[0]

    x = np.linspace(0.0, 1.0, 5)
    one = D.jacobian(f, chunk=4)(x)
    np.testing.assert_allclose(one, rg.jacobian(f)(x), rtol=1e-13, atol=1e-15)
    assert bits(D.jacobian(f, client, chunk=4)(x)) == bits(one)


class Pair(NamedTuple):
    """A class that cloudpickle sends by value, as that of a script."""

    a: Any
    b: Any


def test_classes_that_are_sent_by_value_compile_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(w: Any, x: Any) -> Any:
        return np.sum((w.a * x + w.b) ** 2)

    monkeypatch.setattr(Pair, "__module__", "__main__")
    shards = [(np.full(3, float(k)),) for k in range(30)]
    one, f = (D.value_and_grad(loss, c, shards=shards, keep=False) for c in (None, client))
    with warnings.catch_warnings():
        warnings.simplefilter("error", rg.errors.RetraceWarning)
        for k in range(12):
            found = f(Pair(float(k), np.ones(3)))
            assert bits(found) == bits(one(Pair(float(k), np.ones(3))))
            assert type(found[1]) is Pair
    assert set(client.run(most_compiled).values()) == {1}


def most_compiled() -> int:
    """On a worker: how often its last kernel was compiled."""
    from retrograd.distributed.kernels import KERNELS  # noqa: PLC0415 - of that process

    return max(kernel.cache_info().misses for kernel in [*KERNELS._made.values()][-1:])


def test_settings_travel(client: Any) -> None:
    def loss(w: Any, x: Any) -> Any:
        for _ in range(10):
            w = np.sin(w) + np.cos(x) * w
        return np.sum(w)

    for c in (None, client):
        f = D.value_and_grad(loss, c, shards=[(np.ones(2),)])
        with rg.config(max_nodes=20), pytest.raises(rg.errors.TraceLengthError):
            f(np.ones(2))
        f(np.ones(2))
