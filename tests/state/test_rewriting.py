"""What the rewriting of code knows of versions of CPython that this machine may not have."""

from __future__ import annotations

from types import CodeType
from typing import Any

import numpy as np
import pytest
from bytecode import Instr

from retrograd.tracer.state import observed_code
from retrograd.tracer.state import observers as state_observers
from retrograd.tracer.state.observed_code import is_exit, spread_form

NONE = [("LOAD_CONST", None)] * 3


class Observer:
    """Notes what it is shown, and gives it back."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def __getitem__(self, value: Any) -> Any:
        self.shown.append(value)
        return value


class Called(Observer):
    """Gives back what is called."""

    def __getitem__(self, value: Any) -> Any:
        return Observer.__getitem__(self, value)[0]


class Observers:
    def __init__(self) -> None:
        self.spread, self.called, self.result = Observer(), Called(), Observer()


def run(instructions: list[Instr], stack: list[Any]) -> None:
    """The few instructions that observers need, on a stack of names."""
    for i in instructions:
        arg: Any = i.arg
        match i.name:
            case "LOAD_CONST":
                stack.append(arg)
            case "SWAP":
                stack[-1], stack[-arg] = stack[-arg], stack[-1]
            case "COPY":
                assert stack[-arg] != "NULL"
                stack.append(stack[-arg])
            case "POP_TOP":
                assert stack.pop() != "NULL"
            case "BUILD_TUPLE":
                stack[-arg:] = [tuple(stack[-arg:])]
            case "BINARY_SUBSCR" | "BINARY_OP":
                right = stack.pop()
                assert right != "NULL"
                stack.append(stack.pop()[right])


@pytest.mark.parametrize(
    ("version", "before", "arg", "stack", "spread", "called"),
    [
        ((3, 12), "LOAD_FAST", 0, ["NULL", "f", "args"], ["args"], ("f", "args")),
        ((3, 12), "DICT_MERGE", 1, ["NULL", "f", "args", "kw"], ["args", "kw"], ("f", "args", "kw")),
        ((3, 13), "LOAD_FAST", 0, ["f", "NULL", "args"], ["args"], ("f", "args")),
        ((3, 13), "DICT_MERGE", 1, ["f", "NULL", "args", "kw"], ["args", "kw"], ("f", "args", "kw")),
        ((3, 14), "PUSH_NULL", None, ["f", "NULL", "args", "NULL"], ["args"], ("f", "args")),
        ((3, 14), "DICT_MERGE", None, ["f", "NULL", "args", "kw"], ["args", "kw"], ("f", "args", "kw")),
    ],
)
def test_spread_arguments_are_shown_on_each_version(
    version: Any, before: str, arg: Any, stack: Any, spread: Any, called: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(observed_code, "VERSION", version)
    observers: Any = Observers()
    teller = observed_code._Teller(Instr("NOP"))
    left = list(stack)
    run(observed_code.Rewriting(observers, lambda code: code)._spread(teller, *spread_form(version, arg, before)), left)
    assert left == stack
    assert (observers.spread.shown, observers.called.shown) == (spread, [called])


def test_the_end_of_a_with_is_told_from_a_call_with_three_none() -> None:
    assert is_exit((3, 12), [("POP_TOP", 0), *NONE], 2)
    assert not is_exit((3, 12), [("PUSH_NULL", 0), *NONE], 3)
    assert is_exit((3, 14), [("POP_TOP", 0), *NONE], 3)
    assert is_exit((3, 14), NONE, 3)
    assert not is_exit((3, 14), [("PUSH_NULL", 0), *NONE], 3)
    assert not is_exit((3, 14), [("LOAD_GLOBAL", (True, "f")), *NONE], 3)
    assert not is_exit((3, 14), [("LOAD_ATTR", (True, "f")), *NONE], 3)
    assert is_exit((3, 14), [("LOAD_ATTR", (False, "f")), *NONE], 3)
    assert not is_exit((3, 14), [("POP_TOP", 0), *NONE[1:], ("LOAD_FAST", "x")], 3)


def test_functions_inside_observed_code_are_observed_once() -> None:
    def outer(x: Any) -> Any:
        def total(r: Any) -> Any:
            return np.sum(r, keepdims=True)

        return total(x)

    observed = state_observers.observed(outer.__code__)
    (inner,) = [c for c in observed.co_consts if isinstance(c, CodeType)]
    assert state_observers.observed.is_observed(inner)
    assert state_observers.observed(inner) is inner
