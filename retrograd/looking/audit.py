"""audit: which functions of a program can be traced, which cannot and why, and which lines block.

Without running anything, calls are looked up by their full names. If the program runs, each of its functions is
traced with the arguments of its first call.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import gc
import importlib
import inspect
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Self

import numpy as np

from ..api.gradients import grad
from ..api.jit import trace
from ..compiler.signature import is_traced
from ..errors import OptionError, RetrogradError
from ..tracer.array import Tracer
from ..tracer.refusals import alternative
from ..tracer.table import REMEDIES
from ..tracer.trace import CURRENT
from ..tracer.tree import flatten
from .amounts import cut, printable

SKIPPED = {"site-packages", "node_modules", "build", "dist", "__pycache__"}
PACKAGE = Path(__file__).parents[1]
LARGEST = 1 << 28  # bytes of arguments that are copied
ROOMS = ("numpy", "scipy")  # whose functions are looked up one by one


@dataclass(frozen=True)
class Verdict:
    """What is known of one function: whether it traces (None if that was not tried), why not, and the line that blocks.

    ``status`` is "traces", "has derivatives", "blocks", "may block" or "not tried".
    """

    name: str
    where: str
    status: str
    why: str = ""
    line: str = ""
    remedy: str = ""


def python_files(path: Path) -> list[Path]:
    """The Python files at a path, without hidden folders, caches and packages. OptionError if there are none."""
    if path.is_file():
        return [path]
    found = []
    for folder, inside, files in os.walk(path):
        inside[:] = sorted(d for d in inside if d not in SKIPPED and not d.startswith("."))
        if not (Path(folder) / "pyvenv.cfg").exists():
            found += [Path(folder, name) for name in sorted(files) if name.endswith(".py")]
    if not found:
        raise OptionError(f"there is no Python file at {str(path)!r}", remedy="name a file or a folder")
    return found


# --- without running ------------------------------------------------------------------------------------------


def read(path: Path) -> list[Verdict]:
    """The functions of a file, and the first call in each that is known not to be traced; nothing runs."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, SyntaxError, ValueError, RecursionError) as fault:
        return [Verdict(str(path), str(path), "not tried", f"cannot be read: {printable(str(fault))}")]
    names = dict(_imported(tree))
    return [_judged(path, name, node, names) for name, node in _functions(tree, "")]


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The full names behind the names that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{child.name}", child
        scope = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        name = f"{prefix}{child.name}." if isinstance(child, (*_DEFS, ast.ClassDef)) else prefix
        yield from _functions(child, name if scope else prefix)


_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _judged(path: Path, name: str, function: Function, names: dict[str, str]) -> Verdict:
    where = f"{path}:{function.lineno}"
    inside = [child for child in ast.walk(function) if child is not function]
    nested = {id(x) for child in inside if isinstance(child, _DEFS) for x in ast.walk(child)}
    for node in inside:
        if not isinstance(node, ast.Call) or id(node) in nested:
            continue
        full = _full_name(node.func, names)
        remedy = full and _remedy(full)
        if full and remedy:
            return Verdict(name, where, "may block", f"{full} is not traced", f"{path}:{node.lineno}", remedy)
    return Verdict(name, where, "not tried", "no call in it is known to block tracing")


def _full_name(node: ast.expr, names: dict[str, str]) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    return ".".join([names[node.id], *reversed(parts)])


def _remedy(full: str) -> str | None:
    """What to do instead of calling a function that is not traced; None for all others."""
    room = full.partition(".")[0]
    if room not in ROOMS:
        return alternative(full)
    found = _found(full)
    with contextlib.suppress(TypeError):  # what cannot be hashed is in no table
        if found in REMEDIES:
            return REMEDIES[found]
    if full.startswith("numpy.") and isinstance(found, np.ufunc):
        return None
    special = full in ("numpy.genfromtxt", "numpy.loadtxt", "scipy.integrate.quad") or full.startswith("numpy.ma.")
    return alternative(full) if special or full.startswith("scipy.optimize.") else None


def _found(full: str) -> Any:
    """The object with a full name in NumPy or SciPy; None if there is none."""
    module, _, name = full.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


# --- by running -----------------------------------------------------------------------------------------------


@dataclass
class FirstCall:
    """The arguments of the first call of a function, copied."""

    function: FunctionType
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    why_not: str = ""


class Observing:
    """A context in which first calls of the functions in the files of a folder are noted, by file, line and name.

    A function that is being traced runs code of its own; it is the same function.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: dict[tuple[str, int, str], FirstCall] = {}
        self._looked_at: set[CodeType] = set()
        self._ours: dict[str, bool] = {}

    def __enter__(self) -> Self:
        self._before = sys.getprofile()
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)

    def _seen(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self._looked_at:
            return
        self._looked_at.add(code)
        place = (code.co_filename, code.co_firstlineno, code.co_qualname)
        if place in self.calls or code.co_name[0] == "<" or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        if not self._inside(code.co_filename):
            return
        function = next((f for f in gc.get_referrers(code) if isinstance(f, FunctionType) and f.__code__ is code), None)
        if function is not None:
            sys.setprofile(None)
            try:
                self.calls[place] = _first_call(function, frame)
            finally:
                sys.setprofile(self._seen)

    def _inside(self, file: str) -> bool:
        """Whether a file is one of the program's; code that was generated, or is part of Python, has no file."""
        if file not in self._ours:
            path = Path(file).resolve()
            below = file[:1] != "<" and path.is_relative_to(self.folder) and not path.is_relative_to(PACKAGE)
            self._ours[file] = below and SKIPPED.isdisjoint(path.relative_to(self.folder).parts)
        return self._ours[file]


