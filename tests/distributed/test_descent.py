"""L-BFGS and Adam over shards: right, the same bits anywhere and after each stop, and a file that is whole."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize as scipys

import retrograd as rg
from retrograd.distributed.descent import _folder
from retrograd.distributed.lbfgs import weights_of
from retrograd.distributed.reduction import tree_sum
from retrograd.distributed.saved_steps import SavedSteps
from retrograd.distributed.vectors import products
from tests.distributed.programs import bits, data, network, weights

pytest.importorskip("threadpoolctl")
D = rg.distributed
METHODS: dict[str, dict[str, Any]] = {
    "lbfgs": {"method": "lbfgs", "history": 4},
    "adam": {"method": "adam", "rate": 0.05},
    "adam in batches": {"method": "adam", "rate": 0.05, "batch": 3, "seed": 5},
    "momentum": {"method": rg.optim.momentum(1e-4)},
}


def rosenbrock(x: Any, a: Any) -> Any:
    return np.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def descent(**options: Any) -> Any:
    given = {"shards": data(), "steps": 12, "tolerance": 0.0, **options}
    return D.minimize(network, weights(), **given)


def same(a: Any, b: Any) -> bool:
    return bool(bits(a.params) == bits(b.params) and a.values == b.values)


def test_lbfgs_finds_the_minimum_of_a_valley_about_as_fast_as_scipy() -> None:
    shards, start = [(60.0,), (40.0,)], np.full(12, -1.0)
    found = D.minimize(rosenbrock, start, shards=shards, steps=300, tolerance=1e-8)
    assert found.converged
    assert found.why == "the gradient is within the tolerance"
    np.testing.assert_allclose(found.params, 1.0, atol=1e-7)
    slope = rg.grad(lambda x: sum(rosenbrock(x, *shard) for shard in shards))
    theirs = scipys(lambda x: sum(rosenbrock(x, *s) for s in shards), start, jac=slope, method="L-BFGS-B")
    assert found.steps < 2 * theirs.nit


def test_the_two_loops_are_the_inverse_of_the_bfgs_matrix() -> None:
    rng = np.random.default_rng(0)
    moves = rng.normal(size=(3, 5))
    root = rng.normal(size=(5, 5))
    changes = moves @ (root @ root.T + np.eye(5))
    inverse = np.eye(5) * (moves[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for s, y in zip(moves, changes, strict=True):
        part = np.eye(5) - np.outer(s, y) / (s @ y)
        inverse = part @ inverse @ part.T + np.outer(s, s) / (s @ y)
    gradient = rng.normal(size=5)
    basis = [*moves, *changes, gradient]
    np.testing.assert_allclose(weights_of(tree_sum(products(basis))) @ basis, -inverse @ gradient, rtol=1e-10)


def test_lbfgs_stops_where_no_step_is_better() -> None:
    def loss(x: Any, a: Any) -> Any:
        return np.sum(a * np.abs(x)) + 1.0

    found = D.minimize(loss, np.array([0.3, -0.2]), shards=[(1.0,)], tolerance=1e-12)
    assert not found.converged
    assert found.why == "no step makes the value smaller"


def test_adam_is_the_optimiser_of_the_package() -> None:
    f, optimiser = D.value_and_grad(network, shards=data()), rg.optim.adam(0.05)
    flat, unravel = rg.tree.ravel(weights())
    state = optimiser.init(flat)
    for _ in range(12):
        flat, state = optimiser.update(rg.tree.ravel(f(unravel(flat))[1])[0], state, flat)
    assert bits(descent(**METHODS["adam"]).params) == bits(unravel(flat))


def test_batches_are_passes_through_all_shards() -> None:
    seen: list[int] = []

    def loss(w: Any, k: Any) -> Any:
        return np.sum(w * k)

    shards = [(float(2**k),) for k in range(7)]
    D.minimize(
        loss,
        np.ones(1),
        shards=shards,
        method=rg.optim.sgd(1e-9),
        batch=3,
        steps=6,
        callback=lambda step, value, params: seen.append(round(value)),
    )
    for k in (0, 3):
        assert sum(seen[k : k + 3]) == 2**7 - 1
        assert [n.bit_count() for n in seen[k : k + 3]] == [3, 3, 1]
    assert seen[:3] != seen[3:]


@pytest.mark.parametrize("name", METHODS)
def test_processes_take_the_same_steps_as_threads(client: Any, name: str) -> None:
    one = descent(**METHODS[name])
    assert same(descent(**METHODS[name], client=client), one)
    assert len(one.values) == 12
    if "batches" not in name:
        assert one.values[-1] < one.values[0]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("stop", [1, 4, 11])
def test_a_descent_goes_on_to_the_same_bits(tmp_path: Path, name: str, stop: int) -> None:
    path = tmp_path / "steps.rgs"
    whole = descent(**METHODS[name])
    options = {**METHODS[name], "checkpoint": path, "every": 4, "resume": True}
    first = descent(**{**options, "steps": stop})
    assert first.steps == stop
    assert same(descent(**options), whole)
    assert same(descent(**options), whole)  # there is nothing left to do
    assert [p.name for p in tmp_path.iterdir()] == ["steps.rgs"]


@pytest.mark.parametrize("fault", [KeyboardInterrupt, LookupError])
def test_what_stops_a_descent_loses_no_step(tmp_path: Path, fault: type[BaseException]) -> None:
    path = tmp_path / "steps.rgs"

    def stop(step: int, value: float, params: Any) -> None:
        if step == 7:
            raise fault

    with pytest.raises(fault):
        descent(checkpoint=path, every=100, callback=stop)
    seen: list[int] = []
    found = descent(checkpoint=path, resume=True, callback=lambda step, value, params: seen.append(step))
    assert seen == [8, 9, 10, 11, 12]
    assert same(found, descent())


def test_an_earlier_state_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "steps.rgs"
    descent(checkpoint=path, steps=3)
    before = path.read_bytes()
    with pytest.raises(rg.errors.OptionError, match="contains the state of an earlier run") as caught:
        descent(checkpoint=path)
    assert "resume=True" in caught.value.remedy
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [{"method": "adam"}, {"history": 3}, {"shards": data(5)}, {"reduce": "mean"}],
    ids=["method", "history", "shards", "reduce"],
)
def test_the_state_of_another_run_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "steps.rgs"
    descent(checkpoint=path, steps=3)
    with pytest.raises(rg.errors.OptionError, match="belongs to another run"):
        descent(checkpoint=path, resume=True, **change)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "steps.rgs"
    descent(checkpoint=path, steps=3)
    whole = path.read_bytes()
    for data_ in (b"", whole[:-1], whole[: len(whole) // 2], b"x" + whole, whole[:300] + b"?" + whole[301:]):
        path.write_bytes(data_)
        with pytest.raises(rg.errors.SnapshotError, match="is not a complete optimiser state"):
            descent(checkpoint=path, resume=True)
        assert path.read_bytes() == data_


def test_two_runs_with_one_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "steps.rgs"

    def second(step: int, value: float, params: Any) -> None:
        if step == 2:
            descent(checkpoint=path, resume=True)

    with pytest.raises(rg.errors.SnapshotError, match="another run is using"):
        descent(checkpoint=path, callback=second)
    assert descent(checkpoint=path, resume=True).steps == 12


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(rg.errors.SnapshotError, match="cannot be created"):
        descent(checkpoint=tmp_path / "gone" / "steps.rgs")


def test_no_program_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "steps.rgs"
    saved = SavedSteps(path, {}, 3)
    saved.write({}, [], [{"x": np.ones(3)}])
    assert b"pickle" not in path.read_bytes()
    saved.write({}, [], [{"x": np.array([object()] * 3)}])
    found = saved.read()
    saved.close()
    assert found is not None
    with pytest.raises(ValueError, match="object"):
        found.read(0, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "newton"}, "method='newton'"),
        ({"steps": -1}, "steps=-1"),
        ({"every": 0}, "every=0"),
        ({"batch": 2}, "batch=2 with 'lbfgs'"),
        ({"resume": True}, "resume=True needs a file"),
        ({"tolerance": -1.0}, "tolerance=-1.0"),
        ({"groups": 2}, "there is no option 'groups'"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(rg.errors.OptionError, match=words):
        descent(**options)


def test_the_start_must_be_numbers_with_derivatives() -> None:
    for start in (3, np.arange(3), {"w": np.ones(2), "n": 4}, [], "x"):
        with pytest.raises(rg.errors.NonDifferentiableError):
            D.minimize(network, start, shards=data())


def test_nothing_to_do() -> None:
    found = descent(steps=0)
    assert (found.steps, found.converged, found.why) == (0, False, "all steps are done")
    assert bits(found.params) == bits(weights())
    at_rest = D.minimize(lambda x, a: np.sum(a * x**2), np.zeros(2), shards=[(1.0,)])
    assert (at_rest.steps, at_rest.converged) == (0, True)


def test_single_precision_stays(client: Any) -> None:
    start = {"x": np.full(4, 0.5, np.float32)}

    def loss(w: Any, a: Any) -> Any:
        return np.sum((w["x"] * a - a) ** 2)

    for method in ("lbfgs", "adam"):
        found = [
            D.minimize(loss, start, client=c, shards=[(np.float32(2.0),), (np.float32(1.0),)], method=method, steps=5)
            for c in (None, client)
        ]
        assert found[0].params["x"].dtype == np.float32
        assert same(*found)


def test_a_forked_child_leaves_the_lock_and_the_folder_of_its_parent(tmp_path: Path) -> None:
    parent, status = os.getpid(), 1
    saved = SavedSteps(tmp_path / "steps.rgs", {}, 3)
    with ExitStack() as outside:
        with _folder() as folder, closing(saved):
            child = os.fork()
            if child:
                status = os.waitpid(child, 0)[1]
                assert Path(folder).is_dir()
                with pytest.raises(rg.errors.SnapshotError, match="another run is using"):
                    SavedSteps(tmp_path / "steps.rgs", {}, 3)
            else:
                outside.callback(os._exit, 0)
        assert os.getpid() == parent
    assert status == 0
    assert not Path(folder).exists()
    assert list(tmp_path.iterdir()) == []
