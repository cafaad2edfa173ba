"""Reports and pictures of compiled functions: their memory, the cost of less memory, and explanations of errors."""

from ..compiler.compiled import INSPECTORS
from .curves import tradeoff
from .memory import report

INSPECTORS.update(plan=report, tradeoff=tradeoff)
