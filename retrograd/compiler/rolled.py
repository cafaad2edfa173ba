"""Rolled: recordings with Python's loops as loops of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..ir.builder import Builder, Symbol
from ..ir.primitive import TRANSFORMS
from ..tracer.around import kept
from ..tracer.record import Recorded
from ..tracer.trace import Capture
from .garbage import paused
from .settings import config

UNROLLED = 1300  # operations up to which loops of formulas stay unrolled: LU of 64 rows has 1,198, and is faster so
UNROLLED_IN_C = 150  # ... in C, whose compiler takes a second for so many
LONG = 100  # nodes from which a recording is searched for loops
Array = np.ndarray[Any, Any]
_known: WeakValueDictionary[Any, Array] = WeakValueDictionary()  # the numbers of steps, by their contents
_FROM: ContextVar[int] = ContextVar("retrograd_rolled_from", default=0)  # nodes from which it is, here
kept(_FROM)


@TRANSFORMS.register("rolled")
def rolled(recorded: Recorded, concrete: bool) -> Recorded:
    """The recording with its loops folded, if it is long; ``concrete`` says whether it is that of one path."""
    native, fewest = config.backend == "native", max(LONG, _FROM.get()) if concrete else LONG
    if len(recorded.graph.nodes) < fewest:
        return recorded
    with paused:
        formulas = len(recorded.graph.nodes) > (UNROLLED_IN_C if native else UNROLLED)
        graph, arrays = TRANSFORMS.reroll(recorded.graph, formulas, native)
    captured, inputs = {id(c.payload) for c in recorded.captures}, graph.inputs[len(graph.inputs) - len(arrays) :]
    arrays = [x if id(one := _one_of(x)) in captured else one for x in arrays]
    more = [Capture(x, Symbol(Builder(), v), x, made=True) for x, v in zip(arrays, inputs, strict=True)]
    return replace(recorded, graph=graph, captures=(*recorded.captures, *more))


def _one_of(array: Array) -> Array:
    """The first array with these contents: a body that is recorded in each step of a loop captures the same ones."""
    return _known.setdefault((array.shape, array.dtype, array.tobytes()), array)


@contextmanager
def rolled_from(nodes: int) -> Iterator[None]:
    """A context in which only paths of so many operations are searched for loops, besides bodies of loops."""
    token = _FROM.set(nodes)
    try:
        yield
    finally:
        _FROM.reset(token)
