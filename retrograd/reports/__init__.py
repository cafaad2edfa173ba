"""Reports and pictures of compiled functions: their memory, the cost of less memory, and explanations of errors."""

from ..compiler.compilation import INSPECTORS
from .curves import tradeoff
from .memory import report
from .unused import warn_of_unused_plans

INSPECTORS.update({"plan": report, "tradeoff": tradeoff, "unused plans": warn_of_unused_plans})
