"""Tracebacks that show the user's frames; ``rg.config.traceback = "full"`` shows those of retrograd, too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from ..compiler.settings import Config
from ..errors import OptionError
from .cells import shell_here

CHOICES = ("user", "full")
PACKAGE = str(Path(__file__).parents[1])
GENERATED = "<generated "  # files of compiled code, whose errors have notes with the user's line
_chosen = ["user"]


def _get(config: Config) -> str:
    """``"user"``: tracebacks show the user's frames, and how many others there are; ``"full"``: all frames."""
    return _chosen[0]


def _set(config: Config, value: str) -> None:
    if value not in CHOICES:
        raise OptionError(f"rg.config.traceback = {value!r}", remedy=f"choose from {', '.join(map(repr, CHOICES))}")
    _chosen[0] = value


def is_inner(file: str) -> bool:
    """Whether a file is one of retrograd's, or compiled code."""
    return file.startswith((PACKAGE, GENERATED))


def outer(tb: TracebackType | None) -> tuple[TracebackType | None, int]:
    """A traceback without inner frames, and how many these are. If all are inner, the traceback as it is."""
    frames = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    shown = [step for step in frames if not is_inner(step.tb_frame.f_code.co_filename)]
    if not shown:
        return (frames[0] if frames else None), 0
    made: TracebackType | None = None
    for step in reversed(shown):
        made = TracebackType(made, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return made, len(frames) - len(shown)


def _chain(fault: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while fault is not None and id(fault) not in seen:
        seen.add(id(fault))
        yield fault
        fault = fault.__cause__ or (None if fault.__suppress_context__ else fault.__context__)


@contextmanager
def shortened(fault: BaseException) -> Iterator[int]:
    """The exception and those that led to it have no inner frames in this context; how many there are is given."""
    before = [(each, each.__traceback__) for each in _chain(fault)]
    hidden = 0
    try:
        if _chosen[0] == "user":
            for each, tb in before:
                each.__traceback__, count = outer(tb)
                hidden += count
        yield hidden
    finally:
        for each, tb in before:
            each.__traceback__ = tb


def said(hidden: int) -> str:
    """How many frames are not shown, and what shows them."""
    return f"({hidden} frame{'s' if hidden > 1 else ''} of retrograd not shown: rg.config.traceback = 'full')\n"


def _in_terminals(kind: type[BaseException], fault: BaseException, tb: TracebackType | None) -> None:
    """Stands for ``sys.excepthook`` as Python has it: the same text without inner frames."""
    with shortened(fault) as hidden:
        if not hidden:
            sys.__excepthook__(kind, fault, tb)
            return
        import traceback  # noqa: PLC0415 - programs that do not fail need none

        sys.stderr.write("".join(traceback.format_exception(fault)) + said(hidden))


def _in_notebooks(shell: Any, kind: type[BaseException], fault: BaseException, tb: Any, tb_offset: Any = None) -> None:
    """What IPython shows of an exception."""
    with shortened(fault) as hidden:
        shell.showtraceback((kind, fault, fault.__traceback__ if hidden else tb), tb_offset=tb_offset)
        if hidden:
            sys.stderr.write(said(hidden))


def install() -> None:
    """Shorten tracebacks where Python, or a notebook, shows them as it comes. What others have set stays."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _in_terminals
    shell = shell_here()
    if shell is not None and not getattr(shell, "custom_exceptions", True):
        shell.set_custom_exc((Exception,), _in_notebooks)


Config.traceback = property(_get, _set)  # type: ignore[attr-defined]  # a setting of this package alone
