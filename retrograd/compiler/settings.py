"""config: the settings for everything that is compiled from now on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..errors import OptionError
from ..tracer.around import kept


class Settings(NamedTuple):
    """All settings; part of the key of whatever is compiled."""

    exact: bool = False
    fast: bool = False
    verify: int = 0
    max_traces: int = 64
    max_nodes: int = 250_000
    counters: bool = False
    nan_safe: bool = False
    debug_nans: bool = False
    cache_size: int = 256
    backend: str = "numpy"


EXACT = Settings(exact=True)
CHOICES: dict[str, tuple[Any, ...]] = {"verify": (0, 1, 2, 3), "backend": ("numpy", "native")}

OVERRIDES: ContextVar[Settings | None] = ContextVar("retrograd_config", default=None)
kept(OVERRIDES)


class Config:
    """Settings; assign them, or use ``with rg.config(exact=True):``. ``core_docstrings`` has their meaning."""

    base: Settings

    def __init__(self) -> None:
        object.__setattr__(self, "base", Settings())

    def now(self) -> Settings:
        """The settings in force here."""
        return OVERRIDES.get() or self.base

    def __getattr__(self, name: str) -> Any:
        if name not in Settings._fields:
            raise AttributeError(f"rg.config has no setting {name!r}; it has {', '.join(dir(self))}")
        return getattr(self.now(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(vars(Config).get(name), property):  # of an extension: part of no key
            return object.__setattr__(self, name, value)
        return object.__setattr__(self, "base", _replaced(self.base, {name: value}))

    def __dir__(self) -> tuple[str, ...]:
        return (*Settings._fields, *(name for name, x in vars(Config).items() if isinstance(x, property)))

    def __repr__(self) -> str:
        return f"rg.config({', '.join(f'{name}={value!r}' for name, value in self.now()._asdict().items())})"

    @contextmanager
    def __call__(self, **settings: Any) -> Iterator[Config]:
        """Settings for the block, in this thread or task alone."""
        token = OVERRIDES.set(_replaced(self.now(), settings))
        try:
            yield self
        finally:
            OVERRIDES.reset(token)


def _replaced(settings: Settings, changes: dict[str, Any]) -> Settings:
    for name, value in changes.items():
        if name not in Settings._fields:
            raise OptionError(f"rg.config has no setting {name!r}", remedy=f"it has {', '.join(Settings._fields)}")
        default, choices = Settings._field_defaults[name], CHOICES.get(name, ())
        if type(value) is not type(default) or (value not in choices if choices else value < 0):
            allowed = ", ".join(map(repr, choices)) or ("False and True" if default is False else "counts from 0")
            raise OptionError(f"rg.config.{name} = {value!r}", remedy=f"choose from {allowed}")
    return settings._replace(**changes)


config = Config()
