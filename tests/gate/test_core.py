"""The core is what one reads to understand the rest: it imports nothing outside of itself, and it stays small.

``CORE`` is the way from a NumPy function to its graph, its adjoint, its source and a call, in the order of reading.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from retrograd.codegen.numpy import emitter, target
from retrograd.codegen.numpy.check import check_source
from retrograd.compiler import stages
from retrograd.ir import graph
from retrograd.ir.primitive import REGISTRY
from retrograd.passes import rules, simplify
from retrograd.tracer import foreign, index_arrays, indexing, interception, table, trace, ufuncs

ROOT = Path(__file__).parents[2]

ROOMS = {
    "": "errors where",
    "ir/": ("types graph texts embedded primitive builder rewrite printer verify evaluate modules plan target"),
    "ops/": "batching elementwise shape reduce index structural/guard",
    "tracer/": (
        "around tree trace foreign array creation mutation ufuncs operators indexing table protocol "
        "held surroundings outside interception record"
    ),
    "passes/": ("prune inline jvp linearize transpose differentiate patterns rules simplify lower"),
    "codegen/": "names",
    "codegen/numpy/": "absorb emitter module target",
    "compiler/": (
        "settings stages cache garbage signature recording executable compilation inside transform paths compiled"
    ),
    "api/": "gradients",
}
CORE = [f"{room}{name}" for room, names in ROOMS.items() for name in names.split()]

# What the core still imports from outside of it: by each of these, only the files named here. It may only shrink.
LEAKS: dict[str, set[str]] = {}
MOST_LINES = 7999


def imports(file: str) -> Iterator[str]:
    """The files that a file imports at run time, without those that only types need."""
    path = ROOT / "retrograd" / f"{file}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = file.split("/")[:-1]
    for node in _at_run_time(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module or "").split(".")
            for alias in node.names:
                found = "/".join(part for part in (*base, alias.name) if part)
                if not (ROOT / "retrograd" / f"{found}.py").exists():
                    found = "/".join(part for part in base if part)
                if (ROOT / "retrograd" / f"{found}.py").exists():
                    yield found


def _at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        yield node
        yield from _at_run_time(node)


def leaks() -> dict[str, set[str]]:
    """For each file outside of the core that the core imports: the files that import it."""
    found: dict[str, set[str]] = {}
    for file in CORE:
        for other in imports(file):
            if other not in CORE:
                found.setdefault(other, set()).add(file)
    return found


def lines() -> int:
    """The lines of the core."""
    return sum((ROOT / "retrograd" / f"{file}.py").read_text(encoding="utf-8").count("\n") for file in CORE)


def test_the_core_imports_only_itself_and_what_is_listed_here() -> None:
    assert leaks() == LEAKS


def test_the_core_stays_small() -> None:
    assert lines() <= MOST_LINES


def test_the_face_loads_what_fills_the_tables_of_the_core() -> None:
    assert {type(patcher).__name__ for patcher in interception.PATCHERS} == {"EarlyNames", "ClassMethods", "Series"}
    assert indexing.ACCESS
    assert index_arrays.PUT_BY_MASK
    assert ufuncs.COMPOSED
    assert table.UFUNC_METHODS["__call__"]
    assert table.METHODS["__pow__"]
    assert table.METHODS["__float__"]
    assert rules.REASSOCIATE
    assert rules.FAST
    assert any(rule.pattern.prim.name == "setitem" for rule in rules.EXACT)
    assert check_source in target.CHECKS
    assert emitter.EMITTER_CLASSES[-1].__name__ == "WorkspaceEmitter"
    assert "matmul" in REGISTRY
    assert simplify.FOLDS
    assert stages.IDLE not in stages.STAGES.values()
    assert graph.FORMS.keys() == {"dot", "networkx"}
    assert trace.STATEFUL
    assert len(foreign.ADVISERS) == 2


def test_a_leak_is_found() -> None:
    assert "ir/printer" in set(imports("ir/graph"))
    assert "compiler/paths" not in set(imports("compiler/compilation"))  # for types alone


def test_the_reading_order_for_contributors_is_that_of_the_core() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("**Reading order**")[2].partition("\n\n")[0]
    read = [part.removesuffix(".py") for part in text.split("`")[1::2] if part.endswith(".py")]
    full = [next(file for file in CORE if file.endswith(name)) for name in read]
    assert full == sorted(full, key=CORE.index)
    assert len(full) >= 8
