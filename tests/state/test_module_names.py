"""A module of the user's with the name of one of Python's, or of a library that calls the user's code."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import retrograd as rg
from retrograd import where
from retrograd.where import FOREIGN, OURS, Where, user_site

SOURCE = """
import copy
from numpy import sin, sum, zeros
K = 2.0
class Model:
    k = 2.0
    gain = property(lambda self: self.k * K)
    def __call__(self, x): return self.gain * x
model = Model()
def loss(x): return K * x
def attribute(x): return model.k * x
def answer(x): return model.gain * x
def called(x): return model(x)
def early(x):
    t = zeros(2)
    t[0] = K * x
    return sum(t)
def copied(x): return copy.copy(model).k * x
def helper(): return K
def helped(x): return helper() * x
"""
NAMES = ["profile", "glob", "logging", "pyclbr.model", "distributed"]


@pytest.fixture(params=NAMES)
def module(request: Any, tmp_path: Path, monkeypatch: Any) -> Iterator[ModuleType]:
    """Such a module, first on the path."""
    name: str = request.param
    first = name.partition(".")[0]
    file = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
    file.parent.mkdir(exist_ok=True)
    file.write_text(SOURCE)
    if file.parent != tmp_path:
        file.with_name("__init__.py").write_text("")
    others = {other for other in sys.modules if other.partition(".")[0] == first}
    for other in others:
        monkeypatch.delitem(sys.modules, other)
    monkeypatch.syspath_prepend(tmp_path)
    forget(first)
    yield importlib.import_module(name)
    for other in {other for other in sys.modules if other.partition(".")[0] == first} - others:
        del sys.modules[other]
    forget(first)


def forget(first: str) -> None:
    """The names of a package are looked into again."""
    for name in [name for name in FOREIGN if name.partition(".")[0] == first]:
        del FOREIGN[name]


@pytest.mark.parametrize("transform", [rg.jit, rg.grad])
def test_what_it_reads_is_seen(module: Any, transform: Any) -> None:
    names = ["loss", "attribute", "answer", "called", "early", "copied", "helped"]
    compiled = {name: transform(getattr(module, name)) for name in names}

    def right() -> bool:
        expected = {name: float(getattr(module, name)(1.0)) for name in names}
        return all({name: float(f(1.0)) for name, f in compiled.items()} == expected for _ in range(2))

    assert right()
    module.K = 7.0
    assert right()
    module.model.k = 11.0
    assert right()
    module.model.other = 1.0
    assert right()
    assert all(f.cache_info().misses <= 4 for f in compiled.values())


def test_its_lines_are_the_users(module: Any) -> None:
    text = "def line(): return site()\ndef tell(): warn('hm', UserWarning)"
    exec(compile(text, module.__file__, "exec"), vars(module))
    module.site, module.warn = user_site, where.warn
    assert module.line()[0] == Where(module.__file__, 1)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        module.tell()
    assert [(w.filename, w.lineno) for w in heard] == [(module.__file__, 2)]


def test_pythons_own_modules_are_foreign() -> None:
    own = sys.stdlib_module_names - {"__main__"}
    assert [name for name in [*sys.modules] if name.partition(".")[0] in own and not FOREIGN[name]] == []
    assert all(FOREIGN[name] for name in (*OURS, "numpy.linalg", "json.decoder", "math", "_frozen_importlib"))


def test_a_module_may_be_imported_later() -> None:
    name = "idlelib.nothing_of_this_name"
    assert FOREIGN[name]
    assert name not in FOREIGN or "idlelib" in sys.modules
    assert not FOREIGN["nothing_of_this_name"]


@pytest.mark.parametrize("place", ["my-packages", "in memory", "in memory, with a Path"])
def test_it_need_not_lie_beside_the_program(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "sched", raising=False)
    forget("sched")
    if place.startswith("in memory"):
        module = ModuleType("sched")
        exec(SOURCE, vars(module))
        if place != "in memory":
            vars(module)["__file__"] = tmp_path / "sched.py"
        sys.modules["sched"] = module
    else:
        folder = tmp_path / place
        folder.mkdir()
        (folder / "sched.py").write_text(SOURCE)
        monkeypatch.syspath_prepend(folder)
        module = importlib.import_module("sched")
    compiled = rg.jit(module.loss)
    assert compiled(3.0) == 6.0
    module.K = 5.0
    assert compiled(3.0) == 15.0
    del sys.modules["sched"]
    forget("sched")


@pytest.mark.parametrize("name", [None, 3])
def test_a_program_may_have_any_name(name: Any) -> None:
    space = {"__name__": name}
    exec("def f(x): return 2.0 * x", space)
    assert rg.jit(space["f"])(3.0) == 6.0
