"""Outside of ops, nobody knows what loops and choices are made of: passes ask the primitive's structure.

A file *takes apart* a loop or a choice if it compares a primitive with one of these or with its name, or reads one of
their own attributes from a node. A file *builds* one if it imports a primitive, or what makes its nodes, or finds it
in the registry. Writing them in the language of a target is what the folder of texts is for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "retrograd"
NAMES = {"scan", "while_loop", "cond"}
MAKERS = {*NAMES, "make_scan", "make_while", "make_cond"}
ATTRIBUTES = {"arrays", "body", "branch0", "carry", "cond", "consts", "length", "memory"}
TEXTS = "codegen/numpy/structural"
BUILDERS = {
    "api/branches.py",
    "api/control.py",
    "codegen/native/running.py",  # C has loops in place of running sums
    "numpy/ufunc_methods.py",  # a method of a ufunc that goes step by step
    "passes/control/catch_throws.py",  # what follows a throw is a choice
    "passes/control/expose_calls.py",
    "passes/fold_ways/emit.py",  # its outcome is a loop of choices
    "passes/reroll/reroll.py",
    "passes/reroll/step_table.py",  # its outcome is a loop
    "passes/rows_in_blocks.py",  # likewise, for large matrices
    "tracer/repeats/looped.py",  # likewise
}


def taken_apart(text: str) -> Iterator[int]:
    """Lines that take a loop or a choice apart."""
    tree = ast.parse(text)
    bags = {name for node in ast.walk(tree) if isinstance(node, ast.Assign) for name in _bags(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                about = any(isinstance(x, ast.Attribute) and x.attr in {"prim", "name"} for x in sides)
                inside = {x.value for side in sides for x in ast.walk(side) if isinstance(x, ast.Constant)}
                named = {x.id for side in sides for x in ast.walk(side) if isinstance(x, ast.Name)}
                if (inside & NAMES) or (about and named & NAMES):
                    yield node.lineno
            case ast.MatchValue(value=ast.Constant(value=str(name))) if name in NAMES:
                yield node.value.lineno
            case ast.Subscript(value=bag, slice=ast.Constant(value=str(key)), ctx=ast.Load()):
                if key in ATTRIBUTES and _is_bag(bag, bags):
                    yield node.lineno
            case ast.Call(func=ast.Attribute(value=bag, attr="get"), args=[ast.Constant(value=str(key)), *_]):
                if key in ATTRIBUTES and _is_bag(bag, bags):
                    yield node.lineno


def _is_bag(node: ast.expr, names: set[str]) -> bool:
    """Whether an expression is the attributes of a node, or a name that was given to some."""
    return (isinstance(node, ast.Attribute) and node.attr == "attrs") or (
        isinstance(node, ast.Name) and node.id in names
    )


def _bags(node: ast.Assign) -> Iterator[str]:
    for target in node.targets:
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        yield from (name.id for name, value in pairs if isinstance(name, ast.Name) and _is_bag(value, set()))


def built(text: str) -> Iterator[int]:
    """Lines that import a loop or a choice, or what makes one, or find one in the registry."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(module)) if "ops.structural" in module:
                if module.rsplit(".", 1)[-1] in NAMES or any(name.name in MAKERS for name in node.names):
                    yield node.lineno
            case ast.Subscript(value=ast.Name(id="REGISTRY"), slice=ast.Constant(value=str(name))) if name in NAMES:
                yield node.lineno


def files() -> Iterator[tuple[str, str]]:
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(("ops/", TEXTS)):
            yield name, path.read_text()


def test_nobody_outside_of_ops_takes_a_loop_or_a_choice_apart() -> None:
    found = {name: lines for name, text in files() if (lines := list(taken_apart(text)))}
    assert found == {"ir/loop_node.py": found.get("ir/loop_node.py", [])}  # what passes ask instead


def test_only_these_files_outside_of_ops_build_loops_and_choices() -> None:
    assert {name for name, text in files() if any(built(text))} == BUILDERS


@pytest.mark.parametrize(
    "line",
    [
        "if node.prim is scan: pass",
        "if node.prim in (call, cond): pass",
        'if prim.name == "while_loop": pass',
        'loop = node.prim.name in ("scan", "call")',
        'match node.prim.name:\n    case "scan": pass',
        'n = node.attrs["length"]',
        'n = node.attrs.get("memory")',
        'a = node.attrs\nk = a["carry"]',
        'body, a = f(node), node.attrs\nk = a.get("consts")',
    ],
)
def test_a_planted_line_is_found(line: str) -> None:
    assert list(taken_apart(line))


@pytest.mark.parametrize(
    "line",
    [
        "from ...ops.structural.scan import layout",
        "from ..ops.structural.loops import make_scan, step_of",
        'prim = REGISTRY["cond"]',
    ],
)
def test_a_planted_import_is_found(line: str) -> None:
    assert list(built(line))
