"""The commands that look inside: what they print, and the status that they end with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd as rg
from retrograd.cli import ABOUT, COMMANDS, main, parsed, parser
from retrograd.looking import doctor
from retrograd.looking.completion import SHELLS, completion

PROGRAM = """
import json
import numpy as np
import retrograd as rg
from scipy.integrate import quad


class Model:
    def __init__(self, k):
        self.k = k

    def energy(self, x):
        return 0.5 * self.k * np.sum(x**2)

    def saved(self, x):
        return json.dumps(list(x))


def loss(x, n=2):
    return np.sum(np.sin(x) ** n)


def area(a):
    return quad(lambda t: t * a, 0, 1)[0]


def masked(x):
    return np.ma.masked_array(x, x > 0).sum()


def kinked(x):
    return np.sum(np.abs(x - x))


def fails(x):
    raise ValueError("never")


def steps(n):
    for k in range(n):
        yield k


compiled = rg.value_and_grad(loss)

if __name__ == "__main__":
    import sys
    x = np.linspace(-1, 1, 5)
    Model(2.0).energy(x)
    Model(2.0).saved(x)
    loss(x), masked(x), area(2.0), list(steps(3))
    print("said by the program", sys.argv[1:])
    if "stop" in sys.argv:
        raise SystemExit(3)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return file


