"""The text form: printing, parsing, and what is no graph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retrograd.errors import ParseError
from retrograd.ir import Aval, Graph, Node, Value, evaluate, parse, to_text, verify
from retrograd.ir.builder import attrs_key
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.printer import value_names
from retrograd.ir.texts import Arg
from retrograd.ir.types import DTYPES
from retrograd.where import Where

F3 = Aval((3,), np.dtype(np.float64))

TEXTS = [
    """\
graph nothing() {
  return
}
""",
    """\
graph f(%x: f64[3], %1: f32[], %n: int, %s: f64) {
  return %x, %1, %n, %s
}
""".replace("%1", "%0"),
    """\
graph f(%x: f64[3,2], %w: f64[2,3]) {
  %y = sin %x : f64[3,2]  # model.py:12
  %0 = matmul %w, %y : f64[2,2]
  %y.1 = getitem %0 {index=s_[::-1, 1:]} : f64[2,1]
  %1 = sum %y.1 {axis=(0, 1), keepdims=False} : f64
  return %1, %y
}
""",
    """\
graph f(%x: f64[3]) {
  %0 = sin %x : f64[3]
  %1 = sin~2 %x : f64[3]  # <stdin>:1
  return %0, %1
}
""",
    """\
graph <lambda>(%x: f64[4]) {
  %0 = const {value=0.0} : f64
  %1, %2 = scan %0, %x {arrays=1, carry=1, consts=0, length=4, reverse=True} : f64, f64[4]  # a.py:1
    body = graph step(%c: f64, %x: f64) {
      %0 = const {value=(1.0, -0.0, nan, inf)} : f64[4]
      %1 = scan %c, %0 {arrays=0, carry=1, consts=0, length=4, reverse=False} : f64
        body = graph inner(%c: f64, %x: f64) {
          %0 = mul %c, %x : f64
          return %0
        }
      return %1, %x
    }
  return %1, %2
}
""",
    """\
graph custom(%x: f64[3]) {
  %0 = custom_jvp %x : f64[3]
    body = graph body(%x: f64[3]) {
      return %x
    }
    rule = graph rule(%x: f64[3], %x_dot: f64[3]) {
      return %x, %x_dot
    }
  return %0
}
""",
    """\
