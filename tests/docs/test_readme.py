"""The README's example prints what the README says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import retrograd as rg
from retrograd.cli import main

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(python|text)\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    file = tmp_path / "spring.py"
    file.write_text(BLOCKS[0][1], encoding="utf-8")
    return file


def test_the_example_prints_what_is_shown(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example))
    assert capsys.readouterr().out == BLOCKS[1][1]


def test_the_source_is_what_is_shown(example: Path) -> None:
    scope = runpy.run_path(str(example))
    source = rg.grad(scope["energy"], argnums=1).source(2.0, scope["x"])
    assert source.endswith(BLOCKS[2][1])


def test_the_command_shows_the_source(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", f"{example}:energy", "--arg", "float", "--arg", "f64[3]", "--emit", "source"]) == 0
    assert "def energy_grad(k, x):" in capsys.readouterr().out
