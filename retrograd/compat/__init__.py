"""Doors for programs that were written for other packages. Nothing here loads with ``import retrograd``."""
