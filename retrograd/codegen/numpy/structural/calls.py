"""Statements of calls: of the module's own functions, of host functions, of SciPy's solvers."""

from __future__ import annotations

from ....ir.graph import Node
from ....ir.texts import literal
from ....ops.implicit import certified, solution, solve_krylov
from ....ops.ode import ode
from ....ops.ode_events import crossed, ode_path
from ....ops.structural.call import call
from ....ops.structural.custom import custom_jvp, custom_vjp
from ....ops.structural.host import host
from ....ops.structural.region import region, turn
from ..bodies import BodyEmitter
from ..emitter import emits


@emits(call, region, custom_jvp, custom_vjp)
def call_body(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    """Write a call of the function for the body; it may have no results, and only draw random numbers."""
    results = f"{', '.join(outs)} = " if outs else ""
    emitter.line(f"{results}{emitter.function(node.attrs['body'])}({', '.join(ins)})")


@emits(turn)
def _turn(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    """Write nothing: a turn only divides a graph."""


@emits(host)
def _host(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    emitter.scope.calls_back = True
    emitter.line(f"{''.join(f'{out}, ' for out in outs).rstrip()} = {node.attrs['name']}({', '.join(ins)})")


@emits(ode)
def _ode(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    start, times, *parameters = ins
    options = ", ".join(repr(node.attrs[name]) for name in ("method", "rtol", "atol"))
    options += ", strict=True" if node.attrs.get("strict") else ""
    body, given = emitter.function(node.attrs["body"]), tuple_of(parameters)
    emitter.line(f"{outs[0]} = solve_ode({body}, {start}, {times}, {given}, {options})")


@emits(ode_path)
def _ode_path(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    start, times, *parameters = ins
    names = ("directions", "most", "asked", "counts", "method", "rtol", "atol")
    options = ", ".join(repr(node.attrs[name]) for name in names)
    bodies = ", ".join(emitter.function(node.attrs[name]) for name in ("body", "event"))
    emitter.line(f"{', '.join(outs)} = follow_ode({bodies}, {start}, {times}, {tuple_of(parameters)}, {options})")


@emits(crossed)
def _crossed(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    emitter.embed("unsolved", "crossed")
    emitter.line(f"{outs[0]} = crossed({', '.join(ins)})")


@emits(solution)
def _solution(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    emitter.embed("unsolved", "search", "solved")
    start, *given = ins
    bodies = [node.attrs.get(name) for name in ("value", "slope", "product")]
    functions = ", ".join("None" if body is None else emitter.function(body) for body in bodies)
    solver, options = repr(node.attrs["solver"]), literal(node.attrs["options"])
    emitter.line(f"{outs[0]} = solved({solver}, {start}, {tuple_of(given)}, {functions}, {options})")


@emits(certified)
def _certified(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    emitter.embed("unsolved", "certified")
    emitter.line(f"{outs[0]} = certified({', '.join(ins)})")


@emits(solve_krylov)
def _solve_krylov(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    emitter.embed("unsolved", "solve_krylov")
    right, *given = ins
    product, symmetric = emitter.function(node.attrs["forward"]), node.attrs["symmetric"]
    emitter.line(f"{outs[0]} = solve_krylov({product}, {right}, {tuple_of(given)}, {symmetric})")


def tuple_of(names: list[str]) -> str:
    """Source of a tuple."""
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
