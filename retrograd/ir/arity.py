"""The number of operands of a node whose shape rule takes any number of them: its code names each."""

from __future__ import annotations

import inspect
import re
from functools import lru_cache

from .graph import Node
from .primitive import Primitive
from .texts import Template
from .verify import CHECKS

OPERAND = re.compile(r"(?<!\{)\{(\d+)[}!:.]")


@lru_cache(maxsize=1024)
def _template(prim: Primitive) -> Template:
    """The code that tells the number of operands, if the shape rule does not."""
    kinds = [parameter.kind for parameter in inspect.signature(prim.shape).parameters.values()]
    return (prim.numpy.statement or prim.numpy.code) if inspect.Parameter.VAR_POSITIONAL in kinds else ""


@lru_cache(maxsize=1024)
def _named(template: str) -> int | None:
    """The number of operands that a template names; None if it takes lists of them."""
    found = [int(k) for k in OPERAND.findall(template)]
    return None if not found or "{args}" in template or "{index}" in template else max(found) + 1


def wrong_arity(node: Node) -> str:
    """What is wrong with the number of operands, or nothing."""
    template = _template(node.prim)
    if not template:
        return ""
    count = _named(template if isinstance(template, str) else template(node)) if node.inputs else 0
    if count is None or count == len(node.inputs):
        return ""
    return f"{node.prim.name} takes {count} operands, but has {len(node.inputs)}"


CHECKS.append(wrong_arity)
