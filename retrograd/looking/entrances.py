"""The members of compiled functions that look inside, and what notebooks ask for: drawings, cells, tracebacks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..compiler.compiled import Compiled, member
from ..compiler.phases import OTHERWISE
from ..ir.graph import Graph
from ..where import CELLS
from . import cells, terminal, tracebacks

if TYPE_CHECKING:
    from pathlib import Path

    from .explanation import FunctionExplanation, Profile


@member
def explain(self: Any, /, *args: Any, check: bool = True, **kwargs: Any) -> FunctionExplanation:
    """What was made of a call with these arguments: print the result, look at it in a notebook, or read its fields.

    It says which inputs matter, counts operations by family, and gives for each line of the program floating-point
    operations, bytes, and predicted and measured time, of the function and of its derivative. It says what is kept
    and computed again, which decisions this way took, what was folded, fused or refused and why, and what the cache and
    the compilation rely on. With ``check``, the derivative is compared with central differences.

    The compiled code runs many times, for some tenths of a second; what it writes into are copies. Raises what a call
    with these arguments raises.

    >>> import numpy as np, retrograd as rg
    >>> found = rg.grad(lambda x, a: np.sum(np.sin(x))).explain(np.ones(3), 2.0)
    >>> found.checked, [(use.name, use.result) for use in found.inputs]
    (True, [('x', True), ('a', False)])
    """
    from .anatomy import Anatomy  # noqa: PLC0415 - few programs look inside
    from .explain_call import explain as explained  # noqa: PLC0415 - likewise

    return explained(Anatomy(self, args, kwargs), check)


@member
def profile(self: Any, /, *args: Any, **kwargs: Any) -> Profile:
    """The measured time of a call with these arguments by line of the program, in the function and in its derivative.

    Print the result, or read its ``lines``. The compiled code runs many times, for some tenths of a second. Raises what
    a call with these arguments raises.

    >>> import numpy as np, retrograd as rg
    >>> found = rg.grad(lambda x: np.sum(np.sin(x))).profile(np.ones(3))
    >>> abs(sum(line.measured for line in found.lines) / found.seconds - 1) < 1e-6
    True
    """
    from .anatomy import Anatomy  # noqa: PLC0415 - few programs look inside
    from .explain_call import profile as profiled  # noqa: PLC0415 - likewise

    return profiled(Anatomy(self, args, kwargs))


@member
def report(self: Any, path: str | os.PathLike[str], /, *args: Any, check: bool = True, **kwargs: Any) -> Path:
    """Write a page about a call with these arguments; any browser shows it, without a network.

    It holds the graph of the function and its adjoint, in groups that open; a click on an operation shows its line, the
    generated statement, its shape, bytes and cost, and its adjoint. Beside it stand both sources, the memory over time,
    the cost of less memory, and all that ``explain`` says. The file is whole or not written.

    Returns the path. Raises OSError where it cannot be written, and what a call with these arguments raises.

    >>> import numpy as np, retrograd as rg, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = rg.grad(lambda x: np.sum(x**2)).report(pathlib.Path(folder, "report.html"), np.ones(3))
    ...     print(path.name, path.read_text(encoding="utf-8")[:15])
    report.html <!doctype html>
    """
    from .anatomy import Anatomy  # noqa: PLC0415 - few programs look inside
    from .page import write_page  # noqa: PLC0415 - likewise

    return write_page(Anatomy(self, args, kwargs), path, check)


def source(self: Any, /, *args: Any, **kwargs: Any) -> str:
    """The generated module for these arguments: it runs on NumPy alone, and SciPy where it is used.

    A notebook shows it in two columns, with the user's line beside the statements that stand for it.
    """
    from .notebook import source_of  # noqa: PLC0415 - it is needed for sources alone

    return source_of(self.at(*args, **kwargs).executable)


def _graph_html(self: Graph) -> str:
    from .notebook import graph_html  # noqa: PLC0415 - notebooks ask for it

    return graph_html(self)


def _compiled_html(self: Compiled) -> str:
    from .notebook import compiled_html  # noqa: PLC0415 - notebooks ask for it

    return compiled_html(self)


tracebacks.install()
OTHERWISE.append(terminal.on_terminal)
CELLS.append(cells.cell_of)
# These classes belong to lower rooms, which know no HTML.
for cls, name, function in (
    (Compiled, "source", source),
    (Compiled, "_repr_html_", _compiled_html),
    (Graph, "_repr_html_", _graph_html),
):
    setattr(cls, name, function)
