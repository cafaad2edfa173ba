"""rg.config.workspace: memory for large intermediate results, which each thread keeps for its next call.

The system fills the pages that it hands out with zeros. For arrays of 0.2 to 4 MB this costs more than an operation.
A piece of memory is used again only if no array in it is left, as its count of references tells. So an array that
outlives its call, in a callback or in the frames of an exception, is never written over.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import OptionError
from ..ir.target import PROVIDERS
from .settings import Config

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class _KeptBlocks(threading.local):
    """The blocks that a thread keeps, and the limit under which it keeps them."""

    def __init__(self) -> None:
        self.blocks: list[Bytes] = []
        self.limit = 0


_kept = _KeptBlocks()
LISTENERS: list[Callable[[int], None]] = []  # they are told the limit when it changes
_limit = 128 * 2**20


def _taken(blocks: list[Bytes]) -> tuple[Bytes, int]:
    """A block, taken out of a list, and the number of references to it.

    A handler of a signal that calls a compiled function meanwhile does not find the block.
    """
    block = blocks.pop(0)
    return block, sys.getrefcount(block)


_, _IDLE = _taken([np.empty(1, np.uint8)])  # references to a block in which no array lies


def workspace(nbytes: int) -> Bytes:
    """Like the function of this name in generated modules, with memory of an earlier call if it is large enough."""
    blocks = _kept.blocks
    if _kept.limit != _limit:
        blocks.clear()
        _kept.limit = _limit
    used = []
    for _ in range(len(blocks)):
        block, references = _taken(blocks)
        if references > _IDLE:
            used.append(block)
        elif block.nbytes >= nbytes:
            blocks += [*used, block]
            return block
    block = np.empty(nbytes, np.uint8)
    blocks += [*used, block] if nbytes <= _limit else used
    while sum(kept.nbytes for kept in blocks) > _limit:
        del blocks[0]
    return block


PROVIDERS.append(lambda graph: {"workspace": workspace})


def limit() -> int:
    """The bytes that a thread may keep."""
    return _limit


def _get(config: Config) -> int:
    return _limit


def _set(config: Config, count: int) -> None:
    global _limit  # noqa: PLW0603 - the process has one such setting
    if type(count) is not int or count < 0:
        raise OptionError(f"rg.config.workspace = {count!r}", remedy="choose a number of bytes, or 0 to keep none")
    _limit = count
    _kept.blocks.clear()
    for told in LISTENERS:
        told(count)


Config.workspace = property(_get, _set)  # type: ignore[attr-defined]  # part of no key: results do not depend on it
