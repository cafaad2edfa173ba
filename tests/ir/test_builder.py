"""The builder: equal pure nodes become one, and nothing else does."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import InternalError
from retrograd.ir import Aval, evaluate, parse, to_text, verify
from retrograd.ir.builder import Builder, attr_key, attrs_key
from retrograd.ir.graph import Node
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.rewrite import walk
from retrograd.ir.texts import Arg
from retrograd.where import Where

F64 = np.dtype(np.float64)
F3 = Aval((3,), F64)
sin, mul, const = REGISTRY["sin"], REGISTRY["mul"], REGISTRY["const"]


def test_equal_nodes_become_one() -> None:
    b = Builder()
    x, y = b.input(F3, "x"), b.input(F3, "y")
    assert (x * y).value is (x * y).value
    assert (x * y).value is not (y * x).value
    assert len(b.nodes) == 2


def test_a_node_without_results_may_be_kept_twice() -> None:
    """... as a loop of which nobody reads anything, before it is dropped."""
    b = Builder()
    source = b.graph("f", [b.input(F3)])
    idle = Node(REGISTRY["scan"], (), {}, ())
    copy = Builder()
    copy.share_inputs(source)
    assert copy.keep(idle) == copy.keep(idle) == ()


def test_the_first_of_equal_nodes_keeps_its_name_and_line() -> None:
    b = Builder()
    x = b.input(F3, "x")
    b.where = Where("a.py", 1)
    (first,) = b.emit(sin, [x.value], {}, ["first"])
    b.where = Where("a.py", 2)
    (second,) = b.emit(sin, [x.value], {}, ["second"])
    assert first.value is second.value
    assert (first.value.hint, b.nodes[0].where) == ("first", Where("a.py", 1))


CONSTANTS = [0.0, -0.0, 1.0, float("nan"), float("inf"), 1, True, 0, False]


@pytest.mark.parametrize("value", CONSTANTS, ids=repr)
def test_a_constant_merges_with_itself_alone(value: object) -> None:
    b = Builder()
    made = [b.emit(const, (), {"aval": F3, "value": v})[0].value for v in CONSTANTS]
    (again,) = b.emit(const, (), {"aval": F3, "value": value})
    assert [v is again.value for v in made] == [v is value for v in CONSTANTS]


def test_constants_of_other_types_stay_apart() -> None:
    b = Builder()
    avals = [F3, Aval((3,), np.dtype(np.float32)), Aval((), F64), Aval((), F64, "scalar"), Aval((), F64, "python")]
    assert len({b.constant(1, a).value for a in avals}) == len(avals)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        (0, False),
        (1j, complex(-0.0, 1.0)),
        ((0.0,), (-0.0,)),
        ((1,), (True,)),
        (slice(1), slice(None)),
        (Arg(1), 1),
        ("1", 1),
        (np.dtype(np.float32), F64),
        (F3, Aval((), F64)),
        ((), None),
    ],
)
def test_attributes_that_differ_have_different_keys(a: object, b: object) -> None:
    assert attr_key(a) != attr_key(b)
    assert hash(attr_key(a)) == hash(attr_key(a))


@pytest.mark.parametrize("value", [float("nan"), complex("nan"), (float("nan"), slice(1, 2)), F3, (1, (2.0, "x"))])
def test_an_attribute_has_the_key_of_its_equal(value: object) -> None:
    assert attr_key(value) == attr_key(value)
    assert attrs_key({"a": value}) == attrs_key({"a": value})


def test_a_replica_stays_apart_from_its_original() -> None:
    b = Builder()
    x = b.input(F3)
    first = sin(x)
    b.replica = 1
    second, third = sin(x), sin(x)
    b.replica = 0
    assert first.value is not second.value
    assert second.value is third.value
    assert [n.replica for n in b.nodes] == [0, 1]


def test_a_rebuild_keeps_replicas_names_and_lines() -> None:
    text = "graph f(%x: f64[3]) {\n  %a = sin~2 %x : f64[3]  # a.py:3\n  return %a\n}\n"
    graph = parse(text)
    b = Builder()
    env = dict(zip(graph.inputs, b.inputs_like(graph.inputs), strict=True))
    outs = b.copy_node(graph.nodes[0], [env[graph.inputs[0]].value])
    assert to_text(b.graph("f", outs)) == text
    assert b.replica == 0


def test_effects_never_merge() -> None:
    draw = replace(sin, name="draw", effect=True)
    b = Builder()
    x = b.input(F3)
    first, second = b.emit(draw, [x.value], {}), b.emit(draw, [x.value], {})
    assert first[0].value is not second[0].value
    assert len(b.nodes) == 2


def test_numbers_beside_symbols_become_constants_of_their_type() -> None:
    b = Builder()
    x = b.input(Aval((3,), np.dtype(np.float32)), "x")
    y = 1 - x * 2
    graph = verify(b.graph("f", [y]))
    assert {n.attrs["aval"] for n in graph.nodes if n.prim is const} == {x.aval}
    (found,) = evaluate(graph, [np.ones(3, np.float32)])
    np.testing.assert_array_equal(found, np.full(3, -1, np.float32))


def test_operators_of_symbols_are_those_of_numpy() -> None:
    b = Builder()
    x, y = b.input(Aval((2, 2), F64)), b.input(Aval((2, 2), F64))
    outs = [x + y, x - y, x * y, x / y, x**y, x @ y, -x, 2 + x, 2 - x, 2 * x, 2 / x]
    u, v = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[2.0, 0.5], [1.0, 3.0]])
    expected = [u + v, u - v, u * v, u / v, u**v, u @ v, -u, 2 + u, 2 - u, 2 * u, 2 / u]
    for found, wanted in zip(evaluate(verify(b.graph("f", outs)), [u, v]), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_small_arrays_become_constants() -> None:
    b = Builder()
    arrays = [
        np.array([[1.5, -0.0], [np.nan, np.inf]]),
        np.zeros((0, 3)),
        np.array(2.0),
        np.array([True]),
        np.arange(3),
    ]
    graph = verify(b.graph("f", [b.constant(a) for a in arrays]))
    for found, wanted in zip(evaluate(verify(parse(to_text(graph))), []), arrays, strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.tobytes() == wanted.tobytes()


def test_a_constant_without_a_type_is_refused() -> None:
    with pytest.raises(InternalError, match="aval"):
        Builder().constant(1.0)


def test_zeros_of_a_list_of_steps_are_lists() -> None:
    b = Builder()
    (found,) = evaluate(verify(b.graph("f", [b.zeros(F3.stacked(2).stacked(4))])), [])
    assert [len(found), len(found[0]), found[0][0].shape] == [4, 2, (3,)]


def test_coercion_changes_dtype_and_kind_but_no_shape() -> None:
    b = Builder()
    x = b.input(Aval((), F64, "python"))
    assert b.coerce(x, x.aval) is x
    assert b.coerce(x, Aval((), np.dtype(np.float32), "scalar")).aval == Aval((), np.dtype(np.float32), "scalar")
    with pytest.raises(InternalError, match="cannot coerce"):
        b.coerce(x, F3)


def test_a_primitive_is_applied_to_symbols_alone() -> None:
    with pytest.raises(InternalError, match="applied to no operand"):
        sin(1.0)


def test_attributes_remember_their_key_but_not_across_processes() -> None:
    b = Builder()
    made = b.constant(-0.0, F3).node
    assert made is not None
    plain = {**made.attrs}
    assert type(made.attrs) is not dict
    assert attrs_key(made.attrs) == attrs_key(plain) != attrs_key({**plain, "value": 0.0})
    assert type(pickle.loads(pickle.dumps(made.attrs))) is dict  # the key of a body is its address


def test_nodes_of_a_program_have_the_keys_of_their_attributes() -> None:
    def loss(x):
        y = rg.fori_loop(0, 9, lambda i, y: np.sin(y[::-1]) * y[1], x)
        return np.sum(y[1:] ** 2)

    nodes = list(walk(rg.grad(loss).at(np.ones(3)).graph))
    assert any(type(node.attrs) is not dict for node in nodes)
    for node in nodes:
        assert attrs_key(node.attrs) == attrs_key({**node.attrs})
