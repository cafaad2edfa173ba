"""The rooms import each other in one direction, and each outside package has its place."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FORBIDDEN_IMPORTS = [
    ("ir", "import retrograd.api", "layers"),
    ("ir", "from .. import ops", "layers"),
    ("ops", "import retrograd.passes", "layers"),
    ("tracer", "import retrograd.passes", "layers"),
    ("tracer", "from ..numpy import shapes", "layers"),
    ("passes", "import retrograd.codegen", "layers"),
    ("codegen", "import retrograd.tracer", "layers"),
    ("compiler", "from ..api import gradients", "layers"),
    ("compiler", "from ..reports import curves", "layers"),
    ("compiler", "from ..numpy import shapes", "layers"),
    ("numpy", "from ..compiler import compiled", "layers"),
    ("reports", "from ..api import gradients", "layers"),
    ("api", "from ..reports import curves", "layers"),
    ("api", "from ..eager import records", "layers"),
    ("eager", "from ..compat import autograd", "layers"),
    ("export", "from ..distributed import sharded", "layers"),
    ("distributed", "from ..cli import main", "layers"),
    ("distributed", "from ..codegen.numpy.absorb import absorb", "targets"),
    ("looking", "from ..eager import records", "layers"),
    ("compiler", "from ..looking import measured", "layers"),
    ("api", "import retrograd as rg", "face"),
    ("compiler", "from ..codegen.numpy.absorb import absorb", "targets"),
    ("reports", "from ..passes.place_buffers import place_buffers", "targets"),
    ("eager", "from retrograd.ops.elementary import exp", "eager"),
    ("eager", "from ..ir.primitive import pull", "eager"),
    ("eager/nn", "from ...ops import linear", "eager"),
    ("compat/autograd", "from ...ops import linear", "eager"),
    ("passes", "import optree", "optree"),
    ("tracer", "from optree import tree_flatten", "optree"),
    ("compiler", "import jinja2", "jinja2"),
]

IMPORTS_AT_THE_WRONG_LEVEL = [
    ("import networkx as nx", "TID253"),
    ("import scipy.special", "TID253"),
    ("from matplotlib import pyplot as plt", "TID253"),
    ("def load():\n    import json\n    return json", "PLC0415"),
]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the package and its configuration, to plant a fault in."""
    shutil.copytree(ROOT / "retrograd", tmp_path / "retrograd", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint_imports(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "lint-imports", "--no-cache", "--no-logo", *arguments)


def lint_places(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(folder, "ruff", "check", "--no-cache", "--select=TID253,PLC0415", "retrograd")


def run(folder: Path, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sysconfig.get_path("scripts"), tool)), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_real_tree_keeps_the_contracts():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(("room", "line", "contract"), FORBIDDEN_IMPORTS)
def test_a_planted_import_breaks_its_contract(house, room, line, contract):
    (house / "retrograd" / room / "planted.py").write_text(line + "\n")
    result = lint_imports(house, "--contract", contract)
    assert result.returncode == 1
    assert f"retrograd.{room.replace('/', '.')}.planted -> " in result.stdout


def test_a_room_without_a_layer_is_refused(house):
    (house / "retrograd" / "attic.py").touch()
    result = lint_imports(house, "--contract", "layers")
    assert result.returncode == 1
    assert "attic" in result.stdout


def test_imports_stand_where_they_should():
    result = lint_places(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(("line", "rule"), IMPORTS_AT_THE_WRONG_LEVEL)
def test_an_import_at_the_wrong_level_is_refused(house, line, rule):
    (house / "retrograd" / "passes" / "planted.py").write_text(line + "\n")
    result = lint_places(house)
    assert result.returncode == 1
    assert rule in result.stdout
    assert "planted.py" in result.stdout


def test_importing_the_face_loads_nothing_slow_or_optional():
    program = "import sys, retrograd; print({'matplotlib', 'networkx', 'scipy'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "set()"
