"""How large the house is, and who knows whom in it: `python -m bench.house`."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import retrograd as rg
from bench import table
from tests.gate import test_core, test_structural

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "retrograd"
ROOMS = ("ir", "ops", "tracer", "passes", "codegen", "compiler", "numpy", "scipy", "api", "reports")
ROOMS += ("eager", "compat", "export", "looking", "distributed")
GROUPS = ("maths", "results and their storage", "texts")  # comments among the fields of a primitive


class Figure(NamedTuple):
    """What is measured: before the house was rebuilt, what was aimed at, and now; whether that is reached."""

    name: str
    before: str
    goal: str
    now: str
    met: bool | None = None

    @property
    def cells(self) -> list[str]:
        return [self.name, self.before, self.goal, self.now, {True: "yes", False: "no", None: ""}[self.met]]


# --- files and lines --------------------------------------------------------------------------------------


def files(package: Path = PACKAGE) -> dict[str, Path]:
    """The modules of the package by their names: ``ir/graph``, ``ir`` for its ``__init__``."""
    found = sorted(package.rglob("*.py"))
    return {path.relative_to(package).with_suffix("").as_posix().removesuffix("/__init__"): path for path in found}


def lines(paths: Iterable[Path]) -> tuple[int, int]:
    """How many files and lines these are."""
    counts = [path.read_text(encoding="utf-8").count("\n") for path in paths]
    return len(counts), sum(counts)


def rooms(package: Path = PACKAGE) -> dict[str, tuple[int, int]]:
    """Files and lines of each room; the files that stand in none come first."""
    known = files(package)
    single = {"top-level modules, the command line": lines(p for name, p in known.items() if _room(name) == "")}
    return single | {f"`{room}/`": lines(p for name, p in known.items() if _room(name) == room) for room in ROOMS}


def _room(name: str) -> str:
    first = name.partition("/")[0]
    return first if first in ROOMS else ""


# --- imports ----------------------------------------------------------------------------------------------


def imports(package: Path = PACKAGE, *, late: bool = False, types: bool = False) -> dict[str, set[str]]:
    """The modules that each module imports; ``late`` also inside of functions, ``types`` also for types alone."""
    known = files(package)
    return {name: set(_imported(name, path, known, late, types)) - {name} for name, path in known.items()}


def _imported(name: str, path: Path, known: Mapping[str, Path], late: bool, types: bool) -> Iterator[str]:
    package = name.split("/") if path.name == "__init__.py" and name != "__init__" else name.split("/")[:-1]
    for node in _reached(_parsed(path), late, types):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                found = "/".join([*base, alias.name])
                if found not in known:
                    found = "/".join(base)
                if found in known:
                    yield found


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _reached(tree: ast.AST, late: bool, types: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):  # which imports nothing
            continue
        for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        if (types or not for_types) and (late or not isinstance(node, ast.FunctionDef)):
            yield node
            yield from _reached(node, late, types)


def closure(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    """All modules that come with one; the packages that they stand in are not among them."""
    found, todo = set(), [start]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += graph[name]
    return found


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, all ways round: the strongly connected components of more than one."""
    reached = {name: closure(name, graph) for name in graph}
    found = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in graph}
    return [list(circle) for circle in sorted(found) if len(circle) > 1]


# --- who knows what ---------------------------------------------------------------------------------------


def that_know_loops(package: Path = PACKAGE) -> tuple[list[str], list[str]]:
    """Files outside of ops that take a loop or a choice apart, and those that build one."""
    texts = {f"{name}.py": path.read_text(encoding="utf-8") for name, path in files(package).items()}
    outside = {n: text for n, text in texts.items() if not n.startswith(("ops/", test_structural.TEXTS))}
    apart = [name for name, text in outside.items() if any(test_structural.taken_apart(text))]
    return apart, [name for name, text in outside.items() if any(test_structural.built(text))]


def fields(package: Path = PACKAGE) -> dict[str, int]:
    """The fields of a primitive by group; the name stands before the groups."""
    text = (package / "ir/primitive.py").read_text(encoding="utf-8")
    (made,) = (n for n in ast.parse(text).body if isinstance(n, ast.ClassDef) and n.name == "Primitive")
    marks = {k: line.strip()[2:] for k, line in enumerate(text.splitlines(), 1) if line.strip()[2:] in GROUPS}
    counts = dict.fromkeys(("name", *GROUPS), 0)
    for node in made.body:
        if isinstance(node, ast.AnnAssign):
            counts[next((marks[k] for k in sorted(marks, reverse=True) if k < node.lineno), "name")] += 1
    return counts


