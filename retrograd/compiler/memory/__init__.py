"""Memory: plans for loops and gradients with a budget in bytes, and results that own their memory."""

from ...passes.checkpoint.checkpoint import checkpoint
from ...passes.open_calls import open_calls
from ...passes.own_outputs import own_outputs
from ...passes.remat.split import divide
from ..stages import STAGES, Stage, of_pass
from .budgets import budget_of, keep_within_budget
from .loops import plan_loops
from .shared import share_budget

STAGES.update(
    open_calls=Stage(lambda graph, rest: graph if budget_of(graph) is None else open_calls(graph)),
    share_budget=Stage(share_budget, plans=True),
    plan_loops=Stage(plan_loops, plans=True),
    checkpoint=Stage(lambda graph, rest: checkpoint(graph, rest.settings.counters)),
    keep_within_budget=Stage(keep_within_budget, plans=True),
    own_outputs=of_pass(own_outputs),
    divide=of_pass(divide),
)
