"""The tables of rewrites, and firings counted rule by rule, though two rules may have one pattern and so one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from retrograd.passes.rules import BEFORE, EXACT, FAST, NATIVE, NUMPY, REASSOCIATE

TABLES = {
    "exact": EXACT,
    "before": BEFORE,
    "reassociate": REASSOCIATE,
    "fast": FAST,
    "numpy": NUMPY,
    "native": NATIVE,
}
over_tables = pytest.mark.parametrize("table", TABLES)


def names_apart(table: str) -> list[str]:
    """A name of its own for each rule of a table."""
    return [f"{rule.name} ({table} {k})" for k, rule in enumerate(TABLES[table])]


@contextmanager
def named_apart() -> Iterator[None]:
    """Within, firings are counted by the names that ``names_apart`` gives."""
    with pytest.MonkeyPatch.context() as patch:
        for table, rules in TABLES.items():
            for rule, name in zip(rules, names_apart(table), strict=True):
                patch.setattr(rule, "name", name)
        yield


def idle(table: str, fired: Counter[str]) -> list[str]:
    """The rules of a table that did not fire."""
    return [name for name in names_apart(table) if not fired[name]]
