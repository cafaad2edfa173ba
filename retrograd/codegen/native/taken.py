"""The operations that kernels take: those that C has a text for, on dtypes that it has."""

from __future__ import annotations

import numpy as np

from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import LoopNode, loop_of
from ...ir.texts import Arg
from . import views  # noqa: F401 - it fills the table of views
from .c_texts import text_of
from .choices import counts, is_choice
from .decided_formulas import FORMULAS, adds_up, is_formula
from .decided_places import writes_at
from .decided_slices import is_ragged
from .element_form import PRODUCTS, is_small_product, other_form
from .elements import VIEWS
from .indices import TYPES
from .running import RECURRENCE

WRITES = frozenset({"additem", "setitem", "subitem"})
COPIES = frozenset({"copy", "owned"})


def takes(node: Node) -> bool:
    """Whether a kernel may compute a node."""
    if node.prim.name == "step_numbers":
        return True
    if node.prim.name == "const" and node.out.aval.dtype.kind == "i" and not isinstance(node.attrs["value"], tuple):
        return _known(node.out) and -(2**63) <= node.attrs["value"] < 2**63
    values = (*node.inputs, *node.outputs)
    if node.effect or any(v.aval.steps is not None for v in values if loop_of(node) is None):
        return False
    loop = loop_of(node)
    return _computed(node) and not any(
        v.aval.kind == "python" and not _given(v) and (loop is None or not counts(loop, v)) for v in node.outputs
    )


def rounds(node: Node) -> bool:
    """Whether a result may have other last bits in C: if C takes such a node, it does so wherever the node stands."""
    if node.prim.name in ("sum", "prod"):
        return node.out.aval.dtype.kind in "fc"  # NumPy's order depends on the order of an array in memory
    text = text_of(node)
    if node.prim in FORMULAS:
        return adds_up(node)
    if node.prim.name in (RECURRENCE, "dot_within"):
        return node.out.aval.dtype.kind == "f"  # NumPy computes halves, and BLAS products in another order
    return node.prim.name in PRODUCTS or (text is not None and text.ulp > 0)


def _inside(node: Node) -> bool:
    """Whether the body of a loop that is written in C may have a node."""
    grows = any(-1 in (v.aval.steps or ()) for v in (*node.inputs, *node.outputs))
    return not node.effect and not grows and _computed(node)


def _computed(node: Node) -> bool:
    if not all(map(_known, (*node.inputs, *node.outputs))):
        return False
    loop = loop_of(node)
    if loop is not None:
        simple = loop.plan is None and (loop.length > 0 or loop.condition is not None or _only_carries(loop))
        return simple and all(_plain(body) for body in (loop.body, loop.condition) if body is not None)
    if is_choice(node):
        return all(_plain(body) for _, body in node.graphs)
    if node.prim.structure is not None:
        return False
    if node.prim in FORMULAS:
        return is_formula(node)
    if other_form(node) is not None or is_ragged(node):
        return True
    text, name = text_of(node), node.prim.name
    pythons = name != "const" and any(v.aval.kind == "python" for v in node.outputs)
    if pythons and any(v.aval.dtype.kind == "c" for v in (*node.inputs, *node.outputs)):
        return False  # Python's complex numbers have other quotients and errors
    if name in ("matmul", "vecdot"):
        return is_small_product(node)
    if name == "gather" or writes_at(node) or (name == "getitem" and len(node.inputs) > 1):
        return all(item is None or isinstance(item, (Arg, int, slice)) for item in node.attrs["index"])
    if text is None:
        return name in ("const", "step_numbers") or (name in VIEWS and _plain_view(node))
    kinds = {v.aval.dtype.kind for v in node.inputs if v.aval.kind != "python"} or {node.inputs[0].aval.dtype.kind}
    if name == "where":
        kinds = {node.inputs[1].aval.dtype.kind}
    return kinds <= set(text.kinds)


def _plain(body: Graph) -> bool:
    return all(map(_known, (*body.inputs, *body.outputs))) and all(map(_inside, body.nodes))


def _only_carries(loop: LoopNode) -> bool:
    return loop.count is not None and len(loop.node.outputs) == loop.layout.carry


def _plain_view(node: Node) -> bool:
    before, after = node.inputs[0].aval if node.inputs else None, node.out.aval
    if node.prim.name == "cast" and before is not None:
        whole = after.kind == "python" and not _given(node.out)  # Python's ints have no end
        lost = before.dtype.kind == "c" and after.dtype.kind not in "cb"
        return not lost and not (before.dtype.kind in "fc" and after.dtype.kind == "i") and not whole
    if node.prim.name == "iota":
        return after.dtype.kind != "b"
    items = node.attrs.get("index", ())
    if any(isinstance(i, (Arg, np.ndarray)) or not isinstance(i, (int, slice, type(None), type(...))) for i in items):
        return False
    if node.prim.name in WRITES:
        return len(node.inputs) == 2 and all(not isinstance(i, slice) or i.step in (None, 1) for i in items)
    return node.prim.name != "getitem" or len(node.inputs) == 1


def _known(value: Value) -> bool:
    aval = value.aval
    steps = () if aval.steps == (-1,) else aval.steps or ()
    return aval.kind != "generator" and aval.dtype.str[1:] in TYPES and min((*steps, *aval.shape), default=1) > 0


def _given(value: Value) -> bool:
    """Whether a kernel can give a number of Python's: its ints have no end."""
    return value.aval.dtype in (np.float64, np.bool_)
