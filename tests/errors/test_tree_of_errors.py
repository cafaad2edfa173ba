"""The tree of exceptions: codes, families, documentation."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import sys

import pytest

import retrograd as rg
from retrograd import errors
from retrograd.ir.primitive import REGISTRY
from tests.errors.bad_uses import BAD_USES

pytestmark = pytest.mark.whole  # a case takes milliseconds

CLASSES = {
    name: member
    for name, member in vars(errors).items()
    if inspect.isclass(member) and issubclass(member, errors.RetrogradError)
}
FAMILIES = {"RetrogradError", "UserError", "TracerError"}
OURS = {"InternalError", "GraphError"}  # raised below; no program of a user's may meet them
each_class = pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES.keys())


def documented() -> dict[str, tuple[int, str]]:
    """Depth and code of each class in the tree that the module's docstring draws."""
    found = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"^( {4}[│ ├└─]*)(\w+) +(RG\d{4})", line):
            found[match[2]] = (len(match[1]) // 4 - 1, match[3])
    return found


def test_the_docstring_draws_the_tree_that_the_classes_form():
    depth = {name: len([c for c in cls.__mro__ if c in CLASSES.values()]) - 1 for name, cls in CLASSES.items()}
    assert documented() == {name: (depth[name], cls.code) for name, cls in CLASSES.items()}


def test_codes_are_unique():
    codes = [cls.code for cls in CLASSES.values()]
    assert len(set(codes)) == len(codes)


@each_class
def test_a_class_states_its_own_code(cls):
    assert "code" in vars(cls)
    assert re.fullmatch(r"RG\d{4}", cls.code)


@each_class
def test_a_code_lies_in_the_range_of_its_family(cls):
    family = next((c for c in reversed(cls.__mro__) if c is not errors.RetrogradError and c in CLASSES.values()), cls)
    assert cls.code[:4] == family.code[:4]


@each_class
def test_a_class_has_a_sentence_and_is_found_through_the_face(cls):
    assert cls.__doc__
    assert getattr(rg.errors, cls.__name__) is cls


@each_class
def test_an_error_names_the_line_that_led_to_it_unless_it_is_told_another(cls):
    fault, line = cls("it broke"), sys._getframe().f_lineno
    here = "" if cls.ours else f"\n  at {__file__}:{line}"
    report = f"\n  remedy: {cls.ours}" if cls.ours else ""
    assert str(fault) == f"[{cls.code}] it broke{here}{report}"
    assert str(cls("it broke", where=None)) == f"[{cls.code}] it broke{report}"
    full = cls("it broke", where="f.py:3", remedy="mend it")
    assert str(full) == f"[{cls.code}] it broke\n  at f.py:3\n  remedy: mend it"


def test_a_fault_of_ours_says_where_to_report_it():
    with pytest.raises(errors.InternalError, match="report this to the tracker of retrograd's repository"):
        REGISTRY["sin"](1.0)


def test_the_tree_has_a_bad_use_for_every_class_that_users_can_meet():
    met = {use.error.__name__ for use in BAD_USES.values()}
    assert met == set(CLASSES) - FAMILIES - OURS


def test_user_errors_are_also_builtin_errors():
    for cls in {use.error for use in BAD_USES.values() if issubclass(use.error, errors.UserError)}:
        assert issubclass(cls, (TypeError, ValueError, AssertionError, MemoryError, OSError, FloatingPointError)), cls


def test_a_graph_that_breaks_the_rules_is_our_own_fault():
    graph = rg.trace(lambda x: x * 2.0)(1.0)
    broken = rg.ir.Graph(graph.name, (), graph.nodes, graph.outputs)
    with pytest.raises(errors.GraphError) as caught:
        rg.ir.verify(broken)
    assert isinstance(caught.value, errors.InternalError)
    assert not isinstance(caught.value, errors.UserError)


def test_a_primitive_needs_a_symbol():
    with pytest.raises(errors.InternalError):
        REGISTRY["sin"](1.0)


@each_class
def test_errors_survive_copying_and_pickling(cls):
    fault = cls("it broke", where="f.py:3", remedy="mend it")
    for other in (copy.copy(fault), pickle.loads(pickle.dumps(fault))):
        assert type(other) is cls
        assert str(other) == str(fault)
        assert (other.what, str(other.where), other.remedy) == ("it broke", "f.py:3", "mend it")


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        (errors.MemoryBudgetError("it broke", minimum=1_234, where="f.py:3"), "minimum"),
        (errors.LensLawError("it broke", law="additivity", where="f.py:3"), "law"),
    ],
    ids=["minimum", "law"],
)
def test_what_an_error_knows_survives_too(fault, field):
    fault.add_note("seen")
    for other in (copy.copy(fault), pickle.loads(pickle.dumps(fault))):
        assert (getattr(other, field), str(other), other.__notes__) == (getattr(fault, field), str(fault), ["seen"])


def test_the_remedy_for_a_budget_is_the_least_that_a_plan_needs():
    assert errors.MemoryBudgetError("it broke", minimum=1_234).remedy == "allow at least 1,234 bytes"
    assert errors.MemoryBudgetError("it broke", minimum=1_234, remedy="mend it").remedy == "mend it"
