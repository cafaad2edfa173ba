"""Draw the picture of the README: a function, the graph of its gradient, and the source, in one SVG.

    python docs/pictures.py

A colour stands for a line of the function, in the graph and in the source, too.
"""

from __future__ import annotations

import io
import keyword
import linecache
import tokenize
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path

import numpy as np

import retrograd as rg
from retrograd.ir.graph import Graph, Node, Value

FILE = Path(__file__).parent / "_static" / "first.svg"
PROGRAM = """\
def loss(w, x, y):
    p = np.tanh(x @ w)
    r = p - y
    return np.mean(r**2)
"""
ADVANCE, LINE = 9.63, 26  # of a character, of a line of code
TOP, HEIGHT, WIDTH = 84, 520, 1200
COLUMNS = (24, 312, 766)
SIGNS = {"matmul": "@", "mul": "×", "sub": "−", "add": "+", "div": "÷"}
ARROW = """<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">\
<path d="M 0 1 L 7 4 L 0 7 z" fill="#8c959f"/></marker>"""
STYLE = """
    .paper { fill: #ffffff; stroke: #d0d7de }
    text { font: 16px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328 }
    .head { font: 600 17px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
    .say { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #59636e }
    .word { fill: #8250df } .number { fill: #0550ae } .small { font-size: 14px; fill: #59636e }
    .edge { fill: none; stroke: #8c959f; stroke-width: 1.3 }
    .rule { stroke: #d0d7de }
    .leaf { fill: #f6f8fa; stroke: #8c959f }
    .line2 { fill: #dbeafe; stroke: #3b82f6 } .line3 { fill: #dcfce7; stroke: #22a559 }
    .line4 { fill: #ffedd5; stroke: #ea7317 }
    .mark2 { fill: #3b82f6 } .mark3 { fill: #22a559 } .mark4 { fill: #ea7317 }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117; stroke: #3d444d } text { fill: #e6edf3 } .say, .small { fill: #9198a1 }
      .word { fill: #d2a8ff } .number { fill: #79c0ff } .edge { stroke: #767e88 } .rule { stroke: #3d444d }
      .leaf { fill: #151b23; stroke: #767e88 }
      .line2 { fill: #12305c; stroke: #4b92f7 } .line3 { fill: #10391f; stroke: #3fb967 }
      .line4 { fill: #4a2a0b; stroke: #f0883e }
    }
"""


def gradient() -> tuple[Graph, str]:
    """The graph of the gradient, and its source without the imports."""
    linecache.cache["loss.py"] = (len(PROGRAM), None, PROGRAM.splitlines(keepends=True), "loss.py")
    scope = {"np": np}
    exec(compile(PROGRAM, "loss.py", "exec"), scope)
    slope = rg.grad(scope["loss"])
    arguments = np.zeros(3), np.ones((5, 3)), np.ones(5)
    return slope.graph(*arguments), slope.source(*arguments).partition("\n\n\n")[2]


def code(text: str, x: float, y: float) -> Iterator[str]:
    """Lines of code with colours for words and numbers; one mark for each line of the user's that it names."""
    for row, line in enumerate(text.splitlines()):
        body, _, place = line.partition("  # loss.py:")
        number = int(place) if place else row + 1 if text == PROGRAM and row else 0
        base = y + LINE * row
        if number:
            yield f'<rect class="mark{number}" x="{x - 10}" y="{base - 17}" width="4" height="{LINE - 3}" rx="2"/>'
        words = "".join(_word(kind, word) for kind, word in _words(body))
        yield f'<text x="{x}" y="{base}" xml:space="preserve">{words}</text>'
        if place:
            yield f'<text class="small" x="{x + ADVANCE * (len(body) + 2):.0f}" y="{base}"># loss.py:{place}</text>'


def _words(line: str) -> Iterator[tuple[str, str]]:
    at = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(line.strip() + "\n").readline):
            start = token.start[1] + len(line) - len(line.lstrip())
            if start > at:
                yield "", line[at:start]
            kind = "number" if token.type == tokenize.NUMBER else "word" if keyword.iskeyword(token.string) else ""
            if token.string.strip():
                yield kind, token.string
                at = start + len(token.string)
    except (tokenize.TokenError, IndentationError):  # the head of a function, whose body is on other lines
        return


def _word(kind: str, word: str) -> str:
    return f'<tspan class="{kind}">{escape(word)}</tspan>' if kind else escape(word)


def label(graph: Graph, node: Node) -> str:
    """What a node is called: its operation, with constants among its operands."""
    sign = SIGNS.get(node.prim.name)
    constants = {n.outputs[0]: n.attrs["value"] for n in graph.nodes if n.prim.name == "const"}
    shown = [f"{constants[v]:g}" if v in constants else "·" for v in node.inputs]
    if sign and set(shown) != {"·"}:
        return f"{shown[0]} {sign} {shown[1]}"
    return sign or node.prim.name


def layers(graph: Graph) -> list[list[object]]:
    """Inputs and nodes by the longest way to them; an edge over several layers has a place in each."""
    nodes = [node for node in graph.nodes if node.prim.name != "const"]
    depth: dict[object, int] = {}
    for node in nodes:
        depth[node] = 1 + max((depth[m] for m in _before(graph, node) if isinstance(m, Node)), default=0)
    for value in graph.inputs:
        depth[value] = min(depth[node] for node in nodes if value in node.inputs) - 1
    found: list[list[object]] = [[] for _ in range(max(depth.values()) + 1)]
    for thing, d in depth.items():
        found[d].append(thing)
    for before, after in edges(graph):
        for d in range(depth[before] + 1, depth[after]):
            found[d].append((before, after, d))
    return found


