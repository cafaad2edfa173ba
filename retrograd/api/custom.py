"""custom_vjp and custom_jvp: derivatives that the user writes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import NoneType
from typing import Any

import numpy as np

from ..compiler.compiled import Compiled
from ..compiler.example_values import examples
from ..compiler.record_body import closed
from ..compiler.recording import assembler, results_of
from ..compiler.signature import Call, is_traced, name_of, take_apart
from ..compiler.transform import Transform
from ..compiler.travel import Travelling
from ..errors import ArgnumsError, CapturedTracerError, OptionError, TreeError
from ..ir.builder import Symbol
from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..ir.primitive import Primitive
from ..ir.types import aval_of
from ..ops.structural import custom as primitives
from ..tracer.around import kept
from ..tracer.array import NUMBERS, Tracer, shadow_of, symbol_in, wrap_all
from ..tracer.containers import flatten_like
from ..tracer.outside import trace_here
from ..tracer.record import Recorded, record
from ..tracer.trace import READER, Capture, Trace
from ..tracer.tree import children, flatten, unflatten
from ..where import user_site
from .rule_graphs import captures_before_tangents, check_linear, prefixed, shaped, typed

RULING: ContextVar[tuple[Custom, ...]] = ContextVar("retrograd_ruling", default=())  # those whose rules run here
kept(RULING)
RULES = ("_rule", "_fwd", "_bwd")  # the attributes that hold them


class Custom(Travelling):
    """A function with a derivative that the user wrote; it is called like the function."""

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        self._nondiff: tuple[Any, ...] = tuple(nondiff_argnums)
        functools.update_wrapper(self, function)
        self.function = function
        self._signature, self._most = _signature(function)
        self._compiled = Compiled(self, Transform(type(self).__name__))

    def parts(self) -> tuple[Any, ...]:
        """See ``Travelling``."""
        rules = {name: vars(self)[name] for name in (*RULES, "_nondiff") if name in vars(self)}
        return type(self), (self.function,), rules

    def _inside(self, trace: Trace, call: Call) -> Any:
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = self._positional(args, kwargs) if kwargs or len(args) < self._most else args
        trace = trace_here()
        if trace is None:
            return self._compiled(*args)
        ruling = RULING.get()
        if self in ruling:  # a rule that calls the function gets its plain body
            return self.function(*args)
        rely_on_rules(self, [name for name in RULES if hasattr(self, name)])
        token = RULING.set((*ruling, self))
        try:
            return self._inside(trace, take_apart(self.function, args, {}))
        finally:
            RULING.reset(token)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments by position, defaults included, as rules take them."""
        alone = dict(kwargs)
        if self._signature is not None:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, alone = bound.args, {name: x for name, x in bound.kwargs.items() if name in kwargs}
        if alone:
            raise ArgnumsError(
                f"{name_of(self.function)} takes {', '.join(alone)} by keyword alone, and rules take positions",
                remedy="make it a positional parameter of the function and of its rules",
            )
        return args

    def _record(self, call: Call, function: Callable[..., Any], what: str) -> Recorded:
        def run(tracers: Sequence[Any]) -> Any:
            return function(*call.rebuild(tracers)[0])

        recorded = record(run, what, call.values(), call.hints, concrete=False)
        _only_arrays(recorded.captures)
        return recorded

    def _fixed(self, call: Call) -> list[int]:
        """The traced leaves of the arguments that are not differentiated."""
        specs = children(children(call.spec)[0])
        for k in self._nondiff:
            if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < len(specs):
                raise ArgnumsError(
                    f"nondiff_argnums names {k!r}, but the call has {len(specs)} arguments",
                    remedy="give positions from 0, as a tuple",
                )
        owner = [k for k, spec in enumerate(specs) for _ in range(spec.num_leaves)]
        return [i for i in call.traced if owner[i] in self._nondiff]


def _signature(function: Callable[..., Any]) -> tuple[inspect.Signature | None, int]:
    """The signature of a function of Python's, and how many positional arguments a complete call has."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        return None, 0
    signature = inspect.signature(function)
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return signature, sum(p.kind in positional for p in signature.parameters.values())


def rely_on_rules(ruled: Any, names: Sequence[str]) -> None:
    """Take note of the attributes that hold rules: with other rules, what is recorded here is another program."""
    reader = READER.get()
    if reader is not None:
        for name in names:
            reader.note(ruled, "attr", name, getattr(ruled, name))


def _only_arrays(captures: Sequence[Capture]) -> None:
    """Raise CapturedTracerError for captures that are traced: they would silently get no derivative."""
    for c in captures:
        if isinstance(c.payload, Symbol):
            raise CapturedTracerError(
                f"a function with its own derivative captures the traced value {_named(c.payload)}",
                remedy="pass it as an argument",
            )


def _named(symbol: Symbol) -> str:
    """The user's name of a traced value, if it has one, and its type."""
    return f"{symbol.value.hint or 'without a name'}: {symbol.aval}"


