"""Programs that write into parts of an array again and again: their C stays short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import shared_objects
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
    tool = shared_objects.compiler()
    assert tool is not None
    (few, much), (most, least) = sorted(shared_objects.EFFORT.items())
    found = [shared_objects._flags_for(tool, "\n" * n) for n in (few, few + 1, most, most + 1)]
    assert found[0] == tool.flags
    assert "-O3" in tool.flags
    for flags, effort in zip(found, (("-O3",), much, much, least), strict=True):
        assert {*flags} == {*tool.flags} - {"-O3"} | {*effort}
