"""The command line: ``python -m retrograd show module:function``, ``opt FILE -p simplify``, ``errors RG0203``."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from .api.gradients import grad
from .api.jit import jit
from .compiler.pass_table import passes
from .errors import OptionError, RetrogradError
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
    if argnums is None:
        return grad(function, tuple(i for i, x in enumerate(args) if np.asarray(x).dtype.kind in "fc"))
    return grad(function, tuple(int(k) if k.lstrip("-").isdigit() else k for k in argnums.split(",")))


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
    """The function that ``module:function`` or ``file.py:function`` names.

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
        found = getattr(module, attribute)
    except (ImportError, FileNotFoundError, AttributeError) as fault:
        raise OptionError(f"cannot load {target!r}: {fault}", remedy="check the module path and the name") from None
    plain: Callable[..., Any] = getattr(found, "__wrapped__", found)  # a compiled function wraps a plain one
    return plain


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


COMMANDS: dict[str, Callable[[argparse.Namespace], str]] = {"show": show, "opt": opt, "errors": told}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0, or 2 with the error on stderr."""
    options = parser().parse_args(argv)
    try:
        print(COMMANDS[options.command](options), end="")
    except RetrogradError as fault:
        print(fault, file=sys.stderr)
        return 2
    return 0