def _emit(trace: Trace, prim: Primitive, attrs: dict[str, Graph], call: Call, captures: Sequence[Capture]) -> list[Any]:
    """Put the node into the trace, applied to the call's leaves and the captures."""
    body = attrs["body"]
    operands = [symbol_in(trace, x) for x in call.values()]
    operands += [symbol_in(trace, c.payload) for c in captures]
    where = trace.builder.where = user_site()[0]
    coerced = [trace.builder.coerce(x, v.aval).value for x, v in zip(operands, body.inputs, strict=True)]
    outs = trace.builder.emit(prim, coerced, attrs)
    given = [*map(shadow_of, call.values()), *(c.shadow for c in captures)]
    shadows = examples(trace, lambda: evaluate(body, given), body.out_avals)
    return wrap_all(trace, outs, shadows, where)


class CustomJvp(Custom):
    """A function with a forward derivative of its own; ``rg.custom_jvp`` makes it."""

    _rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule; usable as a decorator.

        Parameters
        ----------
        rule : callable
            ``rule(primals, tangents)`` takes tuples and returns ``(out, tangent)``. With ``nondiff_argnums``, it takes
            those arguments first, and tuples of the others.

        Returns
        -------
        callable
            The rule.
        """
        self._rule = rule
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Set one rule for each argument; the tangents that they return are added.

        Parameters
        ----------
        *rules : callable or None
            ``rule(tangent, out, *primals)`` returns the tangent of the result. None stands for zero.

        Examples
        --------
        >>> import numpy as np, retrograd as rg
        >>> product = rg.custom_jvp(lambda x, y: x * y)
        >>> product.defjvps(lambda t, out, x, y: t * y, None)
        >>> [float(d) for d in rg.grad(product, (0, 1))(2.0, 3.0)]
        [3.0, 0.0]
        """
        if self._nondiff:
            raise OptionError(
                "defjvps beside nondiff_argnums", remedy="give one rule for all arguments: f.defjvp(rule)"
            )

        def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
            if len(rules) != len(primals):
                raise TreeError(
                    f"{len(rules)} rules for {len(primals)} arguments",
                    remedy="give defjvps one rule for each argument, None for zero",
                )
            out = self.function(*primals)
            leaves, spec = flatten(out)
            total = [np.zeros_like(x) for x in leaves]
            for each, dot, x in zip(rules, tangents, primals, strict=True):
                if each is not None and any(is_traced(v) and aval_of(shadow_of(v)).inexact for v in flatten(x)[0]):
                    part = flatten_like(spec, each(dot, out, *primals), "the result of a rule")
                    total = [a + b for a, b in zip(total, part, strict=True)]
            return out, unflatten(spec, total)

        self._rule = rule

    def _inside(self, trace: Trace, call: Call) -> Any:
        rule = self._rule
        if rule is None:
            raise OptionError("custom_jvp has no rule yet", remedy="call f.defjvp(rule)")
        body = self._record(call, self.function, "body")
        inexact = [aval_of(shadow_of(x)).inexact for x in call.values()]
        n = len(inexact)
        self._fixed(call)

        def run(leaves: Sequence[Any]) -> Any:
            rest = iter(leaves[n:])
            dots = [next(rest) if on else None for on in inexact]
            primals, tangents = call.rebuild(leaves[:n])[0], call.rebuild(dots)[0]
            first = [primals[k] for k in self._nondiff]
            result = rule(*first, *(_without(part, self._nondiff) for part in (primals, tangents)))
            if not isinstance(result, tuple) or len(result) != 2:
                raise TreeError("a jvp rule must return a pair (out, tangent)", remedy="return out, tangent")
            out, tangent = (flatten_like(body.out_spec, part, "the rule's result") for part in result)
            keep = [i for i, a in enumerate(body.graph.out_avals) if a.inexact]
            return [*out, *(tangent[i] for i in keep)]

        examples = [
            *call.values(),
            *(np.zeros_like(shadow_of(x))[()] for x, on in zip(call.values(), inexact, strict=True) if on),
        ]
        names = [*call.hints, *(f"{h}_dot" for h, on in zip(call.hints, inexact, strict=True) if on)]
        ruled = record(run, "rule", examples, names, concrete=False)
        _only_arrays(ruled.captures)
        (body_graph, rule_graph), captures = closed(
            [(body.graph, n, body.captures), (typed(ruled.graph, body.graph), len(examples), ruled.captures)]
        )
        rule_graph = captures_before_tangents(rule_graph, n, len(examples), len(captures))
        check_linear(rule_graph, n + len(captures), len(body_graph.outputs))
        outs = _emit(trace, primitives.custom_jvp, {"body": body_graph, "rule": rule_graph}, call, captures)
        return results_of(body)(outs)


