"""ParameterStore: the parameters of a model by name, which outlive the records that use them."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from ..errors import OptionError, ShapeError


class ParameterStore(MutableMapping[str, np.ndarray[Any, Any]]):
    """Arrays by name. Layers load their parameters from it, and put updated ones back.

    A parameter that is missing is drawn from a normal distribution with the layer's own scale. Arrays are copied in,
    and returned read-only.

    Parameters
    ----------
    rng : numpy.random.Generator, optional
        Where missing parameters are drawn.
    dtype : dtype
        The dtype of drawn parameters.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> store = rg.eager.ParameterStore(np.random.default_rng(0))
    >>> store["fc.W"] = np.eye(2)
    >>> store.load("fc.W", (2, 2), scale=1.0)[0]
    array([1., 0.])
    >>> store.load("fc.b", (2,), scale=0.5).shape, sorted(store)
    ((2,), ['fc.W', 'fc.b'])
    """

    def __init__(self, rng: np.random.Generator | None = None, dtype: Any = np.float64) -> None:
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise OptionError(f"parameters are drawn from {rng!r}", remedy="pass np.random.default_rng(seed)")
        self._rng = rng
        self._dtype = np.dtype(dtype)
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}

    def load(self, name: str, shape: tuple[int, ...], scale: float) -> np.ndarray[Any, Any]:
        """A parameter, drawn if it is missing.

        Parameters
        ----------
        name : str
            The name of the parameter.
        shape : tuple of int
            Its shape.
        scale : float
            The standard deviation of what is drawn.

        Returns
        -------
        array
            The parameter, read-only.

        Raises
        ------
        ShapeError
            If it is there with another shape.
        OptionError
            If it is missing and cannot be drawn.
        """
        found = self._arrays.get(name)
        if found is None:
            if self._rng is None:
                raise OptionError(
                    f"the parameter {name!r} is missing, and there is no generator to draw it from",
                    remedy="write rg.eager.ParameterStore(np.random.default_rng(seed))",
                )
            self[name] = (scale * self._rng.standard_normal(shape)).astype(self._dtype)
            found = self._arrays[name]
        if found.shape != shape:
            raise ShapeError(
                f"the parameter {name!r} has the shape {found.shape}, but the layer takes {shape}",
                remedy="give layers of different sizes different names",
            )
        return found

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        return self._arrays[name]

    def __setitem__(self, name: str, value: Any) -> None:
        array = np.array(value)
        array.flags.writeable = False
        self._arrays[name] = array

    def __delitem__(self, name: str) -> None:
        del self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)
