"""Every golden file: its lower half is what the passes make of the upper one, and means the same."""

from __future__ import annotations

from collections import Counter

import pytest

from retrograd.ir import parse, to_text
from retrograd.passes.rules import EXACT, FAST, REASSOCIATE
from retrograd.passes.simplify import simplify
from tests.golden import runner
from tests.golden.runner import Golden, goldens
from tests.support.rules import idle, named_apart, over_tables

ALL = goldens()
pytestmark = pytest.mark.whole  # a golden that does not run says nothing, and goes out of date
each_golden = pytest.mark.parametrize("golden", ALL, ids=str)


@each_golden
def test_the_outcome_is_as_written(golden: Golden, request: pytest.FixtureRequest) -> None:
    found = runner.outcome(golden)
    if request.config.getoption("--accept"):
        runner.check_meaning(golden, found)
        golden.accept(found)
    else:
        assert found == golden.expected, f"if this is right, accept it with pytest --accept {golden.path}"


@each_golden
def test_both_halves_mean_the_same(golden: Golden, request: pytest.FixtureRequest) -> None:
    accepting = request.config.getoption("--accept")
    runner.check_meaning(golden, runner.outcome(golden) if accepting else golden.expected)


@each_golden
def test_the_upper_half_is_written_as_it_would_be_printed(golden: Golden) -> None:
    if golden.steps[-1].name not in {"parse", "verify"}:
        assert to_text(parse(golden.given)) == golden.given


@each_golden
def test_a_golden_opens_with_a_sentence_and_names_known_passes(golden: Golden) -> None:
    assert golden.sentence.endswith((".", ":"))
    assert golden.sentence[0].isupper() or golden.sentence[0] == "`"
    *first, last = golden.steps
    assert {s.name for s in first} <= set(runner.GRAPH_PASSES)
    assert last.name in {*runner.GRAPH_PASSES, *runner.PRINTERS, "parse"}


def test_every_pass_is_documented_by_goldens() -> None:
    folders = {g.path.parent.name for g in ALL}
    assert folders >= {*runner.GRAPH_PASSES, "linearize", "source", "dot", "verify", "parse"}


@pytest.fixture(scope="module")
def fired() -> Counter[str]:
    with named_apart():
        return sum((runner.fired(g) for g in ALL), Counter())


@over_tables
def test_every_rewrite_fires_in_some_golden(table: str, fired: Counter[str]) -> None:
    assert idle(table, fired) == []


def test_folding_of_constants_fires_in_some_golden(fired: Counter[str]) -> None:
    assert fired["fold"] > 0


def test_each_rewrite_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in (*EXACT, *REASSOCIATE, *FAST)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("golden", [g for g in ALL if g.steps[-1].name == "simplify"], ids=str)
def test_a_simplified_graph_is_simple(golden: Golden) -> None:
    rules = golden.steps[-1].rules
    assert to_text(simplify(parse(golden.expected), rules)) == golden.expected
