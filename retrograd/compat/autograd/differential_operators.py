"""The operators of autograd: ``op(f, argnum=0)``, where ``argnum`` is a position, or a list of them for a tuple.

An operator created again for the same function, as ``grad(f)`` in a loop, compiles nothing.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ...api.along_tangents import Linearization
from ...api.along_tangents import jvp as push_forward
from ...api.at_a_point import Vjp
from ...api.gradients import Gradient
from ...api.gradients import grad as gradient
from ...api.regions import checkpoint
from ...api.restricted import restricted
from ...errors import ArgnumsError
from ...tracer.array import shadow_of
from ...tracer.interception import INTERCEPTION
from ...tracer.tree import flatten
from ...where import warn
from .compiled_operators import (
    Argnum,
    Chosen,
    Combined,
    Function,
    GradientOf,
    Operator,
    chosen,
    label,
    positions,
    with_floats,
)
from .matrices_and_vectors import hessian_matrix, jacobian_matrix, paired, vector_like
from .vspaces import vspace

__all__ = [
    "checkpoint",
    "deriv",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "jacobian",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad_dict",
    "tensor_jacobian_product",
    "value_and_grad",
    "vector_jacobian_product",
]


def grad(fun: Function, argnum: Argnum = 0) -> Any:
    """The gradient of a function that returns one real number, in the structure of the argument.

    Raises NonScalarOutputError, NonDifferentiableError, ArgnumsError.

    >>> from retrograd.compat.autograd import grad
    >>> slope = grad(lambda x, power: x**power)
    >>> float(slope(3, power=2))
    6.0
    """
    return Operator(fun, Gradient("grad", argnums=chosen(argnum)))


def value_and_grad(fun: Function, argnum: Argnum = 0) -> Any:
    """The pair of value and gradient, as ``scipy.optimize.minimize(..., jac=True)`` wants it."""
    return Operator(fun, Gradient("value_and_grad", argnums=chosen(argnum), value=True))


def grad_and_aux(fun: Function, argnum: Argnum = 0) -> Any:
    """The gradient of the first of two results, and the second result as it is."""
    return Operator(fun, GradientOf("grad_and_aux", argnums=chosen(argnum), has_aux=True, make=_pair))


def _pair(fun: Function) -> Function:
    """The function, with a tuple for a list of results."""

    def pair(*args: Any, **kwargs: Any) -> Any:
        found = INTERCEPTION.meaning(fun)(*args, **kwargs)
        return tuple(found) if type(found) is list else found

    return pair


def grad_named(fun: Function, argname: str) -> Any:
    """The gradient by the parameter of this name. Raises ArgnumsError if there is none."""
    names = list(inspect.signature(fun).parameters)
    if argname not in names:
        raise ArgnumsError(f"the function has no parameter {argname!r}", remedy=f"choose from {names}")
    return grad(fun, names.index(argname))


def elementwise_grad(fun: Function, argnum: Argnum = 0) -> Any:
    """The gradient of the sum of all results: of a function of each element alone, the slope at each element."""
    return Operator(fun, GradientOf("elementwise_grad", argnums=chosen(argnum), make=_summed))


def _summed(fun: Function) -> Function:
    def summed(*args: Any, **kwargs: Any) -> Any:
        sums = [np.sum(x) for x in flatten(INTERCEPTION.meaning(fun)(*args, **kwargs))[0]]
        return sum(sums[1:], sums[0]) if sums else 0.0

    return summed


def holomorphic_grad(fun: Function, argnum: Argnum = 0) -> Any:
    """The complex derivative of a holomorphic function.

    >>> from retrograd.compat.autograd import holomorphic_grad
    >>> complex(holomorphic_grad(lambda z: z**2)(1.0 + 2.0j))
    (2+4j)
    """
    return Holomorphic(fun, GradientOf("holomorphic_grad", argnums=chosen(argnum), make=_real))


def _real(fun: Function) -> Function:
    return lambda *args, **kwargs: np.real(INTERCEPTION.meaning(fun)(*args, **kwargs))


class Holomorphic(Operator):
    """See ``holomorphic_grad``; it warns of real arguments."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not all(np.iscomplexobj(shadow_of(args[k])) for k in self._chosen if k < len(args)):
            warn("the argument of holomorphic_grad is not complex", UserWarning)
        return super().__call__(*args, **kwargs)


