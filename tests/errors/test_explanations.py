"""Every error has an explanation whose programs do what it says."""

from __future__ import annotations

import runpy

import pytest

from retrograd.cli import main
from retrograd.distributed import faults
from retrograd.reports.explain import codes, explanations

pytestmark = pytest.mark.whole  # a case takes milliseconds

FAULTS = [x for x in vars(faults).values() if isinstance(x, type) and issubclass(x, faults.DistributedError)]
FAMILIES = {"RG0000", "RG0100", "RG0200"}  # what is raised is one of theirs
each_code = pytest.mark.parametrize("code", sorted(codes()))


def run(program: str, tmp_path):
    file = tmp_path / "program.py"  # a file of its own, so that its lines can be named
    file.write_text(program, encoding="utf-8")
    runpy.run_path(str(file))


@each_code
def test_the_wrong_program_raises_it(code, tmp_path):
    with pytest.raises(codes()[code]) as caught:
        run(explanations()[code].wrong, tmp_path)
    assert code in FAMILIES or caught.value.code == code


@each_code
def test_the_mended_program_runs(code, tmp_path):
    run(explanations()[code].right, tmp_path)


def test_the_page_names_each_class_once():
    assert {code: e.name for code, e in explanations().items()} == {code: cls.__name__ for code, cls in codes().items()}


@pytest.mark.parametrize("asked", ["RG0203", "rg0203", "TracerConversionError"])
def test_the_command_explains_a_code_or_a_name(asked, capsys):
    assert main(["errors", asked]) == 0
    said = capsys.readouterr().out
    assert said.startswith("RG0203  TracerConversionError\n")
    assert "    import numpy as np\n" in said


def test_the_command_lists_all_errors(capsys):
    assert main(["errors"]) == 0
    assert all(code in said for said in [capsys.readouterr().out] for code in codes())


def test_the_command_refuses_an_unknown_code(capsys):
    assert main(["errors", "RG9999"]) == 2
    assert "there is no error 'RG9999'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", FAULTS)
def test_errors_of_other_processes_are_explained_and_listed(kind, capsys):
    for asked in (kind.code, kind.__name__):
        assert main(["errors", asked]) == 0
        said = capsys.readouterr().out
        assert said.startswith(f"{kind.code}  {kind.__name__}\n")
        assert (kind.__doc__ or "").splitlines()[0] in said
    assert main(["errors"]) == 0
    assert f"{kind.code}  " in capsys.readouterr().out
