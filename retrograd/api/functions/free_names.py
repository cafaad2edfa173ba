"""The names that a code object takes from outside."""

from __future__ import annotations

import dis
import functools
from dataclasses import dataclass
from types import CodeType


@dataclass(frozen=True)
class FreeNames:
    """The ``globals`` that code reads, the cell variables that it has ``rebound``, and whether it writes a global."""

    globals: tuple[str, ...]
    rebound: frozenset[str]
    writes_globals: bool


@functools.lru_cache(maxsize=1024)
def free_names(code: CodeType) -> FreeNames:
    """The free names of a function's code and of the functions defined in it."""
    read: dict[str, None] = {}
    rebound: set[str] = set()
    writes = False
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            read[instruction.argval] = None
        elif instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in code.co_freevars:
            rebound.add(instruction.argval)
        elif instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            writes = True
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names = free_names(inner)
            read |= dict.fromkeys(names.globals)
            rebound |= names.rebound & set(code.co_freevars)
            writes |= names.writes_globals
    return FreeNames(tuple(read), frozenset(rebound), writes)
