"""Time by statement: generated code runs under a tracer of lines, and the times add up to those without it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, NamedTuple

ENOUGH = 0.2  # seconds of runs, after which no more are made
MOST_RUNS = 30


class Measured(NamedTuple):
    """Seconds of one call, and those of each line of generated code, by file and number, which add up to these."""

    seconds: float
    lines: Mapping[tuple[str, int], float]
    runs: int


def measure(run: Callable[[], Any], files: frozenset[str]) -> Measured:
    """The time of a call, the least of several, and how it divides among the lines of these files.

    Lines are timed in further calls, by a tracer, whose own time is taken out as far as it can be known: what remains
    is scaled to the time without it. A tracer or debugger that was set before is set again at the end.
    """
    run()
    seconds, count, start = float("inf"), 0, time.perf_counter()
    while count < MOST_RUNS and (count < 2 or time.perf_counter() - start < ENOUGH):
        begun = time.perf_counter()
        run()
        seconds = min(seconds, time.perf_counter() - begun)
        count += 1
    best: dict[tuple[str, int], int] = {}
    traced, start = 0, time.perf_counter()
    while traced < MOST_RUNS and (traced < 1 or time.perf_counter() - start < ENOUGH):
        found = _traced(run, files)
        if not best or sum(found.values()) < sum(best.values()):
            best = dict(found)
        traced += 1
    total = sum(best.values())
    scale = seconds / total if total else 0.0
    return Measured(seconds, {place: scale * t for place, t in best.items()}, count)


def _traced(run: Callable[[], Any], files: frozenset[str]) -> Counter[tuple[str, int]]:
    """Nanoseconds by line, of one call."""
    spent: Counter[tuple[str, int]] = Counter()
    stack: list[tuple[str, int]] = []  # the lines that run, outermost first
    clock = time.perf_counter_ns
    last = clock()

    def of_calls(frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        nonlocal last
        file = frame.f_code.co_filename
        if file not in files:
            return None
        now = clock()
        if stack:
            spent[stack[-1]] += now - last
        stack.append((file, frame.f_lineno))
        last = clock()
        return of_lines

    def of_lines(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        nonlocal last
        now = clock()
        if stack:
            spent[stack[-1]] += now - last
        if event == "line":
            stack[-1] = (frame.f_code.co_filename, frame.f_lineno)
        elif event == "return" and stack:
            stack.pop()
        last = clock()
        return of_lines

    before = sys.gettrace()
    sys.settrace(of_calls)
    try:
        run()
    finally:
        sys.settrace(before)
    return spent
