"""The laws find faults: each wrong rule that is planted here makes a law fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retrograd.codegen.numpy import absorb
from retrograd.errors import GraphError
from retrograd.ir import Aval, Graph, Node, Value, evaluate, verify
from retrograd.ir.builder import Builder
from retrograd.ir.primitive import REGISTRY, pull, push
from retrograd.ops.batching import elementwise
from retrograd.ops.structural import scan as scan_rules
from retrograd.passes import place_buffers, simplify
from retrograd.passes import transpose as transpose_pass
from tests.support import graphs, laws, values
from tests.support.graphs import op
from tests.support.samples import SAMPLES, Sample

LAWS: dict[str, Callable[[Sample], None]] = {
    "shape": lambda s: laws.shape_rule(s.graph(), s.operands()),
    "aliasing": laws.aliasing,
    "emission": lambda s: laws.emission(s.graph(), s.operands()),
    "round trip": lambda s: laws.round_trip(s.graph(), s.operands()),
    "linearity": laws.linearity,
    "derivatives": lambda s: laws.derivatives(s.graph(), s.operands(), order=2, smooth=s.smooth),
    "lanes": lambda s: laws.lanes(s.graph(), [True] * len(s.draws), [s.operands(k) for k in range(3)]),
    "shared lanes": lambda s: laws.lanes(
        s.graph(), [i == 0 for i in range(len(s.draws))], [s.operands(k) for k in range(3)]
    ),
}


@contextmanager
def planted(name: str, **fields: Any) -> Iterator[None]:
    """Other fields for a primitive, for a while."""
    prim = REGISTRY[name]
    kept = []
    for field, value in fields.items():
        holder = prim if hasattr(prim, field) else prim.numpy
        kept.append((holder, field, getattr(holder, field)))
        object.__setattr__(holder, field, value)
    try:
        yield
    finally:
        for holder, field, value in kept:
            object.__setattr__(holder, field, value)


def breaks(name: str, law: str) -> bool:
    """Whether some sample of a primitive breaks a law."""
    for sample in SAMPLES[name]:
        try:
            LAWS[law](sample)
        except Exception:  # noqa: BLE001 - a fault may show in any way
            return True
    return False


X = np.array([0.3, -0.7, 1.1])
V = Aval((3,), np.dtype(float))
MATMUL_A = REGISTRY["matmul"].diff[0].rule
RULES: list[tuple[str, str, dict[str, Any]]] = [
    ("cos", "derivatives", {"diff": (push(lambda t, out, x: t * op("sin", x)),)}),
    ("exp", "derivatives", {"diff": (push(lambda t, out, x: t * x),)}),
    ("sqrt", "derivatives", {"diff": (push(lambda t, out, x: t / out),)}),
    ("sin", "derivatives", {"diff": (None,)}),
    ("tanh", "derivatives", {"diff": (push(lambda t, out, x: t * (1 - out)),)}),
    ("square", "derivatives", {"diff": (pull(lambda ct, x: ct * (x * 2)),)}),
    ("mul", "linearity", {"diff": (pull(lambda ct, x, y: ct * y), pull(lambda ct, x, y: ct))}),
    ("mul", "derivatives", {"diff": (pull(lambda ct, x, y: ct), pull(lambda ct, x, y: x * ct))}),
    ("sub", "linearity", {"diff": (pull(lambda ct, x, y: ct), pull(lambda ct, x, y: ct))}),
    ("div", "derivatives", {"diff": (pull(lambda ct, x, y: ct / y), push(lambda t, out, x, y: t * (out / y)))}),
    ("power", "derivatives", {"diff": (push(lambda t, out, x, y: t * (y * x**y)), None)}),
    ("maximum", "derivatives", {"diff": REGISTRY["minimum"].diff}),
    ("matmul", "linearity", {"diff": (pull(lambda ct, a, b: ct @ b if b.ndim == 2 else MATMUL_A(ct, a, b)), None)}),
    ("sum", "linearity", {"diff": (pull(lambda ct, x, axis, keepdims: x.builder.zeros(x.aval)),)}),
    ("broadcast", "derivatives", {"diff": (pull(lambda ct, x, aval: ct.builder.zeros(x.aval)),)}),
    ("permute", "linearity", {"diff": (pull(lambda ct, x, axes: op("permute", ct, axes=axes)),)}),
    ("reshape", "linearity", {"diff": (pull(lambda ct, x, aval: ct),)}),
    ("cast", "linearity", {"diff": (pull(lambda ct, x, aval: ct),)}),
    ("getitem", "linearity", {"diff": (pull(lambda acc, ct, x, index: op("neg", acc), into=True),)}),
    ("getitem", "derivatives", {"diff": (pull(lambda acc, ct, x, index: acc, into=True),)}),
    ("setitem", "linearity", {"diff": (pull(lambda ct, x, v, index: ct), REGISTRY["setitem"].diff[1])}),
    ("scatter", "linearity", {"diff": (REGISTRY["scatter"].diff[0], REGISTRY["scatter_add"].diff[1], None)}),
    ("where", "linearity", {"diff": (None, *REGISTRY["where"].diff[:0:-1])}),
    ("concatenate", "linearity", {"transpose": lambda b, node, operands, cts: [None for _ in operands]}),
    ("stack_add", "linearity", {"diff": (pull(lambda ct, x, y: ct), None)}),
    ("sum", "lanes", {"batch": elementwise}),
    ("argmax", "lanes", {"batch": elementwise}),
    ("matmul", "lanes", {"batch": lambda prim, size, args, flags: args[0] @ args[1]}),
    ("getitem", "lanes", {"batch": elementwise}),
    ("gather", "lanes", {"batch": lambda prim, size, args, flags, index: prim(*args, index=index)}),
    ("add", "shared lanes", {"batch": lambda prim, size, args, flags: prim(*args)}),
    ("permute", "lanes", {"batch": lambda p, size, args, flags, axes: p(args[0], axes=(*(a + 1 for a in axes), 0))}),
    ("concatenate", "lanes", {"batch": elementwise}),
    ("sin", "shape", {"code": "np.sin({0}).astype(np.float32)"}),
    ("lt", "shape", {"shape": REGISTRY["add"].shape}),
    ("argmax", "shape", {"code": "np.argmax({0})"}),
    ("setitem", "shape", {"writes": None, "statement": "", "code": "{0}.__setitem__(({index},), {1}) or {0}"}),
    ("copy", "aliasing", {"code": "{0}"}),
    ("permute", "aliasing", {"alias": None}),
    ("getitem", "emission", {"alias": None}),
    ("mul", "emission", {"op": "{0} + {1}"}),
]


@pytest.mark.parametrize(("name", "law", "fields"), RULES, ids=[f"{n}-{law}" for n, law, _ in RULES])
def test_a_wrong_declaration_breaks_a_law(name: str, law: str, fields: dict[str, Any]) -> None:
    assert not breaks(name, law)
    with planted(name, **fields):
        assert breaks(name, law)


def test_a_lost_addition_of_cotangents_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.built(lambda x: op("sin", x) * op("cos", x), V)
    laws.derivatives(graph, [X])
    monkeypatch.setattr(transpose_pass, "_accumulate", lambda ct_of, value, ct: ct_of.__setitem__(value, ct))
    with pytest.raises(AssertionError, match="<u, J v>"):
        laws.derivatives(graph, [X])


def test_a_loop_that_is_not_turned_around_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = scan_rules.make_scan
    monkeypatch.setattr(scan_rules, "make_scan", lambda *args: made(*args[:-1], False))
    assert breaks("scan", "derivatives")


def test_a_loop_whose_lanes_lie_on_the_wrong_axis_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_rules, "move_axis", lambda x, source, target: x)
    assert breaks("scan", "lanes")


def test_a_rewrite_that_is_not_exact_is_found() -> None:
    graph = graphs.built(lambda x: op("sin", x) + 0.0, V)
    wrong = simplify.Rule(lambda x: x + 0.0, lambda x: x)
    zeros = [-np.zeros(3)]
    for rules, same in (([], True), ([wrong], False)):
        found, expected = evaluate(simplify.simplify(graph, rules), zeros), evaluate(graph, zeros)
        if same:
            values.assert_same_bits(found, expected)
        else:
            with pytest.raises(AssertionError):
                values.assert_same_bits(found, expected)


def test_storage_that_is_used_again_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Aval((20000,), np.dtype(float))

    def chain(x: Any) -> list[Any]:
        p = op("sin", x)
        view = op("getitem", p, index=(slice(None, None, -1),))
        return [op("exp", p) * view]

    graph, args = graphs.built(chain, large), [np.linspace(0, 1, 20000)]
    laws.emission(graph, args)
    monkeypatch.setattr(place_buffers._BufferPlacer, "_is_live", lambda *_: False)
    with pytest.raises(AssertionError):
        laws.emission(replace(graph), args)  # a graph remembers how it was compiled


def test_a_result_that_is_an_argument_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.built(lambda x: [op("permute", x, axes=(0,))], V)
    laws.emission(graph, [X])
    monkeypatch.setattr(laws, "pipeline", simplify.simplify)
    with pytest.raises(AssertionError, match="shares memory with an argument"):
        laws.emission(graph, [X])


def test_a_broadcast_that_is_dropped_too_often_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.built(lambda x: op("sin", op("broadcast", x, aval=Aval((2, 3), x.dtype))), V)
    laws.emission(graph, [X])

    def dropped(node: Any, inputs: Any, i: int, made: Any) -> Any:
        source = made.get(inputs[i])
        return source.inputs[0] if source is not None and source.prim.name == "broadcast" else inputs[i]

    monkeypatch.setattr(absorb, "_without_broadcast", dropped)
    with pytest.raises(AssertionError):
        laws.emission(replace(graph), [X])


def test_an_aval_that_no_rule_gives_is_found() -> None:
    b = Builder()
    x = b.input(V)
    wrong = Node(REGISTRY["sin"], (x.value,), {}, (Value(Aval((4,), V.dtype)),))
    with pytest.raises(GraphError, match="should be"):
        verify(Graph("f", (x.value,), (wrong,), wrong.outputs))
