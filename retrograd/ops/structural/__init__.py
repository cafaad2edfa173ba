"""Primitives with graphs inside, and the lists of steps that their residuals are."""

from . import call, custom, scan, stack

__all__ = ["call", "custom", "scan", "stack"]
