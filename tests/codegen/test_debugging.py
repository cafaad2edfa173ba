"""Generated code can be read, stepped through and profiled like any other, and its faults name the user's line."""

from __future__ import annotations

import cProfile
import inspect
import io
import linecache
import pdb  # noqa: T100 - the debugger itself is under test
import pstats
import sys
import traceback
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.executable import Executable
from retrograd.ir import parse

GRAPH = parse("""
graph energy(%a: f64[3,3], %x: f64[3]) {
  %y = matmul %a, %x : f64[3]  # model.py:4
  %z = sin %y : f64[3]  # model.py:5
  return %z
}""")


@pytest.fixture
def executable() -> Executable:
    return Executable(GRAPH)


def fault_of(executable: Executable, *args: Any) -> Exception:
    with pytest.raises(ValueError, match="matmul") as caught:
        executable(*args)
    return caught.value


def test_a_traceback_shows_the_generated_line(executable: Executable) -> None:
    fault = fault_of(executable, np.ones((3, 3)), np.ones(4))
    text = "".join(traceback.format_exception(fault))
    assert f'File "{executable.filename}", line 10, in energy' in text
    assert "    y = a @ x" in text


def test_a_fault_carries_a_note_with_the_user_s_line(executable: Executable) -> None:
    fault = fault_of(executable, np.ones((3, 3)), np.ones(4))
    assert fault.__notes__ == ["in compiled code for model.py:4"]


def test_the_note_tells_the_whole_path() -> None:
    def program(x: Any) -> Any:
        y = x * 2.0
        return np.sqrt(y)

    compiled = rg.grad(lambda x: np.sum(program(x)))
    compiled(np.ones(3))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError) as caught:  # only the derivative fails at 0
        compiled(np.zeros(3))
    line = inspect.getsourcelines(program)[1] + 2
    assert caught.value.__notes__ == [f"in compiled code for {__file__}:{line}"]


def test_every_generated_line_stands_for_the_line_in_its_comment() -> None:
    def program(x: Any) -> Any:
        total = np.zeros(3)
        for k in range(3):
            total[k] = np.sin(x[k]) * total[k - 1]
        return np.sum(total)

    module = rg.grad(program).executable(np.ones(3)).module
    lines = module.source.splitlines()
    assert module.lines
    for number, where in module.lines.items():
        assert lines[number - 1].endswith(f"  # {where.short}")
    commented = [i + 1 for i, line in enumerate(lines) if "  # " in line]
    assert sorted(module.lines) == commented


def test_the_name_of_the_file_begins_with_generated(executable: Executable) -> None:
    assert executable.filename.startswith("<generated energy")
    assert executable.function.__code__.co_filename == executable.filename
    assert Executable(GRAPH).filename != executable.filename


def test_inspect_finds_the_source(executable: Executable) -> None:
    found = inspect.getsource(executable.function)
    assert found.startswith("def energy(a, x):\n")
    assert found in executable.module.source
    assert inspect.getsourcefile(executable.function) == executable.filename


def test_the_source_stays_in_the_line_cache_when_that_is_checked(executable: Executable) -> None:
    linecache.checkcache()
    assert linecache.getline(executable.filename, 9) == "def energy(a, x):\n"
    assert linecache.getline(executable.filename, 10).startswith("    y = a @ x ")


def test_the_debugger_steps_through_it(executable: Executable) -> None:
    commands = io.StringIO("next\nlist\nnext\np y.shape\ncontinue\n")
    output = io.StringIO()
    debugger = pdb.Pdb(stdin=commands, stdout=output, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    trace = sys.gettrace()
    try:
        debugger.runcall(executable.function, np.eye(3), np.ones(3))
    finally:
        sys.settrace(trace)
    text = output.getvalue()
    assert "-> y = a @ x" in text
    assert "->\t    z = np.sin(y)" in text
    assert "(3,)" in text


def test_the_profiler_names_it(executable: Executable) -> None:
    profile = cProfile.Profile()
    profile.runcall(executable.function, np.eye(3), np.ones(3))
    names = {(file, function) for file, _, function in pstats.Stats(profile).stats}
    assert (executable.filename, "energy") in names


def test_a_fault_deep_inside_a_called_function_is_annotated_too() -> None:
    graph = parse("""
graph outer(%a: f64[3,3], %x: f64[3]) {
  %0 = call %a, %x : f64[3]  # model.py:9
    body = graph inner(%a: f64[3,3], %x: f64[3]) {
      %0 = matmul %a, %x : f64[3]  # model.py:2
      return %0
    }
  return %0
}""")
    notes = fault_of(Executable(graph), np.ones((3, 3)), np.ones(4)).__notes__
    assert notes == [f"in compiled code for model.py:{n}" for n in (9, 2)]


def test_a_fault_in_a_loop_points_into_its_body() -> None:
    graph = parse("""
graph f(%a: f64[3,3], %x: f64[3]) {
  %0 = scan %a, %x {arrays=0, carry=1, consts=1, length=3, reverse=False} : f64[3]  # model.py:9
    body = graph step(%a: f64[3,3], %x: f64[3]) {
      %0 = matmul %a, %x : f64[3]  # model.py:2
      return %0
    }
  return %0
}""")
    notes = fault_of(Executable(graph), np.ones((3, 3)), np.ones(4)).__notes__
    assert notes == ["in compiled code for model.py:2"]
