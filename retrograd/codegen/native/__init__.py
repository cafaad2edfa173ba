"""Kernels as C: their elements, their loops, and the functions that Python calls."""
