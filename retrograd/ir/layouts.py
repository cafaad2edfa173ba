"""Whether a reshape gives a view or must copy, which NumPy decides by the strides of what it gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .evaluate import run_node
from .graph import Node, Value


def copies(node: Node, made: Mapping[Value, Node]) -> bool:
    """Whether this node is a reshape that copies, what its storage began as being contiguous.

    The views on the way are made of an array that has strides but no memory: none of its elements is ever read.
    """
    if node.prim.name != "reshape":
        return False
    chain, value = [node], node.inputs[0]
    while (source := made.get(value)) is not None and source.prim.alias is not None:
        if len(source.inputs) > 1:
            return False
        chain.append(source)
        value = source.inputs[0]
    view, copied = _contiguous(value), False
    for step in reversed(chain):
        copied = False
        if step.prim.name != "reshape":
            view = run_node(step, [view])[0]
            continue
        try:
            view = np.reshape(view, step.out.aval.shape, copy=False)
        except ValueError:
            view, copied = _contiguous(step.out), True
    return copied


def _contiguous(value: Value) -> np.ndarray[Any, Any]:
    shape, size = value.aval.shape, value.aval.dtype.itemsize
    strides = [size * int(np.prod(shape[k + 1 :], dtype=np.int64)) for k in range(len(shape))]
    return np.lib.stride_tricks.as_strided(np.empty(1, value.aval.dtype), shape, strides, writeable=False)
