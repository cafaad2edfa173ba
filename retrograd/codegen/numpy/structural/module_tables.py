"""Arrays of known numbers: they stand at the top of a module, under names that its function only reads."""

from __future__ import annotations

from typing import Any

from ....ir.graph import Node
from ....ir.texts import literal
from ....ops.module_arrays import module_arrays
from ..emitter import Emitter, emits


@emits(module_arrays)
def _module_arrays(emitter: Emitter, node: Node, ins: list[str], outs: list[str]) -> None:
    lines = []
    for value, row in zip(node.outputs, node.attrs["values"], strict=True):
        name = _name(emitter, value.hint)
        emitter.name[value] = name
        emitter.unmade.add(value)
        lines.append(f"{name} = np.array([{', '.join(map(literal, row))}], {literal(value.aval.dtype)})")
    emitter.scope.helpers["\n".join(lines)] = None


def _name(emitter: Emitter, hint: Any) -> str:
    """A name that is free at the top of the module and in the function."""
    taken = emitter.scope.names.used
    while (name := emitter.fresh(hint)) in taken:
        pass
    taken.add(name)
    return name
