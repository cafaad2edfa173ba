"""Golden files: what a pass makes of a graph, in text, and whether both halves mean the same.

A golden file is a sentence, a line ``RUN: pass, pass(x, y)``, a graph, ``---``, and what the passes make of it. In
parentheses stand the inputs that are differentiated, linear or with lanes, for ``batch`` first the number of lanes,
and for ``simplify`` further tables of rules. The last step may also print: ``source`` (the functions alone),
``module``, ``c`` (of a graph that is one kernel), ``dot``, ``verify`` and ``parse``.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from retrograd.codegen.native.kernel_function import kernel_function
from retrograd.codegen.native.shared_objects import functions
from retrograd.codegen.native.shim import extension
from retrograd.codegen.native.target import missing
from retrograd.codegen.numpy.check import check_source
from retrograd.compiler.executable import Executable
from retrograd.compiler.pass_table import passes
from retrograd.errors import GraphError, ParseError
from retrograd.ir import Aval, Graph, evaluate, parse, to_text, verify
from retrograd.ir.builder import Builder
from retrograd.ir.dot import to_dot
from retrograd.passes.batch import batch
from retrograd.passes.delay import delay
from retrograd.passes.differentiate import value_and_grad
from retrograd.passes.inline import inline_into
from retrograd.passes.join_parts import join_parts
from retrograd.passes.jvp import jvp
from retrograd.passes.linearize import linearize
from retrograd.passes.patterns import Rule
from retrograd.passes.pullback_at_results import Recalled, recall
from retrograd.passes.remat.copy_again import copy_again
from retrograd.passes.remat.split import splits
from retrograd.passes.rows_apart import rows_apart
from retrograd.passes.rules import BEFORE, FAST, NATIVE, NUMPY, REASSOCIATE
from retrograd.passes.simplify import simplify
from retrograd.passes.sums_behind_loops import sums_behind_loops
from retrograd.passes.transpose import transpose
from tests.golden import dotlexer
from tests.support import values

FOLDER = Path(__file__).parent
SEPARATOR = "---\n"
TABLES = {"reassociate": REASSOCIATE, "fast": FAST, "native": NATIVE, "numpy": NUMPY, "before": BEFORE}
DRAWS = 3
SPECIAL = (0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 5e-324)


@dataclass(frozen=True)
class Step:
    """One pass of a RUN line, with the names or numbers in its parentheses."""

    name: str
    args: tuple[str, ...]

    def flags(self, graph: Graph) -> list[bool]:
        """Which inputs are named; without any name all that can be differentiated."""
        names = [a for a in self.args if not a.isdigit()]
        assert {v.hint for v in graph.inputs} >= set(names), f"{names} are no inputs of\n{graph}"
        return [v.hint in names if names else v.aval.inexact for v in graph.inputs]

    def known(self, graph: Graph) -> int:
        """How many inputs come before those that are named."""
        flags = self.flags(graph)
        assert flags == sorted(flags), "the linear inputs come last"
        return flags.count(False)

    @property
    def size(self) -> int:
        return int(self.args[0])

    @property
    def rules(self) -> list[Rule]:
        return [rule for table in self.args for rule in TABLES[table]]


@dataclass(frozen=True)
class Golden:
    """A golden file, read."""

    path: Path

    def __str__(self) -> str:
        return str(self.path.relative_to(FOLDER).with_suffix(""))

    @property
    def halves(self) -> tuple[str, str]:
        upper, separator, lower = self.path.read_text().partition("\n" + SEPARATOR)
        assert separator, f"{self.path} has no line ---"
        return upper.rstrip("\n") + "\n", lower

    @property
    def sentence(self) -> str:
        return self.halves[0].partition("\nRUN: ")[0]

    @property
    def steps(self) -> list[Step]:
        line = self.halves[0].partition("\nRUN: ")[2].partition("\n")[0]
        found = re.findall(r"(\w+)(?:\(([^)]*)\))?(?:, |$)", line)
        return [Step(name, tuple(a.strip() for a in args.split(",") if a)) for name, args in found]

    @property
    def given(self) -> str:
        return self.halves[0].partition("\nRUN: ")[2].partition("\n")[2].lstrip("\n")

    @property
    def expected(self) -> str:
        return self.halves[1]

    def accept(self, found: str) -> None:
        self.path.write_text(self.halves[0] + SEPARATOR + found)


def goldens(folder: Path = FOLDER) -> list[Golden]:
    """All golden files below a folder."""
    return [Golden(path) for path in sorted(folder.rglob("*.golden"))]


# --- what the steps do ------------------------------------------------------------------------------------


def _linearized(graph: Graph, step: Step) -> str:
    lin = linearize(graph, step.flags(graph), nan_safe=False)
    return f"{verify(lin.forward)}\n{verify(lin.linear)}"


def _inlined(graph: Graph, _: Step) -> Graph:
    b = Builder()
    return b.graph(graph.name, inline_into(b, graph, b.inputs_like(graph.inputs)))


def _value_and_grad(graph: Graph, step: Step) -> Graph:
    active = step.flags(graph)
    return value_and_grad(graph, active, linearize(graph, active, nan_safe=False))


def _recalled(graph: Graph, step: Step) -> Recalled:
    return recall(graph, step.flags(graph), ["given"] * len(graph.outputs), nan_safe=False)


def _source(graph: Graph, _: Step) -> str:
    """The functions of the module, without its docstring and import."""
    source = Executable(graph).module.source
    start = next(f.lineno for f in ast.parse(source).body if isinstance(f, ast.FunctionDef))
    return "".join(source.splitlines(keepends=True)[start - 1 :])


def _c(graph: Graph, _: Step) -> str:
    """The function in C of a graph that is one kernel."""
    return kernel_function(graph, graph.name).source + "\n"


def _refused(graph: Graph, _: Step) -> str:
    try:
        verify(graph)
    except GraphError as fault:
        return f"{fault}\n"
    return "valid\n"


GRAPH_PASSES: dict[str, Callable[[Graph, Step], Graph]] = {
    **{name: lambda g, _, run=run: run(g) for name, run in passes().items()},  # these take no arguments
    "jvp": lambda g, step: jvp(g, step.flags(g), nan_safe=False),
    "transpose": lambda g, step: transpose(g, step.known(g)),
    "value_and_grad": _value_and_grad,
    "recall": lambda g, step: _recalled(g, step).graph,
    "batch": lambda g, step: batch(g, step.size, step.flags(g)),
    "inline": _inlined,
    "delay": lambda g, _: delay(g),
    "copy_again": lambda g, _: copy_again(g),
    "join_parts": lambda g, _: join_parts(g),
    "rows_apart": lambda g, _: rows_apart(g),
    "sums_behind_loops": lambda g, _: sums_behind_loops(g),
    "simplify": lambda g, step: simplify(g, step.rules),
}
PRINTERS: dict[str, Callable[[Graph, Step], str]] = {
    "linearize": _linearized,
    "source": _source,
    "module": lambda g, _: Executable(g).module.source,
    "dot": lambda g, _: to_dot(g),
    "verify": _refused,
    "c": _c,
}


def outcome(golden: Golden) -> str:
    """The text that the steps make."""
    *first, last = golden.steps
    if last.name == "parse":
        return _parse_fault(golden.given)
    graph = intermediate(golden, first)
    if last.name in PRINTERS:
        return PRINTERS[last.name](graph, last)
    return to_text(_checked(last, GRAPH_PASSES[last.name](graph, last)))


def intermediate(golden: Golden, steps: Sequence[Step], *, meaning: bool = False) -> Graph:
    """The given graph after some steps; with ``meaning`` each of them is checked."""
    graph = parse(golden.given)
    for step in steps:
        before, graph = graph, _checked(step, GRAPH_PASSES[step.name](graph, step))
        if meaning:
            LAWS[step.name](before, to_text(graph), step)
    return graph


def _checked(step: Step, graph: Graph) -> Graph:
    """What ``absorb`` makes is for the emitter alone, and no longer obeys the rules."""
    return graph if step.name == "absorb" else verify(graph)


def _parse_fault(text: str) -> str:
    try:
        parse(text)
    except ParseError as fault:
        return f"{fault}\n"
    return "well formed\n"


def fired(golden: Golden) -> Counter[str]:
    """How often each rewrite fires while the steps run."""
    count: Counter[str] = Counter()
    if not any(step.name == "simplify" for step in golden.steps):
        return count
    graph = parse(golden.given)
    for step in golden.steps:
        if step.name == "simplify":
            graph = simplify(graph, step.rules, count)
        elif step.name in GRAPH_PASSES:
            graph = GRAPH_PASSES[step.name](graph, step)
    return count


# --- whether both halves mean the same ---------------------------------------------------------------------


def check_meaning(golden: Golden, lower: str) -> None:
    """Evaluate both halves on random arguments; AssertionError where they disagree."""
    *first, last = golden.steps
    if last.name not in LAWS:
        assert last.name not in GRAPH_PASSES, f"LAWS in {__file__} wants to know what {last.name} keeps"
        return
    LAWS[last.name](intermediate(golden, first, meaning=True), lower, last)


def arguments(graph: Graph, seed: int, *, special: bool = False) -> list[Any]:
    """Random arguments: integers are 0 or 1, so that they can index; with ``special`` nan, inf and -0.0 occur."""
    rng = np.random.default_rng(seed)
    return [_argument(rng, v.aval, special) for v in graph.inputs]


def _argument(rng: np.random.Generator, aval: Aval, special: bool) -> Any:
    if aval.steps is not None:
        return [_argument(rng, aval.unstacked(), special) for _ in range(aval.steps[0])]
    if not aval.inexact:
        return values.as_kind(rng.integers(0, 2, aval.shape), aval)
    x = rng.standard_normal(aval.shape).astype(aval.dtype)
    if aval.dtype.kind == "c":
        x = x + 1j * rng.standard_normal(aval.shape)
    if special and aval.kind != "python":
        x = np.where(rng.random(aval.shape) < 0.7, rng.choice(SPECIAL, aval.shape), x.real)
        if aval.dtype.kind == "c":
            x = _complex(x, np.where(rng.random(aval.shape) < 0.7, rng.choice(SPECIAL, aval.shape), x))
    return values.as_kind(x, aval)


def _complex(real: Any, imag: Any) -> Any:
    """Without arithmetic, which would mix the parts."""
    z = np.empty(np.shape(real), np.complex128)
    z.real, z.imag = real, imag
    return z


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """Evaluate without warnings: special values meet each other here."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


