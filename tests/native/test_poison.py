"""Kernels read nothing that they have not written: results, workspaces and variables are full of nan before."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import numpy as np
import pytest

from retrograd.codegen.native import shim
from retrograd.codegen.native.kernel_function import KernelFunction, kernel_function
from retrograd.codegen.native.shared_objects import compiler, functions
from retrograd.ir import parse
from retrograd.ir.graph import Value
from tests.native.test_overwriting import RandomChains
from tests.native.test_random_kernels import RandomComplexKernel, RandomKernel, as_numpy_computes
from tests.native.test_threads import PROGRAMS, always_helped, gradients
from tests.support.native import needs_compiler

pytestmark = needs_compiler
PATTERN = "-ftrivial-auto-var-init=pattern"  # variables begin as -5e303


def understood() -> tuple[str, ...]:
    """The flag that poisons variables, if the compiler has it."""
    tool = compiler()
    assert tool is not None
    told = subprocess.run(
        [*tool.command, PATTERN, "-fsyntax-only", "-xc", "-"],
        input="int x;",
        capture_output=True,
        text=True,
        check=False,
    )
    return () if told.returncode else (PATTERN,)


@pytest.fixture(autouse=True)
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of kernels fill results and workspaces: with nan, and with -1 for integers."""

    def workspaces(k: int, kernel: KernelFunction, first: int, total: int) -> list[str]:
        lines = plain_workspaces(k, kernel, first, total)
        return [*lines, *(f"  __builtin_memset(p[{i}], 0xFF, {n});" for i, n in enumerate(kernel.workspaces, first))]

    def made(i: int, value: Value, at: int, operand: int | None) -> str:
        poison = f"__builtin_memset(p[{at}], 0xFF, {value.aval.nbytes});" if operand is None else ""
        return f"{plain_made(i, value, at, operand)} {poison}"

    plain_workspaces, plain_made = shim._workspaces, shim._made
    monkeypatch.setattr(shim, "_workspaces", workspaces)
    monkeypatch.setattr(shim, "_made", made)


@pytest.mark.parametrize("kind", [RandomKernel, RandomComplexKernel, RandomChains])
def test_random_kernels_compute_what_numpy_computes(kind: type[RandomKernel]) -> None:
    with always_helped("-O0", *understood()):
        assert as_numpy_computes(range(5 * 10**7, 5 * 10**7 + 60), kind) >= 30


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_have_the_same_bits_on_any_number_of_threads(name: str) -> None:
    with always_helped("-O1", *understood()):
        gradients([name])


def test_an_element_that_a_kernel_leaves_out_is_nan() -> None:
    graph = parse("graph f(%x: f64[99]) {\n  %0 = sin %x : f64[99]\n  return %0\n}")
    kernel = kernel_function(graph, "kernel0")
    shorter = replace(kernel, source=kernel.source.replace("< 99", "< 98"))
    (function,) = functions(shim.extension([graph], [shorter]), 1, [print])
    assert np.isnan(function(np.ones(99))).tolist() == [False] * 98 + [True]
