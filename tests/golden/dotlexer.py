"""A reader of DOT text: enough of the language for what retrograd writes, and strict about quoting."""

from __future__ import annotations

import re

TOKEN = re.compile(r'\s+|(?P<string>"(?:[^"\\]|\\.)*")|(?P<word>[A-Za-z_]\w*|\d+)|(?P<sign>->|[{}\[\]=,;])')
ESCAPES = {"n": "\n", '"': '"', "\\": "\\", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def tokens(text: str) -> list[tuple[str, str]]:
    """Kinds and texts of all tokens; ValueError where the text is no DOT."""
    found = []
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"no DOT at {text[at : at + 30]!r}")
        at = match.end()
        if match.lastgroup:
            found.append((match.lastgroup, match.group()))
    return found


def unquoted(text: str) -> str:
    """What a quoted string shows."""
    return re.sub(r"\\u([0-9a-f]{4})|\\(.)", _escape, text[1:-1])


def _escape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else ESCAPES[match[2]]


def read(text: str) -> tuple[dict[str, dict[str, str]], list[tuple[str, str, str]]]:
    """Vertices with their attributes, and edges with their labels."""
    rest = tokens(text)[::-1]

    def take(expected: str | None = None) -> str:
        _, word = rest.pop()
        if expected is not None and word != expected:
            raise ValueError(f"expected {expected!r}, found {word!r}")
        return word

    def attributes() -> dict[str, str]:
        found = {}
        take("[")
        while rest[-1][1] != "]":
            name = take()
            take("=")
            kind, word = rest.pop()
            found[name] = unquoted(word) if kind == "string" else word
            if rest[-1][1] == ",":
                take(",")
        take("]")
        return found

    vertices: dict[str, dict[str, str]] = {}
    edges: list[tuple[str, str, str]] = []
    take("digraph")
    if rest.pop()[0] not in {"string", "word"}:
        raise ValueError("a graph has a name")
    take("{")
    while rest[-1][1] != "}":
        name = take()
        if rest[-1][1] == "=":
            take("=")
            take()
        elif rest[-1][1] == "->":
            take("->")
            target = take()
            edges.append((name, target, attributes()["label"]))
        elif name in {"node", "edge", "graph"}:
            attributes()
        else:
            vertices[name] = attributes()
    take("}")
    if rest:
        raise ValueError("text after the graph")
    return vertices, edges
