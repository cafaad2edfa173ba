"""Errors in rules of the user's are errors that name the rule, its line, and what it was to replace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import OptionError, UnsupportedError
from retrograd.ir.rewrite import rebuild
from retrograd.ops.elementary import exp, log
from retrograd.passes.patterns import Rule
from retrograd.passes.simplify import simplify

GRAPH = rg.trace(lambda x, y: np.sum(x * y))(np.ones(3), np.ones(3))


def replacing(results: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def the_rule(b, node, env):
        return results(*(env[v] for v in node.inputs)) if node.prim.name == "mul" else None

    return the_rule


FAULTY = {
    "a NumPy function": (lambda x, y: [np.exp(x)], "TypeError: operand 'Symbol' does not support ufuncs"),
    "a NumPy reduction": (lambda x, y: [x * np.sum(y)], "TypeError: np.sum does not take symbols"),
    "a NumPy mean": (lambda x, y: [x * np.mean(y)], "TypeError: np.mean does not take symbols"),
    "no list": (lambda x, y: x, "TypeError: 'Symbol' object is not iterable"),
    "too many results": (lambda x, y: [x, y], "ValueError: zip"),
    "a fault of its own": (lambda x, y: [x / {}["y"]], "KeyError: 'y'"),
}


@pytest.mark.parametrize(("results", "said"), FAULTY.values(), ids=FAULTY.keys())
def test_a_rule_that_fails_is_named_with_its_line(results, said):
    with pytest.raises(OptionError) as caught:
        rebuild(GRAPH, replacing(results))
    assert "the rule replacing.<locals>.the_rule fails at mul (" in caught.value.what
    assert said in caught.value.what
    assert caught.value.__cause__ is not None
    assert str(caught.value.where).startswith(__file__)
    assert "retrograd.ops.elementary import exp" in caught.value.remedy


def test_a_number_in_place_of_a_symbol_is_told_where_it_is_read():
    with pytest.raises(OptionError, match=r"fails at sum .*AttributeError: 'float' object has no attribute 'value'"):
        rebuild(GRAPH, replacing(lambda x, y: [2.0]))


def test_a_pattern_whose_replacement_fails_is_named():
    rule = Rule(lambda x, y: x * y, lambda x, y: np.exp(x))
    with pytest.raises(OptionError, match=r"fails at mul\(x, y\): TypeError: operand 'Symbol'"):
        simplify(GRAPH, [rule])


def test_errors_that_say_what_to_do_and_rules_of_the_package_are_left_alone():
    def refusing(x, y):
        raise UnsupportedError("not this one", remedy="another")

    with pytest.raises(UnsupportedError, match="not this one"):
        rebuild(GRAPH, replacing(refusing))

    def ours(b, node, env):
        raise KeyError("ours")

    ours.__module__ = "retrograd.passes.ours"
    with pytest.raises(KeyError, match="ours"):
        rebuild(GRAPH, ours)


def test_numbers_of_numpy_and_arrays_stand_beside_symbols():
    def scaled(x, y):
        return [np.float64(2.0) * exp(log(x) + log(y)) * np.sqrt(4.0)]

    changed = rebuild(GRAPH, replacing(scaled))
    assert float(rg.ir.evaluate(changed, [np.full(3, 2.0), np.full(3, 3.0)])[0]) == pytest.approx(4 * 18.0)
