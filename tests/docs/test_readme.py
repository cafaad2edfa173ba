"""The README's programs print what the README says, its picture is current, and its figures are the benchmark's."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from retrograd.cli import main
from tests.support.doctested import failures

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(python|text)\n(?!>>>)(.*?)```", README, re.DOTALL)
PICTURES = ROOT / "docs" / "pictures.py"
TIME = re.compile(r"[\d.]+ [mµ]?s")
ROW = re.compile(r"^\| (.*?) \|(.*)\|$", re.MULTILINE)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    file = tmp_path / "spring.py"
    file.write_text(BLOCKS[0][1], encoding="utf-8")
    return file


def test_the_example_prints_what_is_shown(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example))
    assert capsys.readouterr().out == BLOCKS[1][1]


def test_the_other_programs_print_what_is_shown() -> None:
    assert README.count(">>> import retrograd as rg") == 1
    assert failures(README, "README.md") == 0


def test_the_command_shows_the_source(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = re.search(r"python -m retrograd (show .*? --emit source)`", README)
    assert command
    words = [word.strip("'") for word in command[1].replace("spring.py", str(example)).split()]
    assert main(words) == 0
    assert "def energy_grad(k, x):" in capsys.readouterr().out


def test_the_picture_is_current(request: pytest.FixtureRequest) -> None:
    drawn = runpy.run_path(str(PICTURES))
    if request.config.getoption("--accept"):
        drawn["FILE"].write_text(drawn["picture"](), encoding="utf-8")
    assert drawn["FILE"].read_text(encoding="utf-8") == drawn["picture"](), "run python docs/pictures.py"
    assert str(drawn["FILE"].relative_to(ROOT)) in README


def not_measured(readme: str, bench: str) -> list[str]:
    """Figures of the table of speed that no row of the same program has in the benchmark."""
    table = readme.partition("## Speed")[2].partition("\n## ")[0]
    return [
        f"{name}: {figure}"
        for name, cells in ROW.findall(table)[1:]
        for figure in TIME.findall(cells)
        if not any(figure in TIME.findall(row) for title, row in ROW.findall(bench) if title.startswith(name))
    ]


def test_the_figures_are_those_of_the_benchmark() -> None:
    bench = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    assert not_measured(README, bench) == []
    assert not_measured(README.replace("375 µs", "5 µs"), bench) == ["Black–Scholes, 100,000 options: 5 µs"]
