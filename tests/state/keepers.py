"""Programs that keep what NumPy makes inside them: in caches, attributes, containers and modules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.state.holders import program

Keeper = tuple[Callable[[Any], Any], Callable[[], Any]]  # a function that keeps a value, and a reader of the value
Make = Callable[[Any], Any]  # makes what is kept, from the function's argument
KEEPERS: dict[str, Callable[[Make], Keeper]] = {}


def keeper(make: Callable[[Make], Keeper]) -> Callable[[Make], Keeper]:
    """Into the table, by its name."""
    KEEPERS[make.__name__.rstrip("_")] = make
    return make


def used(kept: Any, x: Any) -> Any:
    """A number of what is kept and the argument."""
    return np.sum(kept * x**2)


@keeper
def global_name(make: Make) -> Keeper:
    p = program(
        "table = None\ndef f(x):\n    global table\n    if table is None:\n        table = make(x)\n"
        "    return used(table, x)",
        make=make,
        used=used,
    )
    return p["f"], lambda: p["table"]


@keeper
def global_of_helper(make: Make) -> Keeper:
    p = program(
        "table = None\ndef fill(x):\n    global table\n    if table is None:\n        table = make(x)\n"
        "    return table\n"
        "def f(x):\n    return used(fill(x), x)",
        make=make,
        used=used,
    )
    return p["f"], lambda: p["table"]


@keeper
def closure(make: Make) -> Keeper:
    table: Any = None

    def f(x: Any) -> Any:
        nonlocal table
        if table is None:
            table = make(x)
        return used(table, x)

    return f, lambda: table


@keeper
def memo_dict(make: Make) -> Keeper:
    memo: dict[int, Any] = {}

    def table(x: Any, n: int) -> Any:
        if n not in memo:
            memo[n] = make(x)
        return memo[n]

    return lambda x: used(table(x, 3), x), lambda: memo[3]


@keeper
def set_default(make: Make) -> Keeper:
    memo: dict[int, Any] = {}
    return lambda x: used(memo.setdefault(3, make(x)), x), lambda: memo[3]


@keeper
def tuple_in_a_dict(make: Make) -> Keeper:
    memo: dict[str, Any] = {}

    def f(x: Any) -> Any:
        if "rule" not in memo:
            memo["rule"] = (3, {"nodes": make(x)})
        return used(memo["rule"][1]["nodes"], x)

    return f, lambda: memo["rule"][1]["nodes"]


@keeper
def list_(make: Make) -> Keeper:
    tables: list[Any] = []

    def f(x: Any) -> Any:
        if not tables:
            tables.append(make(x))
        return used(tables[0], x)

    return f, lambda: tables[0]


@keeper
def attribute(make: Make) -> Keeper:
    class Grid:
        table: Any = None

        def energy(self, x: Any) -> Any:
            if self.table is None:
                self.table = make(x)
            return used(self.table, x)

    s = Grid()
    return s.energy, lambda: s.table


@keeper
def attribute_of_captured(make: Make) -> Keeper:
    s = SimpleNamespace(table=None)

    def f(x: Any) -> Any:
        if s.table is None:
            s.table = make(x)
        return used(s.table, x)

    return f, lambda: s.table


@keeper
def class_attribute(make: Make) -> Keeper:
    class Grid:
        table: Any = None

        @classmethod
        def energy(cls, x: Any) -> Any:
            if cls.table is None:
                cls.table = make(x)
            return used(cls.table, x)

    return Grid.energy, lambda: Grid.table


@keeper
def slot(make: Make) -> Keeper:
    class Grid:
        __slots__ = ("table",)

        def energy(self, x: Any) -> Any:
            if not hasattr(self, "table"):
                self.table = make(x)
            return used(self.table, x)

    s = Grid()
    return s.energy, lambda: s.table


@keeper
def mutable_default(make: Make) -> Keeper:
    def table(x: Any, memo: list[Any] = []) -> Any:  # noqa: B006 - a memo
        if not memo:
            memo.append(make(x))
        return memo[0]

    table.__defaults__ = ([],)
    return lambda x: used(table(x), x), lambda: table(None)


@keeper
def attribute_of_function(make: Make) -> Keeper:
    def table(x: Any) -> Any:
        if not hasattr(table, "kept"):
            table.kept = make(x)  # type: ignore[attr-defined]
        return table.kept  # type: ignore[attr-defined]

    return lambda x: used(table(x), x), lambda: table(None)


CACHES: dict[str, Callable[[Callable[[], Any]], Keeper]] = {}


def cache(make: Callable[[Callable[[], Any]], Keeper]) -> Callable[[Callable[[], Any]], Keeper]:
    """Into the table of caches, which keep what depends on no argument."""
    CACHES[make.__name__] = make
    return make


@cache
def lru_cache(make: Callable[[], Any]) -> Keeper:
    @functools.lru_cache
    def table(n: int) -> Any:
        return make()

    return lambda x: used(table(3), x), lambda: table(3)


@cache
def cache_of_functools(make: Callable[[], Any]) -> Keeper:
    @functools.cache
    def table() -> Any:
        return make()

    return lambda x: used(table(), x), table


@cache
def cached_method(make: Callable[[], Any]) -> Keeper:
    class Grid:
        @functools.lru_cache  # noqa: B019 - the instance lives as long as its class
        def table(self, n: int) -> Any:
            return make()

        def energy(self, x: Any) -> Any:
            return used(self.table(3), x)

    s = Grid()
    return s.energy, lambda: s.table(3)


@cache
def cached_property(make: Callable[[], Any]) -> Keeper:
    class Grid:
        @functools.cached_property
        def table(self) -> Any:
            return make()

        def energy(self, x: Any) -> Any:
            return used(self.table, x)

    s = Grid()
    return s.energy, lambda: s.table


@cache
def cache_of_tuples(make: Callable[[], Any]) -> Keeper:
    @functools.lru_cache
    def rule(n: int) -> Any:
        return make(), n

    return lambda x: used(rule(3)[0], x), lambda: rule(3)[0]


@cache
def cache_over_a_cache(make: Callable[[], Any]) -> Keeper:
    @functools.lru_cache
    def nodes(n: int) -> Any:
        return make()

    @functools.lru_cache
    def doubled(n: int) -> Any:
        return 2 * nodes(n)

    return lambda x: used(doubled(3), x), lambda: doubled(3)


def of_no_argument(make: Callable[[Make], Keeper]) -> Callable[[Callable[[], Any]], Keeper]:
    """A keeper as a cache."""
    return lambda value: make(lambda x: value())


CACHES |= {name: of_no_argument(make) for name, make in KEEPERS.items()}
