"""Random calls run plainly and compiled, and what is different; many calls in one compiled function."""

from __future__ import annotations

import itertools
import linecache
import re
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import retrograd as rg
from tests.fuzz.calls import Call
from tests.fuzz.operands import SCOPE
from tests.support.values import _same

NUMBER = itertools.count()
KINDS = ("f", "c")


@dataclass
class Group:
    """Calls as one module: functions ``c0`` and so on, and ``group``, which calls each with its traced operands."""

    calls: Sequence[Call]
    scope: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = f"<calls {next(NUMBER)}>"
        lines: list[str] = []
        self.lines: list[range] = []
        for i, call in enumerate(self.calls):
            start = len(lines)
            lines.append(f"def c{i}({', '.join(self.rename(i, call.names('traced')))}):")
            body = [self.renamed(i, call, line) for line in call.lines]
            lines += [*(f"    {line}" for line in body[:-1]), f"    return {body[-1]}"]
            self.lines.append(range(start + 1, len(lines) + 1))
        lines.append(f"def group({', '.join(f'a{i}' for i in range(len(self.calls)))}):")
        lines.append(f"    return [{', '.join(f'c{i}(*a{i})' for i in range(len(self.calls)))}]")
        source = "\n".join(lines)
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        self.file = name
        self.scope.update(SCOPE, __name__="called")
        exec(compile(source, name, "exec"), self.scope)
        self.capture(0)

    def rename(self, i: int, names: Iterable[str]) -> list[str]:
        return [f"{name}_{i}" for name in names]

    def renamed(self, i: int, call: Call, line: str) -> str:
        return re.sub(rf"\b({'|'.join(call.operands)})\b", rf"\1_{i}", line)

    def capture(self, which: int) -> None:
        """Set what the calls read from outside."""
        for i, call in enumerate(self.calls):
            for name in call.names("captured"):
                self.scope[f"{name}_{i}"] = call.operands[name].value(which)

    def arguments(self, which: int) -> list[tuple[Any, ...]]:
        return [tuple(call.values(which)) for call in self.calls]

    def culprit(self, fault: BaseException) -> int | None:
        """The call in whose lines the exception was raised."""
        while fault is not None:
            for frame in traceback.extract_tb(fault.__traceback__):
                if frame.filename == self.file:
                    for i, lines in enumerate(self.lines):
                        if frame.lineno in lines:
                            return i
            where = getattr(fault, "where", None)
            if where and (match := re.search(re.escape(self.file) + r":(\d+)", str(where))):
                for i, lines in enumerate(self.lines):
                    if int(match[1]) in lines:
                        return i
            fault = fault.__cause__ or fault.__context__  # type: ignore[assignment]
        return None


@dataclass
class Difference:
    """What is wrong with a call: the kind of difference, and both sides."""

    call: Call
    kind: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"--- seed {self.call.seed}: {self.kind}: {self.found} instead of {self.expected}\n{self.call.program()}"


def outcome(run: Callable[..., Any], *args: Any) -> Any:
    """The result, or the exception."""
    try:
        return run(*args)
    except Exception as fault:  # noqa: BLE001 - compared with NumPy's
        return fault


