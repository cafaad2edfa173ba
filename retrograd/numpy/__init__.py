"""The table of NumPy functions that are traced, one file per family; importing the room fills it."""

from ..tracer import class_methods, early_names, generators, index_arrays, masks, refusals, texts, ufunc_options
from ..tracer.protocol import install
from ..tracer.untraced import install_others
from . import (
    applying,
    array_methods,
    arrays,
    complex,
    contraction,
    creation,
    cumulative,
    diagonals,
    distinct,
    einsum,
    fitting,
    fourier,
    interpolation,
    joining,
    lists,
    matrices,
    nan_functions,
    norms,
    numbers,
    padding,
    polynomials,
    powers,
    products,
    python_math,
    quantiles,
    ranges,
    reductions,
    repeat,
    selection,
    sets,
    shapes,
    sorting,
    spectra,
    statistics,
    take,
    ufunc_methods,
    ufuncs,
    writing,
)
from .own_errors import install_in_operators, install_own_errors

install_own_errors()
install()
install_others()
install_in_operators()
