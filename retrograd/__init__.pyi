# The types of the face: what each transform makes of a function's signature. The modules behind the face take any
# function and give ``Any``; type checkers read this file instead of them.

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, TypeVarTuple, overload

import numpy as np

from . import distributed as distributed
from . import eager as eager
from . import errors as errors
from . import ir as ir
from . import scipy as scipy
from .api import functions as functions
from .api import tree as tree
from .api.adjoints import adjoint as adjoint
from .api.adjoints import cotangent_space as cotangent_space
from .api.along_axis import associative_scan as associative_scan
from .api.along_axis import map as map
from .api.branches import switch as switch
from .api.check_grads import check_grads as check_grads
from .api.eval_shape import eval_shape as eval_shape
from .api.exceptions import callcc as callcc
from .api.exceptions import require as require
from .api.exceptions import throw_if as throw_if
from .api.exceptions import try_catch as try_catch
from .api.implicit import implicit as implicit
from .api.lens import lens as lens
from .api.lens_laws import check_lens as check_lens
from .api.memory import Everything as Everything
from .api.memory import Log as Log
from .api.memory import MemoryPlan
from .api.memory import Periodic as Periodic
from .api.memory import Snapshots as Snapshots
from .api.memory import Tiered as Tiered
from .api.own_rules import custom_jvp as custom_jvp
from .api.own_rules import custom_vjp as custom_vjp
from .api.primitive import primitive as primitive
from .api.regions import name as name
from .api.regions import policies as policies
from .api.stop_gradient import no_grad as no_grad
from .compat.jax import VmapMethod
from .compiler.buffered import BufferedCall
from .compiler.cache import CacheInfo
from .compiler.compilation import Compilation
from .compiler.counters import debug_counters as debug_counters
from .compiler.debug_nans import debug_nans as debug_nans
from .compiler.executable import Executable
from .compiler.native_info import native_info as native_info
from .compiler.settings import config as config
from .eager import nn as nn
from .eager import optim as optim
from .errors import RetrogradError as RetrogradError
from .export.loading import load as load
from .ir.graph import Graph
from .ir.primitive import pull as pull
from .ir.primitive import push as push
from .looking import progress as progress
from .looking.explanation import FunctionExplanation, Profile
from .ops.structural.region import Policy
from .reports.curves import Tradeoff
from .reports.memory import MemoryReport
from .tracer.containers import register_container as register_container

__version__: str

_P = ParamSpec("_P")  # the parameters of a function, all of them or those after the first
_Q = ParamSpec("_Q")
_R = TypeVar("_R")  # its result
_R_co = TypeVar("_R_co", covariant=True)
_A = TypeVar("_A", bound=Any)  # its first argument, or a carry; the bound lets operators of lambdas pass
_B = TypeVar("_B", bound=Any)  # its second argument
_Aux = TypeVar("_Aux")
_Instance = TypeVar("_Instance")
_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])
_Ts = TypeVarTuple("_Ts")
_Backend: TypeAlias = Literal["numpy", "native"]

