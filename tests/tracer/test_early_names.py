"""Names that were bound before a trace are found while other threads import."""

from __future__ import annotations

import gc
import sys
from types import ModuleType

from retrograd.tracer.early_names import EarlyNames


def test_an_import_in_between_does_no_harm() -> None:
    """A collection of garbage lets other threads run, wherever an object is made."""
    made: list[str] = []

    def load(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            made.append(f"late_module_{len(made)}")
            sys.modules[made[-1]] = ModuleType(made[-1])
            vars(sys.modules[made[0]])[made[-1]] = None

    before = gc.get_threshold()
    pairs = [(k, -k) for k in range(10_000)]  # so that Python keeps no tuples in reserve
    names = EarlyNames()
    gc.callbacks.append(load)
    gc.set_threshold(1)
    try:
        names.patch()
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(load)
        names.restore()
        for name in made:
            del sys.modules[name]
    assert made
    assert pairs
