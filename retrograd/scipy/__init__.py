"""SciPy for traced values.

Inside a traced function SciPy's own names mean these functions, so that programs need not change; they can be imported
from here as well. Nothing here imports SciPy before it is used.
"""

from . import (
    decompositions,
    fft,
    filters,
    frequencies,
    integrate,
    interpolate,
    linalg,
    multivariate,
    ndimage,
    ode,
    optimize,
    signal,
    smoothing,
    sparse,
    special,
    splines,
    stats,
)
from .optimize import brentq, fixed_point, least_squares, minimize, root
