"""The passes, one verb per file. Importing this package registers the passes that structural rules call."""

from . import annihilate, batch, inline, jvp, linearize, prune, transpose
from .control import merge_paths
from .remat import min_cut, regions, split
from .reroll import reroll
