"""primitive and its rules: functions with the user's derivatives, as in autograd's ``extend``.

A body or a rule that can be traced is compiled with the rest; any other one runs as plain Python when the compiled
code comes to it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from ...api.custom import RULING, Custom, CustomJvp, CustomVjp, rely_on_rules
from ...api.functions.closures import is_inexact
from ...api.lens_node import Closed, by_host, taken_apart
from ...api.primitive import primitive as declare
from ...api.stop_gradient import stop_gradient
from ...compiler.signature import name_of
from ...errors import OptionError
from ...tracer.array import Tracer, shadow_of
from ...tracer.swallowed import forget_since, refusals
from ...tracer.tree import flatten, map_leaves, unflatten
from .vspaces import SparseObject, VSpace, vspace

__all__ = [
    "Box",
    "RuledFunction",
    "SparseObject",
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "notrace_primitive",
    "primitive",
    "vspace",
]

MOST_ORDERS = 2  # of derivatives of a rule that uses the function or its result
Function = Callable[..., Any]


class Box:
    """The class of autograd's traced values, of which there are none here."""


class RuledFunction:
    """A function with derivatives of its own; see ``primitive``."""

    def __init__(self, fun: Function) -> None:
        functools.update_wrapper(self, fun, updated=())
        self.fun = fun
        self.pullback: Function | None = None  # attributes of their own, so that what the rules read is followed
        self.tangent: Function | None = None
        self.covered: frozenset[int] | None = frozenset()  # the arguments that the rules are for; None for all
        self._nodes: dict[int, Custom] = {}

    def __repr__(self) -> str:
        return f"<primitive {name_of(self.fun)}>"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self

        @functools.wraps(self.fun)
        def method(*args: Any, **kwargs: Any) -> Any:
            return self(*args, **kwargs)

        return MethodType(method, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_traced((args, kwargs)):
            return self.fun(*args, **kwargs)
        rely_on_rules(self, ("pullback", "tangent"))
        return self.node(self._level())(*self._guarded(args, kwargs))

    def define(self, known: Sequence[int] | None, **rules: Function) -> None:
        """Set the rule for pullbacks or the one for tangents: ``make(argnums, ...)``, for the ``known`` arguments."""
        if "pullback" in rules or self.pullback is None:
            self.covered = None if known is None else frozenset(known)
        vars(self).update(rules)
        self._nodes.clear()

    def _covers(self, argnum: int) -> bool:
        return self.covered is None or argnum in self.covered

    def node(self, level: int) -> Custom:
        """The operation; those of higher levels stand for the result in its rules, so that it has derivatives there."""
        if level not in self._nodes:
            by_tangents = self.pullback is None and self.tangent is not None
            self._nodes[level] = self._by_tangents(level) if by_tangents else self._by_pullbacks(level)
        return self._nodes[level]

    def _level(self) -> int:
        """The level of a call: in the rule of one operation the function is the next one."""
        ruling = RULING.get()
        return next((k for k in range(MOST_ORDERS) if self._nodes.get(k) not in ruling), MOST_ORDERS)

    def _guarded(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments, of which those that no rule covers may not be differentiated."""
        barred = [x if self._covers(k) else map_leaves(_barred, x) for k, x in enumerate(args)]
        return tuple(barred), map_leaves(_barred, kwargs)

    def _body(self, level: int) -> Function:
        """The body of an operation; that of the last level, which rules would differentiate, may not be."""

        def body(args: Any, kwargs: Any) -> Any:
            value = _traced_or_called(
                lambda: self.fun(*args, **kwargs), lambda: by_host(self._untraced, (args, kwargs))
            )
            return value if level < MOST_ORDERS else map_leaves(_ended, value)

        body.__name__ = name_of(self.fun)
        return body

    def _value(self, level: int, args: Any, kwargs: Any) -> Any:
        """The result, as a rule gets it: its derivatives are those of the rules again."""
        return self.node(level + 1)(args, kwargs) if level < MOST_ORDERS else self._body(level)(args, kwargs)

    def _untraced(self, args: Any, kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def _by_pullbacks(self, level: int) -> CustomVjp:
        def forward(args: Any, kwargs: Any) -> tuple[Any, Closed]:
            value = self._value(level, args, kwargs)
            known, rebuilt = taken_apart((value, args, kwargs))
            spec = flatten(value)[1]

            def pull(cts: Sequence[Any], operands: Sequence[Any]) -> Any:
                given = (*rebuilt(operands), unflatten(spec, cts))
                found = _traced_or_called(lambda: self._pulled(*given), lambda: by_host(self._pulled, given))
                return found, None

            return value, Closed(pull, known)

        def backward(closed: Closed, ct: Any) -> Any:
            return closed.pull(flatten(ct)[0], closed.residuals)

        node = CustomVjp(self._body(level))
        node.defvjp(forward, backward)
        return node

    def _pulled(self, value: Any, args: tuple[Any, ...], kwargs: Any, ct: Any) -> Any:
        """The cotangents of the arguments."""
        cts: list[Any] = [map_leaves(_zero, x) for x in args]
        wanted = self._wanted(args)
        if wanted and self.pullback is not None:
            pull = self.pullback(wanted, value, args, kwargs)
            for k, found in zip(wanted, pull(ct), strict=True):
                cts[k] = _dense(found, args[k]) if found is not None else cts[k]
        return tuple(cts)

    def _wanted(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """The arguments that have derivatives."""
        return tuple(k for k, x in enumerate(args) if self._covers(k) and any(map(is_inexact, flatten(x)[0])))

    def _by_tangents(self, level: int) -> CustomJvp:
        def rule(primals: Any, tangents: Any) -> Any:
            (args, kwargs), along = primals, tangents[0]
            value, wanted = self._value(level, args, kwargs), self._wanted(args)
            if not wanted or self.tangent is None:
                return value, map_leaves(_zero, value)
            return value, self.tangent(wanted, [along[k] for k in wanted], value, args, kwargs)

        node = CustomJvp(self._body(level))
        node.defjvp(rule)
        return node


def _dense(found: Any, x: Any) -> Any:
    return found.mut_add(map_leaves(np.zeros_like, x)) if isinstance(found, SparseObject) else found


def _traced_or_called(traced: Callable[[], Any], called: Callable[[], Any]) -> Any:
    """What can be traced, traced; else called by the compiled code, where a fault of the user's comes again."""
    before = refusals()
    try:
        return traced()
    except Exception:  # noqa: BLE001 - a library fails on traced values in its own ways
        forget_since(before)
        return called()


def is_traced(tree: Any) -> bool:
    return any(isinstance(x, Tracer) for x in flatten(tree)[0])


def _zero(x: Any) -> Any:
    return np.zeros_like(shadow_of(x))[()] if is_inexact(x) else 0.0


def _barred(x: Any) -> Any:
    return _barrier("argument_without_a_rule")(x) if isinstance(x, Tracer) and is_inexact(x) else x


def _ended(x: Any) -> Any:
    return _barrier("result_within_rules_of_rules")(x) if isinstance(x, Tracer) and is_inexact(x) else x


@functools.cache
def _barrier(name: str) -> Function:
    """A copy whose derivative is an error that shows the name."""
    return declare(name, emit="np.positive({0})")


def primitive(fun: Function) -> RuledFunction:
    """A function whose derivatives ``defvjp`` or ``defjvp`` define; its body is never differentiated.

    Wanting a derivative by an argument that no rule covers is a NonDifferentiableError.

    >>> import numpy as np
    >>> from retrograd.compat.autograd import grad
    >>> from retrograd.compat.autograd.extend import defvjp, primitive
    >>> @primitive
    ... def logsumexp(x):
    ...     top = np.max(x)
    ...     return top + np.log(np.sum(np.exp(x - top)))
    >>> defvjp(logsumexp, lambda ans, x: lambda g: g * np.exp(x - ans))
    >>> grad(logsumexp)(np.zeros(2))
    array([0.5, 0.5])
    """
    return fun if isinstance(fun, RuledFunction) else RuledFunction(fun)


def notrace_primitive(fun: Function) -> Function:
    """A function whose results are constants for every derivative."""

    @functools.wraps(fun)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not is_traced((args, kwargs)):
            return fun(*args, **kwargs)
        given = stop_gradient((args, kwargs))
        untraced = functools.partial(by_host, lambda xs, named: fun(*xs, **named), given)
        return _traced_or_called(lambda: fun(*given[0], **given[1]), untraced)

    return called


def defvjp(fun: RuledFunction, *makers: Function | None, argnums: Sequence[int] | None = None) -> None:
    """Set ``maker(ans, *args, **kwargs) -> (g -> cotangent)`` for each argument; None stands for zero.

    ``argnums`` are the arguments that the makers are for, the first ones by default.
    """
    table = dict(zip(range(len(makers)) if argnums is None else argnums, makers, strict=False))

    def make(wanted: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Function:
        pulls = [maker and maker(ans, *args, **kwargs) for maker in map(table.get, wanted)]
        return lambda g: tuple(pull and pull(g) for pull in pulls)

    _checked(fun, *makers).define(tuple(table), pullback=make)


def defvjp_argnum(fun: RuledFunction, maker: Function) -> None:
    """Set ``maker(argnum, ans, args, kwargs) -> (g -> cotangent)`` for all arguments."""

    def make(wanted: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Function:
        pulls = [maker(k, ans, args, kwargs) for k in wanted]
        return lambda g: tuple(pull(g) for pull in pulls)

    _checked(fun, maker).define(None, pullback=make)


def defvjp_argnums(fun: RuledFunction, maker: Function) -> None:
    """Set ``maker(argnums, ans, args, kwargs) -> (g -> cotangents)`` for all arguments together."""

    def make(wanted: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Function:
        pull = maker(wanted, ans, args, kwargs)
        return lambda g: tuple(pull(g))

    _checked(fun, maker).define(None, pullback=make)


def defjvp(fun: RuledFunction, *rules: Function | str | None, argnums: Sequence[int] | None = None) -> None:
    """Set ``rule(g, ans, *args, **kwargs) -> tangent`` for each argument: None stands for zero.

    ``"same"`` says that the function is linear in the argument. Reverse mode follows by transposition.
    """
    table = dict(zip(range(len(rules)) if argnums is None else argnums, rules, strict=False))
    for rule in rules:
        if isinstance(rule, str) and rule != "same":
            raise OptionError(f"{rule!r} is not a rule", remedy='give a function, "same" or None')

    def one(k: int, g: Any, ans: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        rule = table[k]
        if rule is None:
            return map_leaves(_zero, ans)
        if isinstance(rule, str):
            return fun.fun(*args[:k], g, *args[k + 1 :], **kwargs)
        return rule(g, ans, *args, **kwargs)

    _checked(fun, *(r for r in rules if not isinstance(r, str))).define(tuple(table), tangent=_added(one))


def defjvp_argnum(fun: RuledFunction, maker: Function) -> None:
    """Set ``maker(argnum, g, ans, args, kwargs) -> tangent`` for all arguments."""
    _checked(fun, maker).define(None, tangent=_added(maker))


def defjvp_argnums(fun: RuledFunction, maker: Function) -> None:
    """Set ``maker(argnums, gs, ans, args, kwargs) -> tangent`` for all arguments together."""
    _checked(fun, maker).define(None, tangent=maker)


def def_linear(fun: RuledFunction) -> None:
    """Say that a function is linear in each of its arguments."""
    defjvp_argnum(fun, lambda k, g, ans, args, kwargs: fun.fun(*args[:k], g, *args[k + 1 :], **kwargs))


def _added(one: Function) -> Function:
    """The tangent by several arguments, as the sum of those by each."""

    def make(wanted: Sequence[int], gs: Sequence[Any], ans: Any, args: Any, kwargs: Any) -> Any:
        space, total = vspace(ans), None
        for k, g in zip(wanted, gs, strict=True):
            part = one(k, g, ans, args, kwargs)
            total = part if total is None else space.add(total, part)
        return total

    return make


def _checked(fun: Any, *rules: Any) -> RuledFunction:
    if not isinstance(fun, RuledFunction):
        raise OptionError(
            f"a derivative is defined for {name_of(fun)}, which is not a primitive",
            remedy="decorate your own function with @primitive; NumPy functions have derivatives already",
        )
    if any(rule is not None and not callable(rule) for rule in rules):
        raise OptionError("a rule is neither a function nor None", remedy="see defvjp and defjvp")
    return fun
