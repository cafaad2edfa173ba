"""Gradients by tapes, for recordings that may not come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..compiler.postponed import TAPED, TapedDerivative
from ..compiler.settings import config
from ..compiler.signature import Call
from ..compiler.tapes import tape_of
from ..tracer.record import Recorded
from .gradients import Gradient


def taped(transform: Gradient, function: Callable[..., Any], recorded: Recorded, call: Call) -> TapedDerivative | None:
    """The gradient of a recording as a tape; None with function values, with a budget and with ``nan_safe``."""
    if call.apart is not None or transform.memory is not None or config.nan_safe:
        return None
    chosen = transform.wanted(function, call)
    transform.check_output(recorded)
    keep = transform.value or transform.has_aux
    tape = tape_of(recorded.graph, [*chosen.active, *(False for _ in recorded.captures)], keep)
    n = len(recorded.graph.outputs) if keep else 0
    return TapedDerivative(tape, transform.assembler_of(recorded, n, lambda found: chosen.tree(found[n:])))


TAPED[Gradient] = taped
