"""Sums along the last axes, whose terms loops make: in an array, or block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.graph import Value
from .c_texts import fold_of, suffix, total_type
from .elements import StandsFor
from .grouping import RootGroups
from .indices import CArray, Indices, at, c_type, packed
from .sum_order import BLOCK, has_order, run_start, unit, zero

TURNS = 1024  # terms that are made before they are folded one after the other
NEAR = 4096  # terms up to which those that have storage are read there again
SUFFIXES = {"f8": "", "f4": "f", "c16": "c", "c8": "cf"}  # of the functions of sums, by NumPy's types


@dataclass
class TermRun:
    """Terms that are added up in one go, while loops make them: an array of all, or a block of what takes them."""

    name: str
    dtype: np.dtype[Any]
    n: int
    first: int  # the outermost axis
    each: int  # terms of an element of the innermost loop
    whole: CArray | None = None  # the array of all
    block: str = ""  # where the innermost loop writes
    turns: tuple[str, ...] = ()  # statements that fold the terms of the element {0} one after the other
    short: bool = False  # whether there is space for all terms that are folded so
    stored: bool = False  # whether the terms have storage anyway, so that no loop writes them

    @property
    def suffix(self) -> str:
        """The suffix of the functions of such sums."""
        return SUFFIXES[self.dtype.str[1:]]


class SumWriter(RootGroups):
    """Writes sums along the last axes."""

    def __init__(self, stored: set[Value]) -> None:
        super().__init__(stored)
        self.runs: dict[Value, TermRun] = {}  # that loops make now
        # of sums of a few columns: by the index behind the loops, a run, and which of its terms of an element this is
        self.lanes: dict[Value, list[tuple[TermRun, int]]] = {}
        # by the variable of an innermost loop that goes from block to block: where a block begins, and the runs
        self.fed: dict[str, tuple[str, list[TermRun]]] = {}
        self.pieces: dict[Value, tuple[str, str, int]] = {}  # of a part: storage, the first term, and those of a block

    def run_of(self, root: Value) -> int | None:
        """The first axis of those along which the terms of a root are added up in one go; None if there are none."""
        node = self.made.get(root)
        if node is None or not self.reduces(root) or not has_order(node):
            return None
        return run_start(self.space(root), node.attrs["axis"])

    def begin_run(self, root: Value, lead: Indices = (), each: int = 1, most: int = 0) -> None:
        """Declare what takes the terms at an index of the axes in front of them; ``most`` of them are a block."""
        first, dtype = self.run_of(root), root.aval.dtype
        assert first is not None
        space, piece = self.space(root)[first:], self.pieces.get(root)
        stored = None if piece or most else self._stored_terms(root, first, lead)
        if stored is not None:
            self.runs[root] = TermRun(stored, dtype, math.prod(space), first, each, stored=True)
        elif piece is None:
            self.runs[root] = self._taking(dtype, space, first, each, most)
        else:
            self.runs[root] = run = TermRun(self._struct(dtype), dtype, math.prod(space), first, each)
            self.line(f"rg_begin_part{run.suffix}(&{run.name}, {run.n}, {piece[2]}, {piece[1]}, {piece[0]});")

    def _struct(self, dtype: np.dtype[Any]) -> str:
        """A variable that adds terms up."""
        kind = f"struct rg_sum{SUFFIXES[dtype.str[1:]]}"
        name = self.fresh("total", kind)
        self.line(f"{kind} {name};")
        return name

    def fresh_total(self, root: Value) -> str:
        """The name of a variable in which a reduction adds up."""
        return self.fresh("total", total_type(self.made[root]))

    def _stored_terms(self, root: Value, first: int, lead: Indices) -> str | None:
        """Where the terms are, if they are not many, and lie beside each other in storage that they have anyway."""
        (x,), shape = self.made[root].inputs, self.space(root)
        while isinstance(held := self.held.get(x), StandsFor):
            x, lead = held.value, (*held.lead, *lead)
        n, gone = math.prod(shape[first:]), len(shape) - first
        if not isinstance(held, CArray) or n > NEAR or held.dtype != root.aval.dtype:
            return None
        if len(held.shape) != len(lead) + gone or held.strides[len(lead) :] != packed(held.shape[len(lead) :]):
            return None
        return f"&{held.at((*lead, *[at(0)] * gone))}"

    def is_stored(self, root: Value) -> bool:
        """Whether loops need not make the terms of a root."""
        return root in self.runs and self.runs[root].stored

    def _taking(self, dtype: np.dtype[Any], shape: Sequence[int], first: int, each: int, most: int = 0) -> TermRun:
        """An array for terms of a shape if that is small; else a sum that takes them, in blocks of ``most``."""
        n = math.prod(shape)
        if not most and n <= BLOCK * unit(dtype):
            name = self.fresh("terms", f"{c_type(dtype)} *restrict")
            self.line(f"{c_type(dtype)} {name}[{n}];")
            return TermRun(name, dtype, n, first, each, CArray(name, shape, dtype))
        run = TermRun(self._struct(dtype), dtype, n, first, each)
        self.line(f"rg_begin{run.suffix}(&{run.name}, {n}, {most or BLOCK * unit(dtype)});")
        return run

    def take(self, root: Value, index: Indices, text: str, k: int = 0) -> None:
        """Write a term: the k-th of an element of the innermost loop."""
        run, k = self.lanes[root][k] if root in self.lanes else (self.runs[root], k)
        if run.whole is not None:
            place = (index[run.first], at(k)) if root in self.lanes else index[run.first :]
            self.line(f"{run.whole.at(place)} = {text};")
        elif run.block:
            self.line(f"{run.block}{f' + {k}' if k else ''}] = {text};")
        else:
            self.line(f"rg_take{run.suffix}(&{run.name}, {text});")

    def end_run(self, root: Value) -> str:
        """The sum; nothing if it is that of a part."""
        run = self.runs.pop(root)
        if root in self.pieces:
            self.line(f"rg_end_part{run.suffix}(&{run.name});")
            return ""
        return _total(run)

    def begin_lanes(self, root: Value, places: Sequence[Indices], axis: int) -> None:
        """Declare what takes the terms of sums of a few columns, which lie behind the axis of a loop."""
        n, dtype, found = self.space(root)[axis], root.aval.dtype, {}
        for place in dict.fromkeys(places):
            each = places.count(place)
            found[place] = self._taking(dtype, (n, each), axis, each)
        self.lanes[root] = [(found[place], places[:k].count(place)) for k, place in enumerate(places)]

    def end_lanes(self, root: Value, places: Sequence[Indices]) -> dict[Indices, str]:
        """The sums, by place."""
        return {place: _total(run) for place, (run, _) in zip(places, self.lanes.pop(root), strict=True)}

    def begin_turns(self, root: Value, totals: Sequence[str], n: int) -> None:
        """Declare what takes terms that are folded one after the other, into a variable for each of an element."""
        each, kind, node = len(totals), c_type(root.aval.dtype), self.made[root]
        name = self.fresh("terms", f"{kind} *restrict")
        self.line(f"{kind} {name}[{min(n, TURNS // each) * each}];")
        places = [f"{name}[{_times(each, '{0}')}{f' + {k}' if k else ''}]" for k in range(each)]
        step, s, short = fold_of(node).step, suffix(node), n <= TURNS // each
        turns = [f"{a} = {step.format(a, place, s=s)};" for a, place in zip(totals, places, strict=True)]
        self.runs[root] = TermRun(name, root.aval.dtype, n, 0, each, turns=tuple(turns), short=short)

    def innermost(self, roots: Sequence[Value], var: str, n: int, body: Callable[[], None], pragma: str) -> None:
        """A loop that makes terms of those roots that are sums."""
        found = [run for r in roots for run in (self.runs.get(r), *(run for run, _ in self.lanes.get(r, ())))]
        runs = list(
            {id(run): run for run in found if run is not None and run.whole is None and not run.stored}.values()
        )
        long = [run for run in runs if not run.short]
        part = self.fresh("part") if long else ""
        for run in runs:
            to = run.name if run.turns else self.fresh("block", f"{c_type(run.dtype)} *restrict")
            run.block = f"{to}[{_times(run.each, var if run.short else f'{var} - {part}')}"
        if long:
            self.fed[var] = part, long
        self.loop(var, n, body, pragma)
        self.fed.pop(var, None)
        for run in runs:
            run.block = ""
            if run.short:
                self._fold_turns(run, str(n))

    def _fold_turns(self, run: TermRun, n: str) -> None:
        z = self.fresh("z")
        self.enclose(f"for (int64_t {z} = 0; {z} < {n}; {z}++) {{", [turn.format(z) for turn in run.turns])

    def repeat(self, var: str, start: int, n: int, lines: list[str], pragma: str) -> None:
        """Write a loop from ``start`` to ``n``; one that makes terms goes from block to block."""
        if var not in self.fed:
            super().repeat(var, start, n, lines, pragma)
            return
        (part, runs), (first, last), end = self.fed[var], self.bounds(var, start, n), self.fresh("end")
        with self.block() as block:
            to = last
            for run in runs:
                if run.turns:
                    most = f"{part} + {TURNS // run.each}"
                    self.line(f"{end} = {most} < {to} ? {most} : {to};")
                else:
                    self.line(f"{end} = rg_until(&{run.name}.at, {part}, {to}, {run.each});")
                to = end
            for run in runs:
                if not run.turns:
                    name = run.block.split("[")[0]
                    self.line(f"{c_type(run.dtype)} *restrict {name} = {run.name}.terms + {run.name}.at.fill;")
            if pragma:
                self.line(pragma)
            self.enclose(f"for (int64_t {var} = {part}; {var} < {end}; {var}++) {{", lines)
            for run in runs:
                if run.turns:
                    self._fold_turns(run, f"{end} - {part}")
                else:
                    self.line(f"rg_took{run.suffix}(&{run.name}, {_times(run.each, f'{end} - {part}')});")
        header = f"for (int64_t {part} = {first}, {end} = {first}; {part} < {last}; {part} = {end}) {{"
        self.enclose(header, block.lines)


def _total(run: TermRun) -> str:
    if run.whole is not None or run.stored:
        return f"rg_total{run.suffix}({run.name}, {run.n})"
    return f"{run.name}.sums[0] + {zero(run.dtype)}"


def _times(each: int, text: str) -> str:
    if each == 1:
        return text
    return f"{each} * ({text})" if " " in text else f"{each} * {text}"
