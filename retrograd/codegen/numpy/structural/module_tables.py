"""Arrays of known numbers: they stand at the top of a module, under names that its function only reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.graph import Node
from ....ops.module_arrays import module_arrays
from ..emitter import Emitter, emits


@emits(module_arrays)
def _module_arrays(emitter: Emitter, node: Node, ins: list[str], outs: list[str]) -> None:
    for value, row in zip(node.outputs, node.attrs["values"], strict=True):
        name = _name(emitter, value.hint)
        emitter.name[value] = name
        emitter.unmade.add(value)
        emitter.scope.arrays[name] = np.array(row, value.aval.dtype)


def _name(emitter: Emitter, hint: Any) -> str:
    """A name that is free at the top of the module and in the function."""
    taken = emitter.scope.names.used
    while (name := emitter.fresh(hint)) in taken:
        pass
    taken.add(name)
    return name
