"""The passes, one verb per file; importing this package registers those that structural rules need."""

from . import batch, inline, jvp, linearize, prune, residuals, retain, transpose

__all__ = ["batch", "inline", "jvp", "linearize", "prune", "residuals", "retain", "transpose"]
