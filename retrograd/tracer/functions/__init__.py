"""NumPy functions that are not ufuncs, one file per family; importing the package fills the table."""

from . import arrays, products, reductions, selection, shapes
from .table import FUNCTIONS

__all__ = ["FUNCTIONS", "arrays", "products", "reductions", "selection", "shapes"]
