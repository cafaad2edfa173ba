"""The wheel and the sdist are built, and each is installed and used in an environment that has nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VENDORED = ROOT / "retrograd" / "looking" / "page_parts" / "vendored"
PROGRAM = """
import importlib.metadata, pathlib, sys
import numpy as np, retrograd as rg

assert pathlib.Path(rg.__file__).is_relative_to(sys.prefix), rg.__file__
slope = rg.grad(lambda x: np.sum(np.sin(x) ** 2))
x = np.linspace(0.0, 1.0, 5)
assert np.allclose(slope(x), np.sin(2 * x))
assert "Graphviz" in slope.report("page.html", x).read_text(encoding="utf-8")  # the page has all its parts
assert "def " in slope.source(x)
print(importlib.metadata.version("retrograd"))
"""


def run(*command: str | Path, cwd: Path) -> str:
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # it would find the checkout
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=cwd, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_it_works_in_an_empty_environment(built: Path, kind: str, tmp_path: Path) -> None:
    (package,) = built.glob(kind)
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", package, cwd=tmp_path)
    installed = run(python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path)
    assert "scipy" not in installed
    version = run(python, "-W", "error", "-c", PROGRAM, cwd=tmp_path).strip()
    assert run(python.with_name("retrograd"), "--version", cwd=tmp_path).split()[-1] == version
    assert "is correct" in run(python.with_name("retrograd"), "doctor", cwd=tmp_path)
    assert "RG0203" in run(python.with_name("retrograd"), "errors", "RG0203", cwd=tmp_path)


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_licences_alone(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        metadata = Parser().parsestr(wheel.read(next(n for n in names if n.endswith(".dist-info/METADATA"))).decode())
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"retrograd"}
    committed = run("git", "ls-files", "retrograd", cwd=ROOT).split()
    assert {name for name in names if name.startswith("retrograd/")} == set(committed)
    assert metadata["License-Expression"] == PROJECT["license"]
    texts = {"LICENSE", *(str(path.relative_to(ROOT)) for path in VENDORED.glob("*.txt"))}
    assert set(metadata.get_all("License-File")) == texts


@pytest.mark.slow
def test_the_sdist_holds_what_tests_and_pages_need(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {
        "LICENSE",
        "README.md",
        "CONTRIBUTING.md",
        "CITATION.cff",
        "SECURITY.md",
        "CHANGELOG.md",
        "pyproject.toml",
    }
    assert wanted <= names
    assert {"tests/conftest.py", "docs/architecture.md", "bench/README.md", "examples/digits.py"} <= names
    assert not any(name.startswith((".venv", ".git/", "out/")) for name in names)


def test_the_licence_covers_what_is_vendored() -> None:
    notice = (VENDORED / "NOTICE.txt").read_text(encoding="utf-8")
    named = {"Apache License 2.0": "Apache-2.0", "Eclipse Public License 1.0": "EPL-1.0", "MIT License": "MIT"}
    assert all(long in notice for long in named)
    assert (
        notice.count("https://") == 1 + len(named) - 1
    )  # one line for each part: a further part needs its licence here
    assert PROJECT["license"].split(" AND ") == ["BSD-3-Clause", *named.values()]


def test_the_files_beside_the_readme_agree_on_version_and_licence() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    source = (ROOT / "retrograd" / "__init__.py").read_text(encoding="utf-8")
    version = source.partition('__version__ = "')[2].partition('"')[0]
    assert f"\nversion: {version}\n" in citation
    assert "\nlicense: BSD-3-Clause\n" in citation
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("BSD 3-Clause License")
