"""Function: an operation on tensors; the user writes its forward and its backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..api.stop_gradient import no_grad
from ..errors import ShapeError, TreeError
from ..tracer.trace import STOPPED
from .nodes import PastNode, inexact, turned
from .tensors import Tensor, computed, constant, node_of


class Context:
    """The context that ``forward`` passes to ``backward``: saved tensors, and any attribute that is set on it.

    ``needs_input_grad`` tells for each argument whether its cotangent is wanted.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep tensors as ``saved_tensors``."""
        self.saved_tensors = tensors


class Function:
    """An operation of the user's own: a subclass has the static methods ``forward`` and ``backward``.

    ``forward(ctx, *args)`` gets the arguments of ``apply``, tensors without gradient, and returns a tensor or an array,
    or a tuple of them. ``backward(ctx, *cts)`` gets a cotangent for each, as tensors, and returns one for each
    argument, None for zero.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> class Exp(rg.eager.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = np.exp(x)
    ...         ctx.save_for_backward(y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, ct):
    ...         (y,) = ctx.saved_tensors
    ...         return ct * y
    >>> x = rg.eager.Tensor(0.0, requires_grad=True)
    >>> (3 * Exp.apply(x)).backward()
    >>> float(x.grad.data)
    3.0
    """

    @staticmethod
    def forward(ctx: Context, *args: Any) -> Any:
        """Compute the operation; to be defined.

        Parameters
        ----------
        ctx : Context
            What ``backward`` will get, too: it keeps tensors and other values.
        *args
            The arguments of ``apply``, tensors without gradient.

        Returns
        -------
        tensor, array or tuple
            The result, or a tuple of results.
        """
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Context, *cts: Any) -> Any:
        """Pull cotangents back; to be defined.

        Parameters
        ----------
        ctx : Context
            What ``forward`` has kept.
        *cts : Tensor
            One cotangent for each result.

        Returns
        -------
        Tensor or tuple
            One cotangent for each argument of ``forward``, None for zero: bare for one argument, else a tuple.
        """
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run ``forward`` and remember ``backward``.

        Parameters
        ----------
        *args
            The arguments.

        Returns
        -------
        Tensor or tuple
            The results.

        Raises
        ------
        TreeError, ShapeError
            If the results of ``forward`` or ``backward`` do not fit.
        """
        needs = tuple(isinstance(x, Tensor) and x.requires_grad for x in args)
        ctx = Context(needs)
        with no_grad():
            result = cls.forward(ctx, *(x.detach() if isinstance(x, Tensor) else x for x in args))
        several = isinstance(result, tuple)
        data = [x.data if isinstance(x, Tensor) else np.array(x)[()] for x in (result if several else (result,))]
        recording = any(needs) and not STOPPED.get()
        node = FunctionNode(cls, ctx, args, data) if recording else None
        made = [computed(x, node if inexact(x) else None, k) for k, x in enumerate(data)]
        return tuple(made) if several else made[0]


class FunctionNode(PastNode):
    """The node of a Function: its context, and the form of the cotangents of its arguments and results."""

    __slots__ = ("_ctx", "_function", "_needs", "_results", "_shapes")

    def __init__(self, function: type[Function], ctx: Context, args: Sequence[Any], results: Sequence[Any]) -> None:
        super().__init__(function.__name__, tuple(node_of(x) for x in args))
        self._function, self._ctx, self._needs = function, ctx, ctx.needs_input_grad
        self._shapes = [(x.shape, x.dtype) if isinstance(x, Tensor) else None for x in args]
        self._results = [(np.shape(x), x.dtype) for x in results]

    def backward(self, cts: Sequence[Any]) -> Sequence[Any]:
        full = [*cts, *[None] * (len(self._results) - len(cts))]
        given = [
            constant(np.zeros(*like)[()] if ct is None else turned(ct))
            for ct, like in zip(full, self._results, strict=True)
        ]
        with no_grad():
            found = self._function.backward(self._ctx, *given)
        cts = found if isinstance(found, tuple) else (found,)
        if len(cts) != len(self._needs):
            raise TreeError(
                f"backward of {self.name} returns {len(cts)} cotangents for {len(self._needs)} arguments",
                remedy="return one for each argument of forward, None for zero",
            )
        return [self._fitting(k, ct) if on else None for k, (ct, on) in enumerate(zip(cts, self._needs, strict=True))]

    def _fitting(self, k: int, ct: Any) -> Any:
        like = self._shapes[k]
        if ct is None or like is None:
            return None
        array = np.asarray(ct.data if isinstance(ct, Tensor) else ct)
        if array.shape != like[0]:
            raise ShapeError(
                f"backward of {self.name} returns a cotangent of shape {array.shape} for argument {k} of shape "
                f"{like[0]}",
                remedy="return cotangents of the arguments' shapes",
            )
        return turned(array.astype(like[1])[()])
