"""The types of the face (`retrograd/__init__.pyi`) say what is there: the same names, parameters and defaults."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg

STUB = ast.parse(Path(rg.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
FUNCTIONS: dict[str, list[ast.FunctionDef]] = defaultdict(list)
for statement in STUB.body:
    if isinstance(statement, ast.FunctionDef):
        FUNCTIONS[statement.name].append(statement)
COMPILED = next(each for each in STUB.body if isinstance(each, ast.ClassDef) and each.name == "Compiled")


def re_exported() -> set[str]:
    """The names that are imported as themselves: others serve the file alone."""
    imports = [each for each in STUB.body if isinstance(each, ast.ImportFrom)]
    return {alias.name for each in imports for alias in each.names if alias.asname == alias.name}


def test_names_are_those_of_the_face() -> None:
    assert re_exported() | FUNCTIONS.keys() | {"Compiled", "__version__"} == set(dir(rg))


def test_members_of_a_compiled_function_are_those_that_are_shown() -> None:
    shown = {name for name in dir(rg.jit(np.sin)) if not name.startswith("_")}
    members = {each.name for each in COMPILED.body if isinstance(each, ast.FunctionDef)}
    assert {name for name in members if not name.startswith("_")} == shown


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_parameters_and_defaults_are_those_of_the_function(name: str) -> None:
    there = inspect.signature(getattr(rg, name)).parameters
    found: set[str] = set()
    for function in FUNCTIONS[name]:
        positional, keyword = function.args.args, function.args.kwonlyargs
        names = [p.arg for p in (*positional, *keyword)]
        assert names == [n for n in there if n in names]
        found.update(names)
        defaults = {p.arg: d for p, d in zip(reversed(positional), reversed(function.args.defaults), strict=False)}
        defaults |= {p.arg: d for p, d in zip(keyword, function.args.kw_defaults, strict=True) if d is not None}
        for parameter, default in defaults.items():
            assert ast.literal_eval(default) == there[parameter].default
    variadic = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    assert found == {n for n, p in there.items() if p.kind not in variadic}


def test_compiled_can_be_named_in_annotations() -> None:
    assert isinstance(rg.grad(np.sum), rg.Compiled)
    assert "Compiled[[" in repr(rg.Compiled[[np.ndarray, int], float])
