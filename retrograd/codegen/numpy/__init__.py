"""The NumPy target: graphs as NumPy source."""

from . import blas_threads as blas_threads
from . import check as check
from . import plain_numbers as plain_numbers
from . import tables as tables
