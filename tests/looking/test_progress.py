"""Long work shows itself: loops that ask for it, and phases of the compiler."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import rich.console
import rich.progress

import retrograd as rg
from retrograd.compiler import phases
from retrograd.compiler.phases import Progress, during
from retrograd.looking import terminal
from retrograd.looking.terminal import TerminalLine, line

X = np.linspace(0.1, 1.0, 4)


@pytest.fixture
def at_once(monkeypatch):
    """Reports without waiting."""
    monkeypatch.setattr(phases, "PAUSE", 0.0)


def counted(run, *args):
    """What is heard of loops during a call."""
    heard: list[Progress] = []
    with rg.progress.listen(heard.append):
        run(*args)
    return [p for p in heard if p.phase in ("forward", "adjoint")]


def steps(heard, phase):
    return [(p.done, p.total, p.ended) for p in heard if p.phase == phase]


WHOLE = [(k, 6, k == 6) for k in range(1, 7)]
MEMORY = [None, rg.Snapshots(1), rg.Snapshots(3), rg.Log(), rg.Periodic(2), rg.Everything()]


@pytest.mark.parametrize("memory", MEMORY, ids=repr)
def test_each_step_is_told_once_forward_and_once_back(at_once, memory):
    def loss(x):
        return np.sum(rg.fori_loop(6, lambda i, y: np.sin(y) * 1.01, x, memory=memory, progress=True))

    plain = rg.grad(lambda x: np.sum(rg.fori_loop(6, lambda i, y: np.sin(y) * 1.01, x)))(X)
    heard = counted(rg.grad(loss), X)
    assert steps(heard, "forward") == WHOLE
    assert steps(heard, "adjoint") == WHOLE
    assert np.array_equal(rg.grad(loss)(X), plain)


def test_scan_tells_its_rows_and_while_loop_what_it_has_made(at_once):
    def scanned(x):
        return np.sum(rg.scan(lambda c, x: (c + x, c * x), 0.0, x, progress="rows")[1])

    heard = counted(rg.grad(scanned), np.arange(6.0))
    assert {p.what for p in heard} == {"rows"}
    assert steps(heard, "forward") == WHOLE

    def doubled(x):
        return np.sum(rg.while_loop(lambda y: y[0] < 5.0, lambda y: y * 2.0, x, progress=True))

    heard = counted(rg.grad(doubled), X)
    made = 6  # 0.1 · 2⁶ is the first that is not less than 5
    assert steps(heard, "forward") == [*((k, None, False) for k in range(1, made + 1)), (made, None, True)]
    assert steps(heard, "adjoint") == WHOLE


def test_loops_outside_of_compiled_functions_tell_too(at_once):
    heard = counted(lambda: rg.fori_loop(6, lambda i, x: np.sin(x), 1.0, progress=True))
    assert steps(heard, "forward") == WHOLE
    assert heard[0].what.startswith("fori_loop at test_progress.py:")


def test_steps_without_a_floating_point_carry_are_told(at_once):
    heard = counted(rg.jit(lambda x: rg.fori_loop(6, lambda i, c: c + i, x, progress=True)), np.array([1, 2]))
    assert steps(heard, "forward") == WHOLE
    heard = counted(rg.jit(lambda x: rg.scan(lambda c, x: (None, x + 1.0), None, x, progress=True)[1]), np.arange(6.0))
    assert [p.done for p in heard] == [1, 2, 3, 4, 5, 6]


def test_forward_mode_and_lanes_count_steps_once(at_once):
    def loss(x):
        return np.sum(rg.fori_loop(6, lambda i, y: np.sin(y), x, progress=True))

    assert steps(counted(rg.jacfwd(loss), X), "forward") == WHOLE
    assert steps(counted(rg.vmap(rg.grad(loss)), np.stack([X, X])), "adjoint") == WHOLE
    assert np.allclose(rg.hessian(loss)(X), np.diag(np.diag(rg.hessian(loss)(X))))


def test_loops_in_loops_tell_each_run(at_once):
    def loss(x):
        inner = lambda y: rg.fori_loop(2, lambda i, z: np.sin(z), y, progress="inner")  # noqa: E731 - it stands in a loop
        return np.sum(rg.fori_loop(3, lambda i, y: inner(y), x, progress="outer"))

    heard = [p for p in counted(rg.jit(loss), X) if p.what == "inner"]
    assert [p.done for p in heard] == [1, 2] * 3


def test_without_the_option_nothing_is_in_the_code():
    loss = lambda x: np.sum(rg.fori_loop(6, lambda i, y: np.sin(y), x))  # noqa: E731 - its source is looked at
    assert "tick" not in rg.grad(loss).source(X)


def test_the_exported_source_runs_alone_and_says_nothing():
    source = rg.grad(lambda x: np.sum(rg.fori_loop(6, lambda i, y: np.sin(y), x, progress=True))).source(X)
    program = f"{source}\nprint(lambda_grad(np.ones(4)))".replace("lambda_grad", source.split("def ")[-1].split("(")[0])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[")
    assert "retrograd" not in done.stderr


@pytest.mark.parametrize("name", ["a#b {c} %d", "'quotes\" \\", "line\nbreak", "ünïcode \x1b[31m"])
def test_names_of_loops_may_be_anything(at_once, name):
    f = rg.grad(lambda x: np.sum(rg.fori_loop(2, lambda i, y: np.sin(y), x, progress=name)))
    with rg.config(verify=2):  # text forms are read back
        heard = counted(f, X)
    assert {p.what for p in heard} == {name}
    assert "\x1b" not in line(heard[0])


def test_a_wrong_option_is_an_error():
    with pytest.raises(rg.errors.OptionError, match="progress=3"):
        rg.fori_loop(2, lambda i, x: x, 1.0, progress=3)
    with pytest.raises(rg.errors.OptionError, match="must be callable"), rg.progress.listen(3):
        pass


def test_a_run_after_an_interrupted_one_begins_anew(at_once):
    def stopping(progress):
        if progress.done == 3:
            raise KeyboardInterrupt

    f = rg.jit(lambda x: rg.fori_loop(6, lambda i, y: np.sin(y), x, progress=True))
    with rg.progress.listen(stopping), pytest.raises(KeyboardInterrupt):
        f(X)
    assert steps(counted(f, X), "forward") == WHOLE


def test_a_listener_that_fails_is_warned_of_once_and_the_work_goes_on(at_once):
    calls = []

    def failing(progress):
        calls.append(progress)
        raise ValueError("full disk")

    f = rg.grad(lambda x: np.sum(rg.fori_loop(6, lambda i, y: np.sin(y), x, progress=True)))
    expected = f(X)
    with rg.progress.listen(failing), pytest.warns(RuntimeWarning, match="full disk") as told:
        assert np.array_equal(f(X), expected)
    assert len(calls) == len(told) == 1


def test_nobody_listens_where_that_is_said(at_once, monkeypatch):
    heard: list[Progress] = []
    monkeypatch.setattr(phases, "OTHERWISE", [lambda: heard.append])
    f = rg.jit(lambda x: rg.fori_loop(6, lambda i, y: np.sin(y), x, progress=True))
    with rg.progress.listen(None):
        f(X)
    assert heard == []
    f(X)
    assert heard


def test_threads_count_apart(at_once):
    f = rg.jit(lambda x: rg.fori_loop(200, lambda i, y: np.sin(y), x, progress=True))
    f(X)
    found: dict[int, list[Progress]] = {}

    def run(k):
        found[k] = counted(f, X)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all([p.done for p in heard] == [*range(1, 201)] for heard in found.values())


# --- phases of the compiler ---------------------------------------------------------------------------------


def test_phases_that_last_are_told_and_others_are_not(at_once, monkeypatch):
    monkeypatch.setattr(phases, "PATIENCE", 0.05)
    heard: list[Progress] = []
    with rg.progress.listen(heard.append):
        with during("planning", "short"):
            pass
        with during("planning", "long", lambda: 5, 10):
            while not heard:
                time.sleep(0.005)
    assert {p.what for p in heard} == {"long"}
    assert heard[0].done == 5
    assert heard[0].left is not None
    assert [p.ended for p in heard] == [*[False] * (len(heard) - 1), True]


def test_recording_folding_planning_and_compilation_are_phases(at_once, monkeypatch):
    monkeypatch.setattr(phases, "PATIENCE", 0.0)
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(phases._clock, "add", lambda work: told.append((work.phase, work.what)))
    monkeypatch.setattr(phases._clock, "remove", lambda work: None)

    def loss(x):
        for _ in range(120):
            x = np.sin(x) * 1.01
        return np.sum(x)

    with rg.progress.listen(lambda progress: None):
        rg.grad(loss, memory="10 kB")(X)
    assert ("tracing", "loss") in told
    assert ("folding", "loss") in told
    assert {phase for phase, _ in told} == {"tracing", "folding", "planning", "compilation"}


def test_a_recording_tells_how_many_operations_it_has(at_once, monkeypatch):
    monkeypatch.setattr(phases, "PATIENCE", 0.0)
    heard: list[Progress] = []

    def slow(x):
        for _ in range(5):
            x = np.sin(x)
        while not any(p.phase == "tracing" and p.done >= 5 for p in heard):
            time.sleep(0.005)
        return np.sum(x)

    with rg.progress.listen(heard.append):
        rg.grad(slow)(X)
    assert any(p.what == "slow" and p.ended for p in heard)


def test_a_phase_that_fails_is_ended(at_once, monkeypatch):
    monkeypatch.setattr(phases, "PATIENCE", 0.0)
    heard: list[Progress] = []

    def fail():
        with during("planning", "failing"):
            while not heard:
                time.sleep(0.005)
            raise ZeroDivisionError

    with rg.progress.listen(heard.append), pytest.raises(ZeroDivisionError):
        fail()
    assert heard[-1].ended
    assert phases._clock.works == []


# --- adapters -----------------------------------------------------------------------------------------------

LOOP = [Progress("loop", "forward", k, 4, float(k), 4.0 - k, k == 4) for k in range(1, 5)]


def test_bars_of_tqdm():
    out = io.StringIO()
    listener = rg.progress.tqdm(file=out)
    for report in LOOP:
        listener(report)
    assert "loop: forward" in out.getvalue()
    assert "4/4" in out.getvalue()


def test_bars_of_rich():
    out = io.StringIO()
    display = rich.progress.Progress(console=rich.console.Console(file=out, force_terminal=True, width=100))
    listener = rg.progress.rich(display)
    with display:
        for report in LOOP:
            listener(report)
            assert len(display.tasks) == (0 if report.ended else 1)
    assert "loop: forward" in out.getvalue()


def test_a_terminal_gets_a_line_that_goes():
    out = io.StringIO()
    listener = TerminalLine(out)
    for report in LOOP:
        listener(report)
    assert "loop: forward ######" in out.getvalue()
    assert out.getvalue().endswith("\r")
    assert out.getvalue().rsplit("\r", 2)[1].strip() == ""


PROGRAM = """
import numpy as np, retrograd as rg
from retrograd.compiler import phases
phases.PAUSE = 0.0
rg.fori_loop(3, lambda i, x: np.sin(x), 1.0, progress="sines")
"""


def test_a_process_in_a_terminal_shows_its_loops_and_one_without_shows_nothing():
    quiet = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert quiet.stdout + quiet.stderr == ""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=theirs, stdout=subprocess.DEVNULL) as run:
        assert run.wait(60) == 0
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "sines: forward" in shown
    assert "3/3" not in shown  # at the end the line goes


def test_whether_there_is_a_terminal_is_asked_again_for_another_stream(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    assert terminal.on_terminal() is not None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert terminal.on_terminal() is None


def test_warnings_of_listeners_are_the_only_ones(at_once):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counted(rg.jit(lambda x: rg.fori_loop(3, lambda i, y: np.sin(y), x, progress=True)), X)