# A function under a transform: call it like the function, or look at what is compiled for some arguments.
class Compiled(Generic[_P, _R_co]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    @overload
    def __get__(self, instance: None, owner: type) -> Compiled[_P, _R_co]: ...
    @overload
    def __get__(
        self: Compiled[Concatenate[_Instance, _Q], _R_co], instance: _Instance, owner: type | None = None
    ) -> Compiled[_Q, _R_co]: ...
    def at(self, *args: _P.args, **kwargs: _P.kwargs) -> Compilation: ...
    @overload
    def source(self, *args: _P.args, **kwargs: _P.kwargs) -> str: ...
    @overload
    def source(self, *args: Any, language: Literal["numpy", "c"], **kwargs: Any) -> str: ...
    def graph(
        self, *args: Any, stage: Literal["traced", "linearized", "adjoint", "optimised"] = "optimised", **kwargs: Any
    ) -> Graph: ...
    def dot(self, *args: Any, **kwargs: Any) -> str: ...
    def plan(self, *args: _P.args, **kwargs: _P.kwargs) -> MemoryReport: ...
    def tradeoff(self, *args: _P.args, **kwargs: _P.kwargs) -> Tradeoff: ...
    def executable(self, *args: _P.args, **kwargs: _P.kwargs) -> Executable: ...
    def buffered(self, *args: _P.args, **kwargs: _P.kwargs) -> BufferedCall[_R_co]: ...
    def explain(self, *args: Any, check: bool = True, **kwargs: Any) -> FunctionExplanation: ...
    def report(self, path: str | PathLike[str], /, *args: Any, check: bool = True, **kwargs: Any) -> Path: ...
    def profile(self, *args: _P.args, **kwargs: _P.kwargs) -> Profile: ...
    def explain_retrace(self, *args: _P.args, **kwargs: _P.kwargs) -> str: ...
    def export(self, path: str | PathLike[str], /, *args: _P.args, **kwargs: _P.kwargs) -> None: ...
    def save(self, path: str | PathLike[str], /, *args: Any, **kwargs: Any) -> None: ...
    def cache_info(self) -> CacheInfo: ...
    @property
    def __name__(self) -> str: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...

# A derivative in the first argument, which is given by position; of a method that is not the instance.
class _InFirst(Compiled[Concatenate[_A, _P], _R_co], Generic[_A, _P, _R_co]):
    @overload
    def __get__(self, instance: None, owner: type) -> _InFirst[_A, _P, _R_co]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Compiled[_P, Any]: ...

# A transform with options, before it has its function.
class _Decorator(Protocol):
    def __call__(self, function: Callable[_P, Any], /) -> Compiled[_P, Any]: ...

# The same of a transform that leaves parameters and result as they are.
class _SameDecorator(Protocol):
    def __call__(self, function: Callable[_P, _R], /) -> Compiled[_P, _R]: ...

# Derivatives of functions with one output element -------------------------------------------------------------------

@overload
def grad(
    function: Callable[Concatenate[_A, _P], Any],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[False] = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> _InFirst[_A, _P, _A]: ...
@overload
def grad(
    function: Callable[Concatenate[_A, _P], tuple[Any, _Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> _InFirst[_A, _P, tuple[_A, _Aux]]: ...
@overload
def grad(
    function: Callable[_P, Any],
    argnums: int | str,
    *,
    has_aux: Literal[False] = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> Compiled[_P, Any]: ...
@overload
def grad(
    function: Callable[_P, tuple[Any, _Aux]],
    argnums: int | str,
    *,
    has_aux: Literal[True],
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> Compiled[_P, tuple[Any, _Aux]]: ...
@overload
def grad(
    function: Callable[Concatenate[_A, _B, _P], Any],
    argnums: tuple[Literal[0], Literal[1]],
    *,
    has_aux: Literal[False] = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> Compiled[Concatenate[_A, _B, _P], tuple[_A, _B]]: ...
@overload
def grad(
    function: Callable[_P, Any],
    argnums: tuple[int | str, ...],
    *,
    has_aux: Literal[False] = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> Compiled[_P, tuple[Any, ...]]: ...
@overload
def grad(
    function: Callable[_P, tuple[Any, _Aux]],
    argnums: tuple[int | str, ...],
    *,
    has_aux: Literal[True],
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> Compiled[_P, tuple[tuple[Any, ...], _Aux]]: ...
@overload
def grad(
    function: Callable[_P, Any],
    argnums: Sequence[int | str],
    *,
    has_aux: bool = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> Compiled[_P, Any]: ...
@overload
def grad(
    function: None = None,
    argnums: int | str | Sequence[int | str] = 0,
    *,
    has_aux: bool = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> _Decorator: ...
@overload
def value_and_grad(
    function: Callable[Concatenate[_A, _P], _R],
    argnums: Literal[0] = 0,
    *,
    has_aux: bool = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> _InFirst[_A, _P, tuple[_R, _A]]: ...
@overload
def value_and_grad(
    function: Callable[Concatenate[_A, _B, _P], _R],
    argnums: tuple[Literal[0], Literal[1]],
    *,
    has_aux: bool = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> Compiled[Concatenate[_A, _B, _P], tuple[_R, tuple[_A, _B]]]: ...
@overload
def value_and_grad(
    function: Callable[_P, _R],
    argnums: int | str,
    *,
    has_aux: bool = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> Compiled[_P, tuple[_R, Any]]: ...
@overload
def value_and_grad(
    function: Callable[_P, _R],
    argnums: tuple[int | str, ...],
    *,
    has_aux: bool = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> Compiled[_P, tuple[_R, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    function: Callable[_P, _R],
    argnums: Sequence[int | str],
    *,
    has_aux: bool = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> Compiled[_P, tuple[_R, Any]]: ...
@overload
def value_and_grad(
    function: None = None,
    argnums: int | str | Sequence[int | str] = 0,
    *,
    has_aux: bool = False,
    fns: str = "captures",
    nan_safe: bool = False,
    memory: float | str | None = None,
    backend: _Backend | None = None,
) -> _Decorator: ...

# Derivatives of any function ----------------------------------------------------------------------------------------

@overload
def jacobian(
    function: Callable[_P, Any],
    argnums: int | str | Sequence[int | str] = 0,
    *,
    has_aux: bool = False,
    mode: str = "auto",
    sparse: bool = False,
    backend: _Backend | None = None,
) -> Compiled[_P, Any]: ...
@overload
def jacobian(
    function: None = None,
    argnums: int | str | Sequence[int | str] = 0,
    *,
    has_aux: bool = False,
    mode: str = "auto",
    sparse: bool = False,
    backend: _Backend | None = None,
) -> _Decorator: ...
@overload
def jacfwd(
    function: Callable[_P, Any],
    argnums: int | str | Sequence[int | str] = 0,
    *,
    has_aux: bool = False,
    backend: _Backend | None = None,
) -> Compiled[_P, Any]: ...
@overload
def jacfwd(
    function: None = None,
    argnums: int | str | Sequence[int | str] = 0,
    *,
    has_aux: bool = False,
    backend: _Backend | None = None,
) -> _Decorator: ...
@overload
def jacrev(
    function: Callable[_P, Any],
    argnums: int | str | Sequence[int | str] = 0,
    *,
    has_aux: bool = False,
    backend: _Backend | None = None,
) -> Compiled[_P, Any]: ...
@overload
def jacrev(
    function: None = None,
    argnums: int | str | Sequence[int | str] = 0,
    *,
    has_aux: bool = False,
    backend: _Backend | None = None,
) -> _Decorator: ...
@overload
def hessian(
    function: Callable[_P, Any],
    argnums: int | str | Sequence[int | str] = 0,
    *,
    has_aux: bool = False,
    sparse: bool = False,
    backend: _Backend | None = None,
) -> Compiled[_P, Any]: ...
@overload
def hessian(
    function: None = None,
    argnums: int | str | Sequence[int | str] = 0,
    *,
    has_aux: bool = False,
    sparse: bool = False,
    backend: _Backend | None = None,
) -> _Decorator: ...
def hvp(function: Callable[Concatenate[_A, _P], Any], *, backend: _Backend | None = None) -> Callable[..., _A]: ...
@overload
def vjp(
    function: Callable[..., _R],
    *primals: *_Ts,
    has_aux: Literal[False] = False,
    fns: str = "captures",
    memory: MemoryPlan = None,
    backend: _Backend | None = None,
) -> tuple[_R, Callable[[Any], tuple[*_Ts]]]: ...
@overload
def vjp(
    function: Callable[..., tuple[_R, _Aux]],
    *primals: *_Ts,
    has_aux: Literal[True],
    fns: str = "captures",
    memory: MemoryPlan = None,
    backend: _Backend | None = None,
) -> tuple[_R, Callable[[Any], tuple[*_Ts]], _Aux]: ...
@overload
def jvp(
    function: Callable[..., _R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
    *,
    backend: _Backend | None = None,
) -> tuple[_R, _R]: ...
@overload
def jvp(
    function: Callable[..., tuple[_R, _Aux]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
    *,
    backend: _Backend | None = None,
) -> tuple[_R, _R, _Aux]: ...
def linearize(
    function: Callable[..., _R], *primals: Any, backend: _Backend | None = None
) -> tuple[_R, Callable[..., _R]]: ...
def linear_transpose(function: Callable[..., Any], *examples: *_Ts) -> Callable[[Any], tuple[*_Ts]]: ...

# Functions as they are, compiled ------------------------------------------------------------------------------------

@overload
def jit(
    function: Callable[_P, _R],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    nan_safe: bool = False,
    backend: _Backend | None = None,
) -> Compiled[_P, _R]: ...
@overload
def jit(
    function: None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    nan_safe: bool = False,
    backend: _Backend | None = None,
) -> _SameDecorator: ...
def trace(function: Callable[_P, Any]) -> Callable[_P, Graph]: ...
@overload
def checkpoint(
    function: Callable[_P, _R], *, policy: Policy | None = None, memory: int | str | None = None
) -> Callable[_P, _R]: ...
@overload
def checkpoint(
    function: None = None, *, policy: Policy | None = None, memory: int | str | None = None
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
@overload
def subgraph(function: Callable[_P, _R], *, inline: Any = 16) -> Callable[_P, _R]: ...
@overload
def subgraph(function: None = None, *, inline: Any = 16) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...

# A function of one number becomes one of an array of them, so parameters and results change their types.
@overload
def vmap(
    function: Callable[..., _Array],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
    backend: _Backend | None = None,
) -> Compiled[..., _Array]: ...
@overload
def vmap(
    function: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
    backend: _Backend | None = None,
) -> Compiled[..., Any]: ...
@overload
def vmap(
    function: None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
    backend: _Backend | None = None,
) -> Callable[[Callable[..., Any]], Compiled[..., Any]]: ...
def stop_gradient(x: _A) -> _A: ...

# Control flow -------------------------------------------------------------------------------------------------------

def cond(pred: Any, true_fn: Callable[..., _R], false_fn: Callable[..., _R], *operands: Any) -> _R: ...
def scan(
    body: Callable[[_A, Any], tuple[_A, Any]],
    init: _A,
    xs: Any = None,
    length: int | None = None,
    *,
    reverse: bool = False,
    memory: MemoryPlan = None,
    progress: bool | str = False,
) -> tuple[_A, Any]: ...
@overload
def fori_loop(
    n: Any, body: Callable[[Any, _A], _A], init: _A, *, memory: MemoryPlan = None, progress: bool | str = False
) -> _A: ...
@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body: Callable[[Any, _A], _A],
    init: _A,
    /,
    *,
    memory: MemoryPlan = None,
    progress: bool | str = False,
) -> _A: ...
def while_loop(
    cond: Callable[[_A], Any],
    body: Callable[[_A], _A],
    init: _A,
    *,
    memory: MemoryPlan = None,
    progress: bool | str = False,
) -> _A: ...

# in programs of other packages
def to_jax(
    function: Callable[..., Any], *, vmap_method: VmapMethod = "sequential", result_shape_dtypes: Any = None
) -> Callable[..., Any]: ...
def to_torch(function: Callable[..., Any]) -> Callable[..., Any]: ...
