"""C as a target, for kernels: the module stays NumPy's, and each kernel is a function in it that runs as C."""

from __future__ import annotations

import inspect
import re
import warnings
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import NoCompilerWarning
from ...ir.graph import Graph, Node
from ...ir.plan import Plan
from ...ir.rewrite import mapped, walk, with_nodes
from ...ir.target import Module, Target
from ...ops.structural.kernel import kernel
from .alike_kernels import FOR_C, apart_by_storage, is_kernel, pairs_of, with_alike_as_one
from .elements import NoC
from .footprint import WithKept, kept_by, storage_known
from .in_operands import Pairs
from .kernel_function import KernelFunction, identity_of, kernel_function
from .shared_objects import compiler, fits, functions
from .shim import extension

if TYPE_CHECKING:
    from ...ir.footprint import Footprint

REMEMBERED = 64  # refusals
REFUSALS: deque[str] = deque(maxlen=REMEMBERED)
FAILED = "the C compiler failed: NumPy runs the kernels. rg.native_info() says why, and CC names another compiler"
OWN_NAME = re.compile(r"\bkernel(?=\(|_(?:part|nest)\d+\b)")
Pass = Callable[[Graph], Graph]


@dataclass(frozen=True)
class NativeModule(Module):
    """A module with the bodies of its kernels, by the names of the functions that compute them in NumPy."""

    kernels: tuple[tuple[str, Graph], ...] = ()
    alone: bool = False  # whether the module's function is no more than a call of its only kernel


