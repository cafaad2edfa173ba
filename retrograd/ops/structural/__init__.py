"""Primitives with graphs inside, and the lists of steps that their residuals are."""

from . import scan, stack

__all__ = ["scan", "stack"]