def same_bits(before: Graph, run: Callable[..., Any]) -> None:
    """``run`` gives the results of ``before``, to the last bit, and does not touch its arguments."""
    for seed in range(DRAWS):
        for special in (False, True):
            args = arguments(before, seed, special=special)
            kept = values.snapshot(args)
            expected = evaluate_quietly(before, args)
            found = quietly(run, *args)
            values.assert_has_avals(found, before.out_avals)
            values.assert_same_bits(list(found), list(expected))
            values.assert_same_bits(args, kept)


def evaluate_quietly(graph: Graph, args: Sequence[Any]) -> Any:
    return quietly(evaluate, graph, args)


def _keeps(before: Graph, after: str, _: Step) -> None:
    graph = parse(after)
    assert graph.in_avals == before.in_avals
    same_bits(before, lambda *args: evaluate(graph, args))


def _simplifies(before: Graph, after: str, step: Step) -> None:
    if not step.rules:
        _keeps(before, after, step)
    else:
        _stays_close(before, after, 1e-15)


def _stays_close(before: Graph, after: str, rtol: float) -> None:
    graph = parse(after)
    for seed in range(DRAWS):
        args = arguments(before, seed)
        found, expected = (values.mapped(np.nan_to_num, list(evaluate_quietly(g, args))) for g in (graph, before))
        values.assert_close(found, expected, rtol)


