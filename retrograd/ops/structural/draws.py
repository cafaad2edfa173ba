"""draws: all random numbers of a loop whose number of steps is known, drawn before it in the order of its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Node
from ...ir.primitive import Primitive, primitive
from ...ir.texts import literal
from ...ir.types import Aval
from .draw import DRAWS

# An item is ("draw", method, given, named, dtype, shape), or ("loop", steps, items); the only item of a node is a loop.
# The results are the draws in their order, each with a leading axis for each of the loops around it.
DRAWN = """
def along(rows, path):
    if len(path) == 1:
        return [row[path[0]] for row in rows]
    return [along(row[path[0]], path[1:]) for row in rows]

def drawn(rows, results):
    return [np.array(along(rows, path), dtype).reshape(shape) for path, dtype, shape in results]
"""


def _rows(loop: Any) -> str:
    """The source of a list with a list for each step, which holds the numbers and the rows of loops inside."""
    return f"[[{', '.join(map(_source, loop[2]))}] for _ in range({loop[1]})]"


def _source(item: Any) -> str:
    if item[0] == "loop":
        return _rows(item)
    _, method, given, named, *_ = item
    values = [literal(x) for x in given] + [f"{name}={literal(x)}" for name, x in named]
    return f"{{0}}.{method}({', '.join(values).replace('{', '{{').replace('}', '}}')})"


def _paths(items: Sequence[Any]) -> Iterator[tuple[int, ...]]:
    """The place of each draw in the row of a step."""
    for k, item in enumerate(items):
        if item[0] == "draw":
            yield (k,)
        else:
            yield from ((k, *path) for path in _paths(item[2]))


def _leaves(items: Sequence[Any], lead: tuple[int, ...] = ()) -> Iterator[Aval]:
    for item in items:
        if item[0] == "draw":
            if item[1] not in DRAWS:
                raise ValueError(f"{item[1]} is not a draw")
            yield Aval((*lead, *item[5]), np.dtype(item[4]))
        else:
            yield from _leaves(item[2], (*lead, item[1]))


def _shape(generator: Aval, items: tuple[Any, ...]) -> tuple[Aval, ...]:
    if generator.kind != "generator":
        raise ValueError(f"{generator} draws nothing")
    return tuple(_leaves(items))


def _code(node: Node) -> str:
    (loop,) = node.attrs["items"]
    places = zip(_paths(loop[2]), node.outputs, strict=True)
    results = tuple((path, v.aval.dtype, v.aval.shape) for path, v in places)
    return f"drawn({_rows(loop)}, {literal(results)})" + ("[0]" if len(node.outputs) == 1 else "")


draws: Primitive = primitive(
    "draws",
    _shape,
    _code,
    helper=DRAWN,
    names=" ".join(sorted(DRAWS)),
    multi=True,
    effect=True,
    diff=(None,),
    fresh=lambda node: range(len(node.outputs)),
)


def items_of(node: Node) -> tuple[Any, ...]:
    """What a node draws, as items of a larger one."""
    if node.prim is draws:
        found: tuple[Any, ...] = node.attrs["items"]
        return found
    aval = node.out.aval
    return (("draw", node.attrs["method"], node.attrs["given"], node.attrs["named"], aval.dtype.name, aval.shape),)
