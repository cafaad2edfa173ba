"""Paths: the recorded paths of one signature of a compiled function, and the one piece of code that follows them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import ControlFlowError, ManyPathsWarning
from ..ir.builder import Builder, attr_key
from ..ir.graph import Graph, Value
from ..ir.types import aval_of
from ..ops.structural.guard import Miss, guard
from ..passes.control.merge_paths import merge_paths
from ..tracer.generators import repeatable
from ..where import warn
from .compilation import Derived, Path
from .executable import Executable
from .garbage import paused
from .nans import inspect_path
from .settings import config
from .signature import Call

if TYPE_CHECKING:
    from .compiled import Compiled


@dataclass(eq=False)
class Paths:
    """All paths of one signature. ``call(compiled, leaves)`` runs them; an unknown one is recorded there."""

    template: Call
    known: dict[Any, Path] = field(default_factory=dict)
    executable: Executable | None = None

    def __post_init__(self) -> None:
        self.template = self.template.with_values([None] * len(self.template.traced))  # the user's arrays are not kept
        self.lock = threading.RLock()
        self.call: Callable[[Compiled, Sequence[Any]], Any] = self.elsewhere

    def add(self, path: Path) -> None:
        """Compile a further path beside the others."""
        self.known[answers(path.recorded.graph)] = path
        paths = list(self.known.values())
        found = {id(c.payload): c for p in paths for c in p.recorded.captures}
        ordered = sorted(found.values(), key=lambda c: c.made)  # what the user holds first
        captures = {id(c.payload): c.payload for c in ordered}
        forms: list[Path] = []
        graphs = []
        for p in paths:
            alike = [k for k, first in enumerate(forms) if _alike(first.derived, p.derived)]
            if not alike:
                forms.append(p)
            graphs.append((_over(p, captures), alike[0] if alike else len(forms) - 1))
        several = len(forms) > 1
        with paused:
            merged = merge_paths([_marked(g, k) if several else g for g, k in graphs])
            inputs = merged.inputs[len(merged.inputs) - len(ordered) :]
            made = {v: c.payload for v, c in zip(inputs, ordered, strict=True) if c.made}
            executable = Executable(merged, made)
        self.executable = executable
        self.call = self._follower(executable, tuple(captures.values()), [p.derived.assemble for p in forms])
        if config.debug_nans:
            self.call = lambda compiled, leaves: inspect_path(self.path(compiled, leaves), leaves)

    def _follower(
        self, executable: Executable, captures: tuple[Any, ...], assemblers: list[Callable[[Sequence[Any]], Any]]
    ) -> Callable[[Compiled, Sequence[Any]], Any]:
        single, several = executable.single, len(assemblers) > 1
        run = repeatable(executable.function, captures)
        assemble = assemblers[0]

        def follow(compiled: Compiled, leaves: Sequence[Any]) -> Any:
            try:
                result = run(*leaves, *captures)
            except Exception as raised:  # noqa: BLE001 - whatever it is: the function is recorded for it, or it is raised
                executable.annotate(raised)
                fault = raised
            else:
                if several:
                    form, *results = result if type(result) is tuple else (result,)
                    return assemblers[form](results)
                return assemble((result,) if single else result)
            return self.elsewhere(compiled, leaves, fault)

        return follow

    def elsewhere(self, compiled: Compiled, leaves: Sequence[Any], fault: Exception | None = None) -> Any:
        """Record the way that these arguments go, which is not compiled or failed there, and give its result.

        What the user's function raises is raised. A way that is known fails as it did, or is interpreted where
        only the last bits of a decision differed.
        """
        with self.lock:
            path, new = self.recorded(compiled, leaves)
        if new:
            return self.call(compiled, leaves)
        if fault is not None and not isinstance(fault, Miss) and not path.recorded.tainted:
            raise fault
        try:
            return path.run(leaves)
        except Miss as miss:
            raise ControlFlowError(
                "lanes of a vmap answer a Python decision differently",
                where=miss.where,
                remedy="choose with np.where or rg.cond, which each lane may do in its own way",
            ) from None

    def recorded(self, compiled: Compiled, leaves: Sequence[Any]) -> tuple[Path, bool]:
        """The path of these arguments, and whether it was compiled just now."""
        call = self.template.with_values(leaves)
        recorded, derived = compiled.record(call)
        key = answers(recorded.graph)
        if key in self.known and not recorded.tainted:
            return self.known[key], False
        path = Path(recorded, derived)
        if recorded.tainted:
            return path, False
        if len(self.known) >= config.max_traces:
            last = recorded.graph.nodes[max(i for i, n in enumerate(recorded.graph.nodes) if n.prim is guard)]
            warn(
                f"{compiled!r} goes {len(self.known)} ways already, and each call goes another: further ones are "
                f"not compiled. What decides last: {last.where}. Repeat with rg.while_loop, choose with rg.cond, or "
                "raise rg.config.max_traces",
                ManyPathsWarning,
            )
            return path, False
        self.add(path)
        return path, True

    def path(self, compiled: Compiled, leaves: Sequence[Any]) -> Path:
        """The path that these arguments go."""
        for path in self.known.values():
            try:
                if len(self.known) > 1 or answers(path.recorded.graph):
                    path.results(leaves)
            except Miss:
                continue
            return path
        with self.lock:
            return self.recorded(compiled, leaves)[0]


def answers(graph: Graph) -> Any:
    """What a recording's guards expect: as functions trace alike up to a decision, this tells paths apart."""
    return tuple([attr_key(node.attrs["expected"]) for node in graph.nodes if node.prim is guard])


def _alike(a: Derived, b: Derived) -> bool:
    try:
        return a is b or (a.form is not None and bool(a.form == b.form))
    except Exception:  # noqa: BLE001 - static results of the user's, whose == may do anything
        return False


def _over(path: Path, captures: dict[int, Any]) -> Graph:
    """The path's graph with the captures of all paths as its trailing inputs."""
    graph = path.graph
    n = len(graph.inputs) - len(path.recorded.captures)
    own = {id(c.payload): v for c, v in zip(path.recorded.captures, graph.inputs[n:], strict=True)}
    trailing = tuple(own.get(key) or Value(aval_of(payload)) for key, payload in captures.items())
    return Graph(graph.name, (*graph.inputs[:n], *trailing), graph.nodes, graph.outputs)


def _marked(graph: Graph, form: int) -> Graph:
    """The graph with the number of its form as a first result."""
    b = Builder()
    inputs = b.share_inputs(graph)
    for node in graph.nodes:
        b.keep(node)
    b.where = None
    number = b.constant(form, aval_of(form))
    return Graph(graph.name, tuple(s.value for s in inputs), tuple(b.nodes), (number.value, *graph.outputs))
