"""Frozen: a compiled function for one signature, as data, with all state that it read besides its arguments."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..compiler.compilation import Compilation
from ..compiler.compiled import Compiled
from ..compiler.paths import Paths
from ..compiler.settings import config
from ..compiler.signature import Call, parameter_names
from ..errors import OptionError, UnsupportedError
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import REGISTRY
from ..ir.printer import to_text
from ..ir.rewrite import walk
from ..ir.types import in_order
from ..ops.structural.draw import draw
from ..ops.structural.draws import draws
from ..ops.structural.host import host
from ..tracer.record import Recorded
from ..tracer.surroundings import SURROUNDINGS
from ..tracer.trace import CURRENT
from ..tracer.tree import children, key_orders, unflatten
from .layouts_kept import check_gaps
from .trees_as_data import CALLED, Place, TreeForm, form_of_tree, harmless_text

BUILT_IN = frozenset(REGISTRY)  # the package's own primitives: this file is loaded before a program can declare more
TOLD = ("global", "closure", "attr", "static")  # kinds of reads that a module tells of
MOST_TOLD = 12
Strides = tuple[int, ...] | None  # of an argument; None for C order


@dataclass(frozen=True, eq=False)
class Frozen:
    """One way through a function under a transform, for one signature.

    ``arguments`` is the form of ``(args, kwargs)``, whose leaves are the first inputs of ``graph``; ``constants`` are
    the values of the others. ``graph`` has not been through the pipeline; ``final`` has. ``results`` is the form of the
    user's result, over the outputs of the graph. ``parameters`` are the names of the positional arguments, ``names``
    those of the leaves. ``written`` are the arguments that the function writes into.
    """

    name: str
    title: str
    graph: Graph
    compilation: Compilation
    arguments: TreeForm
    results: TreeForm
    parameters: tuple[str, ...]
    names: tuple[str, ...]
    strides: tuple[Strides, ...]
    constants: tuple[Any, ...]
    written: tuple[int, ...]
    values: tuple[Any, ...]
    read: tuple[str, ...]

    @property
    def final(self) -> Graph:
        """The graph after the pipeline."""
        return self.compilation.graph

    @property
    def ordered(self) -> bool:
        """Whether all arrays that come in are in C order."""
        arrays = [x for x in self.constants if isinstance(x, np.ndarray)]
        return all(s is None for s in self.strides) and all(map(in_order, arrays))


def freeze(compiled: Compiled, args: Sequence[Any], kwargs: dict[str, Any], what: str) -> Frozen:
    """Record a call anew, and keep what it did; UnsupportedError for what only this process can do.

    ``what`` says what is done with the function, for messages. The recording is a new one, so that the outcome does not
    depend on what was called before.
    """
    with _quietly(what):
        call = compiled._take(tuple(args), kwargs)
        recorded, derived = compiled._record(call)
        constants = _watched(compiled, call, recorded, what)
        strides = [_strides(x) for x in call.values()]
        settings = compiled._transform.settings()
        way = Compilation(repr(compiled), call, recorded, derived, settings, Paths(call, settings))
        return _frozen(compiled, way, constants, strides, what)


def freeze_known(compiled: Compiled, what: str) -> Frozen | None:
    """The same of the only call that a compiled function knows; None if it knows none.

    Raises OptionError if there are several, or if the call has arguments that are no arrays or floats.
    """
    with _quietly(what):
        entries: dict[Any, list[Paths]] = {**compiled._cache.entries}
        known = [(key, paths) for key, versions in entries.items() for paths in versions[:1]]
        ways = [(key, paths, way) for key, paths in known for way in paths.known.values()]
        if not ways:
            return None
        (_, (_, *leaf_keys)), paths, way = ways[0]
        if len(ways) > 1 or len(way.call.traced) < len(way.call.leaves):
            several = "was called with several signatures, or has several paths"
            static = "has arguments that are neither arrays nor floats"
            raise OptionError(
                f"{compiled!r} {several if len(ways) > 1 else static}: specify which one to use",
                remedy="give the arguments of a call after the path",
            )
        captures = paths.check(compiled._user, ())
        if captures is None:
            raise OptionError(
                f"state that {compiled!r} reads has changed since its last call",
                remedy="give the arguments after the path",
            )
        present = paths.present(captures)
        constants = tuple(present[id(c.payload)] for c in way.recorded.captures)
        strides = [key[2] if len(key) == 3 else None for key in leaf_keys]  # of arrays that are not in C order
        return _frozen(compiled, way, constants, strides, what)


@contextmanager
def _quietly(what: str) -> Iterator[None]:
    """The settings that say how calls are watched do not become part of a file."""
    if CURRENT.get() is not None:
        raise OptionError(
            f"a function is {what} while another one is traced",
            remedy="do this outside of compiled functions",
        )
    with config(counters=False, debug_nans=False):
        yield


def _frozen(
    compiled: Compiled, way: Compilation, constants: tuple[Any, ...], strides: Sequence[Strides], what: str
) -> Frozen:
    call, recorded, derived = way.call, way.recorded, way.derived
    if derived.later is not None:
        raise UnsupportedError(f"{way.name} returns a function, which cannot be {what}", remedy=CALLED)
    if recorded.tainted:
        raise UnsupportedError(
            f"{way.name} catches an error that depends on argument values: its graph is valid for these values only",
            remedy="decide with an if before the operation that fails",
        )
    _check_constants(way.name, constants, what)
    for x in (*constants, *call.values()):
        check_gaps(x, what)
    _refuse(way.name, derived.graph, what)
    arguments = _arguments(call)
    made = derived.assemble([Place(k) for k in range(len(derived.graph.outputs))])
    results = form_of_tree(made, key_orders(made), f"the result of {way.name}")
    positional = children(call.spec)[0]
    names = parameter_names(compiled._function)
    return Frozen(
        name=derived.graph.name,
        title=way.name,
        graph=derived.graph,
        compilation=way,
        arguments=arguments,
        results=results,
        parameters=tuple(names[k] if k < len(names) else f"arg{k}" for k in range(len(children(positional)))),
        names=tuple(call.hints),
        strides=tuple(strides),
        constants=constants,
        written=recorded.written,
        values=tuple(call.values()),
        read=tuple(_told(recorded.reads)),
    )


def _strides(x: Any) -> Strides:
    return None if not isinstance(x, np.ndarray) or in_order(x) else x.strides


def _watched(compiled: Compiled, call: Call, recorded: Recorded, what: str) -> tuple[Any, ...]:
    """What the recording captured; UnsupportedError if the function changes what it reads, or if none can watch it."""
    relied, statics = SURROUNDINGS[-1].check(), call.statics()
    captured = tuple(c.payload for c in recorded.captures)
    relied.rely_on(recorded.reads, compiled._user, statics, captured)
    if relied.run(compiled._user, statics) is None:
        raise UnsupportedError(
            f"{compiled!r} changes what it reads, reads what cannot be checked, or makes an object that it returns, "
            f"so it cannot be {what}: "
            f"{relied.changed(compiled._user, statics)}",
            remedy="pass it as an argument, and return what changes",
        )
    return captured


def _check_constants(title: str, constants: Sequence[Any], what: str) -> None:
    """UnsupportedError for what a function captured and no file can hold."""
    for x in constants:
        if isinstance(x, (np.random.Generator, np.random.RandomState)):
            raise UnsupportedError(
                f"{title} draws random numbers from a generator of this process, so it cannot be {what}",
                remedy="draw outside and pass the numbers as an argument",
            )
        if not isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
            raise UnsupportedError(
                f"{title} reads a {type(x).__name__} outside, so it cannot be {what}",
                remedy="pass it as an argument, as arrays",
            )


def _arguments(call: Call) -> TreeForm:
    """The form of the arguments of a call."""
    if type(call) is not Call:
        raise UnsupportedError(
            "a function that takes functions as arguments cannot be stored in a file",
            remedy="capture the function: rg.grad(lambda x: f(g, x))",
        )
    place = {leaf: k for k, leaf in enumerate(call.traced)}
    leaves = [
        Place(place[i]) if i in place else _Unread() if i in call.unread else x for i, x in enumerate(call.leaves)
    ]
    tree = unflatten(call.spec, leaves)
    return form_of_tree(tree, call.orders, "an argument", lambda x: isinstance(x, _Unread))


class _Unread:
    """Stands for an argument that the function never reads."""


def _refuse(title: str, graph: Graph, what: str) -> None:
    """UnsupportedError for operations that only this process can do."""
    for node in walk(graph):
        found = only_here(node, what)
        if found is not None:
            why, remedy = found
            raise UnsupportedError(f"{title} {why}, so it cannot be {what}", where=node.where, remedy=remedy)


def only_here(node: Node, what: str) -> tuple[str, str] | None:
    """Why an operation cannot be done outside of this process, and what to do instead; None if it can."""
    if node.prim is host:
        return (
            "calls a Python function of this process (a lens, or a function that is not traced)",
            "write it with NumPy functions that are traced",
        )
    if node.prim in (draw, draws):
        return "draws random numbers from a generator of this process", "draw outside, and pass the numbers in"
    if any(isinstance(x, tuple) and x[:1] == ("tiered",) for x in node.attrs.values()):
        return "keeps states of a loop in files (rg.Tiered)", "keep them in memory: rg.Snapshots, rg.Log"
    if what == "saved" and node.prim.name not in BUILT_IN:
        return (
            f"uses the primitive {node.prim.name}, which this program declares",
            "export it: f.export writes the primitive's NumPy source into the module",
        )
    return None


def _told(reads: Sequence[Any]) -> Iterator[str]:
    """Words for the state that the function read, as far as it is numbers, texts or arrays."""
    kinds = (bool, int, float, complex, str, np.ndarray, np.generic)
    words = [str(replace(r, where=None)) for r in reads if r.kind in TOLD and isinstance(r.value, kinds)]
    found = list(dict.fromkeys(map(harmless_text, words)))
    yield from found[:MOST_TOLD]
    if len(found) > MOST_TOLD:
        yield f"and {len(found) - MOST_TOLD} more"


# ------------------------------------------------------------------------------------------------- canonical form


def nameless(graph: Graph) -> Graph:
    """The graph without names of variables and lines of programs: equal for programs that compute the same."""
    new: dict[Value, Value] = {}

    def fresh(values: Sequence[Value]) -> tuple[Value, ...]:
        for v in values:
            new[v] = Value(v.aval)
        return tuple(new[v] for v in values)

    inputs = fresh(graph.inputs)
    nodes = []
    for node in graph.nodes:
        attrs = {name: nameless(x) if isinstance(x, Graph) else x for name, x in node.attrs.items()}
        ins = tuple(new[v] for v in node.inputs)
        nodes.append(replace(node, inputs=ins, attrs=attrs, outputs=fresh(node.outputs), where=None))
    return Graph("g", inputs, tuple(nodes), tuple(new[v] for v in graph.outputs))


def digest_of(graph: Graph, *more: Any) -> str:
    """A hash of what a graph computes, of arrays, and of further data."""
    found = hashlib.sha256(to_text(nameless(graph)).encode())
    for x in more:
        if isinstance(x, np.ndarray):
            found.update(f"{x.dtype.str}{x.shape}".encode() + x.tobytes())
        else:
            found.update(repr(x).encode())
    return found.hexdigest()