def _keeps_unverified(before: Graph, after: str, _: Step) -> None:
    graph = parse(after)
    same_bits(before, lambda *args: evaluate(graph, args))


def _divides(before: Graph, after: str, _: Step) -> None:
    """A divided graph also returns what the first half hands on to the second."""
    whole, outs = parse(after), (splits(before) or (0, len(before.outputs)))[1]
    for seed in range(DRAWS):
        args = arguments(before, seed)
        found = evaluate(whole, args)
        last = len(found) - (len(before.outputs) - outs)
        values.assert_same_bits([*found[:outs], *found[last:]], list(evaluate(before, args)))


def _owns(before: Graph, after: str, step: Step) -> None:
    _keeps(before, after, step)
    args = arguments(before, 0)
    assert_owned(evaluate(parse(after), args), args)


def assert_owned(results: Sequence[Any], args: Sequence[Any]) -> None:
    """No result shares memory with an argument or with another result, and all can be written."""
    whole = [x for x in results if not isinstance(x, list)]
    for i, x in enumerate(whole):
        assert not values.shares(x, list(args)), f"result {i} shares memory with an argument"
        assert not values.shares(x, whole[:i]), f"result {i} shares memory with another"
        assert all(y.flags.writeable for y in values.arrays(x)), f"result {i} is read-only"


