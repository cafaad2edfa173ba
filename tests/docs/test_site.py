"""The site builds without a warning, and shows what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-n", "-q", "-E")


def build(pages: Path, into: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, str(pages), str(into)], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    for package in ("myst_parser", "pydata_sphinx_theme", "sphinx"):
        pytest.importorskip(package)
    done = build(ROOT / "docs", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "reference" / "derivatives.html").read_text(encoding="utf-8")
    assert 'id="retrograd.grad"' in page
    assert 'href="errors.html#retrograd.errors.NonScalarOutputError"' in page  # errors are linked
    errors = (tmp_path / "reference" / "errors.html").read_text(encoding="utf-8")
    explained = (tmp_path / "reference" / "explanations.html").read_text(encoding="utf-8")
    assert 'href="explanations.html#rg0105-shapeerror"' in errors
    assert 'id="rg0105-shapeerror"' in explained


@pytest.mark.slow
def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    pytest.importorskip("myst_parser")
    (tmp_path / "conf.py").write_text('extensions = ["myst_parser"]\n', encoding="utf-8")
    (tmp_path / "index.md").write_text("# One\n\n[two](two.md)\n", encoding="utf-8")
    assert build(tmp_path, tmp_path / "out").returncode != 0
