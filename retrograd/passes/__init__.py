"""The passes, one verb per file. Importing this package registers the passes that structural rules call."""

from . import batch, inline, jvp, linearize, prune, transpose
from .remat import min_cut, regions
