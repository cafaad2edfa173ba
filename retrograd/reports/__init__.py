"""What is said and drawn of compiled functions: memory, what less of it costs, and errors explained."""

from ..compiler.compilation import INSPECTORS
from .curves import tradeoff
from .memory import report
from .unused import warn_of_unused_plans

INSPECTORS.update({"plan": report, "tradeoff": tradeoff, "unused plans": warn_of_unused_plans})
