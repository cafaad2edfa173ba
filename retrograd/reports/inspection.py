"""The members of compiled functions that report: pictures, plans of memory, and the cost of less memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..compiler.compilation import INSPECTORS
from ..compiler.compiled import member
from ..ir.graph import FORMS
from .unused import warn_of_unused_plans

if TYPE_CHECKING:
    from .curves import Tradeoff
    from .memory import MemoryReport

INSPECTORS["unused plans"] = warn_of_unused_plans


@member
def dot(self: Any, /, *args: Any, **kwargs: Any) -> str:
    """The graph for these arguments as DOT text, for Graphviz.

    Parameters
    ----------
    *args, **kwargs
        The arguments of a call; also ``stage``, as for ``graph``.

    Returns
    -------
    str
        The text.

    Raises
    ------
    RetrogradError
        Whatever a call with these arguments raises.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.grad(np.sin).dot(0.5).splitlines()[0]
    'digraph "sin_grad" {'
    """
    return str(FORMS["dot"](self.graph(*args, **kwargs)))


@member
def plan(self: Any, /, *args: Any, **kwargs: Any) -> MemoryReport:
    """The memory that a call with these arguments keeps, and the work that it repeats.

    Parameters
    ----------
    *args, **kwargs
        The arguments of a call.

    Returns
    -------
    MemoryReport
        Print it, or read ``peak_bytes``, ``saved``, ``advances`` and ``recomputed``.

    Raises
    ------
    RetrogradError
        Whatever a call with these arguments raises.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> loop = lambda x: np.sum(rg.fori_loop(100, lambda i, c: np.sin(c), x, memory=rg.Snapshots(5)))
    >>> plan = rg.grad(loop).plan(np.ones(1000))
    >>> plan.advances
    316
    """
    from .memory import report  # noqa: PLC0415 - few programs look at plans

    return report(self.at(*args, **kwargs))


@member
def tradeoff(self: Any, /, *args: Any, **kwargs: Any) -> Tradeoff:
    """The cost of less memory: the peak of a call and the repeated work, from all memory to the least.

    A gradient without loops keeps ever fewer values. Loops follow plans that keep ever fewer states. Nothing is
    compiled.

    Parameters
    ----------
    *args, **kwargs
        The arguments of a call.

    Returns
    -------
    Tradeoff
        Print it, or draw it.

    Raises
    ------
    RetrogradError
        Whatever a call with these arguments raises.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> curve = rg.grad(lambda x: np.sum(np.sin(np.exp(np.tanh(x))))).tradeoff(np.ones(1000))
    >>> bool(curve.points[0].peak_bytes > curve.points[-1].peak_bytes)
    True
    """
    from .curves import tradeoff as traded  # noqa: PLC0415 - likewise

    return traded(self.at(*args, **kwargs))
