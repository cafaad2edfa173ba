"""The graph that a fold makes, and its values for values of the old one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Value
from ...ir.types import Aval
from ...ops.gather import counted


@dataclass(frozen=True, eq=False)
class FoldedGraph:
    """The new graph, and its values for values of the old one."""

    b: Builder
    graph: Graph
    env: dict[Value, Symbol]
    columns: list[np.ndarray[Any, Any]]  # the values of the last inputs

    def numbers(self, numbers: np.ndarray[Any, Any]) -> Symbol:
        """The numbers of all steps: an iota if they are integers that count, else an input."""
        if (counting := counted(self.b, numbers)) is not None:
            return counting
        known = self.b.inputs[len(self.b.inputs) - len(self.columns) :]
        for column, value in zip(self.columns, known, strict=True):
            if column.dtype == numbers.dtype and column.tobytes() == numbers.tobytes():
                return self.b.symbol(value)
        self.columns.append(numbers)
        return self.b.input(Aval(numbers.shape, numbers.dtype))

    def at(self, value: Value) -> Symbol:
        """A value of the old graph in the new one; a node that belongs to no copy is emitted at its first use."""
        if value not in self.env:
            node = self.graph.producer[value]
            self.env[value] = self.b.copy_node(node, [self.at(v).value for v in node.inputs])[0]
        return self.env[value]
