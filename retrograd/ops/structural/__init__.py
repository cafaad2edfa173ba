"""Primitives with graphs inside, and lists of steps, which hold their residuals."""

from . import (
    applied,
    call,
    cond,
    custom,
    draw,
    draws,
    exit_if,
    guard,
    host,
    in_blocks,
    kernel,
    open_sweep,
    region,
    scan,
    stack,
    sweep,
    throw,
    unsweep,
    while_loop,
)
