"""Elements moved along an axis, those at its end to its beginning."""

from __future__ import annotations

from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull
from ..ir.types import Aval
from .batching import shifted_axis


def _roll_shape(x: Aval, shift: int, axis: int) -> Aval:
    if not 0 < shift < x.shape[axis]:
        raise ValueError(f"{x} is not rolled by {shift} along axis {axis}")
    return Aval(x.shape, x.dtype)


def _roll_code(node: Node) -> str:
    axis = node.attrs["axis"]
    lead, at = ":, " * axis, node.out.aval.shape[axis] - node.attrs["shift"]
    return f"np.concatenate(({{0}}[{lead}{at}:], {{0}}[{lead}:{at}]), axis={axis})"


roll: Primitive = primitive(
    "roll",
    _roll_shape,
    _roll_code,
    batch=shifted_axis,
    takes_out=True,
    diff=(pull(lambda ct, x, shift, axis: roll(ct, shift=x.shape[axis] - shift, axis=axis)),),
)
