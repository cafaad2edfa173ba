"""The native target, made where it is first chosen: few programs run C."""

from __future__ import annotations

from ..codegen.native.shared_objects import THREADS as ALLOWED
from ..codegen.native.shared_objects import keep_workspaces
from ..codegen.native.taken import rounds, takes
from ..codegen.native.target import Native
from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import walk
from ..ir.target import TARGETS
from ..ops.structural.kernel import kernel
from ..passes.fuse import Policy, fuse
from .block_threads import THREADS
from .kept_workspaces import LISTENERS, limit

MOST = 1000  # operations of a kernel, if more of them repeat: GCC takes a tenth of a second for a thousand lines


def with_kernels(graph: Graph) -> Graph:
    """Graph → Graph with kernels for C. What shares a list of steps with NumPy or another kernel stays outside."""
    shared: set[Value] = set()

    def taken(node: Node) -> bool:
        return takes(node) and shared.isdisjoint((*node.inputs, *node.outputs))

    while True:
        fused = fuse(graph, Policy(takes=taken, alone=rounds, most=MOST))
        kernels = [node for node in walk(fused) if node.prim is kernel]
        lists = {v for node in kernels for v in (*node.inputs, *node.outputs) if v.aval.steps is not None}
        if not lists:
            return fused
        shared |= lists


def _keep_within(limit: int) -> None:
    keep_workspaces(limit > 0)


ALLOWED.append(THREADS.allowed)
LISTENERS.append(_keep_within)
_keep_within(limit())
NATIVE = Native(TARGETS["numpy"], with_kernels)
TARGETS.add(NATIVE)