def out(capsys, *arguments: object) -> str:
    assert main([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_explain_shows_what_the_member_shows(program, capsys):
    shown = out(capsys, "explain", f"{program}:loss", "--arg", "f64[3]", "--arg", "n=3")
    for title in ("inputs:", "cost by line:", "decisions:", "gradient check:", "agrees with central differences"):
        assert title in shown
    assert "n = 3" in shown


def test_a_compiled_function_is_taken_as_it_is(program, capsys):
    assert "<value_and_grad of loss>" in out(capsys, "profile", f"{program}:compiled", "--arg", "f64[3]")
    shown = out(capsys, "profile", f"{program}:compiled", "--arg", "f64[3]", "--transform", "jit")
    assert "<jit of loss>" in shown


def test_report_writes_a_page(program, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert "is written" in out(capsys, "report", f"{program}:loss", "--arg", "f64[3]", "-o", page, "--no-check")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["report", f"{program}:loss", "--arg", "f64[3]", "-o", str(tmp_path / "no" / "page.html")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_source_is_a_module_of_the_transform(program, capsys):
    scope: dict = {}
    exec(out(capsys, "source", f"{program}:loss", "--arg", "f64[3]", "--transform", "jit"), scope)
    assert callable(scope["loss"])


def test_plan_tells_the_peak_and_the_curve(program, capsys):
    shown = out(capsys, "plan", f"{program}:loss", "--arg", "f64[300]")
    assert "peak" in shown
    assert "memory=" not in shown
    assert "memory=" in out(capsys, "plan", f"{program}:loss", "--arg", "f64[300]", "--curve")


def test_check_agrees_or_ends_with_status_1(program, tmp_path, capsys):
    assert "orders 1 to 2 agree" in out(capsys, "check", f"{program}:loss", "--arg", "f64[3]", "--arg", "3")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import numpy as np, retrograd as rg\n@rg.custom_vjp\ndef f(x):\n    return np.sum(x**2)\n"
        "f.defvjp(lambda x: (np.sum(x**2), x), lambda x, ct: (x * ct,))\n"
    )
    assert main(["check", f"{wrong}:f", "--arg", "f64[3]", "--order", "1"]) == 1
    assert "differences give" in capsys.readouterr().out


def test_a_rule_of_the_users_own_is_not_taken_off(tmp_path, capsys):
    file = tmp_path / "ruled.py"
    file.write_text(
        "import numpy as np, retrograd as rg\n@rg.custom_vjp\ndef f(x):\n    return np.sum(x**2)\n"
        "f.defvjp(lambda x: (np.sum(x**2), x), lambda x, ct: (np.tanh(x) * ct,))\n"
    )
    assert "np.tanh" in out(capsys, "show", f"{file}:f", "--arg", "f64[3]")
    assert "np.tanh" in out(capsys, "source", f"{file}:f", "--arg", "f64[3]")


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--argnums", "7"], "is not a position"),
        (["--argnums", "x"], "is not a position"),
        (["--arg", "f64[3]", "--arg", "3", "--arg", "4"], "do not fit the parameters (x, n=2)"),
        (["--arg", "nonsense"], "neither a type nor a value"),
    ],
)
def test_wrong_arguments_of_check(program, more, complaint, capsys):
    assert main(["check", f"{program}:loss", "--arg", "f64[3]", *more]) == 2
    assert complaint in capsys.readouterr().err


def test_errors_of_the_program_come_without_tracebacks(program, capsys):
    assert main(["explain", f"{program}:fails", "--arg", "float"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ValueError: never\n  at ")
    assert "program.py:" in said
    assert "Traceback" not in said
    assert main(["--traceback", "explain", f"{program}:fails", "--arg", "float"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_file_that_does_not_parse_or_ends_itself(tmp_path, capsys):
    file = tmp_path / "broken.py"
    file.write_text("def f(:\n")
    assert main(["explain", f"{file}:f"]) == 2
    assert "SyntaxError" in capsys.readouterr().err
    file.write_text("raise SystemExit(5)\n")
    assert main(["explain", f"{file}:f"]) == 2
    assert "exits with status 5" in capsys.readouterr().err


def test_an_error_of_ours_names_no_line_of_the_command_line(program, tmp_path):
    command = [sys.executable, "-m", "retrograd", "explain", f"{program}:steps", "--arg", "float"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "__main__.py" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_is_no_error(program):
    command = f"{sys.executable} -m retrograd errors | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_audit_reads_without_running(program, capsys):
    assert main(["audit", str(program)]) == 1
    shown = capsys.readouterr().out
    assert "said by the program" not in shown
    assert "json.dumps is not traced" in shown
    assert "scipy.integrate.quad is not traced" in shown
    assert "numpy.ma.masked_array is not traced" in shown
    line = PROGRAM.splitlines().index("    return quad(lambda t: t * a, 0, 1)[0]") + 1
    assert f"program.py:{line}" in shown
    assert "3 may block" in shown
    assert "nothing was run" in shown


def test_audit_runs_a_program_and_records_its_functions(program, capsys):
    assert main(["audit", str(program), "--run", "--", "word"]) == 1
    said = capsys.readouterr()
    rows = {line.split()[-2]: line for line in said.out.splitlines() if "program.py:" in line and "  at" not in line}
    assert "has derivatives" in rows["Model.energy"]
    assert "has derivatives" in rows["loss"]
    assert "blocks" in rows["area"]
    assert "blocks" in rows["masked"]
    assert "blocks" in rows["Model.saved"]
    assert "remedy" in said.out
    assert "it is a generator" in said.out
    assert "said by the program ['word']" in said.err


def test_audit_judges_what_ran_before_a_program_ended(program, capsys):
    assert main(["audit", str(program), "--run", "--", "stop"]) == 1
    shown = capsys.readouterr().out
    assert "exited with status 3" in shown
    assert "has derivatives" in shown


HALF_MADE = """
import numpy as np
import retrograd as rg
from dataclasses import dataclass, field


@dataclass
class Options:
    scale: float
    twice: float = field(init=False)

    def __post_init__(self):
        self.twice = 2.0 * self.scale


class Model:
    def __init__(self, w):
        self.w = w

    def energy(self, x):
        return np.sum(self.w * x**2)


def loss(w, x):
    def step(i, c):
        return c * 0.5

    return Model(w).energy(rg.fori_loop(3, step, x)) * Options(1.0).twice


print(rg.grad(loss)(np.ones(3), np.ones(3)))
"""


def test_audit_runs_a_program_that_takes_derivatives(tmp_path, monkeypatch, capsys):
    (tmp_path / "program.py").write_text(HALF_MADE)
    monkeypatch.chdir(tmp_path)
    assert main(["audit", "program.py", "--run"]) == 0
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines() if "program.py:" in line]
    found = {row[-2] if row[0] != "not" else row[2]: row for row in rows}
    names = {"loss", "loss.<locals>.step", "Model.__init__", "Model.energy", "Options.__post_init__"}
    assert set(found) == names  # and nothing of Python's, such as importlib
    assert len(rows) == len(found)  # nothing twice
    assert found["loss"][:2] == found["Model.energy"][:2] == ["has", "derivatives"]
    assert found["loss.<locals>.step"][0] == "traces"


def test_audit_of_a_program_that_fails_ends_with_status_1(tmp_path, capsys):
    (tmp_path / "program.py").write_text("raise ValueError('mine')\n")
    assert main(["audit", str(tmp_path / "program.py"), "--run"]) == 1
    assert "the program raised ValueError: mine" in capsys.readouterr().out


def test_audit_of_what_traces_ends_with_status_0(tmp_path, capsys):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "good.py").write_text("import numpy as np\ndef f(x):\n    return np.sin(x)\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "bad.py").write_text("import json\ndef g(x):\n    return json.dumps(x)\n")
    assert "1 not tried" in out(capsys, "audit", tmp_path)


def test_audit_goes_on_after_a_file_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "bad.py").write_bytes(b"\xff\xfe")
    (tmp_path / "good.py").write_text("def f(x):\n    return x\n")
    shown = out(capsys, "audit", tmp_path)
    assert "cannot be read" in shown
    assert "good.py:1" in shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["no/such/path"], "there is nothing at"), (["."], "no Python file"), ([".", "--run"], "needs one file")],
)
def test_wrong_paths_of_audit(arguments, complaint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["audit", *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_the_profiler_that_was_set_is_set_again(program, capsys):
    def mine(frame, event, arg):
        return None

    sys.setprofile(mine)
    try:
        main(["audit", str(program), "--run"])
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(None)


def test_doctor_finds_nothing_wrong_here(capsys):
    shown = out(capsys, "doctor")
    assert rg.__version__ in shown
    assert "a derivative  is correct" in shown
    assert "fault" not in shown


def test_doctor_finds_what_is_too_old_or_missing(capsys, monkeypatch):
    wanted = ["numpy>=99.1", "no-such-package-at-all>=1", "scipy>=1; extra == 'scipy'"]
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: wanted)
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert shown.count("fault") == 2
    assert "not installed, requires >=1" in shown


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_examples_that_parse(name, capsys):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert "examples:" in capsys.readouterr().out
    for example in ABOUT[name][1]:
        if not example.startswith(("eval", "retrograd")):
            words = example.partition(" < ")[0].split()
            assert parsed(words).command == name


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_every_command(shell, capsys):
    script = out(capsys, "completion", shell)
    assert all(name in script for name in COMMANDS)
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", "-c", script], check=True, capture_output=True)


def test_bash_completes_commands_options_and_values():
    script = completion(parser(), "bash")

    def completed(*words: str) -> set[str]:
        ask = f'COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _retrograd; echo "${{COMPREPLY[@]}}"'
        run = subprocess.run(
            ["bash", "-c", f"{script}\n{ask}"],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": os.environ["PATH"]},
        )
        return set(run.stdout.split())

    assert completed("retrograd", "ex") == {"explain", "export"}
    assert completed("retrograd", "show", "--em") == {"--emit"}
    assert completed("retrograd", "show", "--emit", "grad") == {"grad-dot", "grad-ir"}
