"""The examples as modules."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def example(request):
    """The example that a module of tests names as ``EXAMPLE``."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield importlib.import_module(request.module.EXAMPLE)
    finally:
        sys.path.remove(str(EXAMPLES))