def slopes(graph: Graph, args: Sequence[Any], directions: Sequence[Any], step: float = 1e-4) -> list[Any]:
    """Differences along directions, of fourth order; None for results that are no real or complex numbers."""

    def at(t: float) -> tuple[Any, ...]:
        moved = [x if d is None else values.shifted(x, d, t) for x, d in zip(args, directions, strict=True)]
        return evaluate(graph, moved)

    def quotient(a: Any, b: Any, c: Any, d: Any) -> Any:
        far, near = np.subtract(a, d), np.subtract(b, c)
        return (8 * near - far) / (12 * step)

    points = [at(2 * step), at(step), at(-step), at(-2 * step)]
    return [
        values.mapped(quotient, *results) if v.aval.inexact else None
        for v, *results in zip(graph.outputs, *points, strict=True)
    ]


def directions_of(graph: Graph, flags: Sequence[bool], seed: int) -> list[Any]:
    rng = np.random.default_rng(1000 + seed)
    return [values.random_of(rng, v.aval) if on else None for v, on in zip(graph.inputs, flags, strict=True)]


def _differentiates(before: Graph, after: str, step: Step) -> None:
    graph, flags, n = parse(after), step.flags(before), len(before.outputs)
    for seed in range(DRAWS):
        args, dots = arguments(before, seed), directions_of(before, flags, seed)
        found = evaluate(graph, [*args, *(d for d in dots if d is not None)])
        values.assert_has_avals(found, (*before.out_avals, *before.out_avals))
        values.assert_same_bits(found[:n], evaluate(before, args))
        for tangent, slope in zip(found[n:], slopes(before, args, dots), strict=True):
            if slope is None:
                assert not np.any(tangent)
            else:
                values.assert_close(tangent, slope, 1e-6)


def _splits(before: Graph, after: str, step: Step) -> None:
    first, second = (f"graph {part}" for part in after.split("graph ", 1)[1].split("\n\ngraph ", 1))
    forward, linear = verify(parse(first)), verify(parse(second))
    flags, n = step.flags(before), len(before.outputs)
    active = linearize(before, flags, nan_safe=False).out_active
    for seed in range(DRAWS):
        args, dots = arguments(before, seed), directions_of(before, flags, seed)
        found = evaluate(forward, args)
        values.assert_same_bits(found[:n], evaluate(before, args))
        given = [d for d in dots if d is not None]
        tangents = evaluate(linear, [*found[n:], *given])
        expected = [s for s, on in zip(slopes(before, args, dots), active, strict=True) if on]
        values.assert_close(list(tangents), expected, 1e-6)
        doubled = evaluate(linear, [*found[n:], *(values.mapped(lambda x: x * 2, d) for d in given)])
        values.assert_same_bits(list(doubled), values.mapped(lambda x: x * 2, list(tangents)))


def _turns_around(before: Graph, after: str, step: Step) -> None:
    graph, known = parse(after), step.known(before)
    for seed in range(DRAWS):
        args = arguments(before, seed)
        rng = np.random.default_rng(2000 + seed)
        cts = [values.random_of(rng, v.aval) for v in before.outputs]
        image = evaluate(before, args)
        found = evaluate(graph, [*args[:known], *cts])
        values.assert_has_avals(found, before.in_avals[known:])
        left, right = values.pairing(cts, image), values.pairing(found, args[known:])
        assert abs(left - right) <= 1e-12 * max(1.0, abs(left)), f"<u, J v> = {left} but <Jᵀ u, v> = {right}"


def _descends(before: Graph, after: str, step: Step) -> None:
    graph, flags, n = parse(after), step.flags(before), len(before.outputs)
    for seed in range(DRAWS):
        args, dots = arguments(before, seed), directions_of(before, flags, seed)
        found = evaluate(graph, args)
        values.assert_same_bits(found[:n], evaluate(before, args))
        chosen = [d for d in dots if d is not None]
        slope = slopes(before, args, dots)[0]
        assert abs(values.pairing(found[n:], chosen) - slope) <= 1e-6 * max(1.0, abs(slope))


