"""Primitives with graphs inside, and the lists of steps that their residuals are."""

from . import call, cond, custom, guard, host, scan, stack, while_loop

__all__ = ["call", "cond", "custom", "guard", "host", "scan", "stack", "while_loop"]
