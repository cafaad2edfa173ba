"""Ticks: identities in loops that ask for it, which tell how far the loop is while its code runs."""

from __future__ import annotations

from typing import Any

from ..ir.primitive import Primitive, primitive, pull, push
from .batching import elementwise

# The function as it stands in modules that run alone; in this process another one takes its place.
TICK = """
def tick(value, loop, total, event):
    return value
"""

# The linear part of a tick. Tangents say nothing; its cotangent tells that the adjoint has made a step, too.
tangent_tick: Primitive = primitive(
    "tangent_tick",
    lambda x, loop, total, event: x,
    "{0}",
    alias=0,
    diff=(pull(lambda ct, x, loop, total, event: ticked(ct, loop=loop, total=total, event=f"adjoint {event}")),),
    batch=elementwise,
    lower=lambda b, node, args: args,
)


def _push(t: Any, out: Any, x: Any, loop: str, total: int, event: str) -> Any:
    return t if event != "step" else tangent_tick(t, loop=loop, total=total, event=event)


# ``event`` is "begin" before the first step, "step" at the end of each, and "end" after the last. ``total`` is the
# number of steps, -1 if it is unknown.
ticked: Primitive = primitive(
    "ticked",
    lambda x, loop, total, event: x,
    "tick({0}, {loop}, {total}, {event})",
    helper=TICK,
    alias=0,
    diff=(push(_push),),
    transpose=lambda b, node, operands, cts: cts,  # of an adjoint: what is turned round again says nothing
    batch=elementwise,
)
