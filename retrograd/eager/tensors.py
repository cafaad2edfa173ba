"""Tensor: an eager array that remembers how it was computed, with the semantics of PyTorch's."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import NonDifferentiableError, NonScalarOutputError, OptionError, RecordMismatchError, ShapeError
from ..numpy.other_names import INSTEAD, missing
from ..tracer.trace import STOPPED, traceable
from ..tracer.tree import flatten, unflatten
from .arraylike import Eager
from .nodes import OperationNode, PastNode, inexact, pullback, turned, walk_back
from .operations import ArrayLike, Operation, copied, operation, request

OF_TENSORS = {  # what to write in place of members that PyTorch's tensors have
    "detach_": "t.detach()",
    "numpy": "t.data",
    "register_hook": "rg.eager.Function with a backward of your own",
    "requires_grad_": "rg.eager.Tensor(x, requires_grad=True)",
    "view": "t.reshape(shape)",
    "zero_": "t.zero_grad()",
}
OF_BACKWARD = {
    "create_graph": ": write a function, and apply rg.grad twice",
    "gradient": ": write t.backward(ct)",
    "retain_graph": ": leave it out, backward may be called again",
}


class AccumulateGrad(PastNode):
    """The end of a walk: it adds to the gradient of its tensor."""

    __slots__ = ("_variable",)

    def __init__(self, variable: Tensor) -> None:
        super().__init__("AccumulateGrad", ())
        self._variable = weakref.ref(variable)

    @property
    def variable(self) -> Tensor | None:
        """The tensor, while it lives; computations keep only its data."""
        return self._variable()

    def backward(self, cts: Sequence[Any]) -> Sequence[Any]:
        t, ct = self.variable, turned(cts[0])
        if t is not None:
            t.grad = constant(ct if t.grad is None else np.add(t.grad.data, ct))
        return ()


class Tensor(Eager):
    """An array whose gradients ``backward`` computes; NumPy functions, operators and methods take it.

    Operations on a tensor with ``requires_grad`` are remembered, and ``backward`` of their results adds to its
    ``grad``, a Tensor or None. A tensor that no remembered operation made is a leaf; ``grad_fn`` is the node of the
    operation that made it, or None. Gradients are detached leaves, and add up until ``zero_grad``. The gradient with
    respect to a complex tensor is the direction of steepest ascent, as in PyTorch: the conjugate of the result of
    ``rg.grad``.

    Parameters
    ----------
    data : array
        Its value, which is copied. ``tensor.data`` is read-only, and may be assigned.
    requires_grad : bool
        Whether gradients flow to it.

    Raises
    ------
    NonDifferentiableError
        If ``requires_grad`` is asked for numbers that are not floating-point.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> x = rg.eager.Tensor([1.0, 2.0], requires_grad=True)
    >>> y = np.sum(3 * x * x)
    >>> y.backward()
    >>> x.grad.data
    array([ 6., 12.])
    >>> y.grad_fn.name, y.is_leaf, x.is_leaf
    ('sum', False, True)
    """

    __slots__ = ("__weakref__", "_data", "_index", "_node", "_requires", "grad")

    def __init__(self, data: Any, requires_grad: bool = False) -> None:
        if isinstance(data, ArrayLike):
            raise RecordMismatchError(
                "a tensor is created from a tensor, which would lose its gradient",
                remedy="pass t.data or t.detach() if that is intended",
            )
        self._data = _frozen(copied(data)[()])
        traceable(self._data)
        self.grad: Tensor | None = None
        self._node: PastNode | None = None
        self._index = 0
        self._requires = False
        self.requires_grad = requires_grad

    @property
    def data(self) -> Any:
        """The value, a read-only array. An array of the same shape may be assigned, which is copied."""
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        new = copied(value.data if isinstance(value, Tensor) else value, self.dtype)
        if new.shape != self.shape:
            raise ShapeError(
                f"data of shape {new.shape} cannot be assigned to a tensor of shape {self.shape}",
                remedy="create a new tensor",
            )
        self._data = _frozen(new[()])

    @property
    def is_leaf(self) -> bool:
        """Whether no remembered operation made it."""
        return self.grad_fn is None

    @property
    def grad_fn(self) -> PastNode | None:
        """The operation that made it, or None."""
        return None if isinstance(self._node, AccumulateGrad) else self._node

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to it. Raises OptionError if it is set on the result of an operation."""
        return self._requires

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        if not self.is_leaf:
            raise OptionError("requires_grad cannot be set on the result of an operation", remedy="use t.detach()")
        if on and not inexact(self._data):
            raise NonDifferentiableError(f"a tensor of {self.dtype} has no gradient", remedy="create it from floats")
        self._requires = bool(on)
        self._node = AccumulateGrad(self) if on else None

    def detach(self) -> Tensor:
        """The same value as a constant."""
        return constant(self._data)

    def zero_grad(self) -> None:
        """Forget the gradient: it becomes None."""
        self.grad = None

    def __getattr__(self, name: str) -> Any:
        raise missing(self, name, "'Tensor' object", OF_TENSORS.get(name, INSTEAD.get(name)))

    def backward(self, ct: Any = None, **others: Any) -> None:
        """Add the gradients of this tensor to the leaves from which it was computed.

        ``backward`` may be called again.

        Parameters
        ----------
        ct : array, optional
            The cotangent, of the shape of the tensor; 1 by default for one element.
        **others
            None: options of PyTorch's ``backward`` raise a TypeError that says what to write.

        Raises
        ------
        NonScalarOutputError
            If the tensor has several elements and there is no cotangent.
        ShapeError
            If the cotangent has another shape.
        NonDifferentiableError
            If the tensor does not require a gradient.
        """
        for name in others:
            raise TypeError(f"backward() takes no {name}{OF_BACKWARD.get(name, '')}")
        if self._node is None:
            raise NonDifferentiableError(
                "backward is called on a tensor that depends on no tensor with requires_grad",
                remedy="create the parameters with requires_grad=True, and compute outside no_grad",
            )
        if ct is None and self.size != 1:
            raise NonScalarOutputError(
                f"backward is called on a tensor of shape {self.shape}, which has {self.size} elements",
                remedy="reduce it to one number, or pass a cotangent of its shape",
            )
        seed = np.ones(self.shape, self.dtype) if ct is None else np.array(ct.data if isinstance(ct, Tensor) else ct)
        if seed.shape != self.shape:
            raise ShapeError(
                f"the cotangent of a tensor of shape {self.shape} has the shape {seed.shape}",
                remedy="pass a cotangent of the tensor's shape",
            )
        walk_back(self._node, self._index, turned(seed.astype(self.dtype)[()]))

    def apply(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        asked = request(function, args, kwargs, Tensor)
        operands = asked.operands
        given = [x._data if type(x) is Tensor else np.array(x) if isinstance(x, np.ndarray) else x for x in operands]
        active = tuple([type(x) is Tensor and x._requires for x in operands])
        if True not in active or STOPPED.get():
            leaves, spec = flatten(asked.call(*given))
            return unflatten(spec, [constant(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in leaves])
        return _remembered(operation(asked, given), asked.call(*given), operands, given, active)

    def _convert(self) -> Any:
        return super()._convert() if self._requires else self._data

    def __reduce__(self) -> Any:
        if not self.is_leaf:
            raise OptionError("a tensor with a history cannot be deep-copied or pickled", remedy="use t.detach()")
        return Tensor, (np.array(self._data), self._requires)

    def __repr__(self) -> str:
        tail = f", grad_fn={self.grad_fn!r}" if self.grad_fn else ", requires_grad=True" if self._requires else ""
        return f"Tensor({np.array2string(np.asarray(self._data), separator=', ')}{tail})"


def _frozen(data: Any) -> Any:
    """An array that nobody can write into."""
    if type(data) is np.ndarray:
        data.flags.writeable = False
    return data


def constant(data: Any) -> Tensor:
    """A tensor of this very array, without gradient."""
    return computed(data, None, 0)


def computed(data: Any, node: PastNode | None, index: int) -> Tensor:
    """A tensor of this very array, which is the result ``index`` of a node."""
    made = Tensor.__new__(Tensor)
    made._data, made._node, made._index = _frozen(data), node, index
    made._requires, made.grad = node is not None, None
    return made


def node_of(x: Any) -> tuple[PastNode | None, int]:
    """The node to which cotangents of an operand go, and the number of its result."""
    return (x._node, x._index) if type(x) is Tensor else (None, 0)


def _remembered(
    known: Operation, result: Any, operands: Sequence[Any], given: Sequence[Any], active: tuple[bool, ...]
) -> Any:
    """Wrap the results of an operation as tensors that its node made."""
    if not known.inexact:  # comparisons and the like have no past
        return known.wrapped(result, lambda x, _: computed(x, None, 0))
    results: list[Any] = []
    known.wrapped(result, lambda x, _: results.append(x))
    values = [*given, *known.captures, *results]
    node = OperationNode(known, tuple([node_of(x) for x in operands]), pullback(known, active), values)
    return known.wrapped(result, lambda x, k: computed(x, node if known.avals[k].inexact else None, k))
