"""A page about one call: its data, drawn by a template into one file that needs no network."""

from __future__ import annotations

import itertools
import json
import linecache
import os
import tempfile
from collections import Counter
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from ..ir.footprint import Undecided
from ..reports.curves import Tradeoff, tradeoff
from ..reports.pictures import FAINT, INK, LIMIT, LINE, Drawn
from ..where import Where
from .amounts import in_bytes, in_seconds, in_short, number_of, printable
from .anatomy import Anatomy, Piece, PlacedNode
from .costs import cost, family
from .explain_call import explain, seconds_of, timed
from .explanation import FunctionExplanation
from .groups import Grouping, span_at
from .machine import machine
from .measured import Measured
from .origins import line_of

AROUND = 2  # lines shown around a line of the user's that stands in no function
GRAPHVIZ = "vendored/graphviz.js"  # with its licences beside it
EXPORTS = "export{"


def write_page(anatomy: Anatomy, path: str | os.PathLike[str], check: bool = True) -> Path:
    """Write the page about a call into a file, which is whole or not there. OSError where it cannot be written."""
    target = Path(path)
    text = page(anatomy, check)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def page(anatomy: Anatomy, check: bool = True) -> str:
    """The page about a call, as HTML."""
    measured = timed(anatomy)
    explanation = explain(anatomy, check, measured)
    data = data_of(anatomy, measured)
    try:
        curve: Tradeoff | None = tradeoff(anatomy.way)
    except Undecided:
        curve = None
    return str(
        _template().render(
            name=printable(explanation.name),
            headline=explanation.headline(),
            sections=explanation.sections(),
            data=as_script(data),
            graphviz=_graphviz(),
            style=_part("page.css"),
            script=_part("page.js"),
            memory=_drawing(explanation.memory if explanation.memory.over_time else None),
            curve=_drawing(curve if curve is not None and curve.points else None),
            facts=_facts(explanation),
        )
    )


@lru_cache(maxsize=1)
def _template() -> Any:
    import jinja2  # noqa: PLC0415 - it would be a tenth of the time that importing the package takes

    loader = jinja2.PackageLoader("retrograd.looking", "page_parts")
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined).get_template(
        "page.html.j2"
    )


