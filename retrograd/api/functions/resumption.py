"""Calls of a function value at the points of its cotangent, and their pullback: compiled once for each function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np

from ...compiler.compilation import Derived
from ...compiler.compiled import Compiled
from ...compiler.settings import config
from ...compiler.signature import Call
from ...compiler.transform import Transform
from ...passes.differentiate import value_and_grad
from ...passes.linearize import linearize
from ...passes.simplify import simplify
from ...tracer.record import Recorded
from ...tracer.tree import children
from .closures import Fn, Template

KEPT = 64  # the number of functions whose compiled code is kept


class Matching(Protocol):
    """A cotangent of a function value, as pairs of a result of the function and its cotangent."""

    def matched(self, value: Fn) -> Iterable[tuple[Any, Any]]:
        """The pairs, leaf by leaf."""


class PullIntoCaptures(Transform):
    """The gradient of the sum of ⟨ct, f(x)⟩ with respect to the captures of f, as a list of leaves."""

    def derive(self, function: Callable[..., Any], recorded: Recorded, call: Call) -> Derived:
        captures = children(children(call.spec)[0])[0].num_leaves
        active = [i < captures and aval.inexact for i, aval in zip(call.traced, recorded.graph.in_avals, strict=False)]
        active += [False] * len(recorded.captures)
        simple = simplify(recorded.graph)
        graph = value_and_grad(simple, active, linearize(simple, active, nan_safe=config.nan_safe), keep=False)
        return Derived(graph, list, form=())


def _paired(value: Fn, ct: Matching) -> Any:
    return sum((np.real(np.sum(c * y)) for y, c in ct.matched(value)), np.float64(0.0))


def _called(value: Fn, ct: Matching) -> list[Any]:
    return [y for y, _ in ct.matched(value)]


@functools.lru_cache(KEPT)
def pull(_: Template) -> Compiled:
    """``pull(f.template)(f, ct)``: a cotangent for each inexact capture of ``f``."""
    return Compiled(_paired, PullIntoCaptures("pull_into"))


@functools.lru_cache(KEPT)
def calls(_: Template) -> Compiled:
    """``calls(f.template)(f, ct)``: the results of ``f`` at the points of a cotangent, leaf by leaf."""
    return Compiled(_called, Transform("calls"))
