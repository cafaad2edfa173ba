"""stale: whether a compiled function differs from a new recording of the same function.

Arrays that the function names enter by reference, and names are followed. Values computed from arrays that it reaches
in other ways are baked into the recording. With ``rg.config.check_captures`` each call records once more and compares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import StaleCaptureWarning
from ..ir.builder import attrs_key
from ..tracer.record import Recorded
from ..tracer.trace import Capture
from ..where import Where, warn
from .compilation import INSPECTORS
from .settings import config

if TYPE_CHECKING:
    from .compiled import Compiled

REMEDY = "pass it as an argument, or let the function name it as a global, a closure or a default argument"


def stale(compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the recording for a call differs from a new one; StaleCaptureWarning if so."""
    call = compiled._take(args, kwargs)
    paths = compiled._cache.entries.get((config.now(), call.key()))
    if paths is None:
        return False
    known = paths.way(compiled, call.values())
    difference = _difference(known.recorded, compiled._record(call)[0])
    if difference is not None:
        what = f"{compiled!r} was compiled with something that has changed since: {difference}"
        warn(f"{what}. {REMEDY}", StaleCaptureWarning)
    return difference is not None


def _difference(then: Recorded, now: Recorded) -> str | None:
    """The difference of two recordings for the same arguments, in words."""
    names = dict(zip(then.graph.inputs, now.graph.inputs, strict=False))
    for a, b in zip(then.graph.nodes, now.graph.nodes, strict=False):
        same = a.prim is b.prim and len(a.inputs) == len(b.inputs)
        same = same and all(names.get(v) is w for v, w in zip(a.inputs, b.inputs, strict=True))
        if not same or (not any(a.graphs) and attrs_key(a.attrs) != attrs_key(b.attrs)):
            return f"a number, or what is done, at {a.where or b.where}"
        names.update(zip(a.outputs, b.outputs, strict=True))
    if len(then.graph.nodes) != len(now.graph.nodes) or len(then.captures) != len(now.captures):
        return "what is done"
    for p, q in zip(then.captures, now.captures, strict=True):
        if not _same(p, q):
            return f"an array of shape {np.shape(p.payload)} that meets a traced value at {_first_use(then, p)}"
    return None


def _same(p: Capture, q: Capture) -> bool:
    if p.payload is q.payload or not isinstance(p.payload, np.ndarray):
        return True
    return bool(p.payload.shape == q.payload.shape and p.payload.tobytes() == q.payload.tobytes())


def _first_use(recorded: Recorded, capture: Capture) -> Where | str:
    users = (node.where for node in recorded.graph.nodes if capture.symbol.value in node.inputs)
    return next(users, None) or "the result"


INSPECTORS["stale"] = stale
