"""What is said and drawn of compiled functions: memory, what less of it costs, and errors explained."""

from ..compiler.compiled import INSPECTORS
from .curves import tradeoff
from .memory import report

INSPECTORS.update(plan=report, tradeoff=tradeoff)
