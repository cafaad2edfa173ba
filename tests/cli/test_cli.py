"""``python -m retrograd``: what it prints, and what it says of wrong arguments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import retrograd as rg
from retrograd.cli import EMITS, main

PROGRAM = """
import numpy as np
import retrograd as rg

def f(x, a):
    return np.sum(np.sin(x) * a)

g = rg.grad(f)
"""


@pytest.fixture
def target(tmp_path: Path) -> str:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return f"{file}:f"


def show(target: str, *options: str) -> int:
    return main(["show", target, "--arg", "f64[3,2]", "--arg", "float", *options])


def test_ir_parses_back(target, capsys):
    assert show(target, "--emit", "ir") == 0
    text = capsys.readouterr().out
    assert str(rg.ir.parse(text)) == text
    assert "sin %x" in text


def test_grad_ir_is_the_graph_of_the_gradient(target, capsys):
    assert show(target, "--emit", "grad-ir") == 0
    assert capsys.readouterr().out.startswith("graph f_grad(%x: f64[3,2], %a: float)")


def test_source_is_a_module(target, capsys):
    assert show(target) == 0
    scope: dict = {}
    exec(capsys.readouterr().out, scope)
    assert callable(scope["f_grad"])


def test_dot_is_a_digraph(target, capsys):
    assert show(target, "--emit", "dot") == 0
    assert capsys.readouterr().out.startswith('digraph "f" {')


def test_a_compiled_function_is_shown_as_the_plain_one(target, capsys):
    assert show(target.removesuffix("f") + "g", "--emit", "ir") == 0
    assert "graph f(" in capsys.readouterr().out


def test_a_file_is_imported_and_its_main_part_does_not_run(tmp_path, capsys):
    file = tmp_path / "script.py"
    file.write_text(f"{PROGRAM}\nif __name__ == '__main__':\n    raise SystemExit('the main part runs')\n")
    assert show(f"{file}:f") == 0
    assert "def f_grad(" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["show", "nothing"], "is not a function"),
        (["show", "no.such.module:f"], "cannot load"),
        (["show", "math:nothing"], "cannot load"),
        (["show", "math:sin", "--arg", "f65[3]"], "is neither a type nor a value"),
        (["opt", "no/such/file.ir"], "cannot read"),
    ],
)
def test_wrong_arguments_end_in_a_message_and_status_2(arguments, complaint, capsys):
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert complaint in said.err
    assert not said.out


def test_opt_runs_passes_on_text(tmp_path, capsys):
    file = tmp_path / "graph.ir"
    file.write_text(str(rg.trace(lambda x: -(0.0 - x) * 1.0)(2.0)), encoding="utf-8")
    assert main(["opt", str(file), "-p", "simplify,prune"]) == 0
    assert "const {value=1.0}" not in capsys.readouterr().out


@pytest.mark.parametrize("text", ["graph f(%x: f65) {", "graph f(%x: f64) {\n  %0 = sin %y : f64\n  return %0\n}\n"])
def test_a_graph_with_a_mistake_is_no_fault_of_retrograd(text, tmp_path, capsys):
    file = tmp_path / "graph.ir"
    file.write_text(text, encoding="utf-8")
    assert main(["opt", str(file)]) == 2
    said = capsys.readouterr().err
    assert "does not contain a graph" in said
    assert "report" not in said
    assert "[RG09" not in said


@pytest.mark.parametrize("argument", ["3.5", "k=float", "k=3.5"])
@pytest.mark.parametrize("emit", EMITS)
def test_show_takes_types_values_and_keywords(argument, emit, tmp_path, capsys):
    file = tmp_path / "model.py"
    file.write_text("import numpy as np\ndef loss(x, k):\n    return np.sum(x * k)\n", encoding="utf-8")
    assert main(["show", f"{file}:loss", "--arg", "f64[10]", "--arg", argument, "--emit", emit]) == 0
    assert "k" in capsys.readouterr().out


def test_opt_transposes_a_linear_graph(tmp_path, capsys):
    file = tmp_path / "graph.ir"
    file.write_text("graph f(%x: f64[3]) {\n  %0 = neg %x : f64[3]\n  return %0\n}\n", encoding="utf-8")
    assert main(["opt", str(file), "-p", "transpose"]) == 0
    assert "graph f_adjoint(%ct: f64[3])" in capsys.readouterr().out


def test_opt_refuses_a_branch_on_the_linear_input(tmp_path, capsys):
    body = "graph f(%x: f64) {\n      return %x\n    }\n"
    file = tmp_path / "graph.ir"
    file.write_text(
        "graph f(%x: f64) {\n  %0 = const {value=0.0} : float\n  %1 = gt %x, %0 : b8\n  %2 = cond %1, %x : f64\n"
        f"    branch0 = {body}    branch1 = {body}  return %2\n}}\n",
        encoding="utf-8",
    )
    assert main(["opt", str(file), "-p", "transpose"]) != 0
    assert "cond is not linear in operand 0" in capsys.readouterr().err


def test_opt_names_the_passes_it_knows(tmp_path, capsys):
    file = tmp_path / "graph.ir"
    file.write_text("graph f(%x: f64) {\n  return %x\n}\n", encoding="utf-8")
    assert main(["opt", str(file), "-p", "nonsense"]) == 2
    assert "simplify" in capsys.readouterr().err


def test_the_version_is_that_of_the_face(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--version"])
    assert capsys.readouterr().out == f"retrograd {rg.__version__}\n"


def test_the_module_runs(target):
    command = [sys.executable, "-m", "retrograd", "show", target, "--arg", "f64[2]", "--arg", "float"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "def f_grad(x, a):" in done.stdout


def test_show_says_which_arguments_need_types(tmp_path, capsys):
    path = tmp_path / "model.py"
    path.write_text("import numpy as np\ndef loss(w, x):\n    return np.sum(w * x)\n")
    assert main(["show", f"{path}:loss"]) == 2
    said = capsys.readouterr().err
    assert "the parameters (w, x)" in said
    assert "--arg" in said
    assert "__main__" not in said


def test_show_of_the_gradient_in_some_arguments(tmp_path, capsys):
    path = tmp_path / "model.py"
    path.write_text("import numpy as np\ndef loss(w, x):\n    return np.sum(np.sin(w) * x)\n")
    shown = []
    for argnums in ("1", "x", "0,1"):
        command = ["show", f"{path}:loss", "--arg", "f64[3]", "--arg", "f64[3]", "--emit", "grad-ir"]
        assert main([*command, "--argnums", argnums]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "cos" not in shown[0]
    assert "cos" in shown[2]
    assert main(["show", f"{path}:loss", "--arg", "float", "--arg", "float", "--argnums", "7"]) == 2


def test_opt_refuses_what_is_no_text(tmp_path, capsys):
    file = tmp_path / "f.ir"
    file.write_bytes(b"\xff\xfe graph")
    assert main(["opt", str(file)]) == 2
    assert "cannot read" in capsys.readouterr().err
