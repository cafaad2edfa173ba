"""Reports and pictures of compiled functions: their memory, the cost of less memory, and explanations of errors."""

from . import inspection as inspection
