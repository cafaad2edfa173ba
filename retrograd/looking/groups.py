"""Groups of operations: by part, function, line and loop, so that a large graph is drawn small first."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from ..where import Where
from .amounts import code_at, cut, printable
from .anatomy import PARTS, Anatomy, PlacedNode
from .origins import line_of

LONGEST_FILE = 50_000  # lines beyond which a file is not searched for functions


@dataclass
class Bundle:
    """Operations that are drawn as one until someone opens it. ``kind`` is part, function, line or loop."""

    id: str
    kind: str
    label: str
    parent: str | None
    part: str
    members: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Span:
    """The lines of a function of the user's."""

    name: str
    first: int
    last: int


@lru_cache(maxsize=64)
def spans(file: str) -> tuple[Span, ...]:
    """The functions in a file, outer ones first; none if it cannot be read as Python."""
    lines = linecache.getlines(file)
    if not lines or len(lines) > LONGEST_FILE:
        return ()
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [Span(n.name, n.lineno, n.end_lineno or n.lineno) for n in ast.walk(tree) if isinstance(n, kinds)]
    return tuple(sorted(found, key=lambda span: (span.first, -span.last)))


def span_at(where: Where | None) -> Span | None:
    """The innermost function around a line."""
    if where is None:
        return None
    around = [span for span in spans(where.file) if span.first <= where.line <= span.last]
    return around[-1] if around else None


class Grouping:
    """The groups of an anatomy; ``of`` gives the innermost group of each operation.

    A group of one member is left out, as its member says the same.
    """

    def __init__(self, anatomy: Anatomy) -> None:
        self.anatomy = anatomy
        self.groups: dict[str, Bundle] = {}
        self.of: dict[int, str] = {}
        self._named: dict[tuple[str, str, object], str] = {}
        self.shown = [anatomy.operations[n] for n in sorted(anatomy.running)]
        for op in self.shown:
            self.of[op.number] = self._line(op, self._above(op))
        for op in self.shown:
            for name in self.around(self.of[op.number]):
                self.groups[name].members.append(op.number)
        self._leave_out_single()

    def around(self, name: str | None) -> Iterator[str]:
        """A group and those that hold it, the innermost first."""
        while name:
            yield name
            name = self.groups[name].parent

    def _above(self, op: PlacedNode) -> str:
        """The loop that holds an operation, or its function."""
        if op.outer is not None and op.outer in self.anatomy.running:
            outer = self.anatomy.operations[op.outer]
            above = self._line(outer, self._above(outer))
            name = f"{outer.node.prim.name} {self.anatomy.line(outer)}".strip()
            loop = self._group("loop", name, above, outer.part, ("loop", outer.number))
            self.of[outer.number] = loop
            return self._group("loop", f"{op.body} of {name}", loop, op.part, (op.outer, op.body))
        part = self._group("part", PARTS[op.part], "", op.part, op.part)
        where = line_of(op.node.where)
        span = span_at(where)
        if span is None or where is None:
            return part
        return self._group(
            "function", f"{span.name} in {where.short.rpartition(':')[0]}", part, op.part, (where.file, span)
        )

    def _line(self, op: PlacedNode, above: str) -> str:
        known = self.of.get(op.number)
        if known is not None and self.groups[known].kind == "loop":
            return self.groups[known].parent or above
        where = line_of(op.node.where)
        if where is None:
            return above
        code = cut(code_at(where), 40)
        return self._group("line", f"{where.short}\n{code}".strip(), above, op.part, where)

    def _group(self, kind: str, label: str, parent: str, part: str, key: object) -> str:
        name = self._named.get((kind, parent, key))
        if name is None:
            name = self._named[kind, parent, key] = f"g{len(self.groups)}"
            text = "\n".join(printable(line) for line in label.split("\n"))
            self.groups[name] = Bundle(name, kind, text, parent or None, part)
        return name

    def _leave_out_single(self) -> None:
        gone = {g.id for g in self.groups.values() if g.kind == "line" and len(g.members) < 2}
        for number, name in self.of.items():
            self.of[number] = (self.groups[name].parent or name) if name in gone else name
        for group in self.groups.values():
            if group.parent in gone:
                group.parent = self.groups[group.parent].parent
        for name in gone:
            del self.groups[name]