def difference(found: Any, expected: Any, close: bool = False) -> str | None:
    """The kind of the first difference between two results."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return "structure"
        if type(found) is not type(expected):
            return "structure's type"
        return next((kind for a, b in zip(found, expected, strict=True) if (kind := difference(a, b, close))), None)
    if type(found) is not type(expected):
        return "type"
    if not isinstance(expected, (np.ndarray, np.generic, int, float, complex)):
        return None if found == expected else "value"
    a, b = np.asarray(found), np.asarray(expected)
    if a.dtype != b.dtype:
        return "dtype"
    if a.shape != b.shape:
        return "shape"
    if _same(a, b):
        return None
    if b.dtype.kind in "fc" and np.allclose(
        a, b, rtol=1e3 * float(np.finfo(b.dtype).eps), atol=1e3 * float(np.finfo(b.dtype).eps), equal_nan=True
    ):
        return None if close else "bits"
    return "value"


@dataclass
class Report:
    """What became of the calls."""

    tally: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    refused: dict[str, Call] = field(default_factory=dict)

    def add(self, call: Call, kind: str, found: Any, expected: Any) -> None:
        self.tally[f"different: {':'.join(kind.split(':')[:2])}"] += 1
        self.differences.append(Difference(call, kind, _short(found), _short(expected)))

    def refuse(self, call: Call, fault: Exception) -> None:
        self.tally["refused"] += 1
        text = re.sub(r"'.*?'|\d+", "_", str(fault).splitlines()[0])
        self.refused.setdefault(text, call)
        self.tally[f"refused: {text}"] += 1


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, np.ndarray) else f"{value!r} of {value.dtype}{value.shape}"
    return " ".join(text.split())[:300]


def _rounded(call: Call) -> bool:
    """Whether last bits may differ: functions of SciPy that are computed by other formulas."""
    return "scipy." in call.lines[-1]


def _refusal(fault: Exception) -> bool:
    return isinstance(fault, rg.RetrogradError) and not isinstance(fault, rg.errors.InternalError)


def examine(calls: Sequence[Call], report: Report, *, size: int = 24, exact: bool = True) -> None:
    """Run each call with two sets of operands, plainly and compiled."""
    whole, raising = [], []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for call in calls:
            report.tally["calls"] += 1
            alone = Group([call])
            expected = [outcome(alone.scope["group"], *alone.arguments(0))]
            alone.capture(1)
            expected.append(outcome(alone.scope["group"], *alone.arguments(1)))
            if any(isinstance(e, Exception) for e in expected):
                raising.append((call, expected))
            else:
                whole.append((call, [e[0] for e in expected]))
        for call, expected in raising:
            _raises(call, expected, report, exact)
        for k in range(0, len(whole), size):
            _together(whole[k : k + size], report, exact)


def _raises(call: Call, expected: list[Any], report: Report, exact: bool) -> None:
    """A call for which NumPy raises, at the first or at the second operands."""
    report.tally["raising"] += 1
    group = Group([call])
    compiled = rg.jit(group.scope["group"])
    for which in range(2):
        group.capture(which)
        with rg.config(exact=exact):
            found = outcome(compiled, *group.arguments(which))
        want = expected[which]
        if (
            isinstance(found, Exception)
            and _refusal(found)
            and not (isinstance(want, Exception) and isinstance(found, type(want)))
        ):
            report.refuse(call, found)
            return
        if isinstance(want, Exception):
            if not isinstance(found, Exception):
                report.add(
                    call, f"no exception: {type(want).__name__}: {' '.join(str(want).split())[:80]}", found[0], want
                )
                return
            if not isinstance(found, type(want)):
                report.add(call, f"another exception: {type(want).__name__}", found, want)
                return
            continue
        if isinstance(found, Exception):
            report.add(call, "raises", found, want[0])
            return
        if kind := difference(found[0], want[0], _rounded(call)):
            report.add(call, kind, found[0], want[0])
            return


def _together(pairs: list[tuple[Call, list[Any]]], report: Report, exact: bool) -> None:
    while pairs:
        group = Group([call for call, _ in pairs])
        compiled = rg.jit(group.scope["group"])
        out: list[set[int]] = [set()]
        for which in range(2):
            group.capture(which)
            with rg.config(exact=exact):
                found = outcome(compiled, *group.arguments(which))
            if isinstance(found, Exception):
                at = group.culprit(found)
                if at is None and len(pairs) > 1:
                    half = len(pairs) // 2
                    _together(pairs[:half], report, exact)
                    _together(pairs[half:], report, exact)
                    return
                call, expected = pairs.pop(at or 0)
                if len(pairs) and not _refusal(found):
                    _together([(call, expected)], report, exact)  # alone, to be sure of the culprit
                elif _refusal(found):
                    report.refuse(call, found)
                else:
                    report.add(call, "raises", found, expected[which])
                break
            for i, (call, expected) in enumerate(pairs):
                if i not in out[0] and (kind := difference(found[i], expected[which], _rounded(call))):
                    out[0].add(i)
                    report.add(call, f"{kind}, {'second' if which else 'first'} call", found[i], expected[which])
        else:
            report.tally["compared"] += len(pairs)
            return


# ------------------------------------------------------------------------------------------------ derivatives

STEPS = (1e-4, 5e-5)
Slope = complex | float


NARROW = re.compile(r"float16|float32|complex64|broadcast_to")  # rounds coarsely, or has ties


def _active(x: Any) -> bool:
    return np.asarray(x).dtype in (np.float64, np.complex128) and not isinstance(x, list)


def _measure(value: Any) -> Any:
    """One real number in which every inexact entry of a result has a part."""
    if isinstance(value, (list, tuple)):
        return sum((_measure(v) for v in value), 0.0)
    dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    if dtype.kind not in "fc":
        return 0.0
    entries = np.ravel(value)
    weights = np.cos(np.arange(entries.size) * 0.7 + 0.2)
    return np.sum(np.sin(0.3 * np.real(entries)) * weights) + np.sum(np.imag(entries) * weights) * 0.3


def slopes(calls: Sequence[Call], report: Report, *, size: int = 12) -> None:
    """Compare the derivatives of calls of finite numbers: forward and reverse mode, and central differences."""
    chosen = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for call in calls:
            report.tally["calls"] += 1
            group = Group([call])
            args = group.arguments(0)[0]
            value = outcome(lambda group=group, args=args: _measure(group.scope["c0"](*args)))
            narrow = NARROW.search(call.program())
            if narrow or isinstance(value, Exception) or not np.isfinite(value) or not any(map(_active, args)):
                report.tally["not smooth"] += 1
                continue
            chosen.append(call)
        for k in range(0, len(chosen), size):
            _slopes(chosen[k : k + size], report)


def _moved(x: Any, step: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return type(x)(x + step)
    return np.add(x, step, out=np.empty_like(x))  # in the order of the axes that x has in memory


def _directions(group: Group) -> list[Any]:
    rng = np.random.default_rng(len(group.calls))
    found = []
    for args in group.arguments(0):
        for x in args:
            if _active(x):
                direction = rng.uniform(-1, 1, np.shape(x))
                if np.asarray(x).dtype.kind == "c":
                    direction = direction + 1j * rng.uniform(-1, 1, np.shape(x))
                found.append(direction if isinstance(x, np.ndarray) else type(x)(direction))
    return found


def _slopes(calls: list[Call], report: Report) -> None:
    group = Group(calls)
    points = group.arguments(0)
    scope = group.scope

    def measured(*active: Any) -> list[Any]:
        rest, results = iter(active), []
        for i, args in enumerate(points):
            given = [next(rest) if _active(x) else x for x in args]
            results.append(_measure(scope[f"c{i}"](*given)) + 0.0)
        return results

    xs = [x for args in points for x in args if _active(x)]
    directions = _directions(group)
    weights = list(np.random.default_rng(1).uniform(0.5, 1, len(calls)))

    def both() -> tuple[Any, Any]:
        _, forward = rg.jvp(measured, tuple(xs), tuple(directions))
        _, pull = rg.vjp(measured, *xs)
        return forward, pull([type(f)(w) for f, w in zip(forward, weights, strict=True)])

    found = outcome(both)
    if isinstance(found, Exception):
        if len(calls) > 1:
            half = len(calls) // 2
            _slopes(calls[:half], report)
            _slopes(calls[half:], report)
        elif _refusal(found):
            report.refuse(calls[0], found)
        else:
            report.add(calls[0], "derivative raises", found, "a slope")
        return
    forward, cotangents = found
    paired = sum(
        float(np.sum(np.real(np.asarray(c) * np.asarray(d)))) for c, d in zip(cotangents, directions, strict=True)
    )
    along = float(sum(w * f for w, f in zip(weights, forward, strict=True)))
    if abs(paired - along) > 1e-8 * (1 + sum(abs(float(f)) for f in forward)):
        if len(calls) > 1:
            for call in calls:
                _slopes([call], report)
            return
        report.add(calls[0], "reverse is not forward", paired, along)
    differences = []
    for h in STEPS:
        ends = [measured(*(_moved(x, s * h * d) for x, d in zip(xs, directions, strict=True))) for s in (1, -1)]
        differences.append([(float(a) - float(b)) / (2 * h) for a, b in zip(*ends, strict=True)])
    for call, f, coarse, fine in zip(calls, forward, *differences, strict=True):
        if not (np.isfinite(coarse) and np.isfinite(fine) and abs(coarse - fine) < 1e-5 * (1 + abs(fine))):
            report.tally["unstable"] += 1
        elif not abs(float(f) - fine) <= 1e-5 * (1 + abs(fine)):
            report.add(call, "slope", float(f), fine)
        else:
            report.tally["compared"] += 1
