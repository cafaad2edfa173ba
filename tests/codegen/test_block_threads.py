"""Blocks on several threads: the same bits, and nothing is left running after an exception."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy.footprint.footprint import Simulation
from retrograd.compiler import block_threads
from retrograd.compiler.block_threads import THREADS
from retrograd.compiler.executable import Executable
from retrograd.passes import block_kernels as blocks
from tests.codegen.test_blocks import MOST, SHORT, random_program
from tests.support.memory import measured

N = 100_003
ON_TWO_THREADS = """
import numpy as np, retrograd as rg
from retrograd.compiler import block_threads
block_threads.WORTH, block_threads.GAIN = -1.0, float("inf")
rg.config.threads = 2
f = rg.jit(lambda x: np.sin(x) * x + np.cos(x) * 2.0)
x = np.ones(100_003)
"""  # a program begins so


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads share the least work."""
    monkeypatch.setattr(block_threads, "WORTH", -1.0)
    monkeypatch.setattr(block_threads, "GAIN", float("inf"))
    before = THREADS.number
    yield
    THREADS.number = before


def test_the_number_of_threads_may_be_an_integer_of_numpy() -> None:
    rg.config.threads = np.int64(3)  # type: ignore[assignment]
    assert type(rg.config.threads) is int
    assert rg.config.threads == 3


def on_threads(function: Any, *args: Any) -> list[Any]:
    found = []
    for number in (1, 2, 3, 5):
        rg.config.threads = number
        assert rg.config.threads == number
        found.append(function(*args))
    return found


def assert_equal(found: list[Any]) -> None:
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("n", [blocks.SHORTEST, blocks.SHORTEST + 1, 65_537, N, 300_000])
def test_results_do_not_depend_on_the_number_of_threads(n: int) -> None:
    f = rg.value_and_grad(lambda x: np.sum(np.exp(np.sin(x)) * x) + np.max(x * x - x))
    assert_equal(on_threads(f, np.random.default_rng(0).normal(size=n)))


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SHORTEST", SHORT)
    monkeypatch.setattr(blocks, "MOST", MOST)
    f = rg.value_and_grad(random_program(seed))
    x, y = np.random.default_rng(seed).normal(size=(2, 3000))
    assert_equal(on_threads(f, x, y, np.float64(0.3)))


def test_several_threads_work(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()

    def part(self: Any, start: int, stop: int) -> Any:
        names.add(threading.current_thread().name)
        time.sleep(0.01)
        return plain(self, start, stop)

    plain = block_threads._BlockWork.part
    monkeypatch.setattr(block_threads._BlockWork, "part", part)
    rg.config.threads = 2
    rg.jit(lambda x: np.sin(x) * x + np.cos(x))(np.ones(N))
    assert len(names) == 2


def test_little_work_stays_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_threads, "WORTH", 1e9)
    monkeypatch.setattr(block_threads, "_on_threads", None)
    rg.config.threads = 2
    rg.jit(lambda x: np.sin(x) * x + np.cos(x) * 2.0)(np.ones(N))


def test_settings_of_numpy_hold_on_all_threads() -> None:
    f = rg.jit(lambda x: np.log(x) * 2.0 + np.sqrt(x) - x)
    x = np.ones(N)
    x[-1] = -1.0
    rg.config.threads = 2
    f(np.ones(N))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        f(x)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        f(x)
    with pytest.warns(RuntimeWarning):
        f(x)


def test_an_exception_waits_for_the_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[int] = []

    def kernel(x: Any, out: Any) -> tuple[()]:
        running.append(1)
        time.sleep(0.02)
        running.pop()
        if x[0] == 0:
            raise ValueError("the first block")
        out[:] = x
        return ()

    rg.config.threads = 2
    x = np.arange(1.0, 4097.0)
    x[0] = 0
    with pytest.raises(ValueError, match="first block"):
        block_threads.in_blocks(kernel, 4096, 128, (x, np.empty(4096)), (), ())
    assert running == []


