"""Compiled functions, graphs, plans and errors are pickled and copied, and go to other processes."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import errors
from retrograd.ir.plan import Plan
from retrograd.ir.target import TARGETS

X = np.array([0.5, -1.0, 2.0])

PHYSICS = """
import numpy as np
import retrograd as rg

STIFFNESS = np.array([1.0, 2.0, 3.0])

def energy(x):
    return np.sum(STIFFNESS * np.sin(x))

force = rg.grad(energy)
curvature = rg.hessian(energy)
work = rg.jit(rg.value_and_grad(energy))
lanes = rg.vmap(rg.grad(np.cos))
second = rg.grad(rg.checkpoint(energy))
sparse = rg.jacobian(np.sin, sparse=True)

@rg.grad
def slope(x):
    return np.sum(x**2)

@rg.jit
@rg.grad
def twice(x):
    return np.sum(x**3)

@rg.jit
def recursive(x, n=3):
    return x if n == 0 else x + recursive(x * 0.5, n - 1)

@rg.custom_vjp
def doubled(x):
    return 2.0 * x

doubled.defvjp(lambda x: (doubled(x), None), lambda _, ct: (5.0 * ct,))
of_jit = rg.grad(rg.jit(energy))

@rg.lens
def cube(x):
    return x**3, lambda ct: 3 * x**2 * ct

class Spring:
    def __init__(self, k):
        self.k = k

    @rg.grad
    def force(self, x):
        return self.k * np.sum(x**2)

    def energy(self, x):
        return self.k * np.sum(x**2)

