"""The NumPy target: graphs as NumPy source."""

from . import check as check
from . import tables as tables
