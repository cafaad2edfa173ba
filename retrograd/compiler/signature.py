"""Arguments of a call: which leaves are traced, which are static, and which positions they belong to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgnumsError, NonDifferentiableError, OptionError
from ..ir.types import in_order
from ..tracer.array import Tracer
from ..tracer.surroundings import SURROUNDINGS
from ..tracer.trace import stateful, traceable
from ..tracer.tree import Spec, children, flatten, key_orders, leaf_paths, nondiff_leaves, unflatten

Argnums = int | str | Sequence[int | str]
TRACED = (np.ndarray, np.floating, np.complexfloating, np.integer, np.bool_, float, complex)


@dataclass(frozen=True, eq=False)
class Call:
    """One call, taken apart. ``traced`` are the positions of leaves that become inputs of the graph.

    ``names`` are those of all leaves, for reading.
    """

    leaves: list[Any]
    spec: Spec
    traced: tuple[int, ...]
    names: tuple[str, ...]
    orders: tuple[Any, ...] = ()  # of the keys of dicts, and what else containers hold
    unread: frozenset[int] = frozenset()  # leaves of parameters that the function never reads
    apart: ClassVar[type | None] = None  # of a call with function values: the class of those that are observed

    @cached_property
    def key(self) -> Hashable:
        """The key of a compiled function: structure, shapes, dtypes, static values."""
        try:
            structure = SURROUNDINGS[-1].told((self.spec, self.orders))
        except TypeError as fault:
            raise OptionError(f"a static argument cannot be hashed: {fault}") from None
        return (structure, *self.leaf_keys())

    def leaf_keys(self) -> list[Hashable]:
        """What of each leaf is in the key."""
        on, skipped = set(self.traced), self.unread
        return [None if i in skipped and i not in on else _leaf_key(x, i in on) for i, x in enumerate(self.leaves)]

    def rebuild(self, tracers: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments and keyword arguments with tracers in place of the traced leaves."""
        args, kwargs = unflatten(self.spec, self.with_values(tracers).leaves)
        return args, kwargs

    def applied(self, function: Callable[..., Any], tracers: Sequence[Any]) -> Any:
        """Run a function on these arguments with tracers in place of the traced leaves; what it reads is followed."""
        args, kwargs = self.rebuild(tracers)
        read = [x for i in self._fixed() if not (i in self.unread or isinstance(x := self.leaves[i], Tracer))]
        read += [x for x in sum(self.orders, ()) if stateful(x) is None]  # a generator is a key as it is
        with SURROUNDINGS[-1].following(function, read) as followed:
            return followed(*args, **kwargs)

    def with_values(self, values: Sequence[Any], statics: Sequence[Any] | None = None) -> Call:
        """The same call with other values of its traced leaves, and of the others."""
        leaves = list(self.leaves)
        for i, value in zip(self.traced, values, strict=True):
            leaves[i] = value
        if statics is not None:
            for i, value in zip(self._fixed(), statics, strict=True):
                leaves[i] = value
        return replace(self, leaves=leaves)

    @property
    def hints(self) -> list[str]:
        """Names of the traced leaves."""
        return [self.names[i] for i in self.traced]

    def values(self) -> list[Any]:
        """The traced leaves."""
        return [self.leaves[i] for i in self.traced]

    def statics(self) -> list[Any]:
        """The other leaves."""
        return [self.leaves[i] for i in self._fixed()]

    def _fixed(self) -> list[int]:
        traced = set(self.traced)
        return [i for i in range(len(self.leaves)) if i not in traced]


def name_of(function: Callable[..., Any], default: str = "function") -> str:
    """A name for what is made of a function: its own, or ``lambda_`` and the line of a lambda."""
    name: str = getattr(function, "__name__", default)
    code = getattr(inspect.unwrap(function), "__code__", None) if name == "<lambda>" else None
    return name if code is None else f"lambda_{code.co_firstlineno}"


def is_traced(x: Any) -> bool:
    """Whether a leaf becomes an input of the graph; Python ints, bools and other objects are static."""
    return issubclass(type(x), (Tracer, *TRACED))  # objects of other classes may pretend


def _leaf_key(x: Any, traced: bool) -> Hashable:
    x = x.shadow if isinstance(x, Tracer) else x
    if isinstance(x, np.ndarray) and traced:
        return (x.shape, x.dtype) if in_order(x) else (x.shape, x.dtype, x.strides)
    key = (type(x),) if traced else SURROUNDINGS[-1].told(x)
    try:
        hash(key)
    except TypeError:
        raise OptionError(
            f"an argument of type {type(x).__name__} is neither a number, an array nor hashable",
            remedy="pass arrays, or containers of them; other arguments must be hashable",
        ) from None
    return key


