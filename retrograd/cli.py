"""The command line: ``show module:function``, ``export module:function -o FILE``, ``opt FILE``, ``errors RG0203``."""

from __future__ import annotations

import argparse
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

from . import __version__
from .api.gradients import grad, value_and_grad
from .api.jacobians import hessian
from .api.jit import jit
from .compiler.compiled import Compiled
from .compiler.pass_table import passes
from .errors import ChangedError, OptionError, ParseError, RetrogradError
from .export.committed import check, export_to, origin_of, renew
from .ir.parser import parse, parse_type
from .ir.types import Aval
from .ir.verify import verify
from .reports.explain import explain, overview

# What to print of a function and its gradient, for these arguments.
EMITS: dict[str, Callable[[Callable[..., Any], Any, Sequence[Any]], str]] = {
    "ir": lambda f, _, args: str(jit(f).graph(*args)),
    "grad-ir": lambda _, gradient, args: str(gradient.graph(*args)),
    "source": lambda _, gradient, args: str(gradient.source(*args)),
    "dot": lambda f, _, args: str(jit(f).dot(*args)),
    "grad-dot": lambda _, gradient, args: str(gradient.dot(*args)),
}


def _gradient(function: Callable[..., Any], args: Sequence[Any], argnums: str | None) -> Any:
    """The gradient in the arguments that are named, by default in all floating-point ones."""
    return grad(function, _argnums(args, argnums))


def _argnums(args: Sequence[Any], argnums: str | None) -> tuple[int | str, ...]:
    """The arguments that are named, by default all floating-point ones."""
    if argnums is None:
        return tuple(i for i, x in enumerate(args) if np.asarray(x).dtype.kind in "fc")
    return tuple(int(k) if k.lstrip("-").isdigit() else k for k in argnums.split(","))


def _check_count(function: Callable[..., Any], given: int) -> None:
    """OptionError if a function wants other arguments than the command line gives types for."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function in C without a signature
        return
    try:
        signature.bind(*[None] * given)
    except TypeError as fault:
        raise OptionError(
            f"{given} arguments are given, but the function takes {signature}: {fault}",
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
    found = named(target)
    plain: Callable[..., Any] = getattr(found, "__wrapped__", found)  # a compiled function wraps a plain one
    return plain


def named(target: str) -> Any:
    """What ``module:function`` or ``file.py:function`` names.

    The module is imported, under its own name: what stands below ``if __name__ == "__main__":`` does not run.
    """
    module_name, _, attribute = target.rpartition(":")
    if not module_name:
        raise OptionError(f"{target!r} names no function", remedy="write module:function, or path/file.py:function")
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


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="retrograd", description="Look at what retrograd makes of a function.")
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = top.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="print a graph, generated source or DOT")
    show.add_argument("target", help="module:function or path/file.py:function; it is imported")
    show.add_argument("--arg", action="append", default=[], metavar="TYPE", help="type of an argument: f64[3,2], float")
    show.add_argument("--argnums", metavar="NAMES", help="of the gradient: positions or names of arguments, by commas")
    show.add_argument("--emit", choices=sorted(EMITS), default="source")
    keep = commands.add_parser("export", help="write a derivative as a module of NumPy, or check a committed one")
    keep.add_argument("target", nargs="?", help="module:function; a compiled function is exported as it is")
    keep.add_argument(
        "--arg", action="append", default=[], metavar="[NAME=]TYPE", help="f64[3,2], float; values are fixed: 3, n=3"
    )
    keep.add_argument("--argnums", metavar="NAMES", help="of the gradient: positions or names of arguments, by commas")
    keep.add_argument("--transform", choices=sorted(KEPT), default="grad", help="of a plain function")
    keep.add_argument("-o", "--output", metavar="FILE", help="the module to write")
    keep.add_argument(
        "--check", metavar="FILE", nargs="?", const="", help="exit with 1 if a committed file has changed"
    )
    keep.add_argument("--renew", metavar="FILE", help="write a committed file again, with its own arguments")
    opt = commands.add_parser("opt", help="run passes over a graph in text")
    opt.add_argument("file", help="a file with one graph; - for standard input")
    opt.add_argument("-p", "--passes", default="simplify", metavar="NAMES", help=f"of {', '.join(passes())}; by commas")
    about = commands.add_parser("errors", help="explain an error by its code, or list all")
    about.add_argument("code", nargs="?", help="RG0203, or the name of a class")
    return top


def show(options: argparse.Namespace) -> str:
    """The ``show`` command: a function's graph, source or DOT text."""
    args = [example(parse_type(text)) for text in options.arg]
    function = load(options.target)
    _check_count(function, len(args))
    return EMITS[options.emit](function, _gradient(function, args, options.argnums), args)


# What is exported of a plain function, for these arguments.
KEPT: dict[str, Callable[..., Any]] = {
    "grad": grad,
    "hessian": hessian,
    "jit": lambda function, argnums: jit(function),
    "value_and_grad": value_and_grad,
}


def keep(options: argparse.Namespace) -> str:
    """The ``export`` command: write a module, or compare a committed one with what the function gives now."""
    if options.renew is not None:
        return renew(options.renew, named, options.target)
    if options.check is not None:
        committed = options.check or options.output
        if not committed:
            raise OptionError("--check names no file", remedy="python -m retrograd export --check FILE")
        try:
            return check(committed, named, options.target)
        except ChangedError as fault:
            raise ChangedError(fault.what, where=None, remedy=fault.remedy) from fault.__cause__
    if not options.target or not options.output:
        raise OptionError("export wants a function and a file", remedy="python -m retrograd export module:f -o FILE")
    found = named(options.target)
    args, kwargs = _given(options.arg)
    if not isinstance(found, Compiled):
        argnums = _argnums(args, options.argnums)
        found = KEPT[options.transform](found, argnums)
    export_to(options.output, found, args, kwargs, {**origin_of(found), "of": options.target})
    return f"{options.output} is written\n"


def _given(texts: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that the command line tells of, by position and by name."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if equals and name.isidentifier():
            kwargs[name] = _value(rest)
        else:
            args.append(_value(text))
    return args, kwargs


def _value(text: str) -> Any:
    """An argument of a type, or the value that a text is."""
    try:
        aval = parse_type(text)
        if aval.kind == "python" and not aval.inexact:
            raise OptionError(f"{text} is fixed in an exported function", remedy="give its value: --arg 3, --arg n=3")
        return example(aval)
    except ParseError as fault:
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError):
            raise OptionError(f"{text!r} is neither a type nor a value", remedy=fault.remedy) from None


def opt(options: argparse.Namespace) -> str:
    """The ``opt`` command: the graph of a file after some passes; ``linearize`` gives the linear half."""
    try:
        text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise OptionError(f"cannot read {options.file!r}: {fault}") from None
    graph = verify(parse(text))
    for name in options.passes.split(","):
        if name not in passes():
            raise OptionError(f"there is no pass {name!r}", remedy=f"choose from {', '.join(passes())}")
        graph = passes()[name](graph)
    return str(graph)


def told(options: argparse.Namespace) -> str:
    """The ``errors`` command: one explanation, or the tree of all errors."""
    return explain(options.code) if options.code else overview()


COMMANDS: dict[str, Callable[[argparse.Namespace], str]] = {"show": show, "export": keep, "opt": opt, "errors": told}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0, 1 if a committed derivative has changed, or 2, with the error on stderr."""
    options = parser().parse_args(argv)
    try:
        print(COMMANDS[options.command](options), end="")
    except RetrogradError as fault:
        print(fault, file=sys.stderr)
        return 1 if isinstance(fault, ChangedError) else 2
    return 0