class Native:
    """Modules of NumPy statements in which kernels run as C, where there is a compiler.

    Who makes it passes the target for the rest, and ``fuse``, the pass that forms kernels.
    """

    name = "native"

    def __init__(self, rest: Target, fuse: Pass) -> None:
        self._rest, self._fuse = rest, fuse

    def legalise(self, graph: Graph) -> Graph:
        """The graph with kernels, in the form of the target for the rest; kernels know what they were before."""
        if not available():
            return self._rest.legalise(graph)
        fused = with_alike_as_one(self._fuse(graph))
        refused = {body for body in _bodies(fused) if _refused(body)}
        if refused:
            fused = mapped(fused, lambda inner: _opened(inner, refused))
        legal = self._rest.legalise(fused)
        bodies = {body.name: body for body in _bodies(fused)}
        for body in _bodies(legal):
            if body.name in bodies:
                body.once(FOR_C, partial(bodies.__getitem__, body.name))
                storage_known(body, _text(bodies[body.name]))
        return legal

    def plan(self, graph: Graph, ordered: bool = True) -> Plan:
        """The storage of a graph."""
        return graph.once(("native plan", ordered), lambda: apart_by_storage(self._rest.plan(graph, ordered)))

    def emit(self, plan: Plan, constants: Mapping[int, np.ndarray[Any, Any]] | None = None) -> Module:
        """The module of a plan."""
        module = self._rest.emit(plan, constants)
        order, bodies = plan.order, [body for body in _bodies(plan.order) if body.knows(FOR_C)]
        names = module.functions
        over = _in_operands(plan)
        kernels = tuple((names[body], _for_c(body, over.get(body, ()))) for body in bodies if body in names)
        alone = len(order.nodes) == 1 and order.nodes[0].prim is kernel and len(bodies) == 1
        same = alone and order.nodes[0].inputs == order.inputs and order.nodes[0].outputs == order.outputs
        fields = {name: getattr(module, name) for name in Module.__dataclass_fields__}
        return NativeModule(**fields, kernels=kernels, alone=same)

    def footprint(self, plan: Plan) -> Footprint:
        """The memory of a plan, with C's own storage in kernels."""
        return WithKept(self._rest.footprint(plan), kept_by(_bodies(plan.order)))

    def load(self, module: Module, filename: str, names: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
        """The function of a module, with its kernels in C."""
        function = self._rest.load(module, filename, names)
        if not isinstance(module, NativeModule) or not module.kernels:
            return function
        scope = inspect.unwrap(function).__globals__
        made = compiled([body for _, body in module.kernels], [scope[name] for name, _ in module.kernels])
        for (name, _), own in zip(module.kernels, made, strict=True):
            if own is not None:
                scope[name] = own
        only = made[0] if module.alone and not module.around else None
        return function if only is None else only


def missing() -> str:
    """Why kernels cannot be compiled; empty if they can."""
    if not fits():
        return "kernels need CPython on a 64-bit machine, with its global lock: NumPy runs them"
    if compiler() is None:
        return "there is no C compiler: NumPy runs the kernels. Install gcc or clang, or name one in CC"
    return ""


def available() -> bool:
    """Whether kernels can be compiled; the first time they cannot, a warning says why."""
    why = missing()
    if why:
        _warn(why)
    return not why


_warned: set[str] = set()


def _warn(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, NoCompilerWarning, stacklevel=2)


def compiled(bodies: Sequence[Graph], fallbacks: Sequence[Callable[..., Any]]) -> list[Callable[..., Any] | None]:
    """The functions of kernels, in one extension module; None for those that NumPy must run. Equal ones are one."""
    alike = _alike(bodies)
    found: list[Callable[..., Any] | None] = [None] * len(bodies)
    if alike:
        first = [same[0] for same in alike]
        try:
            made = functions(_source(bodies, first), len(first), [fallbacks[k] for k in first])
            for same, own in zip(alike, made, strict=True):
                for k in same:
                    found[k] = own
        except NoC as why:
            REFUSALS.append(f"{bodies[first[0]].name}: {why}")
            _warn(missing() or FAILED)
    return found


def c_source(module: Module) -> str:
    """The C of a module's kernels, as it is compiled; a comment if it has none."""
    bodies = [body for _, body in module.kernels] if isinstance(module, NativeModule) else []
    return _source(bodies, [same[0] for same in _alike(bodies)]) or "/* NumPy computes all of this. */\n"


def c_kernels(module: Module) -> tuple[str, list[str]]:
    """The C of all kernels of a module, and the names of the functions of the module that it computes, in its order."""
    known = module.kernels if isinstance(module, NativeModule) else ()
    good = [k for k, (_, body) in enumerate(known) if not _refused(body)]
    return _source([body for _, body in known], good), [known[k][0] for k in good]


def _source(bodies: Sequence[Graph], chosen: Sequence[int]) -> str:
    """The source of an extension module with some of the kernels; nothing for none."""
    texts = [_text(bodies[k]) for k in chosen]
    named = [replace(text, source=OWN_NAME.sub(f"kernel{n}", text.source)) for n, text in enumerate(texts)]
    return extension([bodies[k] for k in chosen], named) if named else ""


def _alike(bodies: Sequence[Graph]) -> list[list[int]]:
    """The positions of the kernels that C has texts for; those are together that are equal, as in steps of a loop."""
    found: dict[Hashable, list[int]] = {}
    for k, body in enumerate(bodies):
        if not _refused(body):
            found.setdefault(identity_of(body, _text(body)), []).append(k)
    return list(found.values())


def _text(body: Graph) -> Any:
    """The function of a kernel, or why there is none."""

    def made() -> KernelFunction | NoC:
        try:
            return kernel_function(body, "kernel")
        except NoC as why:
            return why

    return body.once("C", made)


def _refused(body: Graph) -> bool:
    found = _text(body)
    if not isinstance(found, NoC):
        return False
    why = f"{body.name}: {found}"
    if why not in REFUSALS:
        REFUSALS.append(why)
    return True


def _opened(graph: Graph, refused: set[Graph]) -> Graph:
    """The graph with the nodes of refused kernels in their places."""
    nodes: list[Node] = []
    for node in graph.nodes:
        bodies = [body for _, body in node.graphs]
        if node.prim is not kernel or bodies[0] not in refused:
            nodes.append(node)
            continue
        (body,) = bodies
        names = dict(zip((*body.inputs, *body.outputs), (*node.inputs, *node.outputs), strict=True))
        nodes += [
            replace(
                inner,
                inputs=tuple(names.get(v, v) for v in inner.inputs),
                outputs=tuple(names.get(v, v) for v in inner.outputs),
            )
            for inner in body.nodes
        ]
    return with_nodes(graph, nodes)


def _bodies(graph: Graph) -> list[Graph]:
    """The bodies of kernels, without those that the target for the rest runs on blocks."""
    return list(dict.fromkeys(body for node in filter(is_kernel, walk(graph)) for _, body in node.graphs))


def _for_c(body: Graph, over: Pairs) -> Graph:
    """The body as C knows it; one of its own if results lie in operands, which holds for one plan."""
    found: Graph = body.once(FOR_C, lambda: body)
    if over:
        text = _text(found)
        found = replace(found)
        found.once("C", partial(text.in_operands, over))
    return found


def _in_operands(plan: Plan) -> dict[Graph, Pairs]:
    """The pairs of results and operands that have one storage, by the body of the kernels that have them."""
    found = {node.graphs[0][1]: pairs_of(plan, node) for node in filter(is_kernel, plan.order.nodes)}
    for inner in plan.bodies.values():
        found |= _in_operands(inner)
    return found
