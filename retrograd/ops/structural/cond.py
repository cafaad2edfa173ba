"""cond: one of several graphs runs, chosen by a bool or a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.primitive import TRANSFORMS, JvpMode, Primitive, primitive
from ...ir.structure import Body, Group, Runs, Structure
from ...ir.types import Aval
from ..elementwise import BOOL, eq, ge, le
from ..further_reductions import any_, argmax
from ..logic import logical_not
from .flags import instantiated, picked, spread
from .loops import REFERENCE, borrowed, chosen, lane_aval, narrowed
from .stack import absent, stack_lanes

INT = np.dtype(np.int64)


def branches_of(attrs: dict[str, Any]) -> list[Graph]:
    """The branches; for a bool, the branch for False comes first."""
    return [attrs[f"branch{k}"] for k in range(len(attrs))]


def _shape(index: Aval, *avals: Aval, **attrs: Graph) -> tuple[Aval, ...]:
    branches = branches_of(attrs)
    fits = len(branches) == 2 if index.dtype == BOOL else index.dtype.kind in "iu" and len(branches) > 2
    if index.shape or not fits:
        raise ValueError(f"{index} does not choose among {len(branches)} branches")
    for branch in branches:
        if branch.in_avals != avals:
            raise ValueError(f"{branch.name} takes {', '.join(map(str, branch.in_avals))}")
        if branch.out_avals != branches[0].out_avals:
            raise ValueError(f"{branch.name} gives {', '.join(map(str, branch.out_avals))}")
    return branches[0].out_avals


def _run(evaluate: Any, node: Node, index: Any, *args: Any) -> Any:
    branches = branches_of(dict(node.attrs))
    return evaluate(branches[min(max(int(index), 0), len(branches) - 1)], args)


def make_cond(b: Builder, index: Symbol, branches: Sequence[Graph], operands: Sequence[Symbol]) -> list[Symbol]:
    """Emit a choice; its results."""
    attrs = {f"branch{k}": branch for k, branch in enumerate(branches)}
    values = [b.coerce(x, v.aval).value for x, v in zip(operands, branches[0].inputs, strict=True)]
    return b.emit(cond, [index.value, *values], attrs, [v.hint for v in branches[0].outputs])


def _padded(inner: Builder, x: Symbol | None, aval: Aval) -> Symbol:
    """A result that only one branch has, as a result of the other: zero, or an empty list."""
    if x is None and aval.steps is not None:
        return inner.emit(absent, (), {"aval": aval})[0]
    return instantiated(inner, x, aval)


def _jvp(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> tuple[list[Any], list[Any]]:
    branches, active = branches_of(dict(node.attrs)), [t is not None for t in tans[1:]]
    lins = [TRANSFORMS.linearize(branch, active, nan_safe=mode.nan_safe) for branch in branches]
    on = [any(flags) for flags in zip(*(lin.out_active for lin in lins), strict=True)]
    dots = [t for t in tans if t is not None]
    if mode.split:
        return _jvp_split(b, args, dots, lins, on, len(node.outputs))
    fused = []
    for branch in branches:
        inner = Builder()
        inputs = inner.inputs_like(branch.inputs)
        dot_inputs = spread(inner.inputs_like(picked(branch.inputs, active)), active)
        outs, douts = TRANSFORMS.jvp(inner, branch, inputs, dot_inputs, mode)
        filled = [_padded(inner, d, o.aval) for d, o in picked(zip(douts, outs, strict=True), on)]
        fused.append(inner.graph(branch.name, [*outs, *filled]))
    made = make_cond(b, args[0], fused, [*args[1:], *dots])
    return made[: len(on)], spread(made[len(on) :], on)


def _jvp_split(
    b: Builder, args: list[Symbol], dots: list[Symbol], lins: list[Any], on: list[bool], n: int
) -> tuple[list[Any], list[Any]]:
    """A choice whose branch also returns its residuals, and a linear choice that reads them.

    A residual that is an operand is passed from outside. The residuals of the branches not taken are absent.
    """
    lins = [_few(lin) for lin in lins]
    outside = [[lin.forward.inputs.index(r) if r in lin.forward.inputs else -1 for r in lin.residuals] for lin in lins]
    inside = [picked(lin.residuals, [i < 0 for i in at]) for lin, at in zip(lins, outside, strict=True)]
    forwards = [_leaving(lin, n, inside, k) for k, lin in enumerate(lins)]
    results = make_cond(b, args[0], forwards, args[1:])

    passed = sorted({i for at in outside for i in at if i >= 0})
    residuals = [r for kept in inside for r in kept]
    linears = []
    for k, lin in enumerate(lins):
        inner = Builder()
        known = dict(zip(passed, inner.inputs_like(lin.forward.inputs[i] for i in passed), strict=True))
        own = dict(zip(residuals, inner.inputs_like(residuals), strict=True))
        given = [own[r] if i < 0 else known[i] for r, i in zip(lin.residuals, outside[k], strict=True)]
        douts = TRANSFORMS.inline(inner, lin.linear, [*given, *inner.inputs_like(d.value for d in dots)])
        tangents = spread(douts, lin.out_active)
        avals = lin.forward.outputs[:n]
        filled = [_padded(inner, d, v.aval) for d, v in picked(zip(tangents, avals, strict=True), on)]
        linears.append(inner.graph(lin.linear.name, filled))
    operands = [*(args[1 + i] for i in passed), *results[n:], *dots]
    return results[:n], spread(make_cond(b, args[0], linears, operands) if any(on) else [], on)


def _few(lin: Any) -> Any:
    inputs = set(lin.forward.inputs)
    return TRANSFORMS.few_residuals(lin, lambda v: 0.0 if v in inputs else v.aval.nbytes + REFERENCE)


def _leaving(lin: Any, n: int, inside: list[list[Value]], own: int) -> Graph:
    """A branch that returns its own residuals, and absent values for those of the other branches."""
    inner = Builder()
    outs = TRANSFORMS.inline(inner, lin.forward, inner.inputs_like(lin.forward.inputs))
    mine = dict(zip(lin.forward.outputs[n:], outs[n:], strict=True))
    left = [
        mine[r] if k == own else inner.emit(absent, (), {"aval": r.aval})[0]
        for k, kept in enumerate(inside)
        for r in kept
    ]
    outs = [inner.coerce(o, v.aval) for o, v in zip(outs[:n], lin.forward.outputs, strict=False)]
    left = [inner.coerce(x, r.aval) for x, r in zip(left, (r for kept in inside for r in kept), strict=True)]
    return inner.graph(lin.forward.name, [*outs, *left])


def _transpose(b: Builder, node: Node, operands: list[Any], cts: list[Any]) -> list[Any]:
    index, *rest = operands
    if not isinstance(index, Symbol):
        raise InternalError("cond is not linear in operand 0", where=node.where)
    known = [isinstance(x, Symbol) for x in rest]
    given = [ct for ct in cts if ct is not None]
    adjoints, found = [], []
    for branch in branches_of(dict(node.attrs)):
        inner = Builder()
        inputs = spread(inner.inputs_like(picked(branch.inputs, known)), known)
        seeds = [None if ct is None else inner.input(ct.aval) for ct in cts]
        seeds = [None if s is None else inner.coerce(s, v.aval) for s, v in zip(seeds, branch.outputs, strict=True)]
        found.append(TRANSFORMS.transpose(inner, branch, inputs, seeds))
        adjoints.append(inner)
    on = [any(ct is not None for ct in group) for group in zip(*found, strict=True)]
    avals = picked([x.aval for x in rest], [not k for k in known])
    graphs = [
        inner.graph(
            f"{branch.name.removesuffix('_linear')}_adjoint",
            [_padded(inner, ct, aval) for ct, aval in picked(zip(into, avals, strict=True), on)],
        )
        for inner, branch, into in zip(adjoints, branches_of(dict(node.attrs)), found, strict=True)
    ]
    made = make_cond(b, index, graphs, [*picked(rest, known), *given]) if any(on) else []
    full = iter(spread(made, on))
    return [None, *(None if k else next(full) for k in known)]


def _batch(prim: Primitive, size: int, args: list[Symbol], flags: list[bool], **attrs: Graph) -> Any:
    b, (index, *operands), branches = args[0].builder, args, branches_of(attrs)
    builders, outs, out_flags = [], [], []
    for branch in branches:
        inner = Builder()
        on = flags[1:]
        inputs = [inner.input(lane_aval(size, v.aval, f), v.hint) for v, f in zip(branch.inputs, on, strict=True)]
        found, on = TRANSFORMS.batch(inner, branch, size, inputs, on)
        builders.append(inner)
        outs.append(found)
        out_flags.append(on)
    want = [any(on) or flags[0] for on in zip(*out_flags, strict=True)]
    graphs = [
        inner.graph(
            branch.name,
            [
                inner.coerce(stack_lanes(size, o, f or not w), lane_aval(size, v.aval, w))
                for o, f, w, v in zip(found, on, want, branch.outputs, strict=True)
            ],
        )
        for inner, branch, found, on in zip(builders, branches, outs, out_flags, strict=True)
    ]
    if not flags[0]:
        return make_cond(b, index, graphs, operands), want
    return _batch_lanes(b, size, index, branches, graphs, operands, flags[1:]), want


def _batch_lanes(
    b: Builder,
    size: int,
    index: Symbol,
    branches: list[Graph],
    graphs: list[Graph],
    operands: list[Symbol],
    flags: Sequence[bool],
) -> list[Symbol]:
    """Let lanes choose for themselves: a branch runs if any lane takes it, and each lane gets its own results."""
    results: list[Any] = [None] * len(graphs[0].outputs)
    last = len(branches) - 1
    for k, (branch, graph) in enumerate(zip(branches, graphs, strict=True)):
        if index.dtype == BOOL:
            mask = index if k else logical_not(index)
        else:
            mask = le(index, 0) if k == 0 else ge(index, last) if k == last else eq(index, k)
        left = [_is_absent(branch, v) for v in branch.outputs]
        taken, skipped = _taken(size, graph, flags), _skipped(size, graph)
        made = make_cond(b, any_(mask, axis=(0,), keepdims=False), [skipped, taken], [mask, *operands])
        for i, x in enumerate(made):
            if results[i] is None:
                results[i] = (x, left[i])
            elif not left[i]:
                before, nothing = results[i]
                if x.aval.steps is not None and not nothing:
                    raise InternalError("two branches return stacks in the same place")
                results[i] = (x if nothing else b.coerce(chosen(mask, x, before), x.aval), False)
    return [x for x, _ in results]


def _is_absent(branch: Graph, value: Value) -> bool:
    node = branch.producer.get(value)
    return node is not None and node.prim is absent


def _taken(size: int, graph: Graph, flags: Sequence[bool]) -> Graph:
    """The branch over all lanes; a lane that does not take it borrows the operands of a lane that does."""
    inner = Builder()
    mask = inner.input(Aval((size,), BOOL), "mask")
    inputs = inner.inputs_like(graph.inputs)
    lane = argmax(mask, axis=0)
    given = [borrowed(mask, lane, x) if f else x for x, f in zip(inputs, flags, strict=True)]
    given = [inner.coerce(x, v.aval) for x, v in zip(given, graph.inputs, strict=True)]
    outs = TRANSFORMS.inline(inner, graph, given)
    return inner.graph(graph.name, [inner.coerce(o, v.aval) for o, v in zip(outs, graph.outputs, strict=True)])


def _skipped(size: int, graph: Graph) -> Graph:
    inner = Builder()
    inner.input(Aval((size,), BOOL), "mask")
    inner.inputs_like(graph.inputs)
    return inner.graph("skipped", [inner.emit(absent, (), {"aval": v.aval})[0] for v in graph.outputs])


def _dce(node: Node, used: list[bool]) -> tuple[dict[str, Any], list[int], list[int]]:
    branches = branches_of(dict(node.attrs))
    lives = [TRANSFORMS.live_inputs(branch, used) for branch in branches]
    live = [any(flags) for flags in zip(*lives, strict=True)]
    attrs = {f"branch{k}": narrowed(branch, live, used) for k, branch in enumerate(branches)}
    return attrs, [0, *(i + 1 for i, f in enumerate(live) if f)], [i for i, f in enumerate(used) if f]


cond: Primitive = primitive(
    "cond",
    _shape,
    multi=True,
    run=_run,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    dce=_dce,
    structure=Structure(
        bodies=(Body("branch", Runs.ONE_OF, ("consts",), ("results",)),),
        operands=(Group("choice", 1), Group("consts")),
    ),
)
