"""What counts as an operation on rows gives the same on blocks of rows, for every primitive on every sample."""

from __future__ import annotations

import pytest

from retrograd.ir import Graph, evaluate, verify
from retrograd.ir.builder import Builder
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.rewrite import copy_nodes
from retrograd.passes.row_roles import Rows
from retrograd.passes.rows_in_blocks import RowBlocks
from tests.laws.test_primitives import each_sample, over_primitives
from tests.support import laws, values
from tests.support.samples import SAMPLES, Sample

KINDS = ({}, {"stacks": True}, {"several": True})


def behind(graph: Graph) -> Graph:
    """The graph with negated results, so that an operation on rows reads what is a view."""
    b = Builder()
    env = dict(zip(graph.inputs, b.share_inputs(graph), strict=True))
    copy_nodes(b, graph.nodes, env)
    arrays = [v for v in graph.outputs if v.aval.kind == "array" and v.aval.steps is None]
    numbers = [env[v] for v in arrays if v.aval.dtype.kind in "ifc"]
    return b.graph(graph.name, [-x for x in numbers])


def in_blocks(sample: Sample) -> int:
    """The loops over rows of a sample, each of which gives what the whole arrays give."""
    graph, args, found = behind(sample.graph()), sample.operands(), 0
    if not graph.outputs:
        return 0
    expected = list(evaluate(graph, args))
    for n in {v.aval.shape[0] for v in graph.inputs if v.aval.shape and v.aval.shape[0] > 1}:
        for kind in KINDS:
            rows = Rows(graph, n, **kind)
            nodes = [node for node in graph.nodes if node in rows.roles]
            if len(nodes) < len(graph.nodes):
                continue
            looped = verify(RowBlocks(graph, rows, nodes, lambda n, widest: max(1, n // 2)).graph())
            values.assert_close(list(evaluate(looped, args)), expected, laws.tolerance_of(graph))
            found += 1
    return found


@pytest.mark.whole
@over_primitives
def test_blocks_of_rows_give_what_whole_arrays_give(name: str) -> None:
    each_sample(name, lambda sample: in_blocks(sample) and None)


@pytest.mark.parametrize(
    "name", ["add", "broadcast", "getitem", "matmul", "putmask", "reshape", "sin", "sum", "vecdot"]
)
def test_operations_on_rows_are_known(name: str) -> None:
    assert name in REGISTRY
    assert sum(map(in_blocks, SAMPLES[name])) > 0
