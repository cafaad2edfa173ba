"""explain, profile: the explanation and the profile of one call, from its anatomy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..api.check_grads import check_grads
from ..compiler.compilation import Compilation
from ..compiler.executable import Executable
from ..compiler.folding import folds
from ..compiler.paths import Paths
from ..compiler.rolled import LONG
from ..compiler.settings import config
from ..errors import GradientCheckError, RetrogradError
from ..ir.graph import Graph, Node
from ..ir.loop_node import loop_of
from ..ir.rewrite import walk
from ..ops.structural.guard import guard
from ..passes.checkpoint.checkpoint import keeping_all
from ..passes.rules import FAST, REASSOCIATE
from ..passes.simplify import simplify
from ..reports.memory import report
from ..tracer.state.checks import Check
from ..tracer.tree import flatten
from .amounts import code_at, cut, printable
from .anatomy import FORWARD, Anatomy, PlacedNode
from .captured import names_of_captures
from .costs import Cost, cost, family
from .explanation import Bindings, Decision, FamilyCount, FunctionExplanation, InputUse, LineCost, Profile, Remark
from .machine import machine
from .measured import Measured, measure
from .origins import line_of

MANY = 8  # runs of one line with the same operation and type, from which it counts as a loop that stands unrolled
ABSORBED = ("const", "broadcast", "cast", "neg")  # what statements of other operations do by themselves
LOOPS = ("scan(", "fori_loop(", "while_loop(", "map(", "associative_scan(")


def explain(anatomy: Anatomy, check: bool = True, measured: Measured | None = None) -> FunctionExplanation:
    """The explanation of a call. It runs the compiled code, and with ``check`` the plain function, too."""
    measured = measured or timed(anatomy)
    lines = tuple(costs_by_line(anatomy, measured))
    verdict, said = _check(anatomy) if check else (None, "not asked for")
    return FunctionExplanation(
        anatomy.way.name,
        measured.seconds,
        sum(line.predicted for line in lines),
        tuple(_inputs(anatomy)),
        tuple(_families(anatomy)),
        lines,
        report(_with_code(anatomy)),
        tuple(_decisions(anatomy.way.recorded.graph)),
        tuple(_remarks(anatomy)),
        _bindings(anatomy),
        verdict,
        said,
    )


@dataclass(frozen=True)
class OwnCode:
    """The code of one way alone, where its signature has none."""

    code: Executable
    ordered: bool


def _with_code(anatomy: Anatomy) -> Compilation:
    """The way of the call; if calls of its signature are interpreted, with the code that would run it."""
    way = anatomy.way
    if not way.recorded.tainted:
        return way
    return replace(way, signature=OwnCode(anatomy.codes[0].executable, way.signature.ordered))


def profile(anatomy: Anatomy) -> Profile:
    """The time of a call by line."""
    measured = timed(anatomy)
    return Profile(anatomy.way.name, measured.seconds, measured.runs, tuple(costs_by_line(anatomy, measured)))


def timed(anatomy: Anatomy) -> Measured:
    """The time of the code, by its lines."""
    return measure(anatomy.runs(), frozenset(code.executable.filename for code in anatomy.codes))


def seconds_of(anatomy: Anatomy, measured: Measured) -> dict[int | None, float]:
    """Measured seconds by operation; those of statements that belong to none are under None."""
    found: dict[int | None, float] = {}
    for code in anatomy.codes:
        statements = code.statements
        for (file, line), seconds in measured.lines.items():
            if file == code.executable.filename:
                number = statements.get(line)
                found[number] = found.get(number, 0.0) + seconds
    return found


def costs_by_line(anatomy: Anatomy, measured: Measured) -> Iterator[LineCost]:
    """The costs of the user's lines, of each part apart."""
    seconds, rates = seconds_of(anatomy, measured), machine()
    groups: dict[tuple[Any, str], list[PlacedNode]] = {}
    for op in anatomy.operations.values():
        if op.number in anatomy.running:
            groups.setdefault((line_of(op.node.where), op.part), []).append(op)
    for (where, part), ops in groups.items():
        whole = Cost()
        for op in ops:
            if not op.node.graphs:
                whole = whole.plus(cost(op.node, rates), op.times)
        yield LineCost(
            str(where) if where is not None else "",
            code_at(where),
            part,
            len(ops),
            whole.flops,
            whole.bytes,
            whole.seconds,
            sum(seconds.get(op.number, 0.0) for op in ops),
            any(op.open for op in ops),
        )
    if seconds.get(None):
        yield LineCost("", "", FORWARD, 0, 0.0, 0.0, 0.0, seconds[None], False)


def _inputs(anatomy: Anatomy) -> Iterator[InputUse]:
    graph, planned = anatomy.way.recorded.graph, anatomy.planned
    value, result = reaching(graph), reaching(planned)
    active = differentiated(anatomy)
    names = [*(printable(name.removeprefix("%")) for name in anatomy.call.hints), *names_of_captures(anatomy)]
    for k, (name, v) in enumerate(zip(names, graph.inputs, strict=True)):
        yield InputUse(
            name,
            str(v.aval),
            v.aval.nbytes,
            k >= len(anatomy.call.hints),
            k in active,
            v in value,
            planned.inputs[k] in result,
        )


