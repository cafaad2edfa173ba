"""host: a call of a plain Python function on NumPy values, for operations that no graph can express."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np

from ...errors import NonDifferentiableError, ShapeError
from ...ir.builder import Builder
from ...ir.graph import Graph, Node
from ...ir.primitive import Primitive, primitive
from ...ir.rewrite import walk
from ...ir.target import PROVIDERS
from ...ir.types import Aval

HOSTS: WeakValueDictionary[str, Host] = WeakValueDictionary()  # while a graph holds them
_number = itertools.count(1)


class Host(str):
    """A Python function, and the name by which graphs and generated code call it.

    ``function(*values)`` returns a sequence with one result for each of ``avals``. It must give the same results for
    the same values, since the graph may call it any number of times, or not at all.
    """

    __slots__ = ("__weakref__", "avals", "function")

    function: Callable[..., Sequence[Any]]
    avals: tuple[Aval, ...]

    def __new__(cls, function: Callable[..., Sequence[Any]], avals: Sequence[Aval]) -> Self:
        """A new name for the function."""
        made = super().__new__(cls, f"_host_{next(_number)}")
        made.function, made.avals = function, tuple(avals)
        HOSTS[made] = made
        return made

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """Results of the declared avals; the function gets copies, which it may keep and change."""
        given = [np.array(x) if isinstance(x, np.ndarray) else x for x in values]
        found = self.function(*given)
        return tuple(_as_declared(x, aval) for x, aval in zip(found, self.avals, strict=True))


def _as_declared(x: Any, aval: Aval) -> Any:
    array = np.asarray(x, aval.dtype)
    if array.shape != aval.shape:
        raise ShapeError(
            f"a host function returned an array of shape {array.shape} instead of {aval}",
            remedy="make shapes depend on the shapes of the arguments only",
        )
    if aval.kind == "array":
        return array
    return array[()] if aval.kind == "scalar" else array.item()


def called(graph: Graph) -> dict[str, Host]:
    """The host functions of a graph and of the graphs inside its nodes, by name."""
    names = [node.attrs["name"] for node in walk(graph) if node.prim is host]
    return {name: HOSTS[name] for name in names}


PROVIDERS.append(called)


def _shape(*_: Aval, name: str) -> tuple[Aval, ...]:
    if name not in HOSTS:
        raise ValueError(f"this process has no host function {name}")
    return HOSTS[name].avals


def _run(_: Any, node: Node, *args: Any) -> tuple[Any, ...]:
    return HOSTS[node.attrs["name"]](*args)


def _jvp(b: Builder, node: Node, *_: Any) -> Any:
    raise NonDifferentiableError(
        "the derivative of a host function is not known",
        where=node.where,
        remedy="write it with NumPy functions, or make it a lens with a pullback",
    )


def _batch(prim: Primitive, size: int, args: list[Any], flags: list[bool], name: str) -> Any:
    """Call the function for one lane after another, in one host call."""
    one = HOSTS[name]

    def over(*values: Any) -> list[Any]:
        lanes = [one(*(x[k] if on else x for x, on in zip(values, flags, strict=True))) for k in range(size)]
        return [np.array([lane[i] for lane in lanes], a.dtype).reshape(size, *a.shape) for i, a in enumerate(one.avals)]

    wide = Host(over, [Aval((size, *a.shape), a.dtype) for a in one.avals])
    return args[0].builder.emit(prim, [x.value for x in args], {"name": wide}), [True] * len(wide.avals)


host: Primitive = primitive(
    "host",
    _shape,
    multi=True,
    run=_run,
    jvp=_jvp,
    batch=_batch,
    scratch=lambda *avals, name: sum(a.nbytes for a in avals if a.kind == "array"),  # the copies that the function gets
)


def repeats(node: Node) -> bool:
    """Whether a node may run again: draws and host calls may not, nor nodes with one of them in a body."""
    return not any(inner.prim.effect or inner.prim is host for inner in walk(node))
