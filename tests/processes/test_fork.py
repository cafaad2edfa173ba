"""A child that is forked while other threads trace computes, and finds NumPy as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd as rg

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")

SCRIPT = """
import os, select, sys, threading, time, warnings
import numpy as np
from numpy import zeros
from types import ModuleType
import retrograd as rg

warnings.simplefilter("ignore")  # later Pythons warn that other threads run
sys.setswitchinterval(1e-5)
rg.config.cache_size = 0  # each program is traced, although all have the same code
X = np.array([0.5, -1.0, 2.0])
shared = rg.grad(lambda x: np.sum(np.tanh(x) * x))
stop = threading.Event()


def program(k):
    def f(x):
        table = zeros(3)
        table[0] = float(x[1])
        for _ in range(20):
            x = np.sin(x) * np.ones(3) + k
        return np.sum(x) + table[0]
    return f


def busy():
    k = 0
    while not stop.is_set():
        k += 1
        rg.grad(program(k))(X)
        shared._cache.clear()
        shared(X)


def child(write):
    ok = type(np) is ModuleType and type(np.linalg) is ModuleType and not hasattr(zeros, "original")
    ok = ok and type(np.zeros(2)) is np.ndarray and "float" not in globals()
    ok = ok and np.allclose(shared(X), np.tanh(X) + X / np.cosh(X) ** 2)
    ok = ok and np.array_equal(rg.grad(lambda x: np.sum(x * x * np.ones(3)))(X), 2 * X)
    ok = ok and np.array_equal(rg.jit(rg.hessian(lambda x: np.sum(x**2)))(X), 2 * np.eye(3))
    ok = ok and type(np) is ModuleType
    os.write(write, b"y" if ok else b"n")
    os._exit(0)


threads = [threading.Thread(target=busy) for _ in range(4)]
for t in threads:
    t.start()
time.sleep(0.2)
answers, swapped = "", 0
for _ in range(int(sys.argv[1])):
    time.sleep(0.003)
    read, write = os.pipe()
    swapped += type(np) is not ModuleType
    pid = os.fork()
    if pid == 0:
        child(write)
    ready = select.select([read], [], [], 30)[0]
    os.close(write)
    if ready:
        answers += os.read(read, 1).decode() or "d"
    else:
        answers += "h"
        os.kill(pid, 9)
    os.close(read)
    os.waitpid(pid, 0)
stop.set()
for t in threads:  # a thread that Python ends inside of C++ code would abort the process
    t.join()
print(answers, swapped)
"""


def printed(arguments: list[str], *folders: Path) -> str:
    """What Python prints that runs with these arguments, and finds modules in these folders, too."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (Path(rg.__file__).parents[1], *folders)))},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def answers(count: int, tmp_path: Path) -> tuple[str, int]:
    """For each child whether it was right (y), wrong (n), dead (d) or hung (h); and how many began in a trace."""
    script = tmp_path / "forking.py"
    script.write_text(SCRIPT)
    found, swapped = printed([str(script), str(count)]).split()
    return found, int(swapped)


def test_forked_children_are_right(tmp_path: Path) -> None:
    found, swapped = answers(8, tmp_path)
    assert found == "y" * 8
    assert swapped > 0  # else nothing is tested


WHILE_IMPORTING = """
import os, sys, threading, time
import numpy as np
import retrograd as rg

X = np.array([0.5, -1.0, 2.0])
begun = threading.Event()


class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "jinja2" and threading.current_thread() is not threading.main_thread():
            begun.set()
            time.sleep(0.5)


sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=lambda: rg.grad(lambda x: np.sum(np.sin(x)))(X))
thread.start()
begun.wait()
pid = os.fork()
if pid == 0:
    os._exit(not np.array_equal(rg.grad(lambda x: np.sum(x * x))(X), 2 * X))
for _ in range(1000):
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        break
    time.sleep(0.01)
else:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    status = "hung"
thread.join()
print(status)
"""

WHILE_IMPORTED = """
import os, threading
import numpy as np
import retrograd as rg
from retrograd.compiler import forks

forks.PATIENCE = float("inf")
X = np.array([0.5, -1.0, 2.0])


def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def f(x):
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    return np.sum(x)


rg.grad(f)(X)
print("forked")
"""


def imported(script: str, module: str, tmp_path: Path) -> str:
    """What a program prints that is the import of a module."""
    (tmp_path / f"{module}.py").write_text(script)
    return printed(["-W", "ignore", "-c", f"import {module}"], tmp_path)


def test_a_fork_waits_for_what_other_threads_import(tmp_path: Path) -> None:
    assert imported(WHILE_IMPORTING, "forks_while_importing", tmp_path) == "0"


def test_a_fork_does_not_wait_for_a_program_that_runs_while_it_is_imported(tmp_path: Path) -> None:
    assert imported(WHILE_IMPORTED, "forks_while_imported", tmp_path) == "forked"


@pytest.mark.slow
def test_sixty_of_sixty_forked_children_are_right(tmp_path: Path) -> None:
    found, swapped = answers(60, tmp_path)
    assert found == "y" * 60
    assert swapped > 20
