"""The table of NumPy functions that are traced, one file per family; importing the package fills it."""

from ..tracer import (
    as_text,
    class_methods,
    early_names,
    generators,
    index_arrays,
    masks,
    memory_order,
    moving_slices,
    narrow_integers,
    refusals,
    sequences,
    ufunc_options,
)
from ..tracer.protocol import install
from ..tracer.repeats.recordable import install_repeats
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
    iterators,
    joining,
    lists,
    matrices,
    nan_functions,
    norms,
    numbers,
    other_names,
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
    series,
    sets,
    shapes,
    sorting,
    spectra,
    statistics,
    take,
    ufunc_methods,
    ufuncs,
    vectorized,
    windows,
    writing,
)
from .comparisons import install_bounds
from .deference import install_deference
from .number_results import install_number_results
from .own_errors import install_in_operators, install_own_errors

install_number_results()
install_own_errors()
install()
install_others()
install_bounds()
install_deference()
install_in_operators()
install_repeats()
