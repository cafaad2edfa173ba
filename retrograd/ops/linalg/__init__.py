"""Linear algebra: solutions, determinants, factorizations and spectra of stacks of matrices.

The derivatives belong to the program as NumPy runs it: ``cholesky`` and ``eigh`` read one triangle of a matrix, so the
other triangle has no influence, and its cotangent is zero.
"""

from . import determinants, factorizations, forms, least_squares, positive, solutions, spectra
