"""Peaks of memory: a value and its gradient take no more than a tenth beyond code by hand, where the table says so."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from bench import peaks
from bench.workloads import WORKLOADS, mlp, options

MOST = {  # of the memory of code by hand
    "mlp-784-128-10": 1.1,
    "mlp-784-512-256-10": 1.1,
    "logsumexp": 1.1,
    "gmm-10": 1.1,
    "convolution": 1.2,
    "rosenbrock-10000": 1.1,
    "softmax": 1.1,
    "attention": 1.0,
    "gmm-32": 1.1,
    "layernorm": 1.2,
    "black-scholes-10000": 1.1,
    "black-scholes-100000": 1.1,
}


@pytest.mark.parametrize("name", MOST)
def test_a_call_takes_little_more_memory_than_code_by_hand(name: str) -> None:
    ours, by_hand = peaks.peaks(WORKLOADS[name])
    assert ours <= MOST[name] * by_hand


def test_other_sizes_need_no_more() -> None:
    small = replace(WORKLOADS["mlp-784-128-10"], inputs=partial(mlp.inputs, (300, 200, 100, 10), 64))
    ours, by_hand = peaks.peaks(small)
    assert ours <= 1.1 * by_hand
    many = replace(WORKLOADS["black-scholes-1000000"], inputs=partial(options.inputs, 400_000))
    ours, by_hand = peaks.peaks(many)
    assert ours <= 1.1 * by_hand