def _remembers(before: Graph, after: str, step: Step) -> None:
    graph, flags, reads = parse(after), step.flags(before), _recalled(before, step).reads
    for seed in range(DRAWS):
        args, dots = arguments(before, seed), directions_of(before, flags, seed)
        rng = np.random.default_rng(3000 + seed)
        cts = [values.random_of(rng, v.aval) for v in before.outputs]
        remembered = [*args, *evaluate(before, args)]
        found = evaluate(graph, [*(remembered[k] for k in reads), *cts])
        slope = values.pairing(cts, slopes(before, args, dots))
        chosen = [d for d in dots if d is not None]
        assert abs(values.pairing(found, chosen) - slope) <= 1e-6 * max(1.0, abs(slope))


def _loops(before: Graph, after: str, step: Step) -> None:
    graph, flags = parse(after), step.flags(before)
    for seed in range(DRAWS):
        lanes = [arguments(before, 100 * seed + k) for k in range(step.size)]
        columns = list(zip(*lanes, strict=True))
        args = [np.stack(c) if on else c[0] for c, on in zip(columns, flags, strict=True)]
        each = [
            evaluate(before, [x if on else x0 for x, x0, on in zip(lane, lanes[0], flags, strict=True)])
            for lane in lanes
        ]
        expected = [np.stack(column) for column in zip(*each, strict=True)]
        found = evaluate(graph, args)
        values.assert_has_avals(found, [Aval(x.shape, x.dtype) for x in expected])
        values.assert_close(list(found), expected, 1e-13)


def _runs_compiled(before: Graph, after: str, _: Step) -> None:
    """What is written in C computes what the graph does, but for the order of sums; it needs a compiler."""
    if missing():
        return

    def unfit(*args: Any) -> Any:
        raise AssertionError("the kernel gave up")

    kernel = replace(kernel_function(before, before.name), source=after)
    (run,) = functions(extension([before], [kernel]).replace("= kernel0(p", f"= {before.name}(p"), 1, [unfit])
    for seed in range(DRAWS):
        args = arguments(before, seed)
        found = run(*args)
        values.assert_close([found] if len(before.outputs) == 1 else list(found), list(evaluate(before, args)), 1e-10)


def _runs(before: Graph, after: str, _: Step) -> None:
    check_source(after)
    scope: dict[str, Any] = {"math": math, "np": np}
    exec(compile(after, "<golden>", "exec"), scope)
    function = scope[[f.name for f in ast.parse(after).body if isinstance(f, ast.FunctionDef)][-1]]
    single = len(before.outputs) == 1
    same_bits(before, lambda *args: (function(*args),) if single else function(*args))


def _draws(before: Graph, after: str, _: Step) -> None:
    vertices, edges = dotlexer.read(after)
    expected = before.to_networkx()
    assert set(vertices) == set(expected)
    assert all(vertices[v]["label"] == data["label"] for v, data in expected.nodes(data=True))
    assert Counter(edges) == Counter((a, b, data["aval"]) for a, b, data in expected.edges(data=True))


LAWS: dict[str, Callable[[Graph, str, Step], None]] = {
    "jvp": _differentiates,
    "linearize": _splits,
    "transpose": _turns_around,
    "value_and_grad": _descends,
    "recall": _remembers,
    "batch": _loops,
    "prune": _keeps,
    "inline": _keeps,
    "lower": _keeps,
    "simplify": _simplifies,
    "sums_in_products": lambda before, after, _: _stays_close(before, after, 1e-13),
    "packed_factors": lambda before, after, _: _stays_close(before, after, 1e-13),
    "short_axes": lambda before, after, _: _stays_close(before, after, 1e-13),
    "narrow_stacks": lambda before, after, _: _stays_close(before, after, 1e-13),
    "hoist_invariants": _keeps,
    "final_states": _keeps,
    "join_parts": _keeps,
    "rows_apart": _keeps,
    "sums_behind_loops": lambda before, after, _: _stays_close(before, after, 1e-13),
    "stacks_in_blocks": _keeps,
    "rows_in_blocks": lambda before, after, _: _stays_close(before, after, 1e-13),
    "stencils_in_blocks": lambda before, after, _: _stays_close(before, after, 1e-13),
    "fewer_rows": lambda before, after, _: _stays_close(before, after, 1e-13),
    "packed_residuals": lambda before, after, _: _stays_close(before, after, 1e-13),
    "checkpoint": _keeps,
    "own_outputs": _owns,
    "open_calls": _keeps,
    "delay": _keeps,
    "copy_again": _keeps,
    "divide": _divides,
    "absorb": _keeps_unverified,
    "source": _runs,
    "c": _runs_compiled,
    "module": _runs,
    "dot": _draws,
}
