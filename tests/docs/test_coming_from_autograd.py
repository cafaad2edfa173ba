"""The program on the page prints the same before and after it moved in."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "coming_from_autograd.md"
BEFORE, AFTER, PRINTED, INSTALL = (
    block for _, block in re.findall(r"```(python|text)\n(?!>>>)(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
)


def test_the_program_that_moved_in_prints_what_is_shown(tmp_path, capsys):
    file = tmp_path / "moved.py"
    file.write_text(AFTER, encoding="utf-8")
    runpy.run_path(str(file))
    assert capsys.readouterr().out == PRINTED


def test_the_program_that_cannot_be_edited_prints_the_same():
    program = f"{INSTALL}\n{BEFORE}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == PRINTED, done.stderr


def test_the_two_differ_in_their_imports_alone():
    assert (
        BEFORE.replace("import autograd", "import retrograd.compat.autograd").replace(
            "from autograd", "from retrograd.compat.autograd"
        )
        == AFTER
    )
