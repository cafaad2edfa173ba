"""An executable: generated source, compiled, visible to tracebacks and debuggers."""

from __future__ import annotations

import itertools
import linecache
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from ..ir.graph import Graph, Value
from ..ir.plan import Plan
from ..ir.target import PROVIDERS, TARGETS, Module, Target

_number = itertools.count(1)
_gone: deque[str] = deque()  # names of modules that no object uses any more
EXECUTABLES: weakref.WeakValueDictionary[str, Executable] = weakref.WeakValueDictionary()  # by these names


def _show(filename: str, source: str) -> None:
    """Let tracebacks and debuggers find a source, and forget those of modules that are gone.

    They may go at any time, even while ``linecache`` walks over its files, which fails if a file is missing then.
    """
    with suppress(IndexError):  # another thread may take the last one
        while True:
            linecache.cache.pop(_gone.popleft(), None)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)


class Executable:
    """A compiled graph.

    ``function`` takes flat positional arguments, the captures last, and returns its one result bare or a tuple.
    ``graph`` is the graph that it computes, ``plan`` its layout in memory, ``module`` the source, and ``target`` the
    target that made these. ``ordered`` says whether arrays come in C-ordered.
    """

    def __init__(
        self,
        graph: Graph,
        constants: Mapping[Value, np.ndarray[Any, Any]] | None = None,
        target: Target | None = None,
        ordered: bool = True,
    ) -> None:
        self.graph, self.constants, self.target = graph, constants or {}, target or TARGETS.chosen
        self.plan: Plan = self.target.plan(self.target.legalise(graph), ordered)
        self.module: Module = self.target.emit(self.plan)
        self.filename = f"<generated {self.module.function} {next(_number)}>"
        names = {name: function for provide in PROVIDERS for name, function in provide(graph).items()}
        self.function: Callable[..., Any] = self.target.load(self.module, self.filename, names)
        _show(self.filename, self.module.source)
        weakref.finalize(self, _gone.append, self.filename)
        EXECUTABLES[self.filename] = self
        self.single = len(graph.outputs) == 1

    def __call__(self, *args: Any) -> Any:
        """All results, as a tuple; an exception gets a note with the user's line."""
        try:
            result = self.function(*args)
        except Exception as fault:
            self.annotate(fault)
            raise
        return (result,) if self.single else result

    def source(self) -> str:
        """The module with the values of the inputs in ``constants`` written into it, so that it runs alone."""
        at = {k: self.constants[v] for k, v in enumerate(self.graph.inputs) if v in self.constants}
        return self.target.emit(self.plan, at).source if at else self.module.source

    def annotate(self, fault: BaseException) -> None:
        """Say which line of the user's program the failing line of generated code stands for."""
        for frame, line in traceback.walk_tb(fault.__traceback__):
            if frame.f_code.co_filename == self.filename and line in self.module.lines:
                fault.add_note(f"in compiled code for {self.module.lines[line]}")