def test_calls_from_many_threads() -> None:
    f = rg.grad(lambda x: np.sum(np.exp(np.sin(x)) * x))
    rg.config.threads = 2
    xs = [np.random.default_rng(k).normal(size=N) for k in range(6)]
    expected = [f(x) for x in xs]
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        for _ in range(3):
            found[k] = f(xs[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, x in enumerate(expected):
        np.testing.assert_array_equal(found[k], x)


def shared(f: Any, x: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many kernels of a call ran on several threads."""
    found = []
    plain = block_threads._on_threads

    def on_threads(part: Any, parts: Any) -> Any:
        found.append(parts)
        return plain(part, parts)

    with monkeypatch.context() as patched:
        patched.setattr(block_threads, "_on_threads", on_threads)
        f(x)
    return len(found)


def test_a_kernel_that_threads_do_not_help_rests_from_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """... for longer from time to time, until they help again."""
    monkeypatch.setattr(block_threads, "GAIN", 0.0)
    monkeypatch.setattr(block_threads, "LONGEST_REST", 3)
    rg.config.threads = 2
    f = rg.jit(lambda x: np.sin(x) * x + np.cos(x) * 2.0)
    x = np.ones(N)
    f(x)
    block_threads.RESTS.clear()
    assert [shared(f, x, monkeypatch) for _ in range(14)] == [1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]
    monkeypatch.setattr(block_threads, "GAIN", float("inf"))
    assert [shared(f, x, monkeypatch) for _ in range(2)] == [1, 1]
    monkeypatch.setattr(block_threads, "GAIN", 0.0)
    assert [shared(f, x, monkeypatch) for _ in range(3)] == [1, 0, 1]


def test_a_call_computes_alone_where_it_is_asked_to_or_others_use_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rg.config.threads = 2
    f = rg.jit(lambda x: np.sin(x) * x + np.cos(x) * 2.0)
    x = np.ones(N)
    expected = f(x)
    with THREADS.alone(), THREADS.alone():
        assert shared(f, x, monkeypatch) == 0
    assert THREADS.taken()
    assert shared(f, x, monkeypatch) == 0
    THREADS.give_back()
    assert shared(f, x, monkeypatch) == 1
    np.testing.assert_array_equal(f(x), expected)


def python(program: str, **variables: str) -> str:
    """What a program prints."""
    environment = {name: x for name, x in os.environ.items() if name != "OMP_NUM_THREADS"} | variables
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=environment).stdout


def test_as_many_threads_as_cores_or_as_openmp_may_have() -> None:
    program = "import retrograd as rg; print(rg.config.threads)"
    cores = int(python("import os; print(len(os.sched_getaffinity(0)) if os.name == 'posix' else os.cpu_count())"))
    assert int(python(program)) == cores
    assert int(python(program, OMP_NUM_THREADS="1")) == 1
    assert int(python(program, OMP_NUM_THREADS="10000")) == cores
    assert int(python(program, OMP_NUM_THREADS="4,2")) == cores


def test_a_worker_of_a_pool_of_processes_has_one_thread() -> None:
    program = "import multiprocessing as m, retrograd as rg; print(m.get_context('spawn').Pool(1).map(eval, [TEXT]))"
    assert python(f"TEXT = '__import__(\"retrograd\").config.threads'\n{program}").strip() == "[1]"


def test_a_call_at_exit_computes_on_one_thread() -> None:
    program = """
import atexit
expected = f(x).tobytes()
atexit.register(lambda: print(f(x).tobytes() == expected))
"""
    assert python(ON_TWO_THREADS + program).strip() == "True"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_works_on_one_thread() -> None:
    program = """
import os
f(x)
child = os.fork()
if child == 0:
    f(x)
    os._exit(0 if rg.config.threads == 1 else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(ON_TWO_THREADS + program).strip() == "0"


@pytest.mark.parametrize("number", [0, -1, 2.0, True, None])
def test_a_number_of_threads_is_a_number_from_1(number: Any) -> None:
    with pytest.raises(rg.errors.OptionError, match="threads"):
        rg.config.threads = number


def test_the_memory_of_all_threads_is_counted() -> None:
    def chain(x: Any) -> Any:
        for k in range(12):
            x = np.sin(x) * (1.0 + 0.01 * k) + x * x
        return np.sum(x)

    x = np.random.default_rng(0).normal(size=200_000) * 0.01
    graph = rg.value_and_grad(chain).graph(x)
    peaks = []
    for number in (1, 2):
        rg.config.threads = number
        made = Executable(graph)
        peaks.append(Simulation(made.plan).peak())
        assert measured(made, x) <= 1.02 * peaks[-1]
    assert peaks[0] < peaks[1] < 2 * peaks[0]


@pytest.mark.parametrize("number", [0, -1, 1.5, True, 1 << 16, 1 << 63])
def test_a_number_of_threads_that_no_system_starts_is_refused(number: Any) -> None:
    with pytest.raises(rg.errors.OptionError, match="choose a number from 1 to"):
        rg.config.threads = number