class CustomVjp(Custom):
    """A function with a pullback of its own; ``rg.custom_vjp`` makes it."""

    _fwd: Callable[..., Any] | None = None
    _bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the rules.

        Parameters
        ----------
        fwd : callable
            ``fwd(*args)`` returns ``(out, residuals)``.
        bwd : callable
            ``bwd(residuals, ct)`` returns a tuple with one cotangent for each argument, None for zero. With
            ``nondiff_argnums``, it takes those arguments first, and returns cotangents of the others.
        """
        self._fwd, self._bwd = fwd, bwd

    def _inside(self, trace: Trace, call: Call) -> Any:
        fwd, bwd = self._fwd, self._bwd
        if fwd is None or bwd is None:
            raise OptionError("custom_vjp has no rule yet", remedy="call f.defvjp(fwd, bwd)")
        body = self._record(call, self.function, "body")
        n = len(call.values())
        fixed = self._fixed(call)
        put_together: list[Callable[[Sequence[Any]], Any]] = []  # makes residuals, with ints and objects as they were

        def run_forward(*args: Any) -> Any:
            given = flatten(args)[0]
            result = fwd(*args)
            if not isinstance(result, tuple) or len(result) != 2:
                raise TreeError("fwd must return a pair (out, residuals)", remedy="return out, residuals")
            residuals, spec = flatten(result[1])
            put_together.append(assembler(spec, {i: r for i, r in enumerate(residuals) if not is_traced(r)}))
            kept = [*(given[i] for i in fixed), *filter(is_traced, residuals)]
            return [*flatten_like(body.out_spec, result[0], "the output of fwd"), *kept]

        forward = self._record(call, run_forward, "forward")
        outs = len(body.graph.outputs)
        residuals = forward.shadows[outs:]
        inexact = [i for i, a in enumerate(body.graph.out_avals) if a.inexact]
        seeds = [np.ones_like(body.shadows[i])[()] for i in inexact]

        def run_backward(leaves: Sequence[Any]) -> Any:
            cts: list[Any] = [None] * outs
            for i, ct in zip(inexact, leaves[len(residuals) :], strict=True):
                cts[i] = ct
            seed = assembler(body.out_spec, dict.fromkeys(body.statics))(cts)
            kept = dict(zip(fixed, leaves, strict=False))
            args = call.rebuild([kept.get(i) for i in call.traced])[0]
            first = [args[k] for k in self._nondiff]
            own = put_together[-1](leaves[len(fixed) : len(residuals)])
            return _cotangents(call, bwd(*first, own, seed), self._nondiff)

        hints = [*("r" for _ in residuals), *("ct" for _ in seeds)]
        backward = record(run_backward, "backward", [*residuals, *seeds], hints, concrete=False)
        _only_arrays(backward.captures)
        own = len(residuals) + len(seeds)
        (body_graph, forward_graph, backward_graph), captures = closed(
            [
                (body.graph, n, body.captures),
                (forward.graph, n, forward.captures),
                (backward.graph, own, backward.captures),
            ]
        )
        attrs = {
            "body": body_graph,
            "forward": prefixed(forward_graph, body_graph, n),
            "backward": shaped(backward_graph, body_graph, n, len(residuals), inexact),
        }
        return results_of(body)(_emit(trace, primitives.custom_vjp, attrs, call, captures))


def _without(items: Sequence[Any], places: Sequence[int]) -> tuple[Any, ...]:
    return tuple(x for k, x in enumerate(items) if k not in places)


def _cotangents(call: Call, found: Any, nondiff: Sequence[int]) -> list[Any]:
    """One cotangent for each floating-point leaf of the arguments; None stands for zero."""
    args = call.rebuild(call.values())[0]
    if not isinstance(found, tuple) or len(found) != len(args) - len(set(nondiff)):
        raise TreeError(
            f"bwd must return a tuple of {len(args) - len(set(nondiff))} cotangents",
            remedy="return a tuple with one cotangent per argument, None for zero",
        )
    flat = []
    rest = iter(found)
    for ct, arg in [(None if k in nondiff else next(rest), x) for k, x in enumerate(args)]:
        leaves, spec = flatten(arg)
        parts = [None] * len(leaves) if ct is None else flatten_like(spec, ct, "a cotangent of bwd")
        for part, leaf in zip(parts, leaves, strict=True):
            if not isinstance(part, (Tracer, np.ndarray, *NUMBERS, NoneType)):
                raise TreeError(
                    f"bwd returns a cotangent of type {type(part).__name__}",
                    remedy="return arrays and numbers, and None for zero",
                )
            if is_traced(leaf) and aval_of(shadow_of(leaf)).inexact:
                flat.append(np.zeros_like(shadow_of(leaf))[()] if part is None else part)
    return flat
