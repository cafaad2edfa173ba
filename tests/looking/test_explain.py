"""explain and profile: what they say of a function is so."""

from __future__ import annotations

import linecache
import sys

import numpy as np
import pytest

import retrograd as rg
from retrograd.api.at_a_point import Vjp
from retrograd.compiler.compiled import Compiled
from retrograd.ir.primitive import REGISTRY
from retrograd.looking.anatomy import Anatomy
from retrograd.looking.costs import CHEAP, FAMILIES, cost, family
from retrograd.looking.machine import Speeds
from tests.support.samples import SAMPLES

X = np.linspace(0.1, 1.0, 5)
WEIGHTS = np.linspace(1.0, 2.0, 5)
SLOW = np.linspace(0.0, 1.0, 20_000)


def loss(x, a, unused):
    y = np.sin(x) * a
    z = y * WEIGHTS
    return np.sum(z)


def decides(x):
    if x[0] > 0:
        return np.sum(x * 2.0)
    return np.sum(x)


def looped(x, a):
    y = rg.fori_loop(20, lambda i, y: np.sin(a @ y), x, memory=rg.Snapshots(3))
    return np.sum(y)


def two_lines(x):
    slow = np.exp(np.sin(np.exp(np.sin(np.exp(x)))))
    return np.sum(slow) + x[0]


def line_of(function, offset):
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def test_inputs_that_matter_are_told_from_others():
    found = rg.grad(loss).explain(X, 2.0, 3.0)
    by_name = {use.name: use for use in found.inputs}
    assert [*by_name] == ["x", "a", "unused", "WEIGHTS"]
    assert [use.result for use in found.inputs] == [True, True, False, True]
    assert [use.differentiated for use in found.inputs] == [True, False, False, False]
    assert by_name["WEIGHTS"].captured
    assert by_name["x"].type == "f64[5]"
    assert by_name["x"].bytes == 40


def test_an_input_may_matter_to_the_value_and_not_to_the_gradient():
    found = rg.grad(lambda x, b: np.sum(x**2) + b).explain(X, 2.0)
    assert [(use.name, use.value, use.result) for use in found.inputs] == [("x", True, True), ("b", True, False)]


def test_lines_are_the_users_with_function_and_adjoint_apart():
    found = rg.value_and_grad(loss).explain(X, 2.0, 3.0)
    parts = {(line.where, line.part) for line in found.lines if line.where}
    assert {(line_of(loss, k), "forward") for k in (1, 2, 3)} <= parts
    assert (line_of(loss, 1), "adjoint") in parts
    forward = next(line for line in found.lines if (line.where, line.part) == (line_of(loss, 1), "forward"))
    assert forward.code == "y = np.sin(x) * a"
    assert forward.flops >= 10  # five sines, and five products


def test_costs_of_products_are_counted_with_the_steps_of_loops():
    a = np.eye(5) / 2
    found = rg.grad(looped).explain(X, a)
    (ran,) = (line for line in found.lines if line.part == "forward" and line.where == line_of(looped, 1))
    assert 20 * (2 * 25 + 5) <= ran.flops <= 20 * (2 * 25 + 5) + 10  # and a residual of the last step
    again = next(line for line in found.lines if line.part == "again")
    steps = found.memory.recomputed
    assert again.flops == steps * (2 * 25 + 5)
    assert not any(line.open for line in found.lines)


def test_what_data_decide_is_marked():
    found = rg.jit(lambda x: rg.while_loop(lambda y: y[0] < 5, lambda y: y + 1, x)).explain(X)
    assert any(line.open for line in found.lines)
    assert "+" in str(found)


def test_measured_times_add_up_to_a_call():
    found = rg.grad(looped).explain(X, np.eye(5))
    assert sum(line.measured for line in found.lines) == pytest.approx(found.seconds)
    assert all(line.measured >= 0 for line in found.lines)


def test_time_goes_to_the_line_that_takes_it():
    found = rg.jit(two_lines).profile(SLOW)
    where, code, forward, back = found.by_line()[0]
    assert where == line_of(two_lines, 1)
    assert code.startswith("slow = ")
    assert forward > found.seconds / 2
    assert back == 0.0
    assert "time by line" in found._repr_html_()


def test_the_function_itself_is_not_read_at_the_line_that_asks():
    found = rg.grad(loss).explain(X, 2.0, 3.0, check=False)
    assert found.bindings.watched[0] == "the code of loss"
    assert all("(read at " in words for words in found.bindings.watched[1:])


