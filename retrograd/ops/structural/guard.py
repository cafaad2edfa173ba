"""Guards: Python decisions made during tracing must have the same answers when the graph runs.

A ``guard`` marks where Python asked a traced value for a bool or an int. If its value gives another answer than the
traced one, this graph does not apply, and it ends in a ``Miss``.
"""

from __future__ import annotations

from typing import Any

from ...errors import ControlFlowError
from ...ir.graph import Node
from ...ir.primitive import Primitive, primitive
from ...ir.target import PROVIDERS
from ...ir.types import Aval

KINDS = ("bool", "int", "number", "size")  # the kinds of questions
OF_LANES = ("bool", "int", "number")  # the kinds that lanes may answer


class Miss(Exception):  # noqa: N818 - a signal, not an error: the caller records the path that is missing
    """A guard found another answer than the recorded one; this holds the value that it checked."""

    def __init__(self, value: Any, where: object = None) -> None:
        super().__init__(value)
        self.value, self.where = value, where


def parted(where: Any) -> ControlFlowError:
    """The error for batch elements that need different paths."""
    what = "batch elements of a vmap make different Python decisions"
    return ControlFlowError(what, where=where, remedy="choose with np.where or rg.cond")


def answer(value: Any, kind: str) -> Any:
    """The answer that Python gets for a value."""
    if kind == "bool":
        return bool(value)
    if kind == "int":
        return int(value)
    return len(value) if kind == "size" else value.item() if hasattr(value, "item") else value


def guard_shape(value: Aval, *, kind: str, expected: Any, lanes: bool) -> tuple[Aval, ...]:
    """The shape rule of a guard, which has no results."""
    if kind not in KINDS or (lanes and (kind not in OF_LANES or not value.shape)):
        raise ValueError(f"no guard asks a {value} for {kind!r}")
    return ()


def _guard_run(_: Any, node: Node, value: Any) -> tuple[Any, ...]:
    kind, expected = node.attrs["kind"], node.attrs["expected"]
    lanes = [answer(v, kind) for v in value] if node.attrs["lanes"] else [answer(value, kind)]
    if len(set(lanes)) > 1:
        raise parted(node.where)
    if any(lane != expected for lane in lanes):
        raise Miss(value, node.where)
    return ()


def _guard_batch(
    prim: Primitive, _: int, args: list[Any], __: list[bool], kind: str, expected: Any, lanes: bool
) -> tuple[list[Any], list[bool]]:
    b = args[0].builder
    if lanes or kind not in OF_LANES:
        what = "a Python decision under two nested vmaps" if lanes else "a shape that depends on data, under vmap"
        raise ControlFlowError(what, where=b.where, remedy="choose with np.where or rg.cond")
    b.emit(prim, (args[0].value,), {"kind": kind, "expected": expected, "lanes": True})
    return [], []


guard: Primitive = primitive("guard", guard_shape, run=_guard_run, batch=_guard_batch, multi=True, effect=True)


def _miss(value: Any) -> None:
    raise Miss(value)


PROVIDERS.append(lambda graph: {"miss": _miss})
