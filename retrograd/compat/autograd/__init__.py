"""A drop-in replacement for HIPS autograd: its names, implemented by retrograd.

``numpy`` and the modules below ``scipy`` are the real ones. ``install()`` lets programs that cannot be edited import
this package under the name ``autograd``.
"""

import numpy  # noqa: ICN001 - autograd's name for it

from . import builtins, core, scipy, tracer, util, wrap_util
from .builtins import dict, isinstance, list, tuple, type
from .differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_jvp_reversemode,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from .extend import primitive
from .importing import install, prepare, uninstall

__all__ = [
    "builtins",
    "checkpoint",
    "core",
    "deriv",
    "dict",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "install",
    "isinstance",
    "jacobian",
    "list",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad_dict",
    "numpy",
    "primitive",
    "scipy",
    "tensor_jacobian_product",
    "tracer",
    "tuple",
    "type",
    "uninstall",
    "util",
    "value_and_grad",
    "vector_jacobian_product",
    "wrap_util",
]

prepare()
del prepare
