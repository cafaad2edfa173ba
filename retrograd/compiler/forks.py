"""A fork waits until no other thread is in the middle of an import that this package began.

The child would find the module locked by a thread that it does not have, and wait for ever when it needs the module.
Much is imported when it is first needed: templates, the native target, parts of SciPy, what traced functions import.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType

IMPORTER = "<frozen importlib._bootstrap>"  # the file of Python's own code for imports, in tracebacks too
OURS = str(Path(__file__).parents[1])
PATIENCE, PAUSE = 10.0, 0.001  # seconds: an import may itself wait for the thread that forks


def _wait_for_imports() -> None:
    end = time.monotonic() + PATIENCE
    while any(_in_import(frame) for frame in _of_other_threads()) and time.monotonic() < end:
        time.sleep(PAUSE)


def _of_other_threads() -> list[FrameType]:
    own = threading.get_ident()
    return [frame for thread, frame in sys._current_frames().items() if thread != own]


def _in_import(frame: FrameType | None) -> bool:
    """Whether code of this package waits for an import. A program that runs while it is imported does not count."""
    importing = False
    while frame is not None:
        file = frame.f_code.co_filename
        if importing and file.startswith(OURS):
            return True
        importing = importing or file == IMPORTER
        frame = frame.f_back
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports)
