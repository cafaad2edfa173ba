"""retrograd: a graph compiler for derivatives of plain NumPy programs."""

from . import errors, ir, ops, passes, scipy
from . import numpy as _numpy  # noqa: F401 - it teaches traced arrays the functions of NumPy
from . import reports as _reports  # noqa: F401 - it tells of compiled functions
from .api.adjoints import adjoint, cotangent_space, hvp, jacobian
from .api.at_a_point import jvp, linear_transpose, linearize, vjp
from .api.batching import vmap
from .api.branches import cond, switch
from .api.check_grads import check_grads
from .api.control import associative_scan, fori_loop, map, scan, while_loop
from .api.custom import custom_jvp, custom_vjp
from .api.exceptions import callcc, require, throw_if, try_catch
from .api.functions.closures import Fn
from .api.functions.conversion import closure_convert, fn
from .api.functions.cotangent import FunctionCotangent
from .api.functions.learners import fit_pairs
from .api.gradients import grad, value_and_grad
from .api.jacobians import hessian, jacfwd, jacrev
from .api.jit import jit, trace
from .api.lens import lens
from .api.lens_laws import check_lens
from .api.memory import Everything, Log, Periodic, Snapshots, Tiered
from .api.primitive import primitive
from .api.regions import checkpoint, name, policies
from .api.stop_gradient import no_grad, stop_gradient
from .api.subgraph import subgraph
from .compiler import targets as _targets  # noqa: F401 - it makes the targets
from .compiler.counters import debug_counters
from .compiler.debug_nans import debug_nans
from .compiler.settings import config
from .eager import nn, optim
from .eager.custom import Function
from .eager.parameters import ParameterStore
from .eager.records import Record
from .eager.tensors import Tensor
from .errors import *  # noqa: F403 - the tree of exceptions is part of the face
from .ir.primitive import pull, push
from .tracer.tree import register_container

__all__ = [
    "Everything",
    "Fn",
    "Function",
    "FunctionCotangent",
    "Log",
    "ParameterStore",
    "Periodic",
    "Record",
    "Snapshots",
    "Tensor",
    "Tiered",
    "adjoint",
    "associative_scan",
    "callcc",
    "check_grads",
    "check_lens",
    "checkpoint",
    "closure_convert",
    "cond",
    "config",
    "cotangent_space",
    "custom_jvp",
    "custom_vjp",
    "debug_counters",
    "debug_nans",
    "errors",
    "fit_pairs",
    "fn",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "ir",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lens",
    "linear_transpose",
    "linearize",
    "map",
    "name",
    "nn",
    "no_grad",
    "ops",
    "optim",
    "passes",
    "policies",
    "primitive",
    "pull",
    "push",
    "register_container",
    "require",
    "scan",
    "scipy",
    "stop_gradient",
    "subgraph",
    "switch",
    "throw_if",
    "trace",
    "try_catch",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
