"""Statements of calls: of the module's own functions, of host functions, of SciPy's solvers."""

from __future__ import annotations

from ....ir.graph import Node
from ....ops.ode import ode
from ....ops.structural.call import call
from ....ops.structural.custom import custom_jvp, custom_vjp
from ....ops.structural.host import host
from ....ops.structural.region import region, turn
from ..bodies import BodyEmitter
from ..emitter import emits


@emits(call, region, custom_jvp, custom_vjp)
def _call(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
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
    given = f"({', '.join(parameters)}{',' if len(parameters) == 1 else ''})"
    options = ", ".join(repr(node.attrs[name]) for name in ("method", "rtol", "atol"))
    emitter.line(f"{outs[0]} = solve_ode({emitter.function(node.attrs['body'])}, {start}, {times}, {given}, {options})")
