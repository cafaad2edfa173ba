"""The line of the Python loop that a program ran when it made nodes; a loop of a graph is charged to it."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ..where import Where
from .graph import Node

LONGEST = 50_000  # lines beyond which a file is not read
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class PythonLoop(NamedTuple):
    """A loop in a file: its line, the lines that it repeats, the function around it, and the names that it calls."""

    line: int
    first: int
    last: int
    function: str
    calls: frozenset[str]


class PythonFile(NamedTuple):
    """The loops of a file, and what is called by the functions of each name."""

    loops: tuple[PythonLoop, ...]
    functions: tuple[tuple[int, int, str], ...]
    calls: dict[str, frozenset[str]]

    def function_at(self, line: int) -> str:
        """The innermost function around a line; an empty name outside of functions."""
        return next((name for first, last, name in reversed(self.functions) if first <= line <= last), "")


def lines_of(nodes: Iterable[Node]) -> frozenset[Where]:
    """The lines that nodes come from."""
    return frozenset(node.where for node in nodes if node.where is not None)


def loop_line(body: Iterable[Where], program: Iterable[Where]) -> Where | None:
    """The line of the innermost loop that runs all lines of ``body``; None if that is not clear.

    A loop runs the lines within it and those of functions that it calls by name. It must stand in a function that has
    lines in ``program``.
    """
    body, files = set(body), {w.file: _file("".join(_text(w.file))) for w in program}
    if not body or not body <= {*program}:
        return None
    active = {(w.file, files[w.file].function_at(w.line)) for w in program}
    places = {(w.file, w.line, files[w.file].function_at(w.line)) for w in body}
    calls: dict[str, set[str]] = {}
    for file in files.values():
        for name, called in file.calls.items():
            calls.setdefault(name, set()).update(called)
    found: list[tuple[str, PythonLoop, set[str], bool]] = []
    for name, file in files.items():
        for loop in file.loops:
            inside = {place for place in places if place[0] == name and loop.first <= place[1] <= loop.last}
            reached, rest = _reached(loop, calls), places - inside
            if (inside or (name, loop.function) in active) and {function for _, _, function in rest} <= reached:
                found.append((name, loop, reached, bool(inside)))
    found = [one for one in found if one[3]] or found
    for name, inner, reached, _ in found:
        others = [(n, x, r) for n, x, r, _ in found if x is not inner]
        around = [(n == name and x.first <= inner.line <= x.last) or inner.function in r for n, x, r in others]
        if all(around) and inner.function not in reached:
            return Where(name, inner.line)
    return None


def _reached(loop: PythonLoop, calls: dict[str, set[str]]) -> set[str]:
    """The names of functions that a loop calls, and that these call."""
    found: set[str] = set()
    new = set(loop.calls)
    while new:
        found |= new
        new = {called for name in new for called in calls.get(name, ())} - found
    return found


def _text(file: str) -> list[str]:
    lines = linecache.getlines(file)
    return lines if len(lines) <= LONGEST else []


@lru_cache(maxsize=64)
def _file(text: str) -> PythonFile:
    """What stands in a file; nothing if it cannot be read as Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return PythonFile((), (), {})
    functions = [n for n in ast.walk(tree) if isinstance(n, FUNCTIONS)]
    spans = sorted((n.lineno, n.end_lineno or n.lineno, n.name) for n in functions)
    calls: dict[str, frozenset[str]] = {}
    for n in functions:
        calls[n.name] = calls.get(n.name, frozenset()).union(*map(_called, n.body))
    file = PythonFile((), tuple(spans), calls)
    loops = [
        PythonLoop(line, first, last, file.function_at(line), called)
        for n in ast.walk(tree)
        for line, first, last, called in _repeated(n)
    ]
    return file._replace(loops=tuple(loops))


def _repeated(node: ast.AST) -> Iterator[tuple[int, int, int, frozenset[str]]]:
    """The line of a loop, the lines that it repeats, and the names that it calls; nothing for other nodes."""
    if isinstance(node, LOOPS):
        parts = [node.test, *node.body] if isinstance(node, ast.While) else [*node.body]
        first, last = (node.test if isinstance(node, ast.While) else node.body[0]).lineno, node.body[-1].end_lineno
        yield node.lineno, first, last or first, frozenset().union(*map(_called, parts))
    elif isinstance(node, COMPREHENSIONS):
        yield node.lineno, node.lineno, node.end_lineno or node.lineno, _called(node)


def _called(tree: ast.AST) -> frozenset[str]:
    """The names of the functions and methods that are called, and those that are handed on, as to ``reduce``."""
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return frozenset(names | {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)})
