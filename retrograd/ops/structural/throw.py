"""throw_if: the end of a computation if a bool holds, with a payload for the catcher.

``tag`` is 0 if ``try_catch`` catches the payload, else it is the number of the ``callcc`` that the throw leaves.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import Thrown
from ...ir.builder import Symbol
from ...ir.graph import Node
from ...ir.primitive import Primitive, primitive
from ...ir.target import PROVIDERS
from ...ir.texts import Arg
from ...ir.types import Aval
from ..elementwise import BOOL
from ..further_reductions import any_, argmax
from ..index import getitem

PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;!?-")


def form_of(tree: Any, leaves: list[Any]) -> str:
    """Source of a tree of tuples, lists and dicts, in which ``{0}`` stands for the first traced leaf, and so on.

    ``leaves`` are those leaves in order, compared by identity. Raises TypeError for an object that source cannot
    express.
    """
    for i, leaf in enumerate(leaves):
        if leaf is tree:
            return f"{{{i}}}"
    if type(tree) is tuple:
        return f"({''.join(form_of(x, leaves) + ', ' for x in tree).rstrip()})" if tree else "()"
    if type(tree) is list:
        return f"[{', '.join(form_of(x, leaves) for x in tree)}]"
    if type(tree) is dict:
        items = (f"{_text(key)}: {form_of(x, leaves)}" for key, x in tree.items())
        return f"{{{{{', '.join(items)}}}}}"
    return _text(tree)


def _text(x: Any) -> str:
    if isinstance(x, str):
        inside = "".join(c if c in PLAIN else f"\\U{ord(c):08x}" for c in x)
        return f"'{inside}'"
    if x is None or type(x) in (bool, int, float):
        return repr(x)
    raise TypeError(type(x).__name__)


def tree_of(form: str, leaves: Sequence[Any]) -> Any:
    """The tree that a form describes, with these leaves."""
    names = [f"_{i}" for i in range(len(leaves))]
    known = dict(zip(names, leaves, strict=True))

    def built(at: ast.expr) -> Any:
        if isinstance(at, ast.Name):
            return known[at.id]
        if isinstance(at, (ast.Tuple, ast.List)):
            return (tuple if isinstance(at, ast.Tuple) else list)(map(built, at.elts))
        if isinstance(at, ast.Dict):
            return {built(k): built(v) for k, v in zip(at.keys, at.values, strict=True) if k is not None}
        return ast.literal_eval(at)

    return built(ast.parse(form.format(*names), mode="eval").body)


def _shape(pred: Aval, *_: Aval, form: str, tag: int) -> tuple[Aval, ...]:
    if pred.shape or pred.dtype != BOOL:
        raise ValueError(f"{pred} is not one bool")
    return ()


class Leaving(Exception):  # noqa: N818 - a signal, not an error
    """On example values, a continuation was called whose ``callcc`` is still being recorded."""


def _run(_: Any, node: Node, pred: Any, *payload: Any) -> tuple[Any, ...]:
    if pred:
        raise Leaving if node.attrs["tag"] else Thrown(tree_of(node.attrs["form"], payload))
    return ()


def _batch(prim: Primitive, size: int, args: list[Symbol], flags: list[bool], **attrs: Any) -> Any:
    """Throw if any lane does, with the payload of the first such lane."""
    (pred, *payload), b = args, args[0].builder
    if size and any(flags):
        lane = argmax(pred, axis=0) if flags[0] else b.constant(0, Aval((), np.dtype(np.int64), "scalar"))
        pred = any_(pred, axis=(0,), keepdims=False) if flags[0] else pred
        payload = [getitem(x, lane, index=(Arg(1),)) if f else x for x, f in zip(payload, flags[1:], strict=True)]
        b.emit(prim, [x.value for x in (pred, *payload)], attrs)
    return [], []


throw_if: Primitive = primitive("throw_if", _shape, multi=True, effect=True, run=_run, batch=_batch)


def _throw(form: str, *leaves: Any) -> None:
    raise Thrown(tree_of(form, leaves))


PROVIDERS.append(lambda graph: {"throw": _throw})
