"""Every public name has a page in docs/reference, and a docstring that says all that a caller needs."""

from __future__ import annotations

import operator
import re
from pathlib import Path
from typing import Any

import pytest

import retrograd as rg
from tests.support.docstrings import exceptions, faults, members, method_faults, public

pytestmark = pytest.mark.whole  # a case takes milliseconds

PAGES = sorted((Path(__file__).parents[2] / "docs" / "reference").glob("*.md"))
MEMBERS = re.compile(
    r"^ *\.\. autoclass:: retrograd\.([\w.]+)(?:\(\))?\n(?:   :(?!members)\S+:.*\n)*   :members: (.*)$", re.MULTILINE
)
METHOD = re.compile(r"^ *\.\. automethod:: retrograd\.([\w.]+)\.(\w+)$", re.MULTILINE)
DIRECTIVE = re.compile(r"^ *\.\. auto\w+:: retrograd\.([\w.]+)(?:\(\))?$", re.MULTILINE)
PUBLIC = public()


def shown(text: str) -> list[str]:
    """The names that a page documents."""
    return DIRECTIVE.findall(text)


def on_pages() -> list[str]:
    return [name for page in PAGES for name in shown(page.read_text(encoding="utf-8"))]


def test_every_public_name_has_its_place_in_the_reference() -> None:
    assert sorted((set(PUBLIC) | exceptions() | set(members())) - set(on_pages())) == []


def test_no_name_stands_in_two_places() -> None:
    names = on_pages()
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_every_docstring_has_all_its_sections() -> None:
    found = {name: faults(name, thing) for name, thing in (PUBLIC | members()).items()}
    assert {name: said for name, said in found.items() if said} == {}


def methods() -> dict[str, Any]:
    """The methods and properties that pages show."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    listed = [(cls, name) for cls, names in MEMBERS.findall(text) for name in names.split(", ")]
    return {
        f"{cls}.{name}": getattr(operator.attrgetter(cls)(rg), name) for cls, name in [*listed, *METHOD.findall(text)]
    }


def test_every_method_says_what_it_takes_and_returns() -> None:
    found = {name: method_faults(thing) for name, thing in methods().items()}
    assert {name: said for name, said in found.items() if said} == {}
    assert {"eager.Tensor.backward", "api.lens.Lens.at", "Compiled.explain", "eager.Tensor.is_leaf"} <= found.keys()


def test_a_method_without_its_parameters_is_found() -> None:
    assert method_faults(_documented(GOOD)) == []
    assert method_faults(_documented("A sum.")) == ["parameters [], not ['x', 'y']", "no result"]
    assert method_faults(property(_documented(""))) == ["no first sentence"]


def test_the_names_are_those_of_the_face() -> None:
    assert {"grad", "vmap", "config", "tree.map", "eager.Tensor", "optim.adam", "ir.parse"} <= PUBLIC.keys()
    assert {"errors.ShapeError", "distributed.WorkerLostError", "errors.RetraceWarning"} <= exceptions()
    assert all(name.partition(".")[0] in dir(rg) for name in PUBLIC)


GOOD = """A sum.

Parameters
----------
x, y : float
    Two numbers.

Returns
-------
float
    Their sum.

Raises
------
ShapeError
    If there is none.

Examples
--------
>>> 1 + 1
2
"""


def _documented(text: str) -> Any:
    def add(x: float, y: float) -> float:
        return x + y

    add.__doc__ = text
    return add


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("x, y : float", "x : float", "no parameter y is documented"),
        ("x, y : float", "x, y, z : float", "there is no parameter z"),
        ("    Two numbers.\n", "", "nothing is said of x, y"),
        ("Returns\n-------\nfloat\n    Their sum.\n", "", "no result"),
        ("Raises\n------\nShapeError\n    If there is none.\n", "", "no errors"),
        ("ShapeError", "ShapesError", "no error ShapesError"),
        (">>> 1 + 1\n", "", "no example"),
        ("Returns\n-------", "Return\n------", "an unknown section Return"),
        ("A sum.", "", "no first sentence"),
    ],
)
def test_what_is_missing_is_found(old: str, new: str, fault: str) -> None:
    assert faults("add", _documented(GOOD)) == []
    assert fault in faults("add", _documented(GOOD.replace(old, new)))


def test_a_name_without_a_place_is_found() -> None:
    assert shown("```{eval-rst}\n.. autofunction:: retrograd.grad\n```") == ["grad"]
    assert shown("`retrograd.grad` is mentioned only") == []