def reaching(graph: Graph) -> set[Any]:
    """The values that the results of a graph depend on."""
    found = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node.effect or not found.isdisjoint(node.outputs):
            found.update(node.inputs)
    return found


def differentiated(anatomy: Anatomy) -> set[int]:
    """The inputs in which the derivative is taken."""
    lin = anatomy.derived.lin
    if lin is None:
        return set()
    transform, call = anatomy.compiled._transform, anatomy.call
    chosen = getattr(transform, "wanted", None)
    if chosen is not None:
        active = chosen(anatomy.compiled._function, call).active
    else:
        active = [v.aval.inexact for v in anatomy.recording.inputs[: len(call.traced)]]
    return {k for k, on in enumerate(active) if on}


def _families(anatomy: Anatomy) -> Iterator[FamilyCount]:
    counts: dict[str, tuple[Counter[str], Counter[str]]] = {}
    for op in map(anatomy.operations.__getitem__, sorted(anatomy.running)):
        pair = counts.setdefault(family(op.node.prim), (Counter(), Counter()))
        pair[op.part != FORWARD][op.node.prim.name] += 1
    for name, (forward, adjoint) in sorted(
        counts.items(), key=lambda item: -sum(map(sum, map(Counter.values, item[1])))
    ):
        names = (forward + adjoint).most_common()
        yield FamilyCount(name, forward.total(), adjoint.total(), tuple(n if c == 1 else f"{n} ×{c}" for n, c in names))


def _decisions(graph: Graph) -> Iterator[Decision]:
    for node in walk(graph):
        if node.prim is guard:
            where = line_of(node.where)
            answer = printable(repr(node.attrs["expected"]))
            yield Decision(where.short if where else "", code_at(where), node.attrs["kind"], answer)


def _remarks(anatomy: Anatomy) -> Iterator[Remark]:
    way, graph = anatomy.way, anatomy.way.recorded.graph
    settings = way.settings
    rules = [*([] if settings.exact else REASSOCIATE), *(FAST if settings.fast else [])]
    fired: Counter[str] = Counter()
    simplify(anatomy.derived.graph, rules, fired)
    whys = {r.name: "it may change the last bits; rg.config.exact disables it" for r in REASSOCIATE}
    whys |= {r.name: "it may change overflow and nan; rg.config.fast enables it" for r in FAST}
    for name, count in fired.most_common():
        what = "constants folded" if name == "fold" else f"rewritten: {name}"
        yield Remark(True, f"{what} ×{count}", whys.get(name, "it keeps every bit"))
    yield from _loops(graph)
    yield from _fusions(anatomy)
    if settings.exact:
        yield Remark(False, "rewrites that may change the last bits", "rg.config.exact is on")
    if not settings.fast:
        yield Remark(False, "rewrites that may change overflow and nan", "rg.config.fast is off")
    for node in keeping_all(anatomy.planned):
        yield Remark(False, "the memory plan of a loop", "code other than a loop reads its residuals", at(node))
    if isinstance(anatomy.paths, Paths) and folds(anatomy.paths):
        yield Remark(True, "paths folded into one loop", "they differ by decisions in a loop")
    if way.recorded.tainted:
        yield Remark(False, "compiled", "an operation failed on these values, and the function caught the error")


def _loops(graph: Graph) -> Iterator[Remark]:
    for node in graph.nodes:
        where = line_of(node.where)
        loop = loop_of(node)
        rolled = loop is not None and loop.condition is None and loop.body.name == "body"  # no function's name
        if loop is not None and rolled and not any(word in code_at(where) for word in LOOPS):
            what = f"a Python loop of {loop.length} steps is a loop in the graph"
            yield Remark(True, what, "its steps have the same operations", at(node))
    alike: dict[Any, list[int]] = {}
    for k, node in enumerate(graph.nodes):
        if node.inputs and node.prim is not guard:
            alike.setdefault((node.where, node.prim, tuple(v.aval for v in node.inputs)), []).append(k)
    asked = [k for k, node in enumerate(graph.nodes) if node.prim is guard]
    told = set()
    for (where, prim, _), found in sorted(alike.items(), key=lambda item: -len(item[1])):
        if len(found) < MANY or where in told:
            continue
        told.add(where)
        if any(found[0] < k < found[-1] for k in asked):
            why = "Python decides between its steps"
        elif len(graph.nodes) < LONG:
            why = f"the search for loops needs {LONG} operations, but there are {len(graph.nodes)}"
        else:
            why = "its steps could not be proved equal"
        plain = line_of(where)
        what = f"{prim.name} runs {len(found)} times from one line, unrolled"
        yield Remark(False, what, why, plain.short if plain else "")


