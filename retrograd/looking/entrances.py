"""The members of compiled functions that look inside, and the support for notebooks: drawings, cells, tracebacks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..compiler.compiled import Compiled, member
from ..compiler.phases import OTHERWISE
from ..compiler.settings import config
from ..errors import OptionError
from ..ir.graph import Graph
from ..where import CELLS
from . import cells, terminal, tracebacks

if TYPE_CHECKING:
    from pathlib import Path

    from .explanation import FunctionExplanation, Profile


@member
def explain(self: Any, /, *args: Any, check: bool = True, **kwargs: Any) -> FunctionExplanation:
    """Explain a call with these arguments: inputs, costs by line, memory, decisions, and a check of the derivative.

    The explanation says which inputs matter and counts operations by family. For each line of the program it gives
    floating-point operations, bytes, and predicted and measured time, of the function and of its derivative. It says
    what is kept and computed again, which decisions this path took, what was folded, fused or refused and why, and what
    the cache and the compilation rely on. The compiled code runs many times, for some tenths of a second; what it
    writes into are copies.

    Parameters
    ----------
    *args, **kwargs
        The arguments of the call.
    check : bool
        Whether to compare the derivative with central differences.

    Returns
    -------
    FunctionExplanation
        Print it, look at it in a notebook, or read its fields.

    Raises
    ------
    RetrogradError
        Whatever a call with these arguments raises.

    Examples
    --------
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
    """Measure a call with these arguments: the time of each line of the program, in the function and in its derivative.

    The compiled code runs many times, for some tenths of a second.

    Parameters
    ----------
    *args, **kwargs
        The arguments of the call.

    Returns
    -------
    Profile
        Print it, or read its ``lines``.

    Raises
    ------
    RetrogradError
        Whatever a call with these arguments raises.

    Examples
    --------
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

    It holds the graph of the function and its adjoint, in groups that open. A click on an operation shows its line, the
    generated statement, its shape, bytes and cost, and its adjoint. Beside it stand both sources, the memory over time,
    the cost of less memory, and all that ``explain`` says. The file is whole or not written.

    Parameters
    ----------
    path : path
        The file.
    *args, **kwargs
        The arguments of the call.
    check : bool
        Whether to compare the derivative with central differences.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OSError
        If the file cannot be written.
    RetrogradError
        Whatever a call with these arguments raises.

    Examples
    --------
    >>> import numpy as np, retrograd as rg, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = rg.grad(lambda x: np.sum(x**2)).report(pathlib.Path(folder, "report.html"), np.ones(3))
    ...     print(path.name, path.read_text(encoding="utf-8")[:15])
    report.html <!doctype html>
    """
    from .anatomy import Anatomy  # noqa: PLC0415 - few programs look inside
    from .page import write_page  # noqa: PLC0415 - likewise

    return write_page(Anatomy(self, args, kwargs), path, check)


def source(self: Any, /, *args: Any, language: str = "numpy", **kwargs: Any) -> str:
    """The generated module for these arguments; it runs on NumPy alone, and on SciPy where SciPy is used.

    A notebook shows it in two columns, with the user's line beside the statements that stand for it.

    Parameters
    ----------
    *args, **kwargs
        The arguments of a call.
    language : {"numpy", "c"}
        With ``"c"``, the C that the native target compiles for the kernels of the module.

    Returns
    -------
    str
        The text of the module.

    Raises
    ------
    RetrogradError
        Whatever a call with these arguments raises.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.grad(np.sin).source(0.5).splitlines()[-1].strip()
    'return v1'
    """
    from .notebook import source_of  # noqa: PLC0415 - it is needed for sources alone

    if language not in ("numpy", "c"):
        raise OptionError(f"language={language!r}", remedy="choose from 'numpy' and 'c'")
    if language == "c":
        from ..codegen.native.target import c_source  # noqa: PLC0415 - few programs run C

        with config(backend="native"):
            return c_source(self.at(*args, **kwargs).executable.module)
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
# These classes belong to lower packages, which know no HTML.
for cls, name, function in (
    (Compiled, "source", source),
    (Compiled, "_repr_html_", _compiled_html),
    (Graph, "_repr_html_", _graph_html),
):
    setattr(cls, name, function)
