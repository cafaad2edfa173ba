"""Warnings and NumPy's error state: what threads do, workers do too, and the client hears of it once at its line."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.distributed.programs import bits

pytest.importorskip("distributed")
D = rg.distributed
ZEROS = [(np.array([1.0, 0.0]),)] * 6


def logs(w: Any, x: Any) -> Any:
    """Infinite where x is 0."""
    return np.sum(np.log(w * x))  # <- log


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    (found,) = [k for k, line in enumerate(lines, 1) if line.endswith(f"# <- {mark}")]
    return found


def places(caught: Any) -> list[tuple[str, int, type[Warning], str]]:
    return [(w.filename, w.lineno, w.category, str(w.message)) for w in caught]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this module had not warned of anything."""
    monkeypatch.delitem(globals(), "__warningregistry__", raising=False)


def test_a_warning_on_workers_arrives_with_the_users_line_and_once(client: Any) -> None:
    f = D.value_and_grad(logs, client, shards=ZEROS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            f(np.ones(2))
    assert sorted(places(caught)) == [
        (__file__, line_of("log"), RuntimeWarning, text)
        for text in (
            "divide by zero encountered in divide",
            "divide by zero encountered in log",
            "invalid value encountered in multiply",
        )
    ]
    with warnings.catch_warnings(record=True) as again:
        warnings.simplefilter("always")
        f(np.ones(2))
    assert sorted(places(again)) == sorted(places(caught))


def test_the_filters_of_the_client_decide(client: Any) -> None:
    f = D.value_and_grad(logs, client, shards=ZEROS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        expected = f(np.ones(2))
    assert caught == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="divide by zero"):
            f(np.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert bits(f(np.ones(2))) == bits(expected)


def own_warning(x: Any) -> Any:
    warnings.warn("this is mine", DeprecationWarning, stacklevel=1)  # <- own
    return x * 2.0


def test_maps_and_loaders_and_descents_are_heard(client: Any) -> None:
    def load() -> Any:
        warnings.warn("the file is old", UserWarning, stacklevel=1)  # <- load
        return (np.ones(2),)

    def loss(w: Any, x: Any) -> Any:
        return np.sum((w * x) ** 2)

    for mark, category, work in (
        ("own", DeprecationWarning, lambda: D.map(own_warning, client)(np.ones(4))),
        ("load", UserWarning, lambda: D.value_and_grad(loss, client, shards=[load] * 3)(np.ones(2))),
        ("load", UserWarning, lambda: D.value_and_grad(loss, client, shards=[load] * 3, keep=False)(np.ones(2))),
        ("log", RuntimeWarning, lambda: D.hvp(logs, client, shards=ZEROS)(np.ones(2), np.ones(2))),
        ("log", RuntimeWarning, lambda: D.minimize(logs, np.ones(2), client=client, shards=ZEROS, steps=2)),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            work()
        assert {(w.filename, w.lineno, w.category) for w in caught} == {(__file__, line_of(mark), category)}, mark


def test_functions_without_a_line_of_the_users_are_heard(client: Any) -> None:
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        D.map(np.log, client)(np.zeros(4))


def test_a_worker_has_its_own_filters_again(client: Any) -> None:
    def state() -> Any:
        import warnings  # noqa: PLC0415 - of that process

        return warnings.showwarning.__module__, [f[0] for f in warnings.filters]

    before = client.run(state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        D.value_and_grad(logs, client, shards=ZEROS)(np.ones(2))
    assert client.run(state) == before


@pytest.mark.parametrize("where", ["threads", "processes"])
def test_errors_of_numpy_are_those_of_the_caller(where: str, request: pytest.FixtureRequest) -> None:
    f = D.value_and_grad(logs, None if where == "threads" else request.getfixturevalue("client"), shards=ZEROS)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        f(np.ones(2))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero") as caught:
        f(np.ones(2))
    assert any(note.startswith("shard ") and note.endswith(f":{line_of('log')}") for note in caught.value.__notes__)
    with np.errstate(all="ignore"):
        f(np.ones(2))


def test_dask_does_not_warn_of_long_parameters(client: Any) -> None:
    """10 MB are much for a graph of dask, and nothing for parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        D.value_and_grad(lambda w, a: np.sum(w * a), client, shards=[(2.0,)])(np.ones(1_400_000))


def test_many_different_warnings_are_cut(client: Any) -> None:
    def load(k: int) -> Any:
        for i in range(50):
            warnings.warn(f"{k}: {i}", UserWarning, stacklevel=1)
        return (1.0,)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        D.value_and_grad(lambda w, a: w * a, client, shards=range(20), load=load)(1.0)
    assert len(caught) == 100