def _fusions(anatomy: Anatomy) -> Iterator[Remark]:
    reused = sum(len(code.executable.plan.into) for code in anatomy.codes)
    if reused:
        yield Remark(True, f"{reused} results reuse the storage of other values", "those are no longer needed")
    statements = {n for code in anatomy.codes for n in code.statements.values()}
    kinds = Counter(
        op.node.prim.name
        for code in anatomy.codes
        for op in map(anatomy.operations.__getitem__, code.operations)
        if op.number not in statements
    )
    for name, count in kinds.most_common():
        if name in ABSORBED:
            yield Remark(True, f"{name} ×{count} is part of other statements", "NumPy does it implicitly there")
    copies = sum(len(code.executable.plan.copies) for code in anatomy.codes)
    if copies:
        yield Remark(False, f"{copies} views kept as views", "their base is written while they are read")


def at(node: Node) -> str:
    """The line of a node, short."""
    where = line_of(node.where)
    return where.short if where is not None else ""


def _bindings(anatomy: Anatomy) -> Bindings:
    compiled, way, paths = anatomy.compiled, anatomy.way, anatomy.paths
    info = compiled._cache.info()
    versions = compiled._cache.entries.get((way.settings, anatomy.call.key), [])
    known = isinstance(paths, Paths)
    relied = paths._relied if isinstance(paths, Paths) else None
    parts = [*relied._parts.values()] if isinstance(relied, Check) else []
    words = [part.words for part in parts]
    if parts and parts[0].kind == "code":  # the function itself is read where it is called, here by explain
        words[0] = words[0].partition(" (read at ")[0]
    captured = []
    values = (v for _, v in anatomy.leaves[len(anatomy.call.hints) :])
    for name, v, capture in zip(names_of_captures(anatomy), values, way.recorded.captures, strict=True):
        made = "made by the compiler" if capture.made else f"an object of type {type(capture.payload).__name__}"
        captured.append(printable(f"{name}: {v.aval}, {made}"))
    traced = set(anatomy.call.traced)
    statics = [
        f"{name} = {cut(printable(repr(x)))}"
        for k, (name, x) in enumerate(zip(anatomy.call.names, anatomy.call.leaves, strict=True))
        if k not in traced
    ]
    return Bindings(
        info.hits,
        info.misses,
        info.size,
        len(versions),
        len(paths.known) if isinstance(paths, Paths) else 1,
        known,
        tuple(captured),
        tuple(dict.fromkeys(map(printable, words))),
        tuple(statics),
    )


def _check(anatomy: Anatomy) -> tuple[bool | None, str]:
    """Whether the derivative agrees with differences along a random direction, and what to say of it."""
    if anatomy.derived.lin is None:
        return None, "not checked: this is not a derivative"
    if getattr(anatomy.compiled._transform, "has_aux", False):
        return None, "not checked: the function returns more than what is differentiated"
    active = differentiated(anatomy)
    chosen = [k for k in sorted(active) if k < len(anatomy.call.traced)]
    values = anatomy.call.values()
    function: Callable[..., Any] = anatomy.compiled._function
    sources = [x for x in anatomy.operands if isinstance(x, SOURCES)]

    def of(*some: Any) -> Any:
        full = list(values)
        for k, x in zip(chosen, some, strict=True):
            full[k] = x
        rewind()
        args, kwargs = anatomy.call.rebuild([copied(x) for x in full])
        return inexact(function(*args, **kwargs))

    point = tuple(copied(values[k]) for k in chosen)
    with ExitStack() as after:
        rewind = after.enter_context(Rewinding(sources))
        after.enter_context(config(nan_safe=config.nan_safe or bool(anatomy.compiled._transform.nan_safe)))
        try:
            if not _alike(of(*point), of(*point)):
                return None, "not checked: the function returns another value at each call"
            check_grads(of, point, order=1, modes=("rev",))
        except GradientCheckError as fault:
            return False, f"differs: {fault.what}"
        except RetrogradError as fault:
            return None, f"not checked: {fault.what}"
        except Exception as fault:  # noqa: BLE001 - the user's function may raise anything at other points
            return None, f"not checked: the function raised {printable(repr(fault))} at a point close by"
    return True, "agrees with central differences along a random direction"


SOURCES = (np.random.Generator, np.random.RandomState)


class Rewinding:
    """Sets sources of random numbers back when it is called, and at the end of its context."""

    def __init__(self, sources: Sequence[Any]) -> None:
        self.states = [(x, x.bit_generator.state if isinstance(x, SOURCES[0]) else x.get_state()) for x in sources]

    def __call__(self) -> None:
        for x, state in self.states:
            if isinstance(x, np.random.Generator):
                x.bit_generator.state = state
            else:
                x.set_state(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self()


def _alike(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two results are the same numbers."""
    return len(a) == len(b) and all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))


def copied(x: Any) -> Any:
    """A copy of an array, which a function may write into."""
    return x.copy() if isinstance(x, np.ndarray) else x


def inexact(tree: Any) -> list[Any]:
    """The results that have derivatives."""
    return [x for x in flatten(tree)[0] if hasattr(x, "dtype") or isinstance(x, (float, complex))]
