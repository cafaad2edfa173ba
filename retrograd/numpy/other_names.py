"""Attributes that arrays of other packages have: the error for a missing one says what to write in NumPy."""

from __future__ import annotations

from typing import Any

from ..tracer.array import Tracer

ITSELF = "leave it out"
ELEMENTWISE = "abs ceil cos cosh exp expm1 floor log log10 log1p log2 sign sin sinh sqrt square tan tanh"
INSTEAD = {
    "at": "x[i] = v, or np.add.at(x, i, v): you may write into arrays",
    "block_until_ready": f"{ITSELF}: calls are complete when they return",
    "clone": "x.copy()",
    "contiguous": ITSELF,
    "cpu": ITSELF,
    "cuda": f"{ITSELF}: arrays are NumPy's, on the CPU",
    "detach": "rg.stop_gradient(x)",
    "dim": "x.ndim",
    "double": "x.astype(np.float64)",
    "expand": "np.broadcast_to(x, shape)",
    "float": "x.astype(np.float32)",
    "numel": "x.size",
    "numpy": f"{ITSELF}: x is a NumPy array",
    "permute": "np.transpose(x, axes)",
    "pow": "x**y",
    "t": "x.T",
    "to": "x.astype(dtype)",
    "type": "x.astype(dtype)",
    "unsqueeze": "np.expand_dims(x, axis), or x[None]",
    **{name: f"np.{name}(x)" for name in ELEMENTWISE.split()},
}


def missing(x: Any, name: str, kind: str, instead: str | None) -> AttributeError:
    """The error for an attribute that an object of this kind does not have."""
    hint = "" if instead is None else f"; {'' if instead.startswith(ITSELF) else 'write '}{instead}"
    return AttributeError(f"{kind} has no attribute {name!r}{hint}", name=name, obj=x)


def _missing(x: Tracer, name: str) -> Any:
    raise missing(x, name, "'Tracer' object", INSTEAD.get(name))


Tracer.__getattr__ = _missing  # type: ignore[method-assign]  # asked for attributes that are not there
