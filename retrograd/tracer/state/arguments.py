"""Static arguments: which of them are known by what is read of them, and which are never read."""

from __future__ import annotations

import dis
from enum import Enum
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ...where import ByCode, is_library

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


def is_watched(x: Any) -> bool:
    """Whether a static argument is known by what is read of it: a function or an object of a class of the user's."""
    if isinstance(x, (MethodType, partial)):
        return is_watched(x.__func__ if isinstance(x, MethodType) else x.func)
    if isinstance(x, FunctionType):
        return not is_library(x)
    return not isinstance(x, (type, Enum, ModuleType)) and not is_library(type(x))