soft, stiff = Spring(2.0), Spring(3.0)
METHODS = [soft.force, stiff.force, rg.grad(stiff.energy), rg.jit(soft.force)]
NAMES = [
    "force", "curvature", "work", "lanes", "second", "slope", "twice", "recursive", "doubled", "of_jit", "cube"
]
"""


def loaded(name: str, source: str) -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, f"<{name}>", "exec"), vars(module))
    return module


@pytest.fixture
def physics(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setitem(sys.modules, "physics_to_pickle", ModuleType("physics_to_pickle"))
    return loaded("physics_to_pickle", PHYSICS)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(np.array_equal(a, b))


PICKLERS: dict[str, Callable[[Any], Any]] = {
    "pickle 2": lambda x: pickle.loads(pickle.dumps(x, 2)),
    "pickle 5": lambda x: pickle.loads(pickle.dumps(x)),
    "python": lambda x: pickle.loads(pickle._dumps(x)),  # type: ignore[attr-defined]  # the pickler in Python
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("pickler", PICKLERS)
def test_compiled_functions_are_pickled_and_copied(physics: ModuleType, pickler: str) -> None:
    for f in [*(getattr(physics, name) for name in physics.NAMES), *physics.METHODS]:
        expected = f(X)
        again = PICKLERS[pickler](f)
        assert type(again) is type(f)
        assert same(again(X), expected)
    assert np.array_equal(PICKLERS[pickler](physics.sparse)(X).toarray(), physics.sparse(X).toarray())


@pytest.mark.parametrize("pickler", PICKLERS)
def test_a_decorated_function_is_pickled_as_its_name(physics: ModuleType, pickler: str) -> None:
    for name in ("slope", "twice", "recursive", "doubled", "cube"):
        f = getattr(physics, name)
        assert PICKLERS[pickler](f) is f
    assert PICKLERS[pickler](physics.Spring.force) is physics.Spring.force


def test_a_function_that_is_hidden_by_its_decoration_is_found(physics: ModuleType) -> None:
    inner = physics.twice.__wrapped__
    for f in (inner, rg.hessian(inner.__wrapped__), rg.vmap(rg.grad(physics.recursive.__wrapped__))):
        again = pickle.loads(pickle.dumps(f))
        assert same(again(X), f(X))
        assert repr(again) == repr(f)


def test_what_was_compiled_stays_at_home(physics: ModuleType) -> None:
    physics.force(X)
    again = pickle.loads(pickle.dumps(physics.force))
    assert physics.force.cache_info().size == 1
    assert again.cache_info() == (rg.grad(physics.energy)).cache_info()
    assert len(pickle.dumps(physics.force)) < 500


def test_a_function_without_a_name_is_refused_by_pickle_as_ever() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(rg.grad(lambda x: x * x))


def test_options_travel(physics: ModuleType) -> None:
    f = rg.grad(physics.energy, memory="1 MiB", nan_safe=True)
    again = pickle.loads(pickle.dumps(f))
    assert again._transform == f._transform
    assert again.__wrapped__ is physics.energy


def test_a_deep_copy_of_an_object_computes_with_the_copy(physics: ModuleType) -> None:
    class Model:
        def __init__(self, k: float) -> None:
            self.k = k
            self.slope = rg.grad(self.loss)

        def loss(self, x: Any) -> Any:
            return self.k * np.sum(x)

    model = Model(2.0)
    other = copy.deepcopy(model)
    other.k = 5.0
    np.testing.assert_array_equal(model.slope(X), np.full(3, 2.0))
    np.testing.assert_array_equal(other.slope(X), np.full(3, 5.0))
    bound = copy.deepcopy(physics.soft.force)
    assert bound._bound[1] is not physics.soft


@pytest.mark.parametrize("by_name", [False, True])
def test_cloudpickle_takes_functions_by_value(physics: ModuleType, by_name: bool) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    if not by_name:
        cloudpickle.register_pickle_by_value(physics)
    try:
        names = [*physics.NAMES, "sparse"]
        expected = [getattr(physics, name)(X) for name in names]
        written = [cloudpickle.dumps(getattr(physics, name)) for name in names]
        methods = [(f(X), cloudpickle.dumps(f)) for f in physics.METHODS]
    finally:
        if not by_name:
            cloudpickle.unregister_pickle_by_value(physics)
            del sys.modules["physics_to_pickle"]  # as in another process
    for value, data in [*zip(expected, written, strict=True), *methods]:
        found = pickle.loads(data)(X)
        assert np.array_equal(found.toarray(), value.toarray()) if hasattr(value, "toarray") else same(found, value)
    plus = cloudpickle.loads(cloudpickle.dumps(rg.grad(lambda x: np.sum(x * X))))
    np.testing.assert_array_equal(plus(X), X)


def _looped(x: Any) -> Any:
    inner = rg.fori_loop(20, lambda i, c: np.sin(c) * x, x, memory=rg.Snapshots(3))
    return np.sum(rg.cond(x[0] > 0, np.cos, np.tanh, inner) * np.arange(3.0))


GRAPHS = {
    "straight": lambda: rg.grad(lambda x: np.sum(np.sin(x) * X)),
    "loop": lambda: rg.grad(_looped),
    "hessian": lambda: rg.hessian(lambda x: np.sum(np.tanh(x) ** 2)),
    "lanes": lambda: rg.jit(rg.vmap(rg.grad(lambda t: np.sin(t) * t))),
    "large": lambda: rg.value_and_grad(lambda x: np.sum(np.outer(x, x) @ np.sin(np.outer(x, x)))),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("pickler", ["pickle 5", "deepcopy"])
def test_graphs_and_plans_are_pickled(name: str, pickler: str) -> None:
    f = GRAPHS[name]()
    made = f.at(X)
    graph = made.graph
    assert str(PICKLERS[pickler](graph)) == str(graph)
    plan = made.plan
    again = PICKLERS[pickler](plan)
    assert isinstance(again, Plan)
    assert str(again.order) == str(plan.order)
    assert (again.peak, again.scratch) == (plan.peak, plan.scratch)
    assert TARGETS.chosen.emit(again).source.replace(" ", "") == TARGETS.chosen.emit(plan).source.replace(" ", "")


def test_a_graph_that_calls_python_is_not_pickled() -> None:
    @rg.lens(host=True)
    def outer(x: Any) -> Any:
        return float(x) ** 2, lambda ct: 2 * float(x) * ct

    graph = rg.grad(lambda x: outer(x)).graph(2.0)  # noqa: PLW0108 - the graph of a caller
    with pytest.raises(errors.UnsupportedError, match="calls a Python function of this process"):
        pickle.dumps(graph)


def _subclasses(cls: type) -> list[type]:
    return [cls, *(x for sub in cls.__subclasses__() for x in _subclasses(sub))]


@pytest.mark.parametrize("cls", _subclasses(errors.RetrogradError), ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("pickler", PICKLERS)
def test_errors_are_pickled(cls: type, pickler: str) -> None:
    fault = cls("a fault", remedy="mend it")
    fault.extra = 3  # type: ignore[attr-defined]
    again = PICKLERS[pickler](fault)
    assert type(again) is cls
    assert (str(again), again.what, again.where, again.remedy, again.extra) == (
        str(fault),
        fault.what,  # type: ignore[attr-defined]
        fault.where,  # type: ignore[attr-defined]
        "mend it",
        3,
    )


MAIN = """
import sys
import numpy as np
import physics_of_test as physics
import retrograd as rg