def _first_call(function: FunctionType, frame: FrameType) -> FirstCall:
    code, here = frame.f_code, frame.f_locals
    n, m = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    values = [here[name] for name in names[:n]]
    kwargs = {name: here[name] for name in names[n : n + m]}
    at = n + m
    if code.co_flags & inspect.CO_VARARGS:
        values += here[names[at]]
        at += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs |= here[names[at]]
    trace = CURRENT.get()
    traced = [] if trace is None else [t for t in (held() for held in trace.made) if t is not None]
    try:
        leaves = [x.shadow if isinstance(x, Tracer) else x for x in flatten((tuple(values), kwargs))[0]]
        if sum(x.nbytes for x in leaves if isinstance(x, np.ndarray)) > LARGEST:
            return FirstCall(function, (), {}, "its arguments are too large to copy")
        examples = copy.deepcopy((tuple(values), kwargs), {id(t): t.shadow for t in traced})
        args, kwargs = copy.deepcopy(examples)  # examples of traced values were not copied before
    except Exception as fault:  # noqa: BLE001 - the user's objects may refuse in any way
        return FirstCall(function, (), {}, f"its arguments cannot be copied: {cut(printable(str(fault)))}")
    return FirstCall(function, args, kwargs)


def run(program: Path, argv: Sequence[str]) -> tuple[list[Verdict], str]:
    """Run a program, and record each of its functions; the verdicts, and how the program ended if it failed.

    Its functions are those in its folder and below. What the program prints goes to the standard error.
    """
    observing, before, ended = Observing(program.resolve().parent), sys.argv, ""
    sys.argv = [str(program), *argv]
    sys.path.insert(0, str(program.resolve().parent))
    try:
        with contextlib.redirect_stdout(sys.stderr), observing:
            runpy.run_path(str(program.resolve()), run_name="__main__")
    except SystemExit as end:
        ended = f"the program exited with status {end.code}" if end.code else ""
    except Exception as fault:  # noqa: BLE001 - the program may fail in any way; what ran before is judged
        ended = f"the program raised {type(fault).__name__}: {cut(printable(str(fault)))}"
    finally:
        sys.argv = before
        sys.path.remove(str(program.resolve().parent))
    with contextlib.redirect_stdout(sys.stderr):
        return [_tried(call) for call in observing.calls.values()], ended


def _tried(call: FirstCall) -> Verdict:
    function, code = call.function, call.function.__code__
    where = f"{code.co_filename}:{code.co_firstlineno}"
    name = printable(function.__qualname__)
    if call.why_not:
        return Verdict(name, where, "not tried", call.why_not)
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return Verdict(name, where, "not tried", "it is a generator or a coroutine")
    if not any(map(is_traced, flatten((call.args, call.kwargs))[0])):
        return Verdict(name, where, "not tried", "it takes no floats and no arrays")
    try:
        graph = trace(function)(*copy.deepcopy(call.args), **copy.deepcopy(call.kwargs))
    except RetrogradError as fault:
        return Verdict(name, where, "blocks", f"{fault.code} {printable(fault.what)}", _line(fault), fault.remedy)
    except Exception as fault:  # noqa: BLE001 - the user's function may raise anything
        return Verdict(name, where, "blocks", f"it raised {type(fault).__name__}: {printable(str(fault))}")
    (first, *more) = graph.outputs or (None,)
    if first is None or more or first.aval.size != 1 or first.aval.dtype.kind != "f":
        return Verdict(name, where, "traces")
    chosen = tuple(k for k, x in enumerate(call.args) if _floating(x))
    return _differentiated(function, call, chosen, name, where) if chosen else Verdict(name, where, "traces")


def _differentiated(
    function: Callable[..., Any], call: FirstCall, chosen: tuple[int, ...], name: str, where: str
) -> Verdict:
    try:
        grad(function, chosen).graph(*copy.deepcopy(call.args), **copy.deepcopy(call.kwargs))
    except RetrogradError as fault:
        why = f"no gradient: {fault.code} {printable(fault.what)}"
        return Verdict(name, where, "traces", why, _line(fault), fault.remedy)
    except Exception as fault:  # noqa: BLE001 - the user's function may raise anything
        return Verdict(name, where, "traces", f"no gradient: {type(fault).__name__}: {printable(str(fault))}")
    return Verdict(name, where, "has derivatives")


def _line(fault: RetrogradError) -> str:
    """The program's line that an error names; none if only the command line was on the stack."""
    file = getattr(fault.where, "file", None)
    return "" if file is None or Path(file).is_relative_to(PACKAGE) else str(fault.where)


def _floating(x: Any) -> bool:
    return any(np.asarray(leaf).dtype.kind in "fc" for leaf in flatten(x)[0] if is_traced(leaf))
