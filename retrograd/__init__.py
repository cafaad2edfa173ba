"""retrograd: a graph compiler for derivatives of plain NumPy programs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .compiler.garbage import paused as _paused

with _paused:  # modules live on: to look for garbage among them takes a sixth of the time
    from . import errors as errors
    from . import ir as ir
    from . import numpy  # it teaches traced arrays the functions of NumPy
    from . import reports as _reports  # noqa: F401 - it tells of compiled functions
    from . import scipy as scipy
    from .api import core_docstrings as _core_docstrings  # noqa: F401 - it documents what users call in the core
    from .api import derivative_docstrings as _derivative_docstrings  # noqa: F401 - it documents derivatives
    from .api import taped_gradients as _taped_gradients  # noqa: F401 - ways that may not come back are tapes
    from .api import tree as tree
    from .api.adjoints import adjoint, cotangent_space, hvp, jacobian
    from .api.along_axis import associative_scan
    from .api.along_axis import map as map
    from .api.along_tangents import jvp, linearize
    from .api.at_a_point import vjp
    from .api.batching import vmap
    from .api.branches import cond, switch
    from .api.control import fori_loop, scan, while_loop
    from .api.eval_shape import eval_shape
    from .api.exceptions import callcc, throw_if, try_catch
    from .api.exceptions import require as require
    from .api.gradients import grad, value_and_grad
    from .api.implicit import implicit
    from .api.jacobians import hessian, jacfwd, jacrev
    from .api.jit import jit
    from .api.jit import trace as trace
    from .api.lens import lens
    from .api.linear_transposes import linear_transpose
    from .api.memory import Everything, Log, Periodic, Snapshots, Tiered
    from .api.own_rules import custom_jvp, custom_vjp
    from .api.primitive import primitive
    from .api.regions import checkpoint, policies
    from .api.regions import name as name
    from .api.stop_gradient import no_grad, stop_gradient
    from .api.subgraph import subgraph
    from .compiler import advice as _advice  # noqa: F401 - it explains what is compiled again
    from .compiler import aliases as _aliases  # noqa: F401 - it refuses writes into arguments that share memory
    from .compiler import block_threads as _block_threads  # noqa: F401 - blocks of long arrays are computed on threads
    from .compiler import buffered as _buffered  # noqa: F401 - it adds calls on arrays that stay
    from .compiler import forks as _forks  # noqa: F401 - forks wait for imports
    from .compiler import joined as _joined  # noqa: F401 - it joins the ways of a signature
    from .compiler import keep_pages as _keep_pages  # noqa: F401 - freed memory stays for the next arrays, if asked
    from .compiler import kept_workspaces as _kept_workspaces  # noqa: F401 - memory is kept for intermediate results
    from .compiler import memory as _memory  # noqa: F401 - it registers the stages that plan memory
    from .compiler import methods as _methods  # noqa: F401 - it binds compiled methods
    from .compiler import native_calls as _native_calls  # noqa: F401 - it lets C serve whole calls
    from .compiler import rolled as _rolled  # noqa: F401 - it makes Python's loops loops of the graph
    from .compiler import sharing as _sharing  # noqa: F401 - it shares what was compiled for functions of the same code
    from .compiler import targets as _targets  # noqa: F401 - it makes the targets
    from .compiler import told_phases as _told_phases  # noqa: F401 - phases are told to whoever listens
    from .compiler import travel as _travel  # noqa: F401 - it pickles and copies compiled functions
    from .compiler import unpackers as _unpackers  # noqa: F401 - they take the arguments of calls apart
    from .compiler import varying_ints as _varying_ints  # noqa: F401 - it traces Python ints that vary
    from .compiler import waiting as _waiting  # noqa: F401 - it says which ways are compiled
    from .compiler import watch as _watch  # noqa: F401 - it reads the text of graphs back for rg.config.verify
    from .compiler.compiled import Compiled
    from .compiler.counters import debug_counters
    from .compiler.debug_nans import debug_nans
    from .compiler.settings import config as config
    from .errors import RetrogradError
    from .export import doors as _doors  # noqa: F401 - compiled functions have members that write files
    from .ir.primitive import pull as pull
    from .ir.primitive import push as push
    from .looking import entrances as _entrances  # noqa: F401 - compiled functions have members that explain them
    from .tracer import askers as _askers  # noqa: F401 - it serves libraries that ask for plain numbers
    from .tracer import late_modules as _late_modules  # noqa: F401 - it follows modules imported inside
    from .tracer import state as _surroundings  # noqa: F401 - it watches what functions read besides their arguments
    from .tracer import swallowed as _swallowed  # noqa: F401 - refusals that the function catches are raised again
    from .tracer.containers import register_container

if TYPE_CHECKING:
    from . import distributed as distributed
    from . import eager as eager
    from .api import functions as functions
    from .api.check_grads import check_grads as check_grads
    from .api.lens_laws import check_lens as check_lens
    from .compat.jax import to_jax as to_jax
    from .compat.torch import to_torch as to_torch
    from .compiler.native_info import native_info as native_info
    from .eager import nn as nn
    from .eager import optim as optim
    from .export.loading import load as load
    from .looking import progress as progress

__version__ = "0.1.0"

__all__ = [
    "Compiled",
    "Everything",
    "Log",
    "Periodic",
    "RetrogradError",
    "Snapshots",
    "Tiered",
    "adjoint",
    "associative_scan",
    "callcc",
    "check_grads",
    "check_lens",
    "checkpoint",
    "cond",
    "cotangent_space",
    "custom_jvp",
    "custom_vjp",
    "debug_counters",
    "debug_nans",
    "eval_shape",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "implicit",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lens",
    "linear_transpose",
    "linearize",
    "native_info",
    "no_grad",
    "policies",
    "primitive",
    "register_container",
    "scan",
    "stop_gradient",
    "subgraph",
    "switch",
    "throw_if",
    "to_jax",
    "to_torch",
    "try_catch",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
# `from retrograd import *` leaves out common words, such as Python's own map, and modules, such as scipy.
_COMMON_WORDS = ("config", "load", "map", "name", "pull", "push", "require", "trace")
_MODULES = ("distributed", "eager", "errors", "functions", "ir", "nn", "optim", "progress", "scipy", "tree")
_LOADED_ON_FIRST_USE = {
    "distributed": ".distributed",
    "eager": ".eager",
    "functions": ".api.functions",
    "nn": ".eager.nn",
    "optim": ".eager.optim",
    "progress": ".looking.progress",
}
_RARELY_CALLED = {
    "check_grads": ".api.check_grads",
    "check_lens": ".api.lens_laws",
    "load": ".export.loading",
    "native_info": ".compiler.native_info",
    "to_jax": ".compat.jax",
    "to_torch": ".compat.torch",
}

del numpy  # the module stays loaded, but is no name of the face: programs write plain NumPy

if not TYPE_CHECKING:  # a type checker sees the imports above, and so finds names that are wrong

    def __getattr__(name: str) -> Any:
        """What not every program needs: modules, and functions of modules."""
        if name in _RARELY_CALLED:
            found = getattr(import_module(_RARELY_CALLED[name], __name__), name)
        elif name in _LOADED_ON_FIRST_USE:
            found = import_module(_LOADED_ON_FIRST_USE[name], __name__)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """The face, and nothing else."""
    return [*__all__, *_COMMON_WORDS, *_MODULES, "__version__"]
