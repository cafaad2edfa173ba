"""Primitives with graphs inside, and the lists of steps that their residuals are."""

from . import (
    applied,
    call,
    cond,
    custom,
    draw,
    guard,
    host,
    open_sweep,
    region,
    scan,
    stack,
    sweep,
    throw,
    unsweep,
    while_loop,
)
