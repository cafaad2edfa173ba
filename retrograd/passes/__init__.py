"""The passes, one verb per file. Importing the package registers those that structural rules call, and the rewrites."""

from . import (
    annihilate,
    batch,
    blame,
    cheaper_rules,
    factor_rules,
    fold,
    formula_rules,
    free_shifts,
    hoist_invariants,
    index_rules,
    inexact_rules,
    inline,
    join_parts,
    jvp,
    linearize,
    product_rules,
    prune,
    row_rules,
    rows_apart,
    scaled_products,
    slope_rules,
    symmetric_rules,
    transpose,
    triangular_rules,
)
from .control import merge_paths
from .remat import min_cut, regions, split
from .reroll import reroll
