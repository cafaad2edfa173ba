"""The passes, one verb per file; importing this package registers those that structural rules need."""

from . import annihilate, batch, inline, jvp, linearize, prune, transpose
from .remat import min_cut, regions
