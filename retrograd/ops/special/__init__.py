"""The ufuncs of ``scipy.special``, one file per family; SciPy itself is imported when one of them runs."""

from . import (
    bessel,
    binormal,
    densities,
    elliptic,
    entropy,
    gamma,
    gamma_ratios,
    hypergeometric,
    incomplete,
    incomplete_beta,
    log_probabilities,
    normal,
    student,
)
