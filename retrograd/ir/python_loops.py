"""The line of the Python loop that a program ran when it made nodes; a loop of a graph is charged to it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from ..where import Where
from .graph import Node

LONGEST = 50_000  # lines beyond which a file is not read
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class PythonLoop(NamedTuple):
    """A loop in a file: its line, the lines that it repeats, the function around it, and what it repeats."""

    file: str
    line: int
    first: int
    last: int
    function: str
    parts: tuple[ast.AST, ...]

    def around(self, place: Where) -> bool:
        """Whether it repeats a line."""
        return place.file == self.file and self.first <= place.line <= self.last


class PythonFile:
    """The loops and functions of a file; a walk over its statements finds them, and expressions are read if asked."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.loops: list[PythonLoop] = []
        self.spans: list[tuple[int, int, str]] = []  # of functions, outer ones first
        self.functions: dict[str, list[ast.AST]] = {}
        self._simple: list[ast.stmt] = []
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return
        self._read(tree, "")

    def _read(self, node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.spans.append((child.lineno, child.end_lineno or child.lineno, child.name))
                self.functions.setdefault(child.name, []).append(child)
                self._read(child, child.name)
            elif isinstance(child, (ast.For, ast.AsyncFor, ast.While)):
                first = child.test if isinstance(child, ast.While) else child.body[0]
                parts = (first, *child.body)
                last = child.body[-1].end_lineno or first.lineno
                self.loops.append(PythonLoop(self.file, child.lineno, first.lineno, last, function, parts))
                self._read(child, function)
            elif isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                self._simple += [child] if not hasattr(child, "body") and isinstance(child, ast.stmt) else []
                self._read(child, function)

    def function_at(self, line: int) -> str:
        """The innermost function around a line; an empty name outside of functions."""
        return next((name for first, last, name in reversed(self.spans) if first <= line <= last), "")

    def comprehensions(self, lines: set[int]) -> Iterator[PythonLoop]:
        """The comprehensions in simple statements at these lines."""
        for statement in self._simple:
            first, last = statement.lineno, statement.end_lineno or statement.lineno
            if any(first <= line <= last for line in lines):
                for n in ast.walk(statement):
                    if isinstance(n, COMPREHENSIONS):
                        end = n.end_lineno or n.lineno
                        yield PythonLoop(self.file, n.lineno, n.lineno, end, self.function_at(n.lineno), (n,))


def lines_of(nodes: Iterable[Node]) -> frozenset[Where]:
    """The lines that nodes come from."""
    return frozenset(node.where for node in nodes if node.where is not None)


def loop_line(body: Iterable[Where], program: Iterable[Where]) -> Where | None:
    """The line of the innermost loop that runs all lines of ``body``; None if that is not clear.

    A loop runs the lines within it and those of functions that it calls by name. It must stand in a function that has
    lines in ``program``.
    """
    places, program = {*body}, {*program}
    if not places or not places <= program:
        return None
    files = {name: _file(name, "".join(_text(name))) for name in {w.file for w in program}}
    active = {(w.file, files[w.file].function_at(w.line)) for w in program}
    loops = [
        loop
        for name, file in files.items()
        for loop in (*file.loops, *file.comprehensions({w.line for w in places if w.file == name}))
    ]
    within = [loop for loop in loops if any(map(loop.around, places))]
    called = [loop for loop in loops if (loop.file, loop.function) in active]
    for candidates in (within, called):
        found = [loop for loop in candidates if _runs(loop, places, files)]
        if found:
            return _innermost(found, files)
    return None


def _runs(loop: PythonLoop, places: set[Where], files: Mapping[str, PythonFile]) -> bool:
    """Whether a loop runs all these lines, of itself or of functions that it calls."""
    functions = {files[w.file].function_at(w.line) for w in places if not loop.around(w)}
    return not functions or functions <= _reached(loop, files)


def _innermost(found: list[PythonLoop], files: Mapping[str, PythonFile]) -> Where | None:
    """The loop that all others run; None if there are several such loops."""
    for inner in found:
        place = Where(inner.file, inner.line)
        others = [loop for loop in found if loop is not inner]
        if all(loop.around(place) or inner.function in _reached(loop, files) for loop in others):
            return place if inner.function not in _reached(inner, files) else None
    return None


def _reached(loop: PythonLoop, files: Mapping[str, PythonFile]) -> set[str]:
    """The names of the functions that a loop calls, and that these call."""
    found: set[str] = set()
    new = [loop.parts]
    while new:
        names = _names(new.pop()) - found
        known = [(name, file.functions[name]) for file in files.values() for name in names & file.functions.keys()]
        found.update(name for name, _ in known)
        new += [tuple(definitions) for _, definitions in known]
    return found


@lru_cache(maxsize=1024)
def _names(parts: tuple[ast.AST, ...]) -> frozenset[str]:
    """All names in a piece of program: functions and methods are called by them, or handed on, as to ``reduce``."""
    nodes = [n for part in parts for n in ast.walk(part)]
    names = {n.id for n in nodes if isinstance(n, ast.Name)}
    return frozenset(names | {n.attr for n in nodes if isinstance(n, ast.Attribute)})


def _text(file: str) -> list[str]:
    lines = linecache.getlines(file)
    return lines if len(lines) <= LONGEST else []


@lru_cache(maxsize=64)
def _file(name: str, text: str) -> PythonFile:
    return PythonFile(name, text)
