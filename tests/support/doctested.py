"""Pages as doctests."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Checker(doctest.OutputChecker):
    """Generated source names the user's file; on a page that is ``program.py``."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, re.sub(r"<doctest [^>]*>", "program.py", got), optionflags)


def failures(text: str, name: str) -> int:
    """The number of examples of a page that print something else than the page shows."""
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, Path(name).name, name, 0)
    return doctest.DocTestRunner(Checker(), optionflags=FLAGS).run(test).failed
