"""A name of a file or a class has one meaning in the package; for files of one name, the list says which."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "retrograd"
UNNAMED = {"__init__", "__main__"}

SAME_FILE = {
    "batching": "lanes: the rules of primitives, and vmap",
    "bessel": "Bessel functions: NumPy's, and those of scipy.special",
    "branches": "choices between graphs: the doors, and their statements in NumPy source",
    "checkpoint": "loops that compute residuals again: the room, and its pass",
    "complex": "complex numbers: the primitives, and the NumPy functions of them",
    "control": "control flow: the doors, and the passes over it",
    "creation": "new arrays: those that a trace makes, and the NumPy functions that make them",
    "cumulative": "running totals: the primitives, and the NumPy functions of them",
    "custom": "derivatives of the user's own: the primitives, their doors, and those of tensors",
    "diagonals": "diagonals: the primitives, and the NumPy functions of them",
    "fold_ways": "loops that choose in place of ways: the room, and its pass",
    "footprint": "the memory that generated code takes: the room, and its main file",
    "fourier": "Fourier transforms: the primitives, and the NumPy functions of them",
    "implicit": "solutions of equations: the primitives, and the door for solvers of the user's own",
    "linalg": "linear algebra: the primitives, and the SciPy functions of them",
    "loops": "scan and while: what their rules share, and their budgets",
    "masks": "arrays of bools that pick elements: the primitives, and traced ones",
    "memory": "bytes that a call takes: plans, the options for them, and the report",
    "numpy": "NumPy: its functions while a program is traced, and as a target",
    "ode": "differential equations: the primitives, and the SciPy functions of them",
    "primitive": "the declaration of an operation, and the door to it",
    "regions": "functions with a choice of what is kept: the door, and the choice",
    "reroll": "loops in place of what repeats: the room, and its pass",
    "scipy": "SciPy: its functions while a program is traced, and its modules under autograd's name",
    "signal": "scipy.signal: its functions while a program is traced, and autograd's convolution",
    "sparse": "sparse matrices: the primitives, the SciPy functions of them, and Jacobians",
    "special": "special functions: the primitives, and the SciPy functions of them",
    "spectra": "eigenvalues: the primitives, and the NumPy functions of them",
    "structural": "primitives with graphs inside: their declarations, and their statements in NumPy source",
    "sweeps": "loops that compute residuals again: what their primitives share, and their statements in NumPy source",
    "tracer": "the room that records programs, and what programs ask of autograd's tracer",
    "tree": "trees of containers: how they are taken apart, and the door to that",
    "ufuncs": "NumPy's ufuncs: how one is recorded, and those that are compositions",
    "windows": "sliding windows: the primitives, and the NumPy function of them",
    "target": "what a graph is compiled for: the registry, and NumPy",
}


def twice(found: Iterator[tuple[str, Path]]) -> dict[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, path in found:
        places[name].append(str(path.relative_to(PACKAGE)))
    return {name: sorted(paths) for name, paths in places.items() if len(paths) > 1}


def files() -> Iterator[tuple[str, Path]]:
    """Modules and folders."""
    for path in PACKAGE.rglob("*"):
        if (path.suffix == ".py" and path.stem not in UNNAMED) or (path / "__init__.py").exists():
            yield path.stem, path


def classes() -> Iterator[tuple[str, Path]]:
    """Classes, private ones among them: what reads alike is told apart by no underscore."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                yield node.name.lstrip("_"), path


def test_files_of_one_name_mean_the_same() -> None:
    found = twice(files())
    assert {name: found[name] for name in found.keys() - SAME_FILE} == {}


def test_each_class_has_a_name_of_its_own() -> None:
    assert twice(classes()) == {}


def test_no_reason_outlives_its_names() -> None:
    assert SAME_FILE.keys() <= twice(files()).keys()


def test_what_stands_once_is_not_listed() -> None:
    assert twice(iter([("a", PACKAGE / "a.py"), ("b", PACKAGE / "b.py")])) == {}
    assert twice(iter([("a", PACKAGE / "x/a.py"), ("a", PACKAGE / "a.py")])) == {"a": ["a.py", "x/a.py"]}
