"""Loops that report their progress: ``progress=True``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import OptionError
from ..ops.ticks import ticked
from ..tracer.array import Tracer, apply
from ..tracer.outside import trace_here
from ..tracer.tree import flatten, unflatten
from ..where import user_site

Progressing = bool | str


class Marks:
    """The ticks of one loop: ``body`` adds them to its steps, and ``result`` to what it returns."""

    def __init__(self, kind: str, progress: Progressing, total: int | None) -> None:
        if not isinstance(progress, (bool, str)):
            raise OptionError(f"progress={progress!r}", remedy="choose from False, True, and a name for the loop")
        where = user_site()[0]
        name = progress if isinstance(progress, str) else f"{kind} at {where.short}" if where is not None else kind
        self.on = bool(progress)
        self.attrs = {"loop": name, "total": -1 if total is None else int(total)}

    def body(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """The body, which tells at the end of each step."""
        if not self.on or not callable(body):
            return body

        @functools.wraps(body)
        def step(*args: Any) -> Any:
            return self._marked(body(*args), "step")

        return step

    def start(self, init: Any) -> Any:
        """What the first step gets, which tells that the loop begins."""
        return self._marked(init, "begin") if self.on and trace_here() is not None else init

    def result(self, tree: Any) -> Any:
        """The result of the loop, which tells that it has ended."""
        return self._marked(tree, "end") if self.on and trace_here() is not None else tree

    def _marked(self, tree: Any, event: str) -> Any:
        leaves, spec = flatten(tree)
        k = _carrier(leaves)
        if k is None:
            return tree
        leaves[k] = apply(ticked, [leaves[k]], event=event, **self.attrs)
        return unflatten(spec, leaves)


def _carrier(leaves: Sequence[Any]) -> int | None:
    """The leaf that carries a tick: the first floating-point one, whose cotangent tells of the adjoint."""
    traced = [k for k, x in enumerate(leaves) if isinstance(x, Tracer) and not x.const]
    floating = [k for k in traced if leaves[k].dtype.kind in "fc"]
    return next(iter(floating or traced), None)