X = np.array([0.5, -1.0, 2.0])

def loss(x):
    return np.sum(np.cosh(x))

@rg.grad
def here(x):
    return np.sum(x**4)

gradient = rg.grad(loss)

def call(f):
    return f(X)

def failing(f):
    try:
        f(np.array(["a"]))
    except rg.errors.RetrogradError as fault:
        return fault

def check(found, jobs):
    assert len(found) == len(jobs)
    for value, f in zip(found, jobs):
        assert all(map(np.array_equal, value, f(X))) if isinstance(value, tuple) else np.array_equal(value, f(X)), f

def main(way):
    jobs = [*(getattr(physics, name) for name in physics.NAMES), *physics.METHODS, here, gradient]
    jobs = [f for f in jobs if f is not physics.sparse]
    for f in jobs:
        f(X)  # whoever forks has compiled code already
    if way in ("fork", "spawn", "forkserver"):
        import multiprocessing
        with multiprocessing.get_context(way).Pool(2) as pool:
            check(pool.map(call, jobs), jobs)
            check(pool.map(gradient, [X] * 3), [gradient] * 3)
    elif way == "futures":
        from concurrent.futures import ProcessPoolExecutor
        with ProcessPoolExecutor(2) as pool:
            check(list(pool.map(call, jobs)), jobs)
            check([pool.submit(f, X).result() for f in jobs], jobs)
            fault = pool.submit(failing, gradient).result()
            assert "[RG01" in str(fault), fault
    elif way == "joblib":
        import joblib
        closed = rg.grad(lambda x: np.sum(x * X))
        check(joblib.Parallel(2)(joblib.delayed(f)(X) for f in [*jobs, closed]), [*jobs, closed])
    print("right")

if __name__ == "__main__":
    main(sys.argv[1])
"""


WAYS = ["spawn", "futures", *(pytest.param(way, marks=pytest.mark.slow) for way in ("fork", "forkserver", "joblib"))]


@pytest.mark.parametrize("way", WAYS)
def test_other_processes_compute_what_they_are_sent(way: str, tmp_path: Path) -> None:
    if way == "joblib":
        pytest.importorskip("joblib")
    if way in ("fork", "forkserver") and not hasattr(os, "fork"):
        pytest.skip("this platform has no fork")
    (tmp_path / "physics_of_test.py").write_text(PHYSICS)
    (tmp_path / "main.py").write_text(MAIN)
    path = os.pathsep.join([str(Path(rg.__file__).parents[1]), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(tmp_path / "main.py"), way],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "right\n"