def take_apart(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """Flatten a call."""
    leaves, spec = flatten((args, kwargs))
    leaves = [_plain(x) if issubclass(type(x), np.ndarray) else x for x in leaves]
    traced = tuple(i for i, x in enumerate(leaves) if is_traced(x))
    names = parameter_names(function)
    hints: list[str] = []
    for k, sub in enumerate(children(children(spec)[0])):
        name = names[k] if k < len(names) else f"arg{k}"
        hints += [f"{name}_{p}" if p else name for p in leaf_paths(sub)]
    hints += leaf_paths(children(spec)[1])
    unread = SURROUNDINGS[-1].unread(function)
    return Call(leaves, spec, traced, tuple(hints), key_orders((args, kwargs)), _leaves_of(unread, names, spec))


def _leaves_of(parameters: frozenset[str], names: Sequence[str], spec: Spec) -> frozenset[int]:
    """The leaves of the arguments for these parameters."""
    if not parameters:
        return frozenset()
    positional, keywords = children(spec)
    parts = [(names[k] if k < len(names) else "", sub) for k, sub in enumerate(children(positional))]
    parts += zip(keywords.entries(), children(keywords), strict=True)
    found: list[int] = []
    at = 0
    for name, sub in parts:
        found += range(at, at + sub.num_leaves) if name in parameters else ()
        at += sub.num_leaves
    return frozenset(found)


def _plain(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A memory map as an array; UnsupportedError for other classes, whose rules would be lost, and for objects."""
    if type(x) is np.ndarray and x.dtype.kind in "biufc":
        return x
    traceable(x)
    return x.view(np.ndarray)


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """Names of the positional parameters, as far as they can be known."""
    if type(function) is FunctionType and vars(function).keys().isdisjoint(("__wrapped__", "__signature__")):
        code = function.__code__
        return [*code.co_varnames[: code.co_argcount]]
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


@dataclass(frozen=True, eq=False)
class Wanted:
    """The differentiated part of a call: flags over its traced leaves, and the structure of the result."""

    active: tuple[bool, ...]
    spec: Spec
    leaves: tuple[int, ...]  # for each leaf of ``spec``: its index among the active ones, -1 for None

    def tree(self, grads: Sequence[Any]) -> Any:
        """Gradients in the structure of the arguments; integer leaves give None."""
        return unflatten(self.spec, [None if i < 0 else grads[i] for i in self.leaves])


def wanted(
    call: Call, function: Callable[..., Any], argnums: Argnums, apart: type | None = None, empty: bool = False
) -> Wanted:
    """Resolve ``argnums`` for a call; ArgnumsError, NonDifferentiableError.

    Numbers in a container of the class ``apart`` are left alone; with ``empty`` there may be no others.
    """
    if isinstance(argnums, (tuple, list)) and not argnums:
        raise ArgnumsError("no argument is differentiated", remedy="name one or more arguments in argnums")
    many = isinstance(argnums, (tuple, list))
    chosen: Sequence[int | str] = list(argnums) if many else [argnums]  # type: ignore[list-item, arg-type]  # by `many`
    spans = _spans(call, function, chosen)
    specs = [spec for _, spec in spans]
    picked = [i for start, spec in spans for i in range(start, start + spec.num_leaves)]
    traced = {leaf: k for k, leaf in enumerate(call.traced)}
    active = [False] * len(call.traced)
    for start, spec in spans:
        if apart is not None and spec.type is apart:
            continue
        for i, fixed in enumerate(nondiff_leaves(spec), start):
            if _differentiable(call.leaves[i]) and not fixed:
                active[traced[i]] = True
            elif spec.num_leaves == 1 and spec.is_leaf():
                raise _not_differentiable(call.leaves[i], chosen)
    order = {k: n for n, k in enumerate(k for k, on in enumerate(active) if on)}
    places = tuple(order.get(traced.get(i, -1), -1) for i in picked)
    if not order and not empty:
        raise _not_differentiable(tuple(call.leaves[i] for i in picked), chosen)
    spec = flatten(tuple(unflatten(s, [0] * s.num_leaves) for s in specs))[1] if many else specs[0]
    return Wanted(tuple(active), spec, places)


def _differentiable(x: Any) -> bool:
    return is_traced(x) and (x.dtype if hasattr(x, "dtype") else np.dtype(type(x))).kind in "fc"


def _not_differentiable(x: Any, chosen: Sequence[Any]) -> NonDifferentiableError:
    if isinstance(x, tuple):
        what = "a container without floating-point numbers"
    else:
        what = f"an array of {x.dtype}" if hasattr(x, "dtype") else f"a value of type {type(x).__name__}"
    return NonDifferentiableError(
        f"argument {', '.join(map(repr, chosen))} is {what}, which has no derivative",
        remedy="pass floating-point numbers (1.0 instead of 1, x.astype(float)), or choose other argnums",
    )


def _spans(call: Call, function: Callable[..., Any], chosen: Sequence[int | str]) -> list[tuple[int, Spec]]:
    """Start and structure of the leaves of each chosen argument."""
    args_spec, kwargs_spec = children(call.spec)
    positional = children(args_spec)
    starts = [0]
    for spec in positional:
        starts.append(starts[-1] + spec.num_leaves)
    keywords: dict[str, tuple[int, Spec]] = {}
    at = starts[-1]
    for name, spec in zip(kwargs_spec.entries(), children(kwargs_spec), strict=True):
        keywords[name] = (at, spec)
        at += spec.num_leaves
    names = parameter_names(function)
    spans: dict[int | str, tuple[int, Spec]] = {}
    for arg in chosen:
        if isinstance(arg, str) and arg in keywords:
            spans[arg] = keywords[arg]
            continue
        k = names.index(arg) if isinstance(arg, str) and arg in names else arg
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not -len(positional) <= k < len(positional):
            known = ", ".join(map(repr, (*range(len(positional)), *names[: len(positional)], *keywords)))
            raise ArgnumsError(
                f"argnums {arg!r} is not among the arguments that this call passes: {known or 'none'}",
                remedy="choose from these" if known else "pass the arguments of the function: f(x), f.source(x)",
            )
        k = int(k) % len(positional)
        spans[k] = (starts[k], positional[k])
    if len(spans) != len(chosen):
        raise ArgnumsError(f"argnums {tuple(chosen)} name an argument twice", remedy="name each argument once")
    return list(spans.values())