def test_equal_decisions_are_one_row_with_their_number():
    def halved(x):
        while np.sum(x) > 1.0:
            x = x * 0.5
        return np.sum(x**2)

    found = rg.grad(halved).explain(np.full(3, 1000.0), check=False)
    assert len(found.decisions) == 13
    shown = str(found).partition("decisions:")[2].partition("folded")[0]
    line = halved.__code__.co_firstlineno + 1
    assert f"12 × test_explain.py:{line}  bool       True " in shown
    assert shown.count("while np.sum(x) > 1.0:") == 2
    assert [r.why for r in found.remarks if "unrolled" in r.what] == ["Python decides between its steps"] * 2


def test_decisions_and_ways():
    f = rg.grad(decides)
    f(-X)
    found = f.explain(X)
    (decision,) = found.decisions
    assert (decision.kind, decision.answer, decision.code) == ("bool", "True", "if x[0] > 0:")
    assert found.bindings.paths == 2


def test_cache_and_bindings():
    f = rg.grad(loss)
    f(X, 2.0, 3.0)
    f(X, 3.0, 3.0)
    found = f.explain(X, 2.0, 3.0).bindings
    assert (found.misses, found.signatures, found.versions) == (1, 1, 1)
    assert found.hits >= 2
    assert any("WEIGHTS" in words for words in found.watched)
    assert found.captured == ("WEIGHTS: f64[5], an object of type ndarray",)


def test_arrays_without_names_are_told_by_their_use_and_line():
    order, hidden = np.random.default_rng(0).permutation(200).tolist(), [np.linspace(0.0, 1.0, 200)]

    def folded(x):
        y = 0.0
        for k in order:
            y = np.sin(y * 0.5 + x[k])
        return y + np.sum(x * hidden[0])

    f = rg.grad(folded)
    found = f.explain(np.linspace(0.1, 1.0, 200))
    captured = {use.name for use in found.inputs if use.captured}
    short = line_of(folded, 3).rpartition("/")[2]
    assert f"index array of the loop at {short}" in captured
    assert f"array read at {line_of(folded, 4).rpartition('/')[2]}" in captured
    assert len(captured) == 2
    assert {text.rpartition(": ")[0] for text in found.bindings.captured} == captured
    assert "no line" not in str(found)
    assert "no line" not in str(f.profile(np.linspace(0.1, 1.0, 200)))


def test_static_arguments_are_told():
    found = rg.grad(lambda x, n: np.sum(x**n)).explain(X, 3)
    assert found.bindings.statics == ("n = 3",)


def test_the_gradient_is_checked():
    assert rg.grad(loss).explain(X, 2.0, 3.0).checked is True
    assert rg.jit(loss).explain(X, 2.0, 3.0).checked is None
    assert rg.grad(loss).explain(X, 2.0, 3.0, check=False).check == "not asked for"


def test_a_wrong_derivative_is_found():
    @rg.custom_vjp
    def wrong(x):
        return np.sum(x**2)

    wrong.defvjp(lambda x: (np.sum(x**2), x), lambda x, ct: (x * ct,))
    found = rg.grad(wrong).explain(X)
    assert found.checked is False
    assert "differences give" in found.check


def test_a_check_that_cannot_be_made_says_why():
    found = rg.grad(lambda x: (np.sum(x), x), has_aux=True).explain(X)
    assert found.checked is None
    assert "returns more" in found.check


def test_functions_that_draw_are_checked_with_the_same_numbers():
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    for f, args in (
        (lambda x: np.sum(np.sin(x) * rng.standard_normal(5)), (X,)),
        (lambda x, source: np.sum(np.sin(x) * source.standard_normal(5)), (X, rng)),
    ):
        assert rg.grad(f).explain(*args).checked is True
    assert rng.bit_generator.state == state


def test_a_function_of_other_values_at_each_call_is_not_checked():
    calls = [0]

    def changing(x):
        calls[0] += 1
        return np.sum(x * calls[0])

    found = rg.grad(changing).explain(X)
    assert found.checked is None
    assert "another value at each call" in found.check
    assert not found.bindings.compiled


def test_nan_safe_derivatives_are_checked_as_such():
    f = rg.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), x * 0)), nan_safe=True)
    assert rg.grad(lambda x: np.sum(np.sqrt(np.abs(x)))).explain(X).checked is True
    with np.errstate(invalid="ignore"):
        assert f.explain(np.array([-1.0, 2.0])).checked is True


def test_what_is_interpreted_is_explained():
    def caught(x):
        try:
            return np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            return x * 2.0

    found = rg.jit(caught).explain(-np.eye(3))
    assert any(not r.done and r.what == "compiled" for r in found.remarks)
    assert found.memory.peak_bytes is not None


def test_what_was_folded_and_what_was_not_with_reasons():
    def unrolled(x):
        for _ in range(10):
            x = x * 1.01
        return np.sum(x)

    def rolled(x):
        for _ in range(200):
            x = np.sin(x) * 1.01
        return np.sum(x)

    short = rg.grad(unrolled).explain(X).remarks
    assert any(not r.done and "10 times from one line" in r.what and "search" in r.why for r in short)
    long = rg.grad(rolled).explain(X).remarks
    assert any(r.done and "200 steps is a loop in the graph" in r.what for r in long)
    assert not any("unrolled" in r.what for r in long)
    with rg.config(exact=True):
        exact = rg.grad(unrolled).explain(X).remarks
    assert any(not r.done and "rg.config.exact is on" in r.why for r in exact)


