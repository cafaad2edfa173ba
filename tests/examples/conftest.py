"""The examples as modules."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = [path.stem for path in EXAMPLES.glob("*.py")]


@pytest.fixture(scope="module")
def example(request):
    """The example that a module of tests names as ``EXAMPLE``; Python itself has a module ``wave``, too."""
    others = {name: sys.modules.pop(name) for name in NAMES if name in sys.modules}
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield importlib.import_module(request.module.EXAMPLE)
    finally:
        sys.path.remove(str(EXAMPLES))
        for name in NAMES:
            sys.modules.pop(name, None)
        sys.modules.update(others)
