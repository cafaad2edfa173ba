"""The NumPy target: graphs as NumPy source."""

from ...ir.target import TARGETS
from .target import NumPy

TARGETS["numpy"] = NumPy()
