"""The ufuncs of ``scipy.special``, one file per family; SciPy itself is imported when one of them runs."""

from . import bessel, binormal, elliptic, entropy, gamma, hypergeometric, incomplete, incomplete_beta, normal