graph stacks(%r: f64[3]*5, %s: f32*?, %t: int*2*3) {
  return %r, %s, %t
}
""",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_and_printed_as_it_was(text: str) -> None:
    assert to_text(parse(text)) == text
    assert str(parse(text)) == text


def test_indentation_blank_lines_and_comment_lines_do_not_matter() -> None:
    loose = """
    # a comment
        graph f(%x: f64[3]) {

    %0 = neg %x : f64[3]
        # another
      return %0
    }
    """
    assert to_text(parse(loose)) == "graph f(%x: f64[3]) {\n  %0 = neg %x : f64[3]\n  return %0\n}\n"


def test_hints_lines_and_replicas_survive() -> None:
    graph = parse("graph f(%speed: f64[3]) {\n  %drag = sin~3 %speed : f64[3]  # car.py:7\n  return %drag\n}\n")
    assert graph.inputs[0].hint == "speed"
    (node,) = graph.nodes
    assert (node.out.hint, node.where, node.replica) == ("drag", Where("car.py", 7), 3)


def test_only_the_last_part_of_a_path_is_printed() -> None:
    assert "# car.py:7\n" in to_text(one({}, Where("/home/someone/car.py", 7)))


# --- attributes ---------------------------------------------------------------------------------------------


def one(attrs: dict[str, Any], where: Where | None = None, hint: str | None = None, name: str = "f") -> Graph:
    """A graph of one node with any attributes."""
    x, y = Value(F3, hint), Value(F3, hint)
    return Graph(name, (x,), (Node(REGISTRY["neg"], (x,), attrs, (y,), where),), (y,))


ATTRIBUTES = [
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    5e-324,
    1e300,
    0.1,
    0,
    -3,
    2**70,
    True,
    False,
    None,
    1j,
    -1j,
    1 + 2j,
    -1 - 2j,
    complex(-0.0, 0.0),
    complex(0.0, -0.0),
    complex(math.nan, math.inf),
    complex(-math.inf, 1),
    (),
    (1,),
    (1, 2),
    (0.0, (-0.0, (math.nan,))),
    ((), ((),)),
    (True, 1, 1.0),
    "",
    "text",
    "it's",
    'quoted "twice"',
    "two\nlines",
    "} : f64[3]  # a.py:1",
    "%0 = graph f() {",
    "\u2028\x00\\",
    (slice(None),),
    (slice(1, None), 0),
    (slice(None, None, -1), ...),
    (slice(-3, -1, 2), None),
    (Arg(1),),
    (slice(None), Arg(2), slice(None), Arg(11)),
    (..., 0),
    (0, 1),
    (-1,),
    np.dtype(np.float64),
    np.dtype(bool),
    np.dtype(np.complex64),
    (np.dtype(np.int8), "i8"),
]


@pytest.mark.parametrize("value", ATTRIBUTES, ids=repr)
def test_an_attribute_is_read_back(value: Any) -> None:
    assert_read_back(one({"value": value}))


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.sampled_from(list(DTYPES.values())),
)
bounds = st.none() | st.integers(-5, 5)
indices = st.tuples(
    st.builds(slice, bounds, bounds, bounds),
    st.integers(-5, 5) | st.none() | st.just(...) | st.builds(Arg, bounds.filter(lambda n: n is not None and n >= 0)),
)
nested = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


@given(st.dictionaries(st.sampled_from(["axis", "index", "keepdims", "value", "a1"]), nested | indices))
def test_any_attributes_are_read_back(attrs: dict[str, Any]) -> None:
    assert_read_back(one(attrs))


def assert_read_back(graph: Graph) -> None:
    text = to_text(graph)
    again = parse(text)
    assert to_text(again) == text
    for a, b in zip(graph.nodes, again.nodes, strict=True):
        assert attrs_key(dict(sorted(a.attrs.items()))) == attrs_key(dict(sorted(b.attrs.items())))


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_dtype_has_a_text(dtype: np.dtype[Any]) -> None:
    aval = Aval((2, 0), dtype)
    x = Value(aval, "x")
    assert parse(to_text(Graph("f", (x,), (), (x,)))).in_avals == (aval,)


# --- hostile names ------------------------------------------------------------------------------------------

HOSTILE = [
    "",
    " ",
    "a b",
    "a.1",
    "1",
    "x:",
    "%x",
    "x\ny",
    "x) {\n  return\n}",
    "# x",
    "}",
    "{",
    "x, %y: f64",
    "naïve",
    "ſ",
    "θ_0",
    "\u2028",
    "\x00",
    "class",
    "import os",
    "=",
    "x = graph y() {",
    "\\",
    '"',
    "'",
    "\ud800",
]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_names_leave_a_readable_text(name: str) -> None:
    for graph in (one({}, hint=name), one({}, Where(name, 3)), one({}, Where(f"{name}.py", 3)), one({}, name=name)):
        text = to_text(graph)
        assert len(text.splitlines()) == 4
        assert to_text(parse(text)) == text


@given(st.text(), st.text(), st.text())
@example("x", "} : f.py", "f")
def test_any_names_leave_a_readable_text(hint: str, file: str, name: str) -> None:
    text = to_text(one({"axis": 0}, Where(file, 3), hint, name))
    assert to_text(parse(text)) == text


def test_letters_of_other_alphabets_are_names() -> None:
    graph = one({}, hint="θ")
    assert list(value_names(graph).values()) == ["%θ", "%θ.1"]
    assert parse(to_text(graph)).inputs[0].hint == "θ"


def test_hints_that_look_like_numbered_ones_do_not_collide() -> None:
    values = [Value(F3, h) for h in ("a", "a", "a.1", None, "0")]
    names = value_names(Graph("f", tuple(values), (), ()))
    assert len(set(names.values())) == len(values)


# --- what is no graph ---------------------------------------------------------------------------------------

MALFORMED = {
    "": "ends",
    "graph f(%x: f64[3]) {": "ends",
    "graph f(%x: f64[3]) {\n  return %x": "ends",
    "graph f(%x: f64[3])\n  return %x\n}": "expected 'graph",
    "graph f(x: f64[3]) {\n  return\n}": "malformed inputs",
    "graph f(%x f64[3]) {\n  return\n}": "malformed inputs",
    "graph f(%x: f64[3] %y: f64) {\n  return\n}": "malformed inputs",
    "graph f(%x: f65[3]) {\n  return\n}": "is not a type",
    "graph f(%x: f64[,]) {\n  return\n}": "is not a type",
    "graph f(%x: f64[3,]) {\n  return\n}": "is not a type",
    "graph f(%x: f64[-1]) {\n  return\n}": "is not a type",
    "graph f(%x: f64*) {\n  return\n}": "is not a type",
    "graph f(%x: f64, %x: f64) {\n  return\n}": "defined twice",
    "graph f(%1x: f64) {\n  return\n}": "is not a name",
    "graph f(%x: f64) {\n  return %y\n}": "%y is used before it is defined",
    "graph f(%x: f64) {\n  return %x\n}\nmore": "after the closing brace",
    "graph f(%x: f64) {\n  %0 = nope %x : f64\n  return %0\n}": "unknown primitive 'nope'",
    "graph f(%x: f64) {\n  %0 = sin %y : f64\n  return %0\n}": "%y is used before it is defined",
    "graph f(%x: f64) {\n  %0 = sin %x\n  return %0\n}": "1 results but 0 types",
    "graph f(%x: f64) {\n  sin %x : f64\n  return %x\n}": "0 results but 1 types",
    "graph f(%x: f64) {\n  const {value=1}\n  return %x\n}": "0 results but 0 types",
    "graph f(%x: f64) {\n  %x = sin %x : f64\n  return %x\n}": "defined twice",
    "graph f(%x: f64) {\n  %0 = sin %x : g64\n  return %0\n}": "is not a type",
    "graph f(%x: f64) {\n  %0 := sin %x : f64\n  return %0\n}": "not a node",
    "graph f(%x: f64) {\n  import os\n  return %x\n}": "not a node",
    "graph f(%x: f64) {\n  %0 = sum %x {axis} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {axis=} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {axis=f(1)} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {axis=[1]} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {axis=(lambda: 1)()} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {axis=x.__class__} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {axis=-'a'} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {axis=1 + 'a'} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {a=1) + (2} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {a=1).b(c=2} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {a=1, a=2} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {**a} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {1, 2} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {a=b'bytes'} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {a=" + "(" * 300 + ")" * 300 + "} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {a=" + "-" * 5000 + "1} : f64\n  return %0\n}": "malformed attributes",
    "graph f(%x: f64) {\n  %0 = sum %x {a=complex(1" + "0" * 400 + ", 0)} : f64\n  return %0\n}": "malformed attr",
}


@pytest.mark.parametrize("text", MALFORMED, ids=lambda t: ascii(t[:60]))
def test_a_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match=MALFORMED[text]):
        parse(text)


def test_a_parse_error_quotes_the_line_and_its_number() -> None:
    text = "graph f(%x: f64) {\n\n  %0 = sin %x : f64\n  %1 = sin %9 : f64\n  return %1\n}"
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert "line 4: %9 is used before it is defined: '%1 = sin %9 : f64'" in str(caught.value)
    assert caught.value.code == "RG0902"
    assert isinstance(caught.value, ValueError)


@given(st.data())
def test_a_damaged_text_is_refused_or_is_another_graph(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    put = data.draw(st.sampled_from(["", "%", " ", "\n", "{", "}", ",", ":", "0", "#", "~", "(", "=", "graph ", "%0 "]))
    damaged = text[:at] + put + text[at + cut :]
    try:
        graph = parse(damaged)
    except ParseError:
        return
    again = to_text(graph)
    assert to_text(parse(again)) == again


def test_a_parsed_graph_can_be_verified_and_run() -> None:
    graph = verify(parse(TEXTS[4]))
    found = evaluate(graph, [np.ones(4)])
    assert len(found) == 2
