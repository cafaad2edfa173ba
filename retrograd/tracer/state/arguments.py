"""Static arguments: which of them are known by what is read of them, which are never read, and which are refused."""

from __future__ import annotations

import dis
from enum import Enum
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ...errors import OptionError
from ...where import ByCode
from .classes import is_a, is_stateless
from .libraries import is_library, of_ours, package

WRITES = frozenset({"STORE_FAST", "STORE_FAST_STORE_FAST"})  # instructions that read no variable


def unread_parameters(function: Any) -> frozenset[Any]:
    """Names of the parameters of a Python function that its code never reads."""
    function = function.__func__ if isinstance(function, MethodType) else function
    return _unread[function.__code__] if isinstance(function, FunctionType) else frozenset()


def _unread_in(code: CodeType) -> frozenset[Any]:
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if {"locals", "vars", "eval", "exec", "dir"} & {*code.co_names}:
        return frozenset()
    read = {name for i in dis.get_instructions(code) for name in _variables(i) if i.opname not in WRITES}
    return frozenset(parameters) - read - {*code.co_cellvars}


_unread = ByCode(_unread_in)


def _variables(i: dis.Instruction) -> tuple[Any, ...]:
    """The local variables that an instruction names; some versions of Python join two instructions in one."""
    return i.argval if isinstance(i.argval, tuple) else (i.argval,) if "FAST" in i.opname else ()


# How others write an array as NumPy's.
AS_ARRAYS = {
    "jax": "np.asarray(x), or put the function into JAX's program: rg.to_jax(f)",
    "jaxlib": "np.asarray(x), or put the function into JAX's program: rg.to_jax(f)",
    "pandas": "its numbers, by x.to_numpy(): labels are not followed, so align the tables before",
    "polars": "its numbers, by x.to_numpy()",
    "torch": "x.numpy(), or put the function into PyTorch's graph: rg.to_torch(f)",
    "xarray": "its numbers, by x.to_numpy(): names of axes are not followed, so align the arrays before",
}


def is_foreign_array(cls: type) -> bool:
    """Whether objects of a class of some library hold numbers, as tables and tensors do, and are no arrays of NumPy."""
    ours = (np.ndarray, np.generic)
    return hasattr(cls, "__array__") and is_library(cls) and not issubclass(cls, ours) and not of_ours(cls)


def is_mutable_array(cls: type) -> bool:
    """The same of those that may change in place, or become another array inside."""
    return is_foreign_array(cls) and package(cls) not in ("jax", "jaxlib")


def is_watched(x: Any) -> bool:
    """Whether a static argument is known by what is read of it: a function or an object of a class of the user's.

    Raises OptionError for arrays of other libraries: traced as NumPy's, they would mean something else.
    """
    if is_foreign_array(type(x)):
        raise OptionError(
            f"an argument is of the class {package(type(x))}.{type(x).__name__}, which is not traced",
            remedy=f"pass {AS_ARRAYS.get(package(type(x)), 'np.asarray(x)')}",
        )
    if is_a(x, (MethodType, partial)):
        return is_watched(x.__func__ if is_a(x, MethodType) else x.func)
    if is_a(x, FunctionType):
        return not is_library(x)
    if type(x) is slice:
        return not is_stateless(x)
    return not is_a(x, (type, Enum, ModuleType)) and (not is_library(type(x)) or _is_namespace(type(x)))


def _is_namespace(cls: type) -> bool:
    """Whether a class is one of Python's whose attributes are the user's alone, and which have no hash."""
    return cls is SimpleNamespace or (cls.__name__ == "Namespace" and cls.__module__ == "argparse")
