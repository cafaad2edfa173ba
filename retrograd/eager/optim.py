"""Optimisers on trees: ``init(params)`` makes a state, ``update(grads, state, params)`` new parameters and state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import OptionError
from ..tracer.containers import prefix_leaves
from ..tracer.tree import flatten, unflatten

State = dict[str, Any]


@dataclass(frozen=True)
class Optimiser:
    """An optimiser: ``init(params)`` is its first state, ``update(grads, state, params)`` makes a step.

    Parameters, gradients and states are trees; a leaf whose gradient is None stays as it is. Both methods are plain
    functions of arrays, and can be compiled and differentiated.

    Parameters
    ----------
    slots : tuple of str
        The names of the trees that its state holds for the parameters.
    rule : callable
        ``rule(step, gradient, parameter, *slots)`` returns the new parameter and the new slots of one leaf.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> signs = rg.optim.Optimiser((), lambda step, g, p: (p - 0.1 * np.sign(g),))
    >>> p, state = signs.update(np.array([3.0, -4.0]), signs.init(np.zeros(2)), np.zeros(2))
    >>> p
    array([-0.1,  0.1])
    """

    slots: tuple[str, ...]
    rule: Callable[..., tuple[Any, ...]]

    def init(self, params: Any) -> State:
        """The first state: zeros like the parameters, and the number of steps.

        Parameters
        ----------
        params : tree
            The parameters.

        Returns
        -------
        dict
            The state.
        """
        leaves, spec = flatten(params)
        zeros = [np.zeros(np.shape(p), p.dtype if hasattr(p, "dtype") else type(p)) for p in leaves]
        return {"step": 0.0, **{slot: unflatten(spec, zeros) for slot in self.slots}}

    def update(self, grads: Any, state: State, params: Any) -> tuple[Any, State]:
        """Make one step along the gradient.

        Parameters
        ----------
        grads : tree
            The gradient, a tree like the parameters. A leaf whose gradient is None stays as it is.
        state : dict
            The state.
        params : tree
            The parameters.

        Returns
        -------
        tuple
            The new parameters and the new state.

        Raises
        ------
        TreeError
            If the structures differ.
        """
        leaves, spec = flatten(params)
        slopes = prefix_leaves(grads, spec, "the gradient")
        step = state["step"] + 1.0
        kept = [flatten(state[slot])[0] for slot in self.slots]
        moved = [
            (p, *old) if g is None else tuple(map(_cast, self.rule(step, g, p, *old), (p, *old)))
            for p, g, *old in zip(leaves, slopes, *kept, strict=True)
        ]
        columns: Sequence[Sequence[Any]] = list(zip(*moved, strict=True)) or [()] * (1 + len(kept))
        new, *slots = [unflatten(spec, list(column)) for column in columns]
        return new, {"step": step, **dict(zip(self.slots, slots, strict=True))}


def _cast(new: Any, old: Any) -> Any:
    """``new`` in the dtype of ``old``: once compiled, the number of steps is no weak Python number any more."""
    return new.astype(old.dtype) if hasattr(old, "dtype") and new.dtype != old.dtype else new


def sgd(rate: float) -> Optimiser:
    """p ← p - rate·g.

    Parameters
    ----------
    rate : float
        The size of a step.

    Returns
    -------
    Optimiser
        With ``init`` and ``update``.

    Raises
    ------
    OptionError
        Unless rate > 0.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> optimiser = rg.optim.sgd(0.5)
    >>> params = {"w": np.array([1.0, 2.0])}
    >>> params, state = optimiser.update({"w": np.array([1.0, -1.0])}, optimiser.init(params), params)
    >>> params["w"]
    array([0.5, 2.5])
    """
    _check("rate", rate, rate > 0)
    return Optimiser((), lambda step, g, p: (p - rate * g,))


def momentum(rate: float, beta: float = 0.9) -> Optimiser:
    """v ← beta·v + g, p ← p - rate·v (Sutskever et al., On the importance of initialization and momentum, 2013).

    Parameters
    ----------
    rate : float
        The size of a step.
    beta : float
        How slowly the velocity forgets.

    Returns
    -------
    Optimiser
        With ``init`` and ``update``.

    Raises
    ------
    OptionError
        Unless rate > 0 and 0 <= beta < 1.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> optimiser, p, g = rg.optim.momentum(0.5), np.array([1.0, 2.0]), np.array([1.0, -1.0])
    >>> p, state = optimiser.update(g, optimiser.init(p), p)
    >>> p, state = optimiser.update(g, state, p)
    >>> p
    array([-0.45,  3.45])
    """
    _check("rate", rate, rate > 0)
    _check("beta", beta, 0 <= beta < 1)

    def rule(step: Any, g: Any, p: Any, v: Any) -> tuple[Any, Any]:
        v = beta * v + g
        return p - rate * v, v

    return Optimiser(("velocity",), rule)


def adam(rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> Optimiser:
    """Steps of about ``rate`` in each entry (Kingma and Ba, Adam, arXiv 1412.6980, algorithm 1).

    Parameters
    ----------
    rate : float
        The size of a step.
    beta1, beta2 : float
        How slowly the means of gradients and of their squares forget.
    epsilon : float
        What is added to the root of the mean square.

    Returns
    -------
    Optimiser
        With ``init`` and ``update``.

    Raises
    ------
    OptionError
        Unless rate and epsilon are positive, and beta1 and beta2 lie in [0, 1).

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> optimiser, p = rg.optim.adam(0.1), np.array([1.0, 2.0])
    >>> p, state = optimiser.update(np.array([1.0, -1.0]), optimiser.init(p), p)
    >>> p.round(6)
    array([0.9, 2.1])
    """
    _check("rate", rate, rate > 0)
    _check("beta1", beta1, 0 <= beta1 < 1)
    _check("beta2", beta2, 0 <= beta2 < 1)
    _check("epsilon", epsilon, epsilon > 0)

    def rule(step: Any, g: Any, p: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        size = np.sqrt(v / (1 - beta2**step)) + epsilon
        return p - rate * (m / (1 - beta1**step)) / size, m, v

    return Optimiser(("mean", "square"), rule)


def _check(name: str, value: float, fine: bool) -> None:
    if not fine:
        raise OptionError(f"{name}={value!r}", remedy="give positive rates, and decays below 1")
