"""Constants: objects that a function may return at every call, for no use of them can change what they are."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import functools
import pathlib
import re
import sys
import uuid
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from ..interception import StandIn
from .classes import PLAIN, SLOTS, is_a
from .libraries import is_library, package

UNCHANGING = {
    *PLAIN,
    slice,
    *(*SLOTS, MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType),
    *(StandIn, GenericAlias, UnionType, CodeType, type(NotImplemented)),
    *(decimal.Decimal, fractions.Fraction, uuid.UUID, re.Pattern),
    *(dt.date, dt.datetime, dt.time, dt.timedelta, dt.timezone),
    *(pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath, pathlib.WindowsPath),
    np.finfo,  # of which NumPy keeps one for each dtype
} - {np.void}  # a row of an array, with elements that can be assigned


def is_constant(x: Any, outside: Callable[[Any], bool]) -> bool:
    """Whether an object stays what it is, but for parts that are ``outside`` of the function that returns it."""
    todo, seen = [x], set[int]()
    while todo:
        x = todo.pop()
        if id(x) in seen or type(x) in UNCHANGING or package(type(x)) == "typing" or outside(x):
            continue
        seen.add(id(x))
        parts = _parts(x)
        if parts is None:
            return False
        todo += parts
    return True


def _parts(x: Any) -> list[Any] | None:
    """The parts of an object that can change in these alone; None for any other."""
    t = type(x)
    if is_a(x, (type, enum.Enum, ModuleType)):
        return []
    if is_a(x, np.dtype):  # names of fields can be assigned
        return [] if x.base.names is None and not x.base.metadata and not x.metadata else None
    if t in (tuple, frozenset):
        return [*x]
    if t in (BuiltinFunctionType, MethodWrapperType):
        return [x.__self__]
    if t is MethodType:
        return [x.__func__, x.__self__]
    if t is functools.partial:
        return [x.func, *x.args, *x.keywords.values()]
    if t is FunctionType and not x.__closure__ and not vars(x):
        return [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    return [] if _stands_in_library(x) else None


def _stands_in_library(x: Any) -> bool:
    """Whether a library's module that defines the class of an object names the object, too, as with ``np.s_``."""
    module = sys.modules.get(str(getattr(type(x), "__module__", None)))
    return module is not None and is_library(type(x)) and any(v is x for v in [*vars(module).values()])
