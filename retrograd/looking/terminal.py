"""A line in the terminal for long work, if there is no other listener."""

from __future__ import annotations

import sys
from typing import Any

from ..compiler.phases import Listener, Progress

WIDTH = 24  # characters of a bar in a terminal


def title(progress: Progress) -> str:
    """The work and its phase, printable."""
    from .amounts import cut, printable  # noqa: PLC0415 - little work is so long

    return cut(printable(f"{progress.what}: {progress.phase}"))


class TerminalLine:
    """The listener where nobody else listens: one line in the terminal, which goes when the work ends."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.long = 0

    def __call__(self, progress: Progress) -> None:
        text = "" if progress.ended else line(progress)
        self.stream.write(f"\r{text.ljust(self.long)}{'' if text else chr(13)}")
        self.stream.flush()
        self.long = len(text)


def line(progress: Progress) -> str:
    """A report as one line.

    >>> line(Progress("loss", "forward", 5, 10, 2.0, 2.0))
    'loss: forward ############............ 5/10, 2 s, 2 s left'
    >>> line(Progress("loss", "tracing", 12_000, None, 2.5, None))
    'loss: tracing (12 k so far) 2.5 s'
    """
    from .amounts import in_seconds, in_short  # noqa: PLC0415 - little work is so long

    if progress.total:
        full = int(WIDTH * min(progress.done / progress.total, 1.0))
        said = f"{'#' * full}{'.' * (WIDTH - full)} {in_short(progress.done)}/{in_short(progress.total)}, "
    else:
        said = f"({in_short(progress.done)} so far) " if progress.done else ""
    left = f", {in_seconds(progress.left)} left" if progress.left is not None else ""
    return f"{title(progress)} {said}{in_seconds(progress.seconds)}{left}"


_lines: dict[int, TerminalLine | None] = {}  # by the stream, for the one that is used


def on_terminal() -> Listener | None:
    """A line in the terminal, if the standard error is one."""
    stream = sys.stderr
    if id(stream) not in _lines:
        _lines.clear()
        _lines[id(stream)] = TerminalLine(stream) if getattr(stream, "isatty", lambda: False)() else None
    return _lines[id(stream)]
