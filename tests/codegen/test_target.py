"""A target is what its protocol says: a toy one, which writes Python floats, goes through the same doors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.names import Names
from retrograd.compiler.executable import Executable
from retrograd.errors import InternalError, UnsupportedError
from retrograd.ir.footprint import Course
from retrograd.ir.graph import Graph, Value
from retrograd.ir.plan import Plan
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.target import METHODS, TARGETS, Module, Target, Targets
from retrograd.ir.texts import TEXTS
from retrograd.ops.elementary import cos
from retrograd.ops.elementwise import unary
from retrograd.where import Where


@dataclass(frozen=True, kw_only=True)
class FloatText:
    """An expression of Python floats."""

    floats: str


FLOATS = {
    "add": "{0} + {1}",
    "cast": "float({0})",
    "const": "{value!r}",
    "cos": "math.cos({0})",
    "div": "{0} / {1}",
    "exp": "math.exp({0})",
    "log": "math.log({0})",
    "mul": "{0} * {1}",
    "neg": "-{0}",
    "pow": "{0} ** {1}",
    "power": "{0} ** {1}",
    "sin": "math.sin({0})",
    "sqrt": "math.sqrt({0})",
    "square": "{0} * {0}",
    "sub": "{0} - {1}",
    "tanh": "math.tanh({0})",
}
REGISTRY.describe("floats", {name: FloatText(floats=text) for name, text in FLOATS.items()})


class NoMemory:
    """The footprint of code without arrays."""

    def peak(self, limit: float = inf) -> int:
        return 0

    def course(self) -> Course:
        return Course(0, [], [])


class Floats:
    """Functions of Python floats, one line for each operation, for graphs in which everything is one number."""

    name = "floats"

    def legalise(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if self.name not in node.prim.texts:
                raise UnsupportedError(f"the target floats does not know {node.prim.name}", where=node.where)
            for value in (*node.inputs, *node.outputs):
                if value.aval.kind == "array" or value.aval.dtype != float:
                    raise UnsupportedError(f"the target floats has no {value.aval}", where=node.where)
        return graph

    def plan(self, graph: Graph, ordered: bool = True) -> Plan:
        dies: tuple[tuple[Value, ...], ...] = ((),) * len(graph.nodes)
        return Plan(graph, {}, {}, frozenset(), frozenset(), {}, dies, 0, 0, frozenset(), {})

    def emit(self, plan: Plan, constants: Mapping[int, np.ndarray[Any, Any]] | None = None) -> Module:
        graph, names = plan.order, Names(["math"])
        name: dict[Value, str] = {v: names.fresh(v.hint) for v in graph.inputs}
        lines = ["import math", f"def floats({', '.join(name.values())}):"]
        where: dict[int, Where] = {}
        for node in graph.nodes:
            text = node.prim.texts[self.name].floats.format(*(name[v] for v in node.inputs), **node.attrs)
            name[node.out] = names.fresh(node.out.hint)
            lines.append(f"    {name[node.out]} = {text}")
            if node.where is not None:
                where[len(lines)] = node.where
        results = ", ".join(name[v] for v in graph.outputs)
        lines.append(f"    return {results}")
        return Module("\n".join(lines), "floats", where)

    def footprint(self, plan: Plan) -> NoMemory:
        return NoMemory()

    def load(self, module: Module, filename: str, names: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
        scope: dict[str, Any] = {}
        exec(compile(module.source, filename, "exec"), scope)
        function: Callable[..., Any] = scope[module.function]
        return function


def compiled(function: Any, *args: float) -> Executable:
    """What the toy makes of the graph that the whole pipeline makes."""
    return Executable(function.graph(*args), target=Floats())


def wave(x: Any, y: Any) -> Any:
    return np.sin(x) * y + np.exp(-x * y)


def rosenbrock(x: Any, y: Any) -> Any:
    return (1.0 - x) ** 2 + 100.0 * (y - x**2) ** 2


def quotient(x: Any, y: Any) -> Any:
    return np.sqrt(1.0 + np.tanh(x) ** 2) / np.log(y + 2.0)


@pytest.mark.parametrize("f", [wave, rosenbrock, quotient], ids=lambda f: f.__name__)
def test_gradients_of_scalars_in_python_floats(f: Callable[..., Any]) -> None:
    gradient = rg.value_and_grad(f, (0, 1))
    executable = compiled(gradient, 0.3, 1.7)
    for x, y in ((0.3, 1.7), (1.2, -0.4), (-2.0, 0.9)):
        found, (value, slopes) = executable(x, y), gradient(x, y)
        assert {type(number) for number in found} == {float}
        np.testing.assert_allclose(found, [value, *slopes], rtol=1e-13)


def test_second_derivatives() -> None:
    second = rg.grad(rg.grad(lambda x: np.exp(np.sin(x)) * x))
    np.testing.assert_allclose(compiled(second, 0.5)(0.5), [second(0.5)], rtol=1e-13)


def test_its_source_is_shown_and_errors_name_the_line_of_the_user() -> None:
    executable = compiled(rg.jit(quotient), 0.3, 1.7)
    assert "math.log(" in executable.source()
    assert "np." not in executable.source()
    with pytest.raises(ValueError, match=r"math domain error|positive") as caught:
        executable(0.3, -3.0)
    assert any("test_target.py" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("f", "x", "message"),
    [
        (lambda x: np.sum(x**2), np.ones(3), r"the target floats has no f64\[3\]"),
        (lambda x: np.arctan(x) + 1.0, 0.5, "the target floats does not know arctan"),
        (lambda x: rg.fori_loop(3, lambda i, a: a * 2.0, x), 0.5, "the target floats does not know step_numbers"),
    ],
    ids=["arrays", "functions", "loops"],
)
def test_what_it_cannot_do_is_refused_with_the_line_of_the_user(f: Any, x: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        compiled(rg.jit(f), x)
    assert "test_target.py" in str(caught.value)


def test_a_primitive_is_one_declaration_for_several_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TEXTS, "floats", FloatText)
    try:
        own = unary("sin_of_a_test", "np.sin", rg.push(lambda t, out, x: t * cos(x)), floats="math.sin({0})")
        assert own.numpy.code == "np.sin({0})"
        assert own.texts["floats"] == FloatText(floats="math.sin({0})")
        assert "floats" not in unary("tan_of_a_test", "np.tan").texts
    finally:
        for name in ("sin_of_a_test", "tan_of_a_test"):
            REGISTRY.pop(name, None)


def test_texts_are_for_primitives_that_there_are_and_given_once() -> None:
    with pytest.raises(InternalError, match="describes sine, which is not a primitive"):
        REGISTRY.describe("floats", {"sine": FloatText(floats="math.sin({0})")})
    with pytest.raises(InternalError, match="describes sin twice"):
        REGISTRY.describe("floats", {"sin": FloatText(floats="math.sin({0})")})


@pytest.mark.parametrize("method", METHODS)
def test_a_target_that_lacks_a_method_is_told_so(method: str) -> None:
    class Lacking(Floats):
        pass

    setattr(Lacking, method, None)
    with pytest.raises(InternalError, match=f"the target Lacking has no method {method}: a target has legalise, plan"):
        Targets().add(Lacking())


def test_two_targets_have_two_names() -> None:
    targets = Targets()
    targets.add(Floats())
    with pytest.raises(InternalError, match="two targets are called floats"):
        targets.add(Floats())


class Observed:
    """A target that notes what it is asked for."""

    def __init__(self, target: Target) -> None:
        self.target, self.asked = target, set[str]()

    def __getattr__(self, name: str) -> Any:
        self.asked.add(name)
        return getattr(self.target, name)


def test_whoever_plans_measures_or_runs_asks_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.linspace(0.0, 1.0, 5000)

    def f(v: Any) -> Any:
        for _ in range(4):
            v = np.sin(np.cumsum(v) / len(v))
        return np.sum(v * v)

    def asked(action: Callable[[], Any]) -> set[str]:
        observed = Observed(TARGETS["numpy"])
        with monkeypatch.context() as patch:
            patch.setitem(TARGETS, "numpy", observed)
            action()
        return observed.asked

    thrifty = rg.grad(f, memory="200 kB")
    assert asked(lambda: thrifty.graph(x, stage="optimised")) == {
        "legalise",
        "plan",
        "footprint",
    }  # nothing is compiled
    assert asked(lambda: thrifty(x)) == {"legalise", "plan", "emit", "load"}
    assert asked(lambda: rg.grad(lambda x: 2.0 * f(x), memory="200 kB").plan(x)) == set(METHODS)
    assert asked(lambda: thrifty.plan(x)) == set()  # what was compiled keeps its target
    assert asked(lambda: rg.grad(lambda x: 1.0 * f(x), memory="200 kB")(x)) == set(METHODS)
    assert asked(lambda: rg.jit(lambda x: 1.0 * f(x))(x)) == {"legalise", "plan", "emit", "load"}
    assert math.isclose(float(thrifty(x)[0]), float(rg.grad(f)(x)[0]))
