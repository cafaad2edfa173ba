"""Names on the command line: functions in modules and files, and arguments by types and values."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..compiler.compiled import Compiled
from ..errors import OptionError, ParseError
from ..ir.parser import parse_type
from ..ir.types import Aval


def argnums_of(args: Sequence[Any], argnums: str | None) -> tuple[int | str, ...]:
    """The arguments that are named, by default all floating-point ones."""
    if argnums is None:
        return tuple(i for i, x in enumerate(args) if np.asarray(x).dtype.kind in "fc")
    return tuple(int(k) if k.lstrip("-").isdigit() else k for k in argnums.split(","))


def check_count(function: Callable[..., Any], given: int, named_ones: Sequence[str] = ()) -> None:
    """OptionError if a function wants other arguments than the command line gives types for."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function in C without a signature
        return
    count = given + len(named_ones)
    try:
        signature.bind(*[None] * given, **dict.fromkeys(named_ones))
    except TypeError as fault:
        raise OptionError(
            f"{count} argument{'s do' if count != 1 else ' does'} not fit the parameters {signature}: {fault}",
            remedy="give the type of each argument: --arg f64[3,2] --arg float",
        ) from None


def example(aval: Aval) -> Any:
    """An array or number of this type; floating-point ones are random, from a fixed seed."""
    rng = np.random.default_rng(0)
    made = rng.standard_normal(aval.shape) if aval.inexact else rng.integers(0, 3, aval.shape)
    if aval.kind == "array":
        return np.asarray(made).astype(aval.dtype)
    value = aval.dtype.type(np.asarray(made).item())
    return value.item() if aval.kind == "python" else value


def load(target: str) -> Callable[..., Any]:
    """The plain function that ``module:function`` or ``file.py:function`` names, also if it is a compiled one."""
    return plain(named(target))


def plain(found: Any) -> Callable[..., Any]:
    """The function that a compiled one is made of; other objects, such as one with a rule of its own, as they are."""
    function: Callable[..., Any] = found.__wrapped__ if isinstance(found, Compiled) else found
    return function


def named(target: str) -> Any:
    """What ``module:function`` or ``file.py:function`` names.

    The module is imported, under its own name: what stands below ``if __name__ == "__main__":`` does not run.
    """
    module_name, _, attribute = target.rpartition(":")
    if not module_name:
        raise OptionError(f"{target!r} is not a function", remedy="write module:function, or path/file.py:function")
    try:
        if module_name.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(module_name).stem, module_name)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, "")
            module = importlib.import_module(module_name)
        return functools.reduce(getattr, attribute.split("."), module)
    except (ImportError, FileNotFoundError, AttributeError) as fault:
        raise OptionError(f"cannot load {target!r}: {fault}", remedy="check the module path and the name") from None
    except SystemExit as end:
        raise OptionError(
            f"{target!r} exits with status {end.code} when it is imported",
            remedy='put the main part of the program below if __name__ == "__main__":',
        ) from None


def given(texts: Sequence[str], fixed: bool = True) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that the command line tells of, by position and by name; ``fixed`` ints want a value."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if equals and name.isidentifier():
            kwargs[name] = _value(rest, fixed)
        else:
            args.append(_value(text, fixed))
    return args, kwargs


def _value(text: str, fixed: bool) -> Any:
    """An argument of a type, or the value that a text is."""
    try:
        aval = parse_type(text)
        if fixed and aval.kind == "python" and not aval.inexact:
            raise OptionError(f"{text} is fixed in an exported function", remedy="give its value: --arg 3, --arg n=3")
        return example(aval)
    except ParseError as fault:
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError):
            raise OptionError(f"{text!r} is neither a type nor a value", remedy=fault.remedy) from None
