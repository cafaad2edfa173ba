"""No text of a user's is in C but letters, digits, dots and colons in comments: not of names, files or attributes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.codegen.native.elements import NoC
from retrograd.codegen.native.kernel_function import kernel_function
from retrograd.ir import Graph, verify
from retrograd.ir.graph import Node
from tests.native.test_operations import samples
from tests.support.native import in_a_hurry, needs_compiler, taken

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
HARMLESS = re.compile(r"/\* [A-Za-z0-9_.:]* \*/")
PROGRAM = """
import numpy as np, retrograd as rg
def {name}({x}, w):
    {t} = np.sin({x}) * w[::2]
    def {x}_(c, _):
        {x} = c * 0.5 + np.tanh({t})
        return {x}, np.sum({x})
    last, sums = rg.scan({x}_, {t}, None, 3)
    return np.sum(last * w[np.array([0, 3] * 15000)]) + np.sum(sums)
"""
NAMES = [("f", "x", "t"), ("main", "restrict", "double"), ("größe", "é", "ñ"), ("rg_total", "kernel0", "in0")]
FILES = [
    *("a*/b", "*/ int y; /*", "what??/", "back\\", "line\nint y;", "line\r*/", "\u2028*/\u2029", "Ĳ*∕", "quote'\"`"),
    *("#define x", "kernel(", "rg_total(", "i5", "%s%n{0}{s}", "\x1b[0m", "a\\\n*/", "//", "<stdin>", "/*", "日本"),
]


def c_of(file: str, name: str, x: str, t: str) -> str:
    """The C of the program under other names."""
    scope: dict[str, Any] = {}
    exec(compile(PROGRAM.format(name=name, x=x, t=t), file, "exec"), scope)
    with in_a_hurry():
        return rg.jit(scope[name]).source(np.ones(30_000), np.ones(60_000), language="c")


def kernel_of(source: str) -> str:
    """The functions of the kernel, without those of every module."""
    return source[source.index("static int kernel0") : source.index("static PyObject *call0")]


def bare(source: str) -> str:
    """C without comments."""
    return COMMENT.sub("", source)


@needs_compiler
def test_names_and_files_of_users_change_comments_alone() -> None:
    plain = c_of("plain.py", *NAMES[0])
    own = kernel_of(plain)
    assert "in_parts(kernel0_part1" in plain
    remarks = set(COMMENT.findall(own))
    assert len(remarks) > 3
    assert "/* plain.py:4 */" in remarks
    for file, names in [*((file, NAMES[0]) for file in FILES), *(("plain.py", names) for names in NAMES)]:
        found = c_of(file, *names)
        assert kernel_of(found).isascii()
        assert bare(found) == bare(plain), (file, names)
        mine = kernel_of(found)
        assert all(map(HARMLESS.fullmatch, COMMENT.findall(mine))), (file, names)
        assert len(COMMENT.findall(mine)) == len(COMMENT.findall(own))


WORD = "hostile"
TEXT = f'1); {WORD}("x"); */ /* %s {{0}} \\'
ODD: list[Any] = [TEXT, (TEXT,), TEXT.encode(), f"%.0s{WORD}"]


def changed(value: Any) -> Iterator[Any]:
    """An attribute with a text in place of each of its parts."""
    yield from ODD
    if isinstance(value, tuple):
        for k, part in enumerate(value):
            yield from ((*value[:k], odd, *value[k + 1 :]) for odd in changed(part))
    if isinstance(value, slice):
        yield from (slice(odd, value.stop, value.step) for odd in ODD)
        yield from (slice(value.start, odd, value.step) for odd in ODD)
        yield from (slice(value.start, value.stop, odd) for odd in ODD)


def with_texts(graph: Graph) -> Iterator[Graph]:
    """The graph with texts as attributes."""
    for k, node in enumerate(graph.nodes):
        for key, value in node.attrs.items():
            for odd in changed(value):
                other: Node = replace(node, attrs={**node.attrs, key: odd})
                yield replace(graph, nodes=(*graph.nodes[:k], other, *graph.nodes[k + 1 :]))


def test_attributes_cannot_be_texts_in_c() -> None:
    """Those of a graph that was read from a file may be anything that its operations do not refuse."""
    seen: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for _, graph, _ in samples():
        name = graph.nodes[-1].prim.name
        seen[name] += 1
        for odd in with_texts(graph) if seen[name] <= 2 else ():
            try:
                verify(odd)
                source = kernel_function(odd, "kernel").source if taken(odd) else ""
            except (rg.RetrogradError, NoC, TypeError, ValueError) as fault:
                ends[type(fault).__name__] += 1
            else:
                ends["written"] += 1
                assert WORD not in source, (name, odd)
    assert ends["GraphError"] > 300, ends
    assert ends["written"] > 20, ends  # attributes that C does not read, as names
