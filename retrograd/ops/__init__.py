"""The primitives, one file per family; importing this package registers them all."""

from . import elementwise, index, linear, reduce, shape, structural

__all__ = ["elementwise", "index", "linear", "reduce", "shape", "structural"]
