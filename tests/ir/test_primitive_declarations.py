"""Declarations that contradict themselves are refused."""

from __future__ import annotations

import pytest

import retrograd as rg
from retrograd.ir.primitive import REGISTRY
from retrograd.ops.elementwise import unary


def test_code_that_is_no_call_of_the_ufunc() -> None:
    with pytest.raises(rg.errors.InternalError, match=r"not a call of np\.logaddexp"):
        unary("softer", "np.logaddexp", code="np.logaddexp(0.0, {0})")
    assert "softer" not in REGISTRY


def test_two_primitives_of_one_name() -> None:
    with pytest.raises(rg.errors.InternalError, match="two primitives are called sin"):
        unary("sin", "np.sin")
