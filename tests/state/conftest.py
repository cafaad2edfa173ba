"""The modules of the programs import each other by name, and are no tests; what is global is put back."""

import os
import random
import string
import sys
from collections.abc import Iterator

import pytest

collect_ignore = ["modules"]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """What the programs change of the standard library and the process is put back."""
    digits, state = string.digits, random.getstate()
    yield
    string.digits = digits
    random.setstate(state)
    os.environ.pop("RETROGRAD_TEST_K", None)
    for name in ("physics", "rig", "engine"):
        sys.modules.pop(name, None)