def _part(name: str) -> str:
    return resources.files("retrograd.looking").joinpath("page_parts", name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _graphviz() -> str:
    """Graphviz, as a script that hands its class to the page in place of exporting it."""
    text = _part(GRAPHVIZ)
    body, _, exports = text.rpartition(EXPORTS)
    (name,) = (pair.split(" as ")[0] for pair in exports.partition("}")[0].split(",") if pair.endswith(" as Graphviz"))
    return f"{body}globalThis.Graphviz={name};"


def as_script(data: Any) -> str:
    """Data as JSON that may stand in a script of a page: nothing in it ends the script or begins a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for c in "<>&\u2028\u2029":
        text = text.replace(c, f"\\u{ord(c):04x}")
    return text


def _drawing(drawn: Drawn | None) -> str:
    """A curve in the colours of the page."""
    if drawn is None:
        return ""
    svg = drawn.to_svg()
    for colour, name in ((INK, "ink"), (FAINT, "faint"), (LINE, "line"), (LIMIT, "limit")):
        svg = svg.replace(f'"{colour}"', f'"var(--{name})"')
    return svg.replace('"white"', '"var(--paper)"')


def _facts(found: FunctionExplanation) -> list[tuple[str, str]]:
    peak = found.memory.peak_bytes
    return [
        ("a call", in_seconds(found.seconds)),
        ("predicted", in_seconds(found.predicted)),
        ("operations", in_short(sum(line.operations for line in found.lines))),
        ("flops", in_short(sum(line.flops for line in found.lines))),
        ("peak of memory", "depends on data" if peak is None else in_bytes(peak)),
        ("gradient check", {True: "agrees", False: "differs", None: "not checked"}[found.checked]),
    ]


def data_of(anatomy: Anatomy, measured: Measured) -> dict[str, Any]:
    """What the page draws: operations, groups, edges, the user's source and the generated one."""
    grouping = Grouping(anatomy)
    seconds, statements = seconds_of(anatomy, measured), _statements(anatomy)
    places = {where for op in grouping.shown if (where := line_of(op.node.where)) is not None}
    files = sorted({where.file for where in places})
    nodes = [_node(anatomy, op, grouping, seconds, statements, files) for op in grouping.shown]
    nodes, edges = beside_readers(nodes, _edges(anatomy, grouping))
    sizes = Counter(group for node in nodes for group in grouping.around(node["group"]))
    return {
        "nodes": nodes,
        "groups": [
            {"id": g.id, "kind": g.kind, "label": g.label, "parent": g.parent, "part": g.part, "size": sizes[g.id]}
            for g in grouping.groups.values()
        ],
        "edges": edges,
        "source": [_listing(k, file, places) for k, file in enumerate(files)],
        "code": [
            {
                "part": _title(anatomy, code),
                "lines": [[printable(text), code.statements.get(n)] for n, text in enumerate(code.source, 1)],
            }
            for code in anatomy.codes
        ],
    }


def _title(anatomy: Anatomy, piece: Piece) -> str:
    """What a piece of code computes."""
    half = "" if len(anatomy.codes) == 1 else ", first half" if piece is anatomy.codes[0] else ", second half"
    return printable(f"{anatomy.way.name}{half}")


def _statements(anatomy: Anatomy) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for code in anatomy.codes:
        source = code.source
        for line, number in code.statements.items():
            found.setdefault(number, []).append(source[line - 1].partition("  #")[0].strip())
    return found


def _node(
    anatomy: Anatomy,
    op: PlacedNode,
    grouping: Grouping,
    seconds: dict[int | None, float],
    statements: dict[int, list[str]],
    files: list[str],
) -> dict[str, Any]:
    node, where = op.node, line_of(op.node.where)
    one = cost(node, machine()) if not node.graphs else None
    times = f" ×{op.times:,.0f}{'+' if op.open else ''}" if op.times != 1 or op.open else ""
    values = [_value(name, str(v.aval)) for name, v in zip(op.names, node.outputs, strict=True)]
    return {
        "id": op.number,
        "group": grouping.of[op.number],
        "op": node.prim.name,
        "label": printable(number_of(node) or f"{node.prim.name}{times}"),
        "part": op.part,
        "family": family(node.prim),
        "values": [printable(v) for v in values],
        "bytes": in_bytes(sum(v.aval.nbytes for v in node.outputs)),
        "flops": in_short(one.flops * op.times) if one is not None else "",
        "predicted": in_seconds(one.seconds * op.times) if one is not None else "",
        "measured": in_seconds(seconds.get(op.number)),
        "spent": seconds.get(op.number, 0.0),
        "line": [files.index(where.file), where.line] if where is not None else None,
        "where": printable(str(where)) if where is not None else "",
        "statements": [printable(text) for text in statements.get(op.number, [])],
        "adjoint": [n for n in anatomy.adjoints.get(op.number, []) if n in anatomy.running],
    }


def _value(name: str, aval: str) -> str:
    """A value's name, if the program gave it one, and its type."""
    name = name.removeprefix("%")
    return aval if name.isdigit() else f"{name}: {aval}"


def _edges(anatomy: Anatomy, grouping: Grouping) -> list[list[int]]:
    """Pairs of operations, of which the second reads a result of the first in the same body."""
    made = {(op.outer, op.body, v): op.number for op in anatomy.operations.values() for v in op.node.outputs}
    shown = {op.number for op in grouping.shown}
    pairs = [(made.get((op.outer, op.body, v)), op.number) for op in grouping.shown for v in op.node.inputs]
    return [[a, b] for a, b in dict.fromkeys(pairs) if a is not None and a in shown]


def beside_readers(nodes: list[dict[str, Any]], edges: list[list[int]]) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """Nodes and edges with constants in the parts that read them: one that two parts read is drawn in both."""
    by_id = {node["id"]: node for node in nodes}
    readers: dict[int, dict[str, int]] = {}  # the first one in each part
    for a, b in edges:
        readers.setdefault(a, {}).setdefault(by_id[b]["part"], b)
    reading = {b for _, b in edges}
    ids = itertools.count(max(by_id, default=0) + 1)
    found, drawn = [], {}
    for node in nodes:
        number, home = node["id"], node["part"]
        if node["family"] != "constants" or number in reading or readers.get(number, {}).keys() <= {home}:
            found.append(node)
            continue
        parts = sorted(readers[number], key=lambda part: part != home)  # the first copy is the operation itself
        for k, part in enumerate(parts):
            place = {} if part == home else {"part": part, "group": by_id[readers[number][part]]["group"]}
            found.append({**node, **place, **({"id": next(ids), "spent": 0.0, "copy": True} if k else {})})
            drawn[number, part] = found[-1]["id"]
    return found, [[drawn.get((a, by_id[b]["part"]), a), b] for a, b in edges]


def _listing(k: int, file: str, places: set[Where]) -> dict[str, Any]:
    """The lines of a file around those that operations come from: whole functions, or a few lines."""
    wanted: set[int] = set()
    for where in places:
        if where.file == file:
            span = span_at(where)
            first, last = (span.first, span.last) if span is not None else (where.line - AROUND, where.line + AROUND)
            wanted.update(range(max(first, 1), last + 1))
    lines = linecache.getlines(file)
    rows = [[n, printable(lines[n - 1].rstrip("\n"))] for n in sorted(wanted) if n <= len(lines)]
    return {"file": k, "name": printable(file), "lines": rows}
