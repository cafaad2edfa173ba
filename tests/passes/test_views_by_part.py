"""Views are found by the part of the array that they show: a write asks those of its part, and plans stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.graph import Graph
from retrograd.passes import place_buffers as placer


def factor_by_rows(a: Any) -> Any:
    a = a.copy()
    for k in range(len(a)):
        for i in range(k + 1, len(a)):
            a[i, k] = a[i, k] / a[k, k]
            a[i, k + 1 :] = a[i, k + 1 :] - a[i, k] * a[k, k + 1 :]
    return np.sum(a * a)


def factor_by_columns(a: Any) -> Any:
    a = a.copy()
    for k in range(len(a)):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        for j in range(k + 1, len(a)):
            a[k + 1 :, j] = a[k + 1 :, j] - a[k + 1 :, k] * a[k, j]
    return np.sum(a * a)


def from_the_end(a: Any) -> Any:
    a, kept = a * 2.0, []
    for i in range(1, len(a)):
        kept += [a[-i], a[i - 1, :3], a[:, -i]]
        a[-i] = a[i - 1] * 0.5
        a[:, i] += a[:, -i]
        a[i:, 1] = kept[-2][0]
    return sum(np.sum(np.sin(v)) for v in kept) + np.sum(a)


def parts_of_parts(a: Any) -> Any:
    a = a * 2.0
    b, rows = a[1:], []
    for i in range(len(a) - 1):
        rows += [b[i], a[i]]
        b[i, 0] = rows[-1][1]
        a[i, ...] = np.sin(b[-1])
        a[[0, i], 2] = 1.5
    return sum(np.sum(r * r) for r in rows) + np.sum(b)


PROGRAMS = [factor_by_rows, factor_by_columns, from_the_end, parts_of_parts]
every_program = pytest.mark.parametrize("program", PROGRAMS)


def graph_of(program: Callable[..., Any], n: int, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr("retrograd.compiler.rolled.LONG", 10**9)
    return rg.grad(program).graph(matrix(n))


def matrix(n: int) -> Any:
    return np.random.default_rng(n).normal(size=(n, n)) + n * np.eye(n)


@every_program
@pytest.mark.parametrize("n", [4, 9])
def test_the_plan_is_that_of_asking_all_views(
    program: Callable[..., Any], n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(program, n, monkeypatch)
    found = placer.place_buffers(graph)
    monkeypatch.setattr(placer._BufferPlacer, "_int_of", lambda self, view: None)
    monkeypatch.setattr(placer._BufferPlacer, "_written", lambda self, write: ())
    expected = placer.place_buffers(graph)
    assert found.into
    assert (found.into, found.copies, found.dies, found.peak) == (
        expected.into,
        expected.copies,
        expected.dies,
        expected.peak,
    )


@every_program
def test_compiled_values_are_plain_numpys(program: Callable[..., Any]) -> None:
    with rg.config(exact=True):
        assert rg.jit(program)(matrix(7)) == program(matrix(7))


def test_writes_of_rows_ask_no_views_of_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    disjoint = placer.disjoint

    def counting(*args: Any) -> bool:
        nonlocal asked
        asked += 1
        return disjoint(*args)

    monkeypatch.setattr(placer, "disjoint", counting)
    graph = graph_of(factor_by_rows, 16, monkeypatch)
    asked = 0
    placer.place_buffers(graph)
    assert asked <= sum(node.prim.writes is not None for node in graph.nodes)
