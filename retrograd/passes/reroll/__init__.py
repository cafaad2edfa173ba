"""Folding loops that Python unrolled back into loops."""