def deriv(fun: Function, argnum: Argnum = 0) -> Any:
    """The derivative along a direction of ones, in forward mode: of a function of one number, its derivative."""
    return Operator(fun, Combined.of("deriv", _along_ones, chosen(argnum)))


def _along_ones(argnums: Chosen, fun: Function) -> Function:
    def along(*args: Any, **kwargs: Any) -> Any:
        of_leaves, leaves, _ = restricted(fun, argnums, args, kwargs)
        return push_forward(of_leaves, leaves, [vspace(x).ones() for x in leaves])[1]

    return along


def jacobian(fun: Function, argnum: Argnum = 0) -> Any:
    """The matrix of derivatives: the shape of the result, then that of the argument.

    By a complex argument each row is the gradient of an entry of the result, or of its real part. By real arguments
    the cheaper mode is taken.

    >>> import numpy as np
    >>> from retrograd.compat.autograd import jacobian
    >>> jacobian(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0]))
    array([[3., 0., 1.],
           [0., 3., 2.]])
    """
    return Operator(fun, Combined.of("jacobian", jacobian_matrix, chosen(argnum)))


def hessian(fun: Function, argnum: Argnum = 0) -> Any:
    """The Jacobian of the Jacobian, also of a function with several results."""
    return Operator(fun, Combined.of("hessian", hessian_matrix, chosen(argnum)))


def make_vjp(fun: Function, argnum: Argnum = 0) -> Any:
    """``make_vjp(f)(*args)`` is ``(vjp, value)``: a function of cotangents of the value, and the value.

    >>> import numpy as np
    >>> from retrograd.compat.autograd import make_vjp
    >>> vjp, value = make_vjp(np.sin)(0.0)
    >>> float(vjp(2.0)), float(value)
    (2.0, 0.0)
    """
    argnums = chosen(argnum)
    compiled = Operator(fun, Vjp("make_vjp", argnums=positions(argnums)))

    def at(*args: Any, **kwargs: Any) -> tuple[Callable[[Any], Any], Any]:
        value, pullback = compiled(*args, **kwargs)

        def pull(ct: Any) -> Any:
            cts = pullback(vector_like(value, ct))
            return cts if isinstance(argnums, tuple) else cts[0]

        return pull, value

    return label(at, "make_vjp", fun, argnums)


def make_jvp(fun: Function, argnum: Argnum = 0) -> Any:
    """``make_jvp(f)(*args)(v)`` is ``(value, tangent)``: the value, and the derivative along ``v``.

    >>> import numpy as np
    >>> from retrograd.compat.autograd import make_jvp
    >>> [float(x) for x in make_jvp(np.sin)(0.0)(2.0)]
    [0.0, 2.0]
    """
    argnums = chosen(argnum)
    compiled = Operator(fun, Linearization("make_jvp", argnums=positions(argnums)))

    def at(*args: Any, **kwargs: Any) -> Callable[[Any], tuple[Any, Any]]:
        value, linear = compiled(*args, **kwargs)

        def push(v: Any) -> tuple[Any, Any]:
            along = tuple(v) if isinstance(argnums, tuple) else (v,)
            return value, linear(*vector_like(tuple(args[k] for k in positions(argnums)), along))

        return push

    return label(at, "make_jvp", fun, argnums)


