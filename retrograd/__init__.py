"""retrograd: a graph compiler for derivatives of plain NumPy programs."""

from . import errors, ir, ops, passes
from .api.batching import vmap
from .api.check import check_grads
from .api.control import scan
from .api.gradients import grad, value_and_grad
from .api.jacobians import hessian, jacfwd, jacrev
from .api.jit import jit, trace
from .api.points import jvp, linear_transpose, linearize, vjp
from .errors import *  # noqa: F403 - the tree of exceptions is part of the face
from .tracer.tree import register_container

__all__ = [
    "check_grads", "errors", "grad", "hessian", "ir", "jacfwd", "jacrev", "jit", "jvp", "linear_transpose", "linearize",
    "ops", "passes", "register_container", "scan", "trace", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