def test_memory_is_that_of_the_plan():
    f = rg.grad(looped)
    assert f.explain(X, np.eye(5)).memory == f.plan(X, np.eye(5))


def test_text_html_and_data_say_the_same():
    found = rg.grad(loss).explain(X, 2.0, 3.0)
    for section in found.sections():
        assert f"{section.title}:" in str(found)
        assert f"<summary>{section.title}</summary>" in found._repr_html_()
    data = found.to_dict()
    assert data["inputs"][0]["name"] == "x"
    assert data["memory"]["peak_bytes"] == found.memory.peak_bytes


def test_hostile_names_are_inert():
    scope: dict = {"np": np}
    source = "def f(x):\n    return np.sum(x)  # </td><script>alert(1)</script>\x1b[31m\n"
    file = "<img src=x onerror=alert(1)>.py"
    exec(compile(source, file, "exec"), scope)
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope["f"].__name__ = scope["f"].__qualname__ = "<script>alert(2)</script>"
    found = rg.grad(scope["f"]).explain(X)
    assert "<script" not in found._repr_html_()
    assert "<img" not in found._repr_html_()
    assert "\x1b" not in str(found)


def test_arguments_and_generators_are_as_before():
    rng = np.random.default_rng(0)

    def noisy(x, rng):
        x[0] = 1.0
        return np.sum(x * rng.standard_normal(5))

    x, state = X.copy(), rng.bit_generator.state
    f = rg.jit(noisy)
    found = f.profile(x, rng)
    assert found.seconds > 0
    assert np.array_equal(x, X)
    assert rng.bit_generator.state == state


def test_a_tracer_that_was_set_is_set_again():
    def mine(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(mine)
    try:
        rg.jit(loss).profile(X, 2.0, 3.0)
        assert sys.gettrace() is mine
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    "make",
    [
        rg.grad,
        rg.jit,
        rg.value_and_grad,
        rg.hessian,
        lambda f: rg.vmap(rg.grad(f), in_axes=(0, None, None)),
        lambda f: Compiled(f, Vjp("vjp")),
        lambda f: Compiled(f, Vjp("vjp", memory=("bytes", 100_000))),
        lambda f: rg.grad(f, memory="10 kB"),
    ],
    ids=["grad", "jit", "value_and_grad", "hessian", "vmap", "vjp", "vjp-budget", "grad-budget"],
)
def test_every_transform_is_explained(make):
    f = make(loss)
    x = np.stack([X, X]) if "vmap" in repr(f) else X
    found = f.explain(x, 2.0, 3.0)
    assert found.lines
    assert found.seconds > 0
    assert str(found)


def test_the_adjoint_of_each_operation_is_known():
    anatomy = Anatomy(rg.grad(loss), (X, 2.0, 3.0), {})
    sine = next(op for op in anatomy.operations.values() if op.node.prim.name == "cos")
    assert sine.part == "forward"
    assert all(anatomy.operations[n].traced == sine.traced for n in anatomy.adjoints[sine.number])
    assert anatomy.adjoints[sine.number]


def test_the_anatomy_runs_what_is_compiled():
    for f in (rg.grad(loss), rg.grad(looped)):
        args = (X, 2.0, 3.0) if "loss" in repr(f) else (X, np.eye(5))
        anatomy = Anatomy(f, args, {})
        (code,) = anatomy.codes
        strip = [line.partition("  #")[0].rstrip() for line in code.source]
        assert strip == [line.partition("  #")[0].rstrip() for line in f.source(*args).splitlines()]


def test_each_primitive_has_a_family():
    others = {name for name in SAMPLES if family(REGISTRY[name]) == "other functions"}  # tests register further ones
    assert 0 < len(others) < 30
    assert REGISTRY.keys() >= FAMILIES.keys()
    assert REGISTRY.keys() >= CHEAP


def test_costs_follow_the_operation():
    rates = Speeds(1e9, 1e8, 1e10, 1e-6)
    graph = rg.trace(lambda a, b: np.linalg.solve(a @ b, np.exp(b)))(np.eye(10), np.eye(10))
    found = {node.prim.name: cost(node, rates) for node in graph.nodes}
    assert found["matmul"].flops == 2000
    assert found["exp"].flops == 100
    assert found["solve"].flops == pytest.approx(2 * 1000 / 3 + 2000)
    assert found["exp"].seconds == pytest.approx(1e-6 + 1e-6)
    assert found["matmul"].bytes == 2400
