"""Folding what Python unrolled back into loops."""
