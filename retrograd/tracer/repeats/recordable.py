"""The operators, functions and methods of traced values in outermost traces, made recordable."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import numpy as np

from ...ir.primitive import TRANSFORMS
from ..array import Tracer
from ..operators import ARITHMETIC, COMPARISONS, UNARY
from ..record import RECORDERS, Recorded
from ..table import FUNCTIONS, METHODS
from ..trace import CURRENT
from ..ufuncs import COMPOSED, primitive_of
from .comparing import COMPARING, Args, Comparing, Recordable, Run
from .element_access import getting, putting
from .recipes import by_recipe

# functions that answer questions about shapes and types, and make nothing
POWERS = frozenset({np.power, np.float_power})
# functions whose calls without keywords are mostly one operation on arrays and numbers
SINGLE = frozenset({np.sum, np.prod, np.max, np.min, np.dot, np.where})
QUIET = frozenset({np.shape, np.ndim, np.size, np.result_type, np.iscomplexobj, np.isrealobj})


def _recording(run: Callable[..., Recorded]) -> Callable[..., Recorded]:
    """Wrap recordings: outermost ones are watched; one inside another is not, and ends what that compares."""

    def record(function: Callable[[Sequence[Any]], Any], *options: Any) -> Recorded:
        outer = COMPARING.get()
        if outer is not None:
            outer.end()
        if CURRENT.get() is not None:
            token = COMPARING.set(None)
            try:
                return run(function, *options)
            finally:
                COMPARING.reset(token)
        watches = []

        def watched(tracers: Sequence[Any]) -> Any:
            trace = CURRENT.get()
            assert trace is not None
            watch = Comparing(trace)
            watches.append(watch)
            token = COMPARING.set(watch)
            try:
                found = function(tracers)
            finally:
                COMPARING.reset(token)
            watch.end()
            return found

        recorded = run(watched, *options)
        if any(watch.used for watch in watches):
            recorded = replace(recorded, graph=TRANSFORMS.prune(recorded.graph))
        return recorded

    return record


RECORDERS.append(_recording)

_known: dict[Any, Recordable] = {}


def _what(function: Any) -> Recordable | None:
    """What stands for a function of NumPy's in comparisons; None for functions that make no values of their own."""
    found = _known.get(function)
    if found is None and function not in QUIET:
        ufunc = isinstance(function, np.ufunc) and (function in COMPOSED or primitive_of(function) is not None)
        if ufunc or function in FUNCTIONS:
            found = _known.setdefault(function, Recordable(function))
    return found


def _compared(run: Run, plain: Run) -> Run:
    """A method of Tracer as a step."""
    what = Recordable(plain)

    @wraps(run)
    def call(*args: Any, **kwargs: Any) -> Any:
        watch = COMPARING.get()
        if watch is None or not watch.watches:
            return run(*args, **kwargs)
        return watch.step(watch, run, what, args, kwargs)

    return call


REFLECTED = (*ARITHMETIC, "pow", "matmul")
PARTS = ("T", "mT", "real", "imag")  # attributes that are arrays


def _reflected(run: Run) -> Run:
    return lambda a, b: run(b, a)


def _method(name: str) -> Run:
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def _install_operator(name: str, plain: Run) -> None:
    """Let an operator of Tracer go by recipes, and be a step."""
    whole = getattr(Tracer, name)
    setattr(Tracer, name, wraps(whole)(by_recipe(whole, plain, Recordable(plain), by_value="pow" in name)))


def install_repeats() -> None:
    """Let the operators, functions and methods of Tracer be steps, once it has them."""
    for name in (*REFLECTED, *COMPARISONS):  # comparisons have no reflected form
        _install_operator(f"__{name}__", getattr(operator, f"__{name}__"))
        if name in REFLECTED:
            _install_operator(f"__r{name}__", _reflected(getattr(operator, f"__{name}__")))
    for name in UNARY:
        _install_operator(f"__{name}__", getattr(operator, f"__{name}__"))
    for name in METHODS:
        member = vars(Tracer)[name]
        if name.startswith("__"):
            continue
        if name in PARTS:
            setattr(Tracer, name, property(_compared(member.fget, operator.attrgetter(name)), member.fset))
        elif callable(member):
            setattr(Tracer, name, _compared(member, _method(name)))
    ufunc, function = vars(Tracer)["__array_ufunc__"], vars(Tracer)["__array_function__"]
    calls: dict[Any, Run] = {}

    def calling(of: Any, what: Recordable) -> Run:
        """The call of a ufunc on operands, by recipes."""
        return by_recipe(lambda *inputs: ufunc(None, of, "__call__", *inputs), of, what, by_value=of in POWERS)

    @wraps(ufunc)
    def array_ufunc(self: Any, of: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options and (call := calls.get(of)) is not None:
            return call(*inputs)
        if method != "__call__" or (what := _what(of)) is None:
            return ufunc(self, of, method, *inputs, **options)
        if not options:
            return calls.setdefault(of, calling(of, what))(*inputs)
        watch = COMPARING.get()
        if watch is None or not watch.watches:
            return ufunc(self, of, method, *inputs, **options)
        return watch.step(watch, partial(ufunc, self, of, method), what, inputs, options)

    def applying(of: Any, what: Recordable) -> Run:
        """The call of a function on operands, by recipes."""
        return by_recipe(lambda *args: function(None, of, (), args, {}), of, what, by_value=True, in_order=True)

    @wraps(function)
    def array_function(self: Any, of: Any, types: Any, args: Args, kwargs: dict[str, Any]) -> Any:
        if not kwargs and (call := calls.get(of)) is not None:
            return call(*args)
        what = _what(of)
        if not kwargs and of in SINGLE and what is not None:
            return calls.setdefault(of, applying(of, what))(*args)
        watch = COMPARING.get()
        if watch is None or what is None or not watch.watches:
            return function(self, of, types, args, kwargs)
        return watch.step(watch, lambda *args, **kwargs: function(self, of, types, args, kwargs), what, args, kwargs)

    reading, writing = getting(_compared(Tracer.__getitem__, operator.getitem)), putting(Tracer.__setitem__)
    methods = {"__array_ufunc__": array_ufunc, "__array_function__": array_function}
    for name, method in {**methods, "__getitem__": reading, "__setitem__": writing}.items():
        setattr(Tracer, name, method)
