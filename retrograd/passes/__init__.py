"""The passes, one verb per file; importing this package registers those that structural rules need."""

from . import annihilate, batch, inline, jvp, linearize, prune, transpose
from .control import merge_paths
from .remat import min_cut, regions, split
from .reroll import reroll
