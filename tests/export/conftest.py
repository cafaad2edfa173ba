"""All programs, exported and saved once."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy

from tests.export.alone import bits
from tests.export.programs import PROGRAMS, Case

ROOT = Path(__file__).parents[2]
SAVED_ELSEWHERE = """
import pickle, sys
from pathlib import Path
import retrograd as rg
from tests.export.alone import bits
from tests.export.programs import PROGRAMS
folder, found = Path(sys.argv[1]), {}
for path in folder.glob("*.rg"):
    name, case = path.stem, PROGRAMS[path.stem]()
    found[name] = bits(rg.load(path)(*case.args, **case.kwargs))
(folder / "loaded.pickle").write_bytes(pickle.dumps(found))
"""


# A third of the programs is in the normal run, for all tests the same one.
each_program = pytest.mark.parametrize(
    "name", [name if k % 3 == 0 else pytest.param(name, marks=pytest.mark.slow) for k, name in enumerate(PROGRAMS)]
)


class Written(NamedTuple):
    """The programs in a folder: the results that each gave here, in its module alone, and loaded elsewhere."""

    folder: Path
    cases: dict[str, Case]
    here: dict[str, Any]
    alone: dict[str, Any]
    loaded: dict[str, Any]


def described(tree: Any) -> Any:
    """A tree with dicts for objects of classes."""
    fields = getattr(tree, "_fields", None)
    if dataclasses.is_dataclass(tree):
        fields = [f.name for f in dataclasses.fields(tree)]
    if fields is not None:
        return {"class": type(tree).__name__, "fields": {name: described(getattr(tree, name)) for name in fields}}
    if isinstance(tree, dict):
        return {name: described(x) for name, x in tree.items()}
    return type(tree)(map(described, tree)) if type(tree) in (list, tuple) else tree


def asked_for(items: Iterable[Any]) -> dict[str, Any]:
    """The programs that the chosen tests are about, and the one that all need."""
    given = [item.callspec.params.get("name") for item in items if hasattr(item, "callspec")]
    names = {"gradient", *(name for name in given if isinstance(name, str))}
    return {name: make for name, make in PROGRAMS.items() if name in names}


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Written:
    folder = tmp_path_factory.mktemp("exported")
    cases = {name: make() for name, make in asked_for(request.session.items).items()}
    here = {}
    for name, case in cases.items():
        here[name] = bits(case.function(*case.args, **case.kwargs))
        case.function.export(folder / f"{name}.py", *case.args, **case.kwargs)
        case.function.save(folder / f"{name}.rg", *case.args, **case.kwargs)
    calls = {name: (described(case.args), described({**case.kwargs})) for name, case in cases.items()}
    (folder / "calls.pickle").write_bytes(pickle.dumps(calls))
    packages = os.pathsep.join({str(Path(module.__file__).parents[1]) for module in (np, scipy)})
    alone = [sys.executable, "-I", "-S", str(Path(__file__).with_name("alone.py")), str(folder), packages]
    runs = [
        subprocess.Popen(alone, cwd=folder, stderr=subprocess.PIPE, text=True),
        subprocess.Popen(
            [sys.executable, "-c", SAVED_ELSEWHERE, str(folder)], cwd=ROOT, stderr=subprocess.PIPE, text=True
        ),
    ]
    said = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], "\n".join(said)
    found = [pickle.loads((folder / name).read_bytes()) for name in ("found.pickle", "loaded.pickle")]
    return Written(folder, cases, here, *found)
