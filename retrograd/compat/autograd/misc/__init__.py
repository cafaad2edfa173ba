"""autograd's misc: trees as vectors, optimisers, fixed points."""

from .flatten import flatten as flatten
from .tracers import const_graph as const_graph
