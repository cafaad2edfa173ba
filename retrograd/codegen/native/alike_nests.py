"""Nests of a kernel that are alike become one function of C, which is called with their arrays and numbers.

A Python loop that does not fold leaves the same nest for each of its steps, and a compiler takes its time for each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .c_names import COMMENT, declared, names_from_outside, renumbered
from .elements import BEYOND

SAVED = 40  # lines that a function must save
DIGITS = re.compile(r" \+ \d+(?=\])|\d+")
WORD = re.compile(r"/\*.*?\*/|\b([A-Za-z_]\w*)(?:\[([^\[\]]*)\])?")  # with an index if it has one
ROW = re.compile(r"\{ const int64_t (\w+) = (\d+);")  # the header of a nest of one row
OFFSET = re.compile(r"(?:(.*) ([+-]) )?(\d+)")
CHANGES = re.compile(r"&(\w+)|\b(\w+)(?:\+\+|--| (?:[-+*/|&^%]|<<|>>)?= )")
MOVES = re.compile(r"\b(\w+) = ")
OWN_WAYS = re.compile(rf"\b(?:{BEYOND}|return|goto|in_parts|malloc|realloc|free)\b")


@dataclass(frozen=True)
class CalledNest:
    """A nest as a function, and what it is called with in its place."""

    text: str
    parameters: tuple[str, ...]
    arguments: tuple[str, ...]
    place: slice


def with_functions(lines: Sequence[str], types: Mapping[str, str], name: str) -> tuple[list[str], list[str]]:
    """Functions for nests that are alike, and the lines with calls of them.

    ``types`` are those of all names that the lines do not declare, and say which other words are names.
    """
    outlines = {place.start: (place, DIGITS.sub("", "\n".join(lines[place]))) for place in _nests(lines)}
    known = Counter(outline for _, outline in outlines.values())
    kinds = {name: kind if "*" in kind else "" for name, kind in types.items()}
    for line in lines:
        kinds |= {} if line.startswith((" ", "struct")) else declared(line)
    found: dict[tuple[str, tuple[str, ...]], list[CalledNest]] = {}
    for place, outline in outlines.values():
        nest = _as_function(lines[place], place, kinds) if _saves(known[outline], outline) else None
        if nest is not None:
            found.setdefault((nest.text, nest.parameters), []).append(nest)
    functions: list[str] = []
    calls: list[tuple[slice, str]] = []
    for (text, parameters), nests in found.items():
        if _saves(len(nests), text):
            own = f"{name}_nest{len(functions) + 1}"
            functions.append(f"static __attribute__((noinline)) void {own}({', '.join(parameters)}) {{\n{text}}}")
            calls += [(nest.place, f"{own}({', '.join(nest.arguments)});") for nest in nests]
    written = list(lines)
    for place, call in sorted(calls, key=lambda x: x[0].start, reverse=True):
        written[place] = [call]
    return functions, written


def _saves(times: int, text: str) -> bool:
    return (times - 1) * text.count("\n") >= SAVED


def _nests(lines: Sequence[str]) -> Iterator[slice]:
    """Where the outermost nests are, with the pragmas above them."""
    first = None
    for k, line in enumerate(lines):
        if line.startswith(" "):
            continue
        if line == "}" and first is not None:
            yield slice(first, k + 1)
        loop = (line.startswith("for (") and line.endswith("{")) or ROW.fullmatch(line)
        first = (k - 1 if k and lines[k - 1].startswith("#pragma") else k) if loop else None


def _as_function(lines: Sequence[str], place: slice, known: Mapping[str, str]) -> CalledNest | None:
    """The function of a nest; None for one that changes variables from outside, or may leave the kernel."""
    row = ROW.fullmatch(lines[0])
    text = "".join(f"{line}\n" for line in lines[1:-1]) if row else "".join(f"  {line}\n" for line in lines)
    plain = COMMENT.sub("", text)
    kinds = {x: "int64_t" if row and x == row[1] else known[x] for x in names_from_outside(plain, known)}
    numbers = {x for x, kind in kinds.items() if "*" not in kind}
    changed = {x for names in CHANGES.findall(plain) for x in names} & numbers
    changed |= kinds.keys() & {*MOVES.findall(plain)}
    if changed or OWN_WAYS.search(plain) or not all(kinds.values()):
        return None
    starts, new = _starts(plain, kinds.keys() - numbers), {}
    parameters, arguments = [], []
    for k, (x, kind) in enumerate(kinds.items(), 1):
        new[x] = f"x{k}" if x in numbers else f"a{k}"
        parameters.append(f"const {kind} x{k}" if x in numbers else f"{kind} a{k}")
        start = starts.get(x, 0)
        arguments.append(row[2] if row and x == row[1] else f"&{x}[{start}]" if start else x)

    def word(match: re.Match[str]) -> str:
        name, index = match[1], match[2]
        if name is None or index is None:
            return new.get(name, match[0])
        return f"{new.get(name, name)}[{WORD.sub(word, _moved(index, starts.get(name, 0)))}]"

    return CalledNest(renumbered(WORD.sub(word, text)), tuple(parameters), tuple(arguments), place)


def _starts(text: str, arrays: set[str]) -> dict[str, int]:
    """The first elements of arrays at known places, which are the elements 0 of their function's arrays."""
    found: dict[str, int] = {}
    for name, index in WORD.findall(text):
        if name in arrays:
            first = _offset(index)[1] if index else 0
            found[name] = min(found.get(name, first), first)
    return {name: first for name, first in found.items() if first > 0}


def _moved(index: str, start: int) -> str:
    if not start:
        return index
    rest, offset = _offset(index)
    return f"{rest} + {offset - start}" if rest and offset != start else rest or str(offset - start)


def _offset(index: str) -> tuple[str, int]:
    """An index without the number that is added last, and that number."""
    known = OFFSET.fullmatch(index)
    return (index, 0) if known is None else (known[1] or "", int(f"{known[2] or '+'}{known[3]}"))