def _before(graph: Graph, node: Node) -> list[Value | Node]:
    makers = {v: n for n in graph.nodes for v in n.outputs}
    operands = [makers.get(v, v) for v in node.inputs]
    return [o for o in operands if not (isinstance(o, Node) and o.prim.name == "const")]


def edges(graph: Graph) -> list[tuple[Value | Node, Node]]:
    """From each input and node to the nodes that use it."""
    return [(o, n) for n in graph.nodes if n.prim.name != "const" for o in _before(graph, n)]


def places(graph: Graph, x: float, y: float) -> dict[object, tuple[float, float]]:
    """Where things stand: in rows, each thing near the mean of its neighbours."""
    rows = layers(graph)
    links: dict[object, list[object]] = {thing: [] for row in rows for thing in row}
    chains = [_chain(rows, edge) for edge in edges(graph)]
    for chain in chains:
        for a, b in pairwise(chain):
            links[a].append(b)
            links[b].append(a)
    across = {thing: float(i) for row in rows for i, thing in enumerate(row)}
    for _ in range(40):
        for row in (*rows, *reversed(rows)):
            wanted = {t: sum(across[n] for n in links[t]) / len(links[t]) for t in row}
            row.sort(key=wanted.__getitem__)
            middle = sum(wanted.values()) / len(row)
            across |= {t: middle + (i - (len(row) - 1) / 2) for i, t in enumerate(row)}
    for chain in chains:  # a long edge runs straight, on the side to which it tends
        between = [t for t in chain if isinstance(t, tuple)]
        side = max if sum(across[t] for t in between) > 0 else min
        across |= dict.fromkeys(between, side((across[t] for t in between), default=0.0))
    low, high = min(across.values()), max(across.values())
    step = 290 / max(high - low, 1.0)
    down = (HEIGHT - TOP - 60) / (len(rows) - 1)
    return {t: (x + 66 + step * (across[t] - low), y + down * d) for d, row in enumerate(rows) for t in row}


def _chain(rows: list[list[object]], edge: tuple[Value | Node, Node]) -> list[object]:
    between = [t for row in rows for t in row if isinstance(t, tuple) and t[:2] == edge]
    return [edge[0], *between, edge[1]]


def drawing(graph: Graph, x: float, y: float) -> Iterator[str]:
    """The graph, from inputs above to the gradient below."""
    rows, at = layers(graph), places(graph, x, y)
    for edge in edges(graph):
        points = [at[t] for t in _chain(rows, edge)]
        path = f"M {points[0][0]:.0f} {points[0][1] + 15:.0f}"
        for (x1, y1), (x2, y2) in pairwise(points):
            middle = (y1 + y2) / 2
            end = y2 - 16 if (x2, y2) == points[-1] else y2
            path += f" C {x1:.0f} {middle:.0f}, {x2:.0f} {middle:.0f}, {x2:.0f} {end:.0f}"
        yield f'<path class="edge" d="{path}" marker-end="url(#arrow)"/>'
    for thing, (left, top) in at.items():
        if isinstance(thing, tuple):
            continue
        name = thing.hint or "" if isinstance(thing, Value) else label(graph, thing)
        kind = "leaf" if isinstance(thing, Value) else f"line{str(thing.where).rpartition(':')[2]}"
        half = max(20.0, ADVANCE * len(name) / 2 + 10)
        round_ = 15 if kind == "leaf" else 5
        box = f'x="{left - half:.0f}" y="{top - 15:.0f}" width="{2 * half:.0f}" height="30" rx="{round_}"'
        yield f'<rect class="{kind}" {box}/>'
        yield f'<text x="{left:.0f}" y="{top + 5.5:.0f}" text-anchor="middle">{escape(name)}</text>'
    (last,) = [at[n] for n in graph.nodes if n.outputs[0] is graph.outputs[0]]
    yield f'<text class="small" x="{last[0] + 30:.0f}" y="{last[1] + 4:.0f}">∂loss/∂w</text>'


def picture() -> str:
    """The whole SVG."""
    graph, source = gradient()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>A function, the graph of its gradient, and the source of its gradient</title>",
        f"<style>{STYLE}</style>",
        f"<defs>{ARROW}</defs>",
        f'<rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10"/>',
    ]
    heads = (
        ("You write NumPy", "a plain function"),
        ("rg.grad(loss).graph(w, x, y)", "the function and its derivative, one graph"),
        ("rg.grad(loss).source(w, x, y)", "what runs; each statement names your line"),
    )
    for x, (head, said) in zip(COLUMNS, heads, strict=True):
        parts.append(f'<text class="head" x="{x}" y="34">{head}</text><text class="say" x="{x}" y="54">{said}</text>')
    parts += [f'<path class="rule" d="M {x - 26} 20 V {HEIGHT - 20}"/>' for x in COLUMNS[1:]]
    parts += code(PROGRAM, COLUMNS[0] + 10, TOP + 24)
    parts += drawing(graph, COLUMNS[1], TOP + 20)
    parts += code(source, COLUMNS[2] + 10, TOP + 24)
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
