"""Bits and divisors of integers: no derivatives."""

from __future__ import annotations

import numpy as np

from ..ir.primitive import Primitive
from ..ir.types import Aval
from .elementwise import binary, function, unary

bitwise_and = binary("bitwise_and", "np.bitwise_and", op="{0} & {1}")
bitwise_or: Primitive = binary("bitwise_or", "np.bitwise_or", op="{0} | {1}")
bitwise_xor = binary("bitwise_xor", "np.bitwise_xor", op="{0} ^ {1}")
invert = unary("invert", "np.invert", op="~{0}")
left_shift = binary("left_shift", "np.left_shift", op="{0} << {1}")
right_shift = binary("right_shift", "np.right_shift", op="{0} >> {1}")


def _count_shape(x: Aval) -> Aval:
    aval = function(x)
    return Aval(aval.shape, np.dtype(np.uint8), aval.kind)


bitwise_count = unary("bitwise_count", "np.bitwise_count", shape=_count_shape)
gcd = binary("gcd", "np.gcd")
lcm = binary("lcm", "np.lcm")
