"""The display in notebooks: drawn graphs, sources in two columns, and the compilations of a function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ..compiler.executable import Executable
from ..ir.graph import Graph, Node
from ..ir.printer import value_names
from ..where import Where
from .amounts import code_at, counted, number_of, printable
from .sections import STYLE, Section, page_of

DRAWN = 120  # operations up to which a graph is drawn; larger ones are text
LISTED = 400  # lines of text of a larger graph
WIDE, HIGH, GAP, ROW = 132, 34, 14, 66
FITTING = 19  # characters of a line in a box
FILLS = {"input": "#4a90d933", "operation": "#8884", "output": "#d9774a44"}
WORDS = (
    "and as assert break class continue def del elif else except False finally for from global if import in is lambda "
    "None nonlocal not or pass raise return True try while with yield"
)
TOKENS = re.compile(
    rf"(?P<c>\#.*)|(?P<s>\"\"\"|(?:'[^'\n]*'|\"[^\"\n]*\"))|(?P<k>\b(?:{'|'.join(WORDS.split())})\b)|(?P<n>\b\d[\w.]*)"
)
LOOKS = """
.rg .c{color:#7a8594}.rg .s{color:#2f8a57}.rg .k{color:#a1479d}.rg .n{color:#b36b1f}
.rg table.two{width:100%}.rg table.two td{text-align:left;vertical-align:top}.rg td.w{opacity:.65}
.rg svg text{font:11px ui-monospace,monospace;fill:currentColor}
.rg svg rect{stroke:currentColor;stroke-opacity:.5}.rg svg path{stroke:currentColor;stroke-opacity:.45;fill:none}
"""


def highlighted(text: str) -> str:
    """Python as HTML, with comments, texts, words and numbers marked; everything is escaped."""
    made, at = [], 0
    for found in TOKENS.finditer(text):
        made += [escape(text[at : found.start()]), f'<span class="{found.lastgroup}">{escape(found[0])}</span>']
        at = found.end()
    return "".join([*made, escape(text[at:])])


class SourceText(str):
    """Generated source. A notebook shows it in two columns: the user's line, and the statements that stand for it."""

    __slots__ = ("lines",)
    lines: Mapping[int, Where]

    def _repr_html_(self) -> str:
        rows, last = [], None
        for number, text in enumerate(self.splitlines(), 1):
            where = self.lines.get(number)
            code = text.partition("  # ")[0].rstrip() if where is not None else text
            mine = "<td></td><td></td>"
            if where is not None and where != last:
                mine = f'<td class="w">{escape(printable(where.short))}</td><td>{highlighted(code_at(where))}</td>'
            last = where if where is not None else last
            rows.append(f"<tr>{mine}<td>{highlighted(printable(code))}</td></tr>")
        head = "<tr><th class=l colspan=2>your program</th><th class=l>generated</th></tr>"
        return f'<div class="rg"><style>{STYLE}{LOOKS}</style><table class="two">{head}{"".join(rows)}</table></div>'


def source_of(executable: Executable) -> SourceText:
    """The generated module of compiled code."""
    made = SourceText(executable.source())
    short, whole = executable.module.source.splitlines(), made.splitlines()
    further = len(whole) - len(short)  # lines of constants that stand in the module, before its functions
    made.lines = {number + further: where for number, where in executable.module.lines.items()}
    return made


# --- graphs -----------------------------------------------------------------------------------------------


def graph_html(self: Graph) -> str:
    """The graph as a picture, drawn from top to bottom; a large one as text."""
    parts = ((self.inputs, "input"), (self.nodes, "node"), (self.outputs, "output"))
    said = ", ".join(counted(values, word) for values, word in parts)
    title = f"<h4>{escape(printable(f'Graph {self.name}: {said}'))}</h4>"
    if len(self.nodes) > DRAWN:
        lines = str(self).splitlines()
        rest = f"\n… {len(lines) - LISTED} more lines" if len(lines) > LISTED else ""
        shown = f"<pre>{escape(printable_lines(lines[:LISTED]) + rest)}</pre>"
    else:
        shown = drawing(self)
    return f'<div class="rg"><style>{STYLE}{LOOKS}</style>{title}{shown}</div>'


def printable_lines(lines: Iterable[str]) -> str:
    """Lines without what cannot be printed."""
    return "\n".join(map(printable, lines))


def drawing(graph: Graph) -> str:
    """A graph as SVG: layers by the longest way from the inputs, ordered so that few edges cross."""
    names = {v: name.removeprefix("%") for v, name in value_names(graph).items()}
    boxes: dict[str, tuple[str, str, str]] = {}
    made: dict[Any, str] = {}
    edges: list[tuple[str, str]] = []
    for k, v in enumerate(graph.inputs):
        boxes[f"i{k}"] = (names[v], str(v.aval), "input")
        made[v] = f"i{k}"
    for k, node in enumerate(graph.nodes):
        boxes[f"n{k}"] = (number_of(node) or node.prim.name, _result(node, names), "operation")
        edges += [(made[v], f"n{k}") for v in dict.fromkeys(node.inputs)]
        made.update((v, f"n{k}") for v in node.outputs)
    for k, v in enumerate(graph.outputs):
        boxes[f"o{k}"] = ("return", "" if names[v].isdigit() else names[v], "output")
        edges.append((made[v], f"o{k}"))
    layers = _layers(list(boxes), edges)
    place = {
        name: (GAP + k * (WIDE + GAP) + (max(map(len, layers)) - len(layer)) * (WIDE + GAP) / 2, GAP + row * ROW)
        for row, layer in enumerate(layers)
        for k, name in enumerate(layer)
    }
    width = GAP + max(map(len, layers), default=0) * (WIDE + GAP)
    height = 2 * GAP + len(layers) * ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    ]
    for a, b in edges:
        (x0, y0), (x1, y1) = place[a], place[b]
        x0, y0, x1, middle = x0 + WIDE / 2, y0 + HIGH, x1 + WIDE / 2, (y0 + HIGH + y1) / 2
        parts.append(f'<path d="M{x0:.0f} {y0:.0f} C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {y1:.0f}"/>')
    for name, (head, below, kind) in boxes.items():
        x, y = place[name]
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDE}" height="{HIGH}" rx="6" fill="{FILLS[kind]}"/>'
            f'<text x="{x + WIDE / 2:.0f}" y="{y + 14:.0f}" text-anchor="middle">{_fitting(head)}</text>'
            f'<text x="{x + WIDE / 2:.0f}" y="{y + 28:.0f}" text-anchor="middle">{_fitting(below)}</text>'
        )
    return "".join([*parts, "</svg>"])


