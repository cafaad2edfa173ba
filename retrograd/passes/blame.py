"""blame: an error in a rewrite rule of the user's becomes one that names the rule, its line, and what it replaced."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from ..errors import OptionError, RetrogradError
from ..ir.graph import Node
from ..ir.primitive import TRANSFORMS
from ..where import Where

REMEDY = (
    "a rule works with symbols, which NumPy's functions do not take: write operators and primitives (from "
    "retrograd.ops.elementary import exp). The rule of rebuild returns None, or a list with a symbol for each result; "
    "b.constant(2.0, aval) makes a symbol of a number"
)


@TRANSFORMS.register("blame")
def blame(fault: Exception, rule: Callable[..., Any] | None, replaced: Node | str) -> None:
    """Raise the error that tells whose rule failed; nothing for our own rules, and for errors that say it already."""
    code = getattr(rule, "__code__", None)
    ours = getattr(rule, "__module__", None) or ""
    if code is None or ours.partition(".")[0] == "retrograd" or isinstance(fault, RetrogradError):
        return
    where = line_in(code.co_filename, fault) or Where(code.co_filename, code.co_firstlineno)
    what = replaced if isinstance(replaced, str) else f"{replaced.prim.name} ({replaced.where or 'no line'})"
    raise OptionError(
        f"the rule {code.co_qualname} fails at {what}: {type(fault).__name__}: {fault}", where=where, remedy=REMEDY
    ) from fault


def line_in(file: str, fault: BaseException) -> Where | None:
    """The innermost line of a file on the way to an error."""
    lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == file]
    return Where(file, lines[-1]) if lines and lines[-1] is not None else None
