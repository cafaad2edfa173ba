"""An emitter that lays the large intermediate results of a module's function into memory kept from call to call."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.embedded_functions import embedded
from ...ir.texts import literal
from .bodies import BodyEmitter
from .emitter import EMITTER_CLASSES
from .packing import WorkspaceLayout, pack


@embedded()
def workspace(nbytes: int) -> np.ndarray[Any, Any]:
    """Memory for intermediate results. In compiled functions, it is kept for the next call."""
    return np.empty(nbytes, np.uint8)


class WorkspaceEmitter(BodyEmitter):
    """Writes one function; the function of the module, unlike those that it calls, has a workspace."""

    def written(self) -> tuple[list[str], list[str] | None]:
        """Emit the function: its parameters, and the expressions of its results."""
        parameters = [self.assign(v) for v in self.plan.order.inputs]
        if len(self.scope.open) == 1:
            self.lay_out(pack(self.plan))
        return parameters, self.graph(self.plan)

    def memory(self, packed: WorkspaceLayout) -> str:
        """Source of the memory of a layout."""
        self.embed("workspace")
        return f"workspace({packed.nbytes})"

    def lay_out(self, packed: WorkspaceLayout, length: str = "") -> None:
        """Write the arrays of a layout; ``length`` is the source of the length of blocks."""
        if not packed.places:
            return
        memory = self.fresh("memory")
        self.line(f"{memory} = {self.memory(packed)}")
        names: dict[object, str] = {}
        for value, at in packed.places.items():
            rows, body = packed.rows.get(value, (None, None))
            shape, dtype = length or value.aval.shape, value.aval.dtype
            if rows is not None:
                shape = (rows.number, *value.aval.shape)
            if (shape, dtype, at) not in names:
                names[shape, dtype, at] = self.fresh("states" if rows else "work")
                place = f"np.ndarray({shape}, {literal(dtype)}, {memory}, {at})"
                self.line(f"{names[shape, dtype, at]} = {place}")
            if body is None:
                self.work[value] = names[shape, dtype, at]
            else:
                self.states.setdefault(body, {})[value] = names[shape, dtype, at], rows.source if rows else ""
        self.at_work.update(packed.members)


EMITTER_CLASSES.append(WorkspaceEmitter)
