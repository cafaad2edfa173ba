"""The names in the C of a kernel: which a piece of it reads, and their numbers in their order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

STEMS = [
    "block",
    "c",
    "capacity",
    "dot",
    "end",
    "grown",
    "i",
    "j",
    "k",
    "lanes",
    "mine",
    "n",
    "nan",
    "new",
    "next",
    "now",
    "old",
    "part",
    "row",
    "s",
    "t",
    "table",
    "terms",
    "then",
    "total",
    "v",
    "w",
    "z",
]
NUMBERED = re.compile(rf"/\*.*?\*/|\b({'|'.join(STEMS)})\d+\b")
DECLARATION = re.compile(
    r"(const )?\b((?:double|float|int64_t|int|_Bool|struct rg_sum\w*)(?: _Complex)?) (\*(?:restrict )?)?(\w+)(\[)?"
    r"|, (\w+) = "
)
COMMENT = re.compile(r"/\*.*?\*/")


def renumbered(source: str) -> str:
    """The source with the numbers of its names in their order: many were tried and not written."""
    found: dict[str, str] = {}
    counts: Counter[str] = Counter()

    def new(match: re.Match[str]) -> str:
        name, stem = match[0], match[1]
        if stem is None:
            return name
        if name not in found:
            counts[stem] += 1
            found[name] = f"{stem}{counts[stem]}"
        return found[name]

    return NUMBERED.sub(new, source)


def declared(line: str) -> dict[str, str]:
    """The types of the variables that a line begins with; an array is a pointer that points to it alone."""
    first = DECLARATION.match(line)
    if first is None:
        return {}
    const, kind, pointer, name, array, _ = first.groups()
    if pointer or array:
        return {name: f"{const or ''}{kind} {(pointer or '*restrict').strip()}"}
    return dict.fromkeys([name, *(m[6] for m in DECLARATION.finditer(line) if m[6])], kind)


def names_from_outside(text: str, types: Mapping[str, str]) -> list[str]:
    """The names with a type that a text without comments has and does not declare, in their order."""
    own = {m[4] or m[6] for m in DECLARATION.finditer(text)}
    return [x for x in dict.fromkeys(re.findall(r"\w+", text)) if x in types and x not in own]
