"""Compatibility: programs written for other packages run here, and compiled functions run in other packages.

Nothing here loads with ``import retrograd``.
"""
