"""Functions in files: exported as modules that need NumPy alone, and saved as graphs."""

from . import doors as doors
from .loading import load as load
