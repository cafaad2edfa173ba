"""Random programs on tensors and in records: values and gradients of the compiled function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import retrograd as rg
from tests.fuzz.programs import programs
from tests.fuzz.test_programs import SEEDS, compiled, inputs

FUZZ = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
# Programs that write into arrays are not for eager ones.
WRITES = (rg.errors.UnsupportedError, rg.errors.TracerConversionError)


def is_write(fault: Exception) -> bool:
    return isinstance(fault, WRITES) or isinstance(fault.__cause__, WRITES)  # NumPy puts its own in front


def by_tensors(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, list[Any]]:
    tensors = [rg.eager.Tensor(x, requires_grad=True) for x in args]
    out = f(*tensors)
    out.backward()
    return out.data, [np.zeros(t.shape) if t.grad is None else t.grad.data for t in tensors]


def by_record(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, list[Any]]:
    with rg.eager.Record() as rec:
        tensors = [rec.tensor(x) for x in args]
        out = f(*tensors)
        grads = out.grad()
        return out.data, [grads.wrt(t) for t in tensors]


def check(front: Callable[..., Any], source: str, seed: int) -> None:
    f, args = compiled(source), inputs(seed)
    value, slopes = rg.value_and_grad(f, (0, 1))(*args)
    try:
        found, grads = front(f, args)
    except Exception as fault:
        assume(not is_write(fault))
        raise
    assert float(found) == pytest.approx(float(value), rel=1e-12, abs=1e-12)
    for grad, slope in zip(grads, slopes, strict=True):
        np.testing.assert_allclose(grad, slope, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("front", [by_tensors, by_record])
@FUZZ
@given(programs(), SEEDS)
def test_a_program_is_one_on_every_front(front: Callable[..., Any], source: str, seed: int) -> None:
    check(front, source, seed)