def unformatted(*folders: str) -> int:
    """Lines of these folders that the formatter must leave alone."""
    mark = "# fmt: " + "skip"
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return sum(mark in line for path in found for line in path.read_text(encoding="utf-8").splitlines())


# --- the tables -------------------------------------------------------------------------------------------


@cache
def figures() -> list[Figure]:
    """Everything that is measured."""
    return [*_of_the_core(), *_of_imports(), *_of_knowledge()]


def _of_the_core() -> Iterator[Figure]:
    known = files()
    every_file, every_line = lines(known.values())
    core_files, core_lines = lines(known[name] for name in test_core.CORE)
    leaks = test_core.leaks()
    leaving, leaving_from = sum(map(len, leaks.values())), len(set().union(*leaks.values()))
    yield Figure("files in the core", "70", "one list", f"{core_files}", True)
    yield Figure("lines in the core", "8,285", "< 8,000", f"{core_lines:,}", core_lines < 8_000)
    yield Figure("files outside the core", "214", "", f"{every_file - core_files}")
    yield Figure("lines outside the core", "27,127", "", f"{every_line - core_lines:,}")
    yield Figure("imports from the core to the outside", "48", "0", f"{leaving}", leaving == 0)
    yield Figure("core files that have one", "19", "0", f"{leaving_from}", leaving_from == 0)


def _of_imports() -> Iterator[Figure]:
    known, when_loaded = files(), imports()
    come_files, come_lines = lines(known[name] for name in closure("api/gradients", when_loaded))
    knows = len(imports(late=True)["compiler/compiled"])
    running, typed = len(circles(imports(late=True))), len(circles(imports(late=True, types=True)))
    yield Figure("files that `api/gradients.py` loads", "141", "about 75", f"{come_files}", come_files <= 80)
    yield Figure("lines that it loads", "19,809", "", f"{come_lines:,}")
    yield Figure("modules that `compiler/compiled.py` imports", "29", "≤ 14", f"{knows}", knows <= 14)
    yield Figure("import cycles at run time", "1", "≤ 1", f"{running}", running <= 1)
    yield Figure("import cycles, with imports for types", "4", "≤ 1", f"{typed}", typed <= 1)


def _of_knowledge() -> Iterator[Figure]:
    apart, built = that_know_loops()
    name, maths, storage, texts = fields().values()
    here, elsewhere = unformatted("retrograd"), unformatted("tests", "bench", "examples")
    yield Figure("files outside ops that take loops apart", "16", "≤ 3", f"{len(apart)}", len(apart) <= 3)
    yield Figure("files outside ops that build loops", "11", "", f"{len(built)}")
    yield Figure("fields of `Primitive`", "29", "in groups", f"{name + maths + storage + texts}", True)
    yield Figure("of these: maths", "", "", f"{maths}")
    yield Figure("of these: storage", "", "", f"{storage}")
    yield Figure("of these: code, by target", "", "", f"{texts}")
    yield Figure("public names in `retrograd`", "117", "", f"{len(dir(rg))}")
    yield Figure("lines in the package with `fmt: skip`", "341", "0", f"{here}", here == 0)
    yield Figure("lines of tests and bench with `fmt: skip`", "204", "tables", f"{elsewhere}")


def by_room() -> str:
    """The table of packages, in Markdown."""
    found = rooms()
    total = [sum(column) for column in zip(*found.values(), strict=True)]
    rows = [[name, f"{n}", f"{m:,}"] for name, (n, m) in {**found, "all": total}.items()]
    return table.render(["package", "files", "lines"], rows, markdown=True)


def against_goals() -> str:
    """The table of figures, in Markdown."""
    return table.render(["measured", "before", "goal", "now", "met"], [f.cells for f in figures()], markdown=True)


def main() -> None:
    """Print both tables, and the names of what they count in a few."""
    argparse.ArgumentParser(prog="python -m bench.house", description=__doc__).parse_args()
    print(f"{by_room()}\n\n{against_goals()}\n")
    for label, graph in (("that run", imports(late=True)), ("with types", imports(late=True, types=True))):
        for circle in circles(graph):
            print(f"a circle of files {label}: {', '.join(circle)}")
    apart, built = that_know_loops()
    print(f"files that take loops apart: {', '.join(apart)}\nfiles that build loops: {', '.join(built)}")


if __name__ == "__main__":
    main()
