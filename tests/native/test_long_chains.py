"""Programs that write into parts of an array again and again: their C stays short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import shared_objects
from retrograd.codegen.native.c_texts import SIMD
from tests.support.native import needs_compiler

pytestmark = needs_compiler


def elimination(a: Any) -> Any:
    a = a.copy()
    for k in range(len(a) - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k][:, None] * a[k, k + 1 :]
    return np.sum(np.log(np.abs(np.diag(a))))


@pytest.mark.parametrize("n", [3, 5, 9, 12])
def test_an_elimination_is_short(n: int) -> None:
    a = np.random.default_rng(0).normal(size=(n, n)) + n * np.eye(n)
    f = rg.value_and_grad(elimination, backend="native")
    value, slope = f(a)
    np.testing.assert_allclose(value, np.linalg.slogdet(a)[1], rtol=1e-13)
    np.testing.assert_allclose(slope, np.linalg.inv(a).T, rtol=1e-10, atol=1e-13)
    assert not [why for why in rg.native_info().refused if why.startswith("elimination")]
    assert f.source(a, language="c").count("\n") < 1000 + 300 * n


def test_long_sources_are_compiled_with_less_effort() -> None:
    known = shared_objects.compiler()
    assert known is not None
    assert "-O3" in known.flags
    for version, efforts in (("gcc 12", shared_objects.EFFORT), ("clang 14", shared_objects.CLANG)):
        tool, before = replace(known, version=version), ("-O3",)
        for lines, effort in sorted(efforts.items()):
            for n, expected in ((lines, before), (lines + 1, effort)):
                flags = shared_objects._flags_for(tool, "\n" * n)
                assert {*flags} == {*tool.flags} - {"-O3"} | {*expected}
            before = effort
        for loops, expected in ((shared_objects.LOOPS - 1, ("-O3",)), (shared_objects.LOOPS, shared_objects.LEAN)):
            flags = shared_objects._flags_for(tool, f"{SIMD}\n" * loops)
            assert {*flags} == {*tool.flags} - {"-O3"} | {*(expected if "gcc" in version else ("-O3",))}
        for line, limited in (("v1 = rg_exp(v0)", True), ("v1 = rg_tanhf(v0)", True), ("e = rg_exp(-z)", False)):
            flags = shared_objects._flags_for(tool, f"  const double {line};\n")
            assert {*flags} == {*tool.flags} | {*(shared_objects.LIMITED if limited and "gcc" in version else ())}


def cooled(u: Any) -> Any:
    """Decides after each step, so that the adjoint is all steps in a row."""
    left = 1.0
    while left > 0.01:
        u = u.copy()
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
        u[0], u[-1], u[:, 0], u[:, -1] = 0.0, 0.0, 0.0, 0.0
        left = np.sum(u) / u.size
    return np.sum(u * u)


def test_equal_steps_of_a_long_adjoint_are_one_function() -> None:
    """One kernel of all steps had more lines than a compiler should get, so NumPy ran it."""
    u = np.outer(np.hanning(24), np.hanning(24))
    by_c, by_numpy = (rg.value_and_grad(cooled, backend=backend) for backend in ("native", "numpy"))
    for one, other in zip(by_c(u), by_numpy(u), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not [why for why in rg.native_info().refused if why.startswith("cooled")]
    assert by_c.source(u).count("\ndef ") < 10
    assert by_c.source(u).count("= cooled_grad_") > 100
    assert by_c.source(u, language="c").count("static int kernel") < 10
