"""Random programs in one process, interleaved: each call gives the bits that it gives in a process of its own.

What one trace leaves behind (recipes, shared versions, tables by code, interned types) must not reach other programs.
A fresh process is forked, for each call, from a server that has imported this module and traced nothing.
"""

from __future__ import annotations

import gc
import multiprocessing
import random
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.fuzz.one_process import NATIVE, TRANSFORMS, Call, Program, draw, evaluated, module, shared_module
from tests.support.seeds import moved

TEMPLATES = 24  # of one run
CHUNK = 12  # programs of one run
SLOW_IMPORTS = ("bytecode", "jinja2", "tempfile", "retrograd.tracer.state.observed_code")  # by the first trace
ROUNDS = 3  # how often each call is made in one process


class World:
    """A program that can be called, in the module that all worlds of its template share, or in one of its own."""

    def __init__(self, program: Program, anew: bool = False) -> None:
        self.program = program
        self.scope = (module if anew else shared_module)(program.template)
        self.call = TRANSFORMS[program.transform](self.scope["made"](*map(evaluated, program.captured)))

    def result(self, call: Call) -> Any:
        """What a call gives, by its bits."""
        rate, entry, key = map(evaluated, call.names)
        self.scope.update(rate=rate, table={1: entry, 0: 2.5}, key=key)
        try:
            with rg.config(**dict(self.program.config)):
                return bits(self.call(*map(evaluated, call.arguments)))
        except Exception as error:  # noqa: BLE001 - programs may fail, in both processes alike
            return type(error).__name__, str(error).partition("\n")[0]


def bits(x: Any) -> Any:
    """All that tells results apart: types, dtypes, shapes and bytes; nans are all alike."""
    if isinstance(x, (tuple, list)):
        return type(x).__name__, tuple(map(bits, x))
    if isinstance(x, dict):
        return "dict", tuple((repr(k), bits(v)) for k, v in x.items())
    if isinstance(x, (np.ndarray, np.generic, float, complex)):
        a = np.array(x)
        if a.dtype.kind in "fc":
            a = a.view(a.real.dtype) if a.ndim else a.reshape(1).view(a.real.dtype)
            a = np.where(np.isnan(a), np.nan, a).astype(a.dtype)
        return type(x).__name__, np.asarray(x).dtype.str, np.shape(x), a.tobytes().hex()
    return type(x).__name__, repr(x)


def fresh(program: Program, call: Call) -> set[Any]:
    """The results of a call, made twice, in a process that has done nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        world = World(program)
        return {world.result(call) for _ in range(2)}


def fresh_server() -> Any:
    """Forks processes from one that has only imported this module."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*SLOW_IMPORTS, __name__])
    return context


def _sent(program: Program, call: Call, out: Any) -> None:
    out.send(fresh(program, call))


def in_fresh_process(server: Any, program: Program, call: Call) -> set[Any]:
    """The results of a call in a new process."""
    found, out = server.Pipe(duplex=False)
    process = server.Process(target=_sent, args=(program, call, out))
    process.start()
    out.close()
    try:
        return set(found.recv())
    finally:
        process.join()


def interleaved(programs: list[Program], seed: int) -> Iterable[tuple[Program, Call, Any]]:
    """The calls of all programs in random order in this process; worlds go and come again meanwhile."""
    r = random.Random(seed)
    worlds: dict[Program, World] = {}
    turns = [(program, call) for program in programs for call in program.calls] * ROUNDS
    r.shuffle(turns)
    for program, call in turns:
        if r.random() < 0.2:
            worlds.pop(program, None)
        if r.random() < 0.02:
            gc.collect()
        if program not in worlds:
            worlds[program] = World(program, anew=r.random() < 0.1)
        yield program, call, worlds[program].result(call)


def differences(seeds: range, in_c: float = NATIVE) -> list[str]:
    """The calls of these programs whose bits are others than in a process of its own."""
    templates = range(seeds.start, seeds.start + TEMPLATES)
    programs = [draw(seed, templates, in_c) for seed in seeds]
    server = fresh_server()
    expected = {(p, call): in_fresh_process(server, p, call) for p in programs for call in p.calls}
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for program, call, result in interleaved(programs, seeds.start):
            if result not in expected[program, call]:
                found.append(f"{program}\n{call} gives {result}; alone it gives {expected[program, call]}")
    failed = sum(min(results)[0].endswith("Error") for results in expected.values())
    sys.stdout.write(f"{len(programs)} programs, {len(expected)} calls, {failed} raise; {len(found)} differ\n")
    return found


@pytest.mark.parametrize(
    "start", [pytest.param(k, marks=[] if k in (12, 180) else [pytest.mark.slow]) for k in range(0, 40 * CHUNK, CHUNK)]
)
def test_programs_leave_nothing_behind(start: int) -> None:
    found = differences(moved(range(start, start + CHUNK)))
    assert not found, f"{len(found)} differences; the first:\n{found[0]}"
