"""Example results of a node that may throw during tracing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import Thrown
from ..ir.builder import Builder
from ..ir.evaluate import evaluate
from ..ir.primitive import TRANSFORMS
from ..ir.types import Aval, aval_of
from ..ops.structural.loops import MOST_STEPS
from ..ops.structural.throw import Leaving
from ..tracer.around import kept
from ..tracer.array import settled, wrap
from ..tracer.trace import BY_VALUE, Trace
from ..tracer.tree import map_leaves
from ..where import user_site

FEW = 2
kept(MOST_STEPS)


@TRANSFORMS.register("examples")
def examples(
    trace: Trace, run: Callable[[], Sequence[Any]], avals: Sequence[Aval], operands: Sequence[Any] | None = None
) -> Sequence[Any]:
    """Example results; zeros if the node throws, and a later node is to catch it.

    In a function that is recorded for all values, or does not run on its examples, loops run a few steps only. If these
    ``operands`` are all known, the results become constants of the function, and loops run to their ends.
    """
    known = operands is not None and settled(operands)
    token = MOST_STEPS.set(None if trace.runs or known else FEW)
    try:
        return run()
    except Thrown as thrown:
        if trace.runs:
            raise Thrown(map_leaves(_out_of_reach, thrown.payload)) from None
    except Leaving:
        pass
    except BY_VALUE:
        if trace.runs:
            raise
    finally:
        MOST_STEPS.reset(token)
    b = Builder()
    return evaluate(b.graph("zeros", [b.zeros(a) for a in avals]), ())


def _out_of_reach(x: Any) -> Any:
    """A value thrown out of a loop or a branch, as a traced value that no computation may use.

    The code that catches it in Python has left the graph that the value belongs to.
    """
    if not isinstance(x, (np.ndarray, np.generic, float, complex)):
        return x
    ended = Trace("a loop or a choice that was left by throwing", None)
    tracer = wrap(ended, ended.builder.input(aval_of(x)), x, user_site()[0])
    ended.active = False
    return tracer
