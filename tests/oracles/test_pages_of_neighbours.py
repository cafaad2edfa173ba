"""What pages show of other packages is so: their programs print what is shown, and what ours beside them print."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.pages import printed, with_prompt, with_text

PROGRAMS = {re.findall(r"import (jax|torch|pandas)", run)[0]: (run, text) for run, text in with_text("neighbours.md")}
COMING_FROM = {"jax": "jax", "pytorch": "torch", "casadi": "casadi"}


@pytest.mark.parametrize("package", ["jax", "torch", "pandas"])
def test_a_program_prints_what_is_shown(package):
    pytest.importorskip(package)
    program, text = PROGRAMS[package]
    assert printed(program, {"__name__": "page"}) == text


@pytest.mark.parametrize("page", COMING_FROM)
def test_their_programs_print_what_ours_print(page):
    pytest.importorskip(COMING_FROM[page])
    scope: dict[str, Any] = {"__name__": "page"}
    pairs = with_prompt(f"coming_from_{page}.md")
    assert len(pairs) >= 7
    for theirs, ours in pairs:
        assert printed(theirs, scope) == ours, theirs
