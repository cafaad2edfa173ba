"""checkpoint, policies and name: regions whose intermediate values are computed again instead of kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..compiler.compiled import Compiled
from ..compiler.transform import Transform
from ..errors import OptionError
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph
from ..ops.structural.region import Policy, make_region, named
from ..passes.control.merge_paths import asked_first
from ..passes.inline import inline_into
from ..tracer.array import Tracer, apply
from ..tracer.record import Place
from ..tracer.tree import map_leaves
from ..where import user_site
from .memory import bytes_of


class Policies:
    """The values that a region saves beside its arguments; the adjoint computes all others again.

    ``save_all`` and ``save_nothing`` (the default of a region) say what they do. ``save_matmuls`` saves results of
    products, convolutions and factorisations.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> @rg.checkpoint(policy=rg.policies.save_names("hidden"))
    ... def layer(w, x):
    ...     return np.tanh(rg.name(w @ x, "hidden"))
    >>> rg.grad(lambda w: np.sum(layer(w, np.ones(2))))(np.zeros((2, 2)))
    array([[1., 1.],
           [1., 1.]])
    """

    save_all: Policy = ("everything",)
    save_nothing: Policy = ("nothing",)
    save_matmuls: Policy = ("products",)

    def save_names(self, *names: str) -> Policy:
        """Save the values with these names.

        Parameters
        ----------
        *names : str
            Names that ``rg.name`` gives.

        Returns
        -------
        Policy
            For ``rg.checkpoint``.
        """
        return ("names", *map(_checked_name, names))

    def except_names(self, *names: str) -> Policy:
        """Save all values but those with these names.

        Parameters
        ----------
        *names : str
            Names that ``rg.name`` gives.

        Returns
        -------
        Policy
            For ``rg.checkpoint``.
        """
        return ("except", *map(_checked_name, names))

    def any_of(self, *policies: Policy) -> Policy:
        """Save the values that one of the policies saves.

        Parameters
        ----------
        *policies : Policy
            Policies.

        Returns
        -------
        Policy
            For ``rg.checkpoint``.
        """
        return ("any", *map(_checked_policy, policies))

    def all_of(self, *policies: Policy) -> Policy:
        """Save the values that all of the policies save.

        Parameters
        ----------
        *policies : Policy
            Policies.

        Returns
        -------
        Policy
            For ``rg.checkpoint``.
        """
        return ("all", *map(_checked_policy, policies))


policies = Policies()
KINDS = ("all", "any", "everything", "except", "names", "nothing", "products")


def _checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise OptionError(f"{name!r} is not a name", remedy='give strings, as in rg.name(x, "a")')
    return name


def _checked_policy(policy: Any) -> Policy:
    if not (isinstance(policy, tuple) and policy and policy[0] in KINDS):
        raise OptionError(
            f"{policy!r} is not a policy",
            remedy="choose one of rg.policies, such as rg.policies.save_matmuls",
        )
    return policy


@dataclass(frozen=True)
class Region(Transform):
    """See ``checkpoint``."""

    policy: Policy = Policies.save_nothing

    def place(self, graph: Graph) -> Place:
        return partial(_place, self.policy)


def _place(policy: Policy, b: Builder, graph: Graph, operands: Sequence[Symbol]) -> list[Symbol]:
    """The region; the decisions of Python in it are guarded before it, where another path can be followed."""
    questions, rest = asked_first(graph)
    known = inline_into(b, questions, operands)
    b.where = user_site()[0]
    return make_region(b, rest, [*operands, *known], policy)


def checkpoint(
    function: Callable[..., Any] | None = None, *, policy: Policy | None = None, memory: int | str | None = None
) -> Any:
    """A function whose derivative keeps its arguments and what ``policy`` saves, and computes everything else again.

    Values are those of the plain function, to the last bit. So are gradients, except that the parts of an argument's
    gradient from inside the region are added up before the other parts. Regions nest: an inner region runs again within
    an outer one. Random draws and host calls are saved and never repeated. Called by itself, the region is compiled as
    by ``rg.jit``.

    Parameters
    ----------
    function : callable, optional
        The region. Without it, the result is a decorator.
    policy : Policy, optional
        What is saved, one of ``rg.policies``; by default nothing but the arguments.
    memory : int or str, optional
        A budget: bytes, a text such as ``"64 MiB"``, or ``"available"``. Each call then keeps at most so many bytes
        beside its arguments, and chooses them such that the least is computed again. The choice is among all values, or
        among those that ``policy`` saves. A budget for the gradient around the region does not change it.

    Returns
    -------
    Compiled
        The function with the same arguments and results.

    Raises
    ------
    OptionError
        If an option is wrong.
    MemoryBudgetError
        If the budget is smaller than what must be saved.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> @rg.checkpoint
    ... def layer(w, x):
    ...     return np.tanh(np.tanh(w @ x) * x)
    >>> slope = rg.grad(lambda w, x: np.sum(layer(w, layer(w, x))))(np.eye(2), np.ones(2))
    >>> slope.shape
    (2, 2)
    >>> roomy = rg.checkpoint(layer.__wrapped__, memory="1 kB")
    >>> bool(np.all(rg.grad(lambda w, x: np.sum(roomy(w, roomy(w, x))))(np.eye(2), np.ones(2)) == slope))
    True
    """
    if policy is not None:
        _checked_policy(policy)
    if memory is None:
        chosen = policy or Policies.save_nothing
    else:
        chosen = ("within", bytes_of(memory), policy or Policies.save_all)
    transform = Region("checkpoint", policy=chosen)
    return partial(Compiled, transform=transform) if function is None else Compiled(function, transform)


def name(x: Any, name: str) -> Any:
    """Name a value for the policies of regions.

    Parameters
    ----------
    x : tree
        The value.
    name : str
        Its name, to which ``rg.policies.save_names`` and ``except_names`` refer.

    Returns
    -------
    tree
        ``x`` itself.

    Raises
    ------
    OptionError
        If the name is not a string.

    Examples
    --------
    >>> import retrograd as rg
    >>> rg.name(2.0, "factor")
    2.0
    """
    _checked_name(name)
    return map_leaves(lambda leaf: _named(leaf, name), x)


def _named(x: Any, name: str) -> Any:
    return apply(named, [x], name=name) if isinstance(x, Tracer) and not x.const else x