def make_jvp_reversemode(fun: Function, argnum: Argnum = 0) -> Any:
    """``make_jvp_reversemode(f)(*args)(v)`` is the derivative along ``v``; by forward mode, whatever the name says."""
    pushed = make_jvp(fun, argnum)

    def at(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        push = pushed(*args, **kwargs)
        return lambda v: push(v)[1]

    return label(at, "make_jvp_reversemode", fun, chosen(argnum))


def make_hvp(fun: Function, argnum: Argnum = 0) -> Any:
    """``make_hvp(f)(*args)`` is ``(hvp, gradient)``: a function of directions, and the gradient."""
    return label(make_vjp(grad(fun, argnum), argnum), "make_hvp", fun, chosen(argnum))


def make_ggnvp(f: Function, g: Function | None = None, f_argnum: Argnum = 0) -> Any:
    """``make_ggnvp(f, g)(*args)(v)`` is Jᵀ H J v, with J of ``f``, and H the Hessian of ``g`` at the result of ``f``.

    ``g`` is half of the sum of squares by default, so that H is the identity.
    """
    outer = _half_of_squares() if g is None else make_hvp(g)
    pull_at, push_at = make_vjp(f, f_argnum), make_jvp(f, f_argnum)

    def at(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        pull, value = pull_at(*args, **kwargs)
        push, (curve, _) = push_at(*args, **kwargs), outer(value)
        return lambda v: pull(curve(push(v)[1]))

    return label(at, "make_ggnvp", f, chosen(f_argnum))


@cache
def _half_of_squares() -> Any:
    return make_hvp(lambda y: 0.5 * np.sum(y**2, axis=-1))


def hessian_tensor_product(fun: Function, argnum: Argnum = 0) -> Any:
    """``product(*args, v)`` is the Hessian times ``v``, which has the shape or the structure of the argument.

    For several positions ``v`` is a tuple, and so is the product.

    >>> import numpy as np
    >>> from retrograd.compat.autograd import hessian_tensor_product
    >>> hessian_tensor_product(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    return Operator(fun, Combined.of("hessian_tensor_product", _along_gradient, chosen(argnum)))


hessian_vector_product = hessian_tensor_product


def _along_gradient(argnums: Chosen, fun: Function) -> Function:
    def slope(*args: Any, **kwargs: Any) -> Any:
        return paired(_from_the_right, args[-1], gradient(fun, argnums)(*args[:-1], **kwargs))

    def product(*args: Any, **kwargs: Any) -> Any:
        return gradient(slope, _before_the_vector(argnums))(*args, **kwargs)

    return product


def _before_the_vector(argnums: Chosen) -> Chosen:
    """The positions in a call that has one more argument at its end."""
    if isinstance(argnums, int):
        return argnums - (argnums < 0)
    return tuple(k - (k < 0) for k in argnums)


def _from_the_right(v: Any, x: Any) -> Any:
    return np.tensordot(x, v, np.ndim(shadow_of(v)))


def tensor_jacobian_product(fun: Function, argnum: Argnum = 0) -> Any:
    """``product(*args, v)`` is ``v`` times the Jacobian, over all dimensions of ``v``.

    Of a function with several results ``v`` has their structure, and the product has that of the argument.

    >>> import numpy as np
    >>> from retrograd.compat.autograd import tensor_jacobian_product
    >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([ 2., 40.])
    """
    return Operator(fun, Combined.of("tensor_jacobian_product", _against_value, chosen(argnum)))


vector_jacobian_product = tensor_jacobian_product


def _against_value(argnums: Chosen, fun: Function) -> Function:
    def weighted(*args: Any, **kwargs: Any) -> Any:
        return paired(_from_the_left, args[-1], INTERCEPTION.meaning(fun)(*args[:-1], **kwargs))

    return jacobian_matrix(_before_the_vector(argnums), weighted)


def _from_the_left(v: Any, x: Any) -> Any:
    return np.tensordot(v, x, np.ndim(shadow_of(v)))


def multigrad_dict(fun: Function) -> Any:
    """The gradients by all arguments, as a dict by the names of the parameters; defaults are among them.

    >>> from retrograd.compat.autograd import multigrad_dict
    >>> {name: float(slope) for name, slope in multigrad_dict(lambda x, y=3.0: x * y)(2.0).items()}
    {'x': 3.0, 'y': 2.0}
    """
    signature = inspect.signature(fun)
    compiled = Operator(fun, ByName("multigrad_dict"))

    def at(*args: Any, **kwargs: Any) -> OrderedDict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        names = list(bound.arguments)
        values = with_floats(tuple(bound.arguments.values()), range(len(names)))
        found = compiled(dict(zip(names, values, strict=True)))
        return OrderedDict((name, found[name]) for name in names)

    at.__name__ = f"multigrad_dict_of_{getattr(fun, '__name__', 'function')}"
    return at


@dataclass(frozen=True)
class ByName(Gradient):
    """The gradient by a dict of the arguments, by the names of their parameters."""

    def build(self, function: Function) -> Function:
        signature = inspect.signature(function)

        def of_named(named: dict[str, Any]) -> Any:
            bound = inspect.BoundArguments(signature, OrderedDict((k, named[k]) for k in signature.parameters))
            return INTERCEPTION.meaning(function)(*bound.args, **bound.kwargs)

        return of_named