def _result(node: Node, names: Mapping[Any, str]) -> str:
    if not node.outputs:
        return node.where.short if node.where is not None else ""
    name, aval = names[node.outputs[0]], str(node.outputs[0].aval)
    return aval if name.isdigit() else f"{name}: {aval}"


def _fitting(text: str) -> str:
    text = printable(text)
    return escape(text if len(text) <= FITTING else f"{text[: FITTING - 1]}…")


def _layers(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Names by layer; edges lead down. Each layer is ordered by the mean place of what is above, twice."""
    depth = dict.fromkeys(names, 0)
    for a, b in edges:  # they come in the order of their ends
        depth[b] = max(depth[b], depth[a] + 1)
    below = {a: [b for x, b in edges if x == a] for a in names}
    for name in reversed(names):  # what has no operands stands right above its first reader
        if below[name] and name[0] != "i":
            depth[name] = max(depth[name], min(depth[b] for b in below[name]) - 1)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in names:
        layers[depth[name]].append(name)
    above = {b: [a for a, x in edges if x == b] for b in names}
    for near in (above, below, above):
        place = {name: (k + 0.5) / len(layer) for layer in layers for k, name in enumerate(layer)}
        for layer in layers if near is above else reversed(layers):
            layer.sort(key=lambda name: _mean([place[x] for x in near[name]], place[name]))
            place.update({name: (k + 0.5) / len(layer) for k, name in enumerate(layer)})
    return layers


def _mean(places: Sequence[float], otherwise: float) -> float:
    return sum(places) / len(places) if places else otherwise


# --- compiled functions -----------------------------------------------------------------------------------


def compiled_html(self: Any) -> str:
    """What is compiled of a function: its signatures, and the paths and operations of each."""
    info = self._cache.info()
    rows = []
    for versions in list(self._cache.entries.values()):
        for paths in versions:
            for way in paths.known.values():
                graph = way.recorded.graph
                types = ", ".join(f"{n}: {v.aval}" for n, v in zip(way.call.hints, graph.inputs, strict=False))
                rows.append((types, f"{len(paths.known)}", f"{len(graph.nodes)}", way.recorded.graph.name))
    head = ("compiled for", "paths", "operations traced", "name")
    headline = f"{info.hits:,} calls found code, {info.misses:,} compiled"
    return page_of(repr(self), headline, [Section("signatures", head, rows, frozenset({0, 3}))])
