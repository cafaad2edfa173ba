"""Layers of a record: they load their parameters from a store, and put updated parameters back."""

from __future__ import annotations

import math
from typing import Any

from ..parameters import ParameterStore
from ..records import Gradients, Record
from .functional import conv2d, linear


class Layer:
    """The parameters of one layer, as tensors of a record.

    ``name`` is the layer's own in its record. Without a name it is the kind and a number, which is the same in every
    record that makes its layers in the same order.
    """

    def __init__(
        self, rec: Record, store: ParameterStore, name: str | None, shapes: dict[str, tuple[int, ...]], scale: float
    ) -> None:
        self.name = rec.unique(name, type(self).__name__.lower())
        self._store = store
        self.parameters = {
            part: rec.tensor(store.load(f"{self.name}.{part}", shape, scale if len(shape) > 1 else 0.0))
            for part, shape in shapes.items()
        }

    def update(self, grads: Gradients, rate: float) -> None:
        """Put parameters into the store that are one step of ``rate`` down the gradient; the record stays as it is."""
        for part, t in self.parameters.items():
            self._store[f"{self.name}.{part}"] = t.data - t.dtype.type(rate) * grads.wrt(t)


class Linear(Layer):
    """A linear layer of a record: ``x @ W``, with ``bias`` ``x @ W + b``, for rows x of shape (..., n_in).

    ``W`` has the shape (n_in, n_out) and is drawn with variance 2 / n_in (He et al., arXiv 1502.01852). ``b`` starts at
    zero.

    Parameters
    ----------
    rec : Record
        The record that the layer belongs to.
    n_in, n_out : int
        The numbers of features.
    store : ParameterStore
        Where parameters come from.
    name : str, optional
        The name of the layer in the record and in the store.
    bias : bool
        Whether there is a ``b``.

    Raises
    ------
    OptionError
        If a number is wrong or the name is taken.
    ShapeError
        If a stored parameter has another shape.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> store = rg.eager.ParameterStore(np.random.default_rng(0))
    >>> for step in range(3):
    ...     with rg.eager.Record() as rec:
    ...         layer = rg.nn.Linear(rec, 2, 2, store, name="fc")
    ...         loss = np.sum(layer(rec.tensor([[1.0, 2.0]])) ** 2)
    ...         layer.update(loss.grad(), rate=0.05)
    ...         print(loss.data.round(6))
    1.984491
    0.496123
    0.124031
    """

    def __init__(
        self, rec: Record, n_in: int, n_out: int, store: ParameterStore, name: str | None = None, *, bias: bool = False
    ) -> None:
        shapes: dict[str, tuple[int, ...]] = {"W": (n_in, n_out)} | ({"b": (n_out,)} if bias else {})
        super().__init__(rec, store, name, shapes, math.sqrt(2 / n_in))

    def __call__(self, x: Any) -> Any:
        return linear(x, self.parameters["W"], self.parameters.get("b"))


class Conv2d(Layer):
    """A convolution layer of a record: ``rg.nn.conv2d`` with square kernels.

    ``W`` has the shape (c_out, c_in, size, size) and is drawn with variance 2 / (c_in·size²). ``b`` has the shape
    (c_out,) and starts at zero.

    Parameters
    ----------
    rec : Record
        The record that the layer belongs to.
    c_in, c_out : int
        The numbers of channels.
    size : int
        The height and width of a kernel.
    store : ParameterStore
        Where parameters come from.
    name : str, optional
        The name of the layer in the record and in the store.
    bias : bool
        Whether there is a ``b``.
    stride, padding : int
        As for ``rg.nn.conv2d``.

    Raises
    ------
    OptionError
        If a number is wrong or the name is taken.
    ShapeError
        If a stored parameter has another shape.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> store = rg.eager.ParameterStore(np.random.default_rng(0))
    >>> with rg.eager.Record() as rec:
    ...     layer = rg.nn.Conv2d(rec, 1, 2, 3, store, name="edges")
    ...     print(layer(rec.tensor(np.ones((1, 1, 5, 5)))).shape)
    (1, 2, 3, 3)
    >>> sorted(store)
    ['edges.W', 'edges.b']
    """

    def __init__(
        self,
        rec: Record,
        c_in: int,
        c_out: int,
        size: int,
        store: ParameterStore,
        name: str | None = None,
        *,
        bias: bool = True,
        stride: int = 1,
        padding: int = 0,
    ) -> None:
        shapes: dict[str, tuple[int, ...]] = {"W": (c_out, c_in, size, size)} | ({"b": (c_out,)} if bias else {})
        super().__init__(rec, store, name, shapes, math.sqrt(2 / (c_in * size * size)))
        self.stride, self.padding = stride, padding

    def __call__(self, x: Any) -> Any:
        W, b = self.parameters["W"], self.parameters.get("b")
        return conv2d(x, W, b, stride=self.stride, padding=self.padding)
