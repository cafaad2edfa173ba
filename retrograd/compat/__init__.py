"""Doors between packages: programs that were written for others move in, and functions of ours go into theirs.

Nothing here loads with ``import retrograd``.
"""
