"""The targets that graphs are compiled for, created here, above their passes and code generators."""

from __future__ import annotations

from ..codegen.numpy import in_workspace, structural  # noqa: F401 - they register emitters
from ..codegen.numpy.footprint.footprint import Simulation
from ..codegen.numpy.target import PASSES, NumPy
from ..codegen.numpy.vector_products import with_dots
from ..ir.graph import Graph
from ..ir.target import CHOICE, TARGETS
from ..passes.block_kernels import with_blocks
from ..passes.dead_writes import without_dead_writes
from ..passes.fewer_rows import with_fewer_rows, with_fewer_rows_of_products
from ..passes.final_states import with_final_states
from ..passes.hoist_invariants import hoist_invariants
from ..passes.narrow_stacks import with_narrow_stacks_turned
from ..passes.own_carries import own_carries
from ..passes.packed_factors import packed_factors
from ..passes.packed_residuals import packed_residuals
from ..passes.parts_in_place import parts_in_place
from ..passes.place_buffers import place_buffers
from ..passes.rows_apart import rows_apart
from ..passes.rows_in_blocks import with_rows_in_blocks, with_rows_in_small_blocks
from ..passes.short_axes import short_axes_first
from ..passes.stacks_in_blocks import with_larger_stacks_in_blocks, with_stacks_in_blocks
from ..passes.stencils_in_blocks import with_stencils_in_blocks
from ..passes.sums_behind_loops import sums_behind_loops
from ..passes.sums_in_products import sums_in_products
from ..passes.vectorize import with_levels
from .settings import config
from .stages import STAGES, Pass, Rest, Stage, of_pass


def _choice() -> str:
    """The target of the settings; only NumPy's own code has NumPy's bits."""
    settings = config.now()
    name = "numpy" if settings.exact else settings.backend
    if name not in TARGETS:
        from . import native_target  # noqa: F401, PLC0415 - it registers the target, and takes a while to import
    return name


def _for(**passes: Pass) -> Stage:
    """The passes of targets as a stage. C has loops of its own, and the order of sums decides their last bits."""
    stages = {backend: of_pass(function) for backend, function in passes.items()}

    def run(graph: Graph, rest: Rest) -> Graph:
        stage = None if rest.settings.exact else stages.get(rest.settings.backend)
        return graph if stage is None else stage.run(graph, rest)

    return Stage(run)


NUMPY = NumPy(place_buffers, Simulation)
TARGETS.add(NUMPY)
CHOICE.append(_choice)
PASSES[:0] = [with_levels, without_dead_writes]
# The last one inserts copies that no rebuilding may merge.
PASSES.extend([with_blocks, with_dots, parts_in_place, own_carries])
STAGES["hoist_invariants"] = of_pass(hoist_invariants)
STAGES["rows_apart"] = _for(native=rows_apart)
STAGES["sums_behind_loops"] = _for(native=sums_behind_loops)
STAGES["final_states"] = of_pass(with_final_states)
STAGES["sums_in_products"] = _for(numpy=sums_in_products, native=sums_in_products)
STAGES["packed_factors"] = _for(numpy=packed_factors, native=packed_factors)
STAGES["short_axes"] = _for(numpy=short_axes_first)
STAGES["narrow_stacks"] = _for(numpy=with_narrow_stacks_turned, native=with_narrow_stacks_turned)
STAGES["rows_in_blocks"] = _for(numpy=with_rows_in_blocks, native=with_rows_in_small_blocks)
STAGES["stacks_in_blocks"] = _for(numpy=with_stacks_in_blocks, native=with_larger_stacks_in_blocks)
STAGES["stencils_in_blocks"] = _for(numpy=with_stencils_in_blocks)
STAGES["fewer_rows"] = _for(numpy=with_fewer_rows, native=with_fewer_rows_of_products)
STAGES["packed_residuals"] = of_pass(packed_residuals)
