"""Kernels for tests: graphs as functions in C."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import shared_objects
from retrograd.codegen.native.c_texts import text_of
from retrograd.codegen.native.shared_objects import at_effort, compiler, fits
from retrograd.codegen.native.taken import takes
from retrograd.codegen.native.target import REFUSALS, compiled
from retrograd.ir import Graph, evaluate
from retrograd.ir.target import TARGETS
from retrograd.ops.structural.kernel import kernel

EITHER_ZERO = ("maximum", "minimum", "fmax", "fmin")  # of 0 and -0, NumPy's result depends on the position
needs_compiler = pytest.mark.skipif(compiler() is None or not fits(), reason="there is no C compiler")


def taken(graph: Graph) -> bool:
    """Whether one kernel can be all of a graph."""
    made = {v for node in graph.nodes for v in node.outputs}
    plain = all(v in made and v.aval.steps is None for v in graph.outputs)
    plain = plain and len(set(graph.outputs)) == len(graph.outputs)
    return plain and bool(graph.nodes) and all(map(takes, graph.nodes))


def as_kernels(graphs: Sequence[Graph]) -> list[Callable[..., Any]]:
    """Functions in C, all in one extension module; calls that do not fit raise."""

    def unfit(*args: Any) -> Any:
        raise AssertionError(f"the kernel does not take {[(type(x), np.shape(x)) for x in args]}")

    REFUSALS.clear()
    found = compiled([replace(graph) for graph in graphs], [unfit] * len(graphs))
    assert not REFUSALS, list(REFUSALS)
    return [function for function in found if function is not None]


def is_one_kernel(function: Any, *args: Any) -> bool:
    """Whether one kernel is all of a transformed function."""
    with rg.config(backend="native"):
        legal = TARGETS["native"].legalise(function.graph(*args))
    return [node.prim for node in legal.nodes if node.prim.alias is None] == [kernel]


def results(function: Callable[..., Any], graph: Graph, args: Sequence[Any]) -> list[Any]:
    """The results of a kernel as a list."""
    found = function(*args)
    return [found] if len(graph.outputs) == 1 else list(found)


def far_off(cases: Sequence[tuple[str, Graph, Sequence[Any]]]) -> dict[str, float]:
    """Titles of graphs of one node whose kernels are further from NumPy's result than declared, and how far."""
    found = {}
    for (title, graph, args), function in zip(cases, as_kernels([graph for _, graph, _ in cases]), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (expected,) = evaluate(graph, args)
        (got,) = results(function, graph, args)
        assert got.dtype == expected.dtype
        text = text_of(graph.nodes[-1])
        assert text is not None
        if graph.nodes[-1].prim.name in EITHER_ZERO:
            got, expected = got + 0.0, expected + 0.0
        away = units(got, expected)
        if away > text.ulp:
            found[title] = away
    return found


def units(found: Any, expected: Any) -> float:
    """The largest distance, in units in the last place of what is expected.

    Infinite values, nan and the signs of zeros must agree. The units of a complex number are those of the larger of its
    parts.
    """
    a, b = np.asarray(found), np.asarray(expected)
    if b.dtype.kind == "c":
        return max(_units(x, y, np.maximum(abs(b.real), abs(b.imag))) for x, y in ((a.real, b.real), (a.imag, b.imag)))
    return _units(a, b, abs(b) if b.dtype.kind == "f" else b)


def _units(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], size: np.ndarray[Any, Any]) -> float:
    if b.dtype.kind != "f":
        return 0.0 if np.array_equal(a, b) else float("inf")
    plain = np.isfinite(b)
    if not np.array_equal(a[~plain], b[~plain], equal_nan=True) or not np.all(np.isfinite(a[plain])):
        return float("inf")
    if np.any((a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))):
        return float("inf")
    with np.errstate(all="ignore"):
        away = np.abs(a[plain] - b[plain]) / np.spacing(np.where(np.isfinite(size), size, np.abs(b))[plain])
    return float(np.max(away, initial=0.0))


@contextmanager
def in_a_hurry() -> Iterator[None]:
    """The native target, with a compiler that does not optimise: what is written is tested, in a tenth of the time.

    The code is for any machine of the kind, since GCC takes three times as long if it may use all of this one.
    """
    tool = compiler()
    assert tool is not None
    flags = tuple(flag for flag in at_effort(tool.flags, ("-O0",)) if not flag.endswith("=native"))
    with pytest.MonkeyPatch.context() as patch, rg.config(backend="native"):
        patch.setattr(shared_objects, "compiler", lambda: replace(tool, flags=flags))
        yield
