"""module_arrays: arrays of known numbers that a generated module makes once, when it is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive
from ..ir.types import Aval


def _shape(*, values: Sequence[Sequence[Any]], dtypes: Sequence[str]) -> tuple[Aval, ...]:
    return tuple(Aval((len(row),), np.dtype(dtype)) for row, dtype in zip(values, dtypes, strict=True))


def _run(run: Any, node: Node) -> list[np.ndarray[Any, Any]]:
    values, dtypes = node.attrs["values"], node.attrs["dtypes"]
    return [np.array(row, dtype) for row, dtype in zip(values, dtypes, strict=True)]


module_arrays: Primitive = primitive("module_arrays", _shape, multi=True, final=True, run=_run)
