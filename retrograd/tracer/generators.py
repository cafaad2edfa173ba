"""Random generators inside a trace: draws are traced, and each call draws new numbers from the stream that NumPy uses.

A TracedGenerator stands for a generator that the function captures, and for the hidden one behind
``np.random.normal``. While tracing it draws from a copy. A generator that the function makes from a seed gives the
same numbers at each call, so its draws are plain numbers. Any other draw is detected by the changed state of its
generator, and refused.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..errors import CapturedWriteError
from ..ir.builder import Symbol
from ..ir.types import aval_of
from ..ops.structural.draw import DRAWS, draw
from ..where import is_ours, user_site
from .around import kept
from .array import Tracer, is_known, shadow_of, wrap
from .creation import active_trace, entered, fresh
from .generator_states import restore, same_state, state_of
from .interception import substitutes
from .operands import into
from .record import RECORDERS, Recorded
from .trace import CURRENT, STATEFUL, Capture, Stateful, Trace, unsupported

GENERATORS = (np.random.Generator, np.random.RandomState)
# Draws whose parameters may be traced: the standard draw, and NumPy's formula that applies the parameters to it.
LOCATED: dict[str, tuple[str, tuple[tuple[str, float], ...], Callable[..., Any]]] = {
    "normal": ("standard_normal", (("loc", 0.0), ("scale", 1.0)), lambda z, loc, scale: loc + scale * z),
    "uniform": ("random", (("low", 0.0), ("high", 1.0)), lambda u, low, high: low + (high - low) * u),
    "exponential": ("standard_exponential", (("scale", 1.0),), lambda e, scale: scale * e),
    "lognormal": ("standard_normal", (("mean", 0.0), ("sigma", 1.0)), lambda z, m, s: np.exp(m + s * z)),
}
# Whether the body that is being recorded is repeated so often that all it draws can be drawn before.
HOISTED: ContextVar[bool] = ContextVar("retrograd_hoisted", default=False)
kept(HOISTED)
# Whether this is a part of some work whose parts may run in any order, so that no stream of numbers has an order.
UNORDERED: ContextVar[bool] = ContextVar("retrograd_unordered", default=False)
_examples: WeakKeyDictionary[Trace, dict[int, tuple[Any, Any]]] = WeakKeyDictionary()


def check_ordered() -> None:
    """Raise UnsupportedError for a draw from a stream that goes on from call to call, where calls have no order."""
    if UNORDERED.get():
        raise unsupported(
            "drawing from a generator that several shards or chunks share",
            "pass the numbers with each shard, or a seed, and call np.random.default_rng(seed) inside the function",
        )


def example_of(trace: Trace, generator: Any) -> Any:
    """The copy of a generator from which a trace and the traces inside it draw."""
    while trace.parent is not None:
        trace = trace.parent
    known = _examples.setdefault(trace, {})
    if id(generator) not in known:
        known[id(generator)] = (generator, copy.deepcopy(generator))
    return known[id(generator)][1]


def rewinding(trace: Trace) -> Callable[[], None]:
    """A function that sets the copies back to their present states, and later copies to the states they began with."""
    while trace.parent is not None:
        trace = trace.parent
    known = _examples.setdefault(trace, {})
    before = {key: state_of(example) for key, (_, example) in known.items()}

    def rewind() -> None:
        for key, (generator, example) in known.items():
            restore(example, before[key] if key in before else state_of(generator))

    return rewind


def capture_generator(trace: Trace, generator: Any, name: str | None = None) -> Symbol:
    """Make a generator a trailing input of a trace."""
    found = trace.captures.get(id(generator))
    if found is None:
        symbol = trace.builder.input(aval_of(generator), name or "rng")
        found = trace.captures[id(generator)] = Capture(generator, symbol, example_of(trace, generator))
    return found.symbol


def _drawing_only_in_steps(run: Callable[..., Recorded]) -> Callable[..., Recorded]:
    """Of the functions that are recorded for all values, only the steps of loops may draw."""

    def recording(
        function: Callable[..., Any],
        name: str,
        examples: Sequence[Any],
        hints: Sequence[str],
        concrete: bool,
        max_nodes: int | None,
        gathers: bool,
    ) -> Recorded:
        token = HOISTED.set(HOISTED.get() and (concrete or gathers))
        try:
            return run(function, name, examples, hints, concrete, max_nodes, gathers)
        finally:
            HOISTED.reset(token)

    return recording


RECORDERS.append(_drawing_only_in_steps)


class TracedGenerator:
    """Stands for a generator inside a trace; ``made`` says that it was made there, from a seed."""

    def __init__(self, generator: Any, name: str | None = None, made: bool = False) -> None:
        self._generator, self._name, self._made = generator, name, made
        self._home = CURRENT.get() if made else None

    @property  # type: ignore[misc]  # isinstance asks for it
    def __class__(self) -> type:
        return TracedGenerator if is_ours(sys._getframe(1)) else type(self._generator)

    def __getattr__(self, name: str) -> Any:
        if name == "shuffle":
            return self._shuffle
        if name in DRAWS and hasattr(self._generator, name):
            return partial(self._draw, name)
        raise unsupported(
            f"{name} of a random generator inside a traced function", "draw numbers there, and do the rest outside"
        )

    def _draw(self, method: str, *args: Any, **named: Any) -> Any:
        if method == "permuted":
            return self._permuted(*args, **named)
        if named.get("out") is not None:
            return self._drawn_into(method, *args, **named)
        if method in {"permutation", "choice"} and args and np.ndim(shadow_of(args[0])):
            items = entered(args[0])
            return items[self._draw(method, len(items), *args[1:], **named)]
        if method in LOCATED and any(isinstance(x, (Tracer, np.ndarray)) for x in (*args, *named.values())):
            return self._located(method, *args, **named)
        return self._drawn(method, tuple(map(_plain, args)), {key: _plain(x) for key, x in named.items()})

    def _drawn(self, method: str, plain: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if self._made:
            if CURRENT.get() is not self._home:
                raise unsupported(
                    "a draw in an inner function from a generator that an enclosing traced function created",
                    "create the generator outside of the traced function",
                )
            found = getattr(self._generator, method)(*plain, **options)
            return fresh(found) if isinstance(found, np.ndarray) else found
        check_ordered()
        trace = active_trace()
        if not trace.concrete and not HOISTED.get():
            raise unsupported(
                "a draw in a branch, in a loop of unknown length, or in a function with its own derivative",
                "draw all numbers before, and pass them in; rg.scan and rg.fori_loop of n steps may draw",
            )
        generator = capture_generator(trace, self._generator, self._name)
        found = getattr(example_of(trace, self._generator), method)(*plain, **options)
        trace.builder.where, hint = user_site()
        out = draw(generator, aval=aval_of(found), method=method, given=plain, named=tuple(options.items()))
        out.value.hint = hint
        return wrap(trace, out, found, trace.builder.where)

    def _permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        items = entered(x)
        places = np.arange(items.size).reshape(items.shape)
        return into(out, np.ravel(items)[self._drawn("permuted", (_plain(places),), {"axis": axis})])

    def _drawn_into(self, method: str, *args: Any, out: Any, **named: Any) -> Any:
        """``rng.random(out=x)``: NumPy's own error where ``out`` does not fit."""
        if not isinstance(out, Tracer):
            raise CapturedWriteError(
                "a draw inside a traced function is written into an array created outside",
                remedy="create the array inside the traced function, or omit out=",
            )
        plain, options = map(_plain, args), {key: _plain(x) for key, x in named.items()}
        getattr(np.random.default_rng(0), method)(*plain, **options, out=np.empty_like(out.shadow))
        out[...] = self._draw(method, *args, **{**named, "size": out.shape})
        return out

    def _located(self, method: str, *args: Any, **named: Any) -> Any:
        standard, parameters, formula = LOCATED[method]
        names = (*(name for name, _ in parameters), "size")
        given = dict(zip(names, args, strict=False)) | named
        values = [given.pop(name, default) for name, default in parameters]
        size = given.pop("size", None)
        if given or len(args) > len(names):
            raise TypeError(f"{method}() got unexpected arguments")
        shape = np.broadcast_shapes(*(np.shape(shadow_of(v)) for v in values))
        size = shape if size is None else size
        return formula(self._draw(standard, **({} if size == () else {"size": size})), *values)

    def _shuffle(self, x: Any, axis: int = 0) -> None:
        if not isinstance(x, Tracer):
            raise unsupported("shuffling a Python list", "shuffle np.array(items)")
        if axis:
            raise unsupported("shuffling along another axis than the first", "shuffle the transpose")
        x[...] = x[self._draw("permutation", len(x))]


def original(x: Any) -> Any:
    """The generator that another object stands for in traced code; any other object itself."""
    return x._generator if type(x) is TracedGenerator else x


def _plain(x: Any) -> Any:
    """A parameter as it stands in source: numbers, strings, dtypes and tuples of them."""
    if isinstance(x, Tracer):
        if not is_known(x):
            raise unsupported(
                "a traced parameter of this draw", "draw from the standard distribution, and shift and scale that"
            )
        x = x.shadow
    if isinstance(x, np.ndarray):
        x = x.tolist()
    if isinstance(x, (list, tuple)):
        return tuple(map(_plain, x))
    if isinstance(x, np.generic):
        return x.item()
    return np.dtype(x) if isinstance(x, type) else x


def _made_inside(make: Callable[..., Any]) -> Callable[..., Any]:
    def seeded(seed: Any = None) -> Any:
        if isinstance(seed, TracedGenerator):
            return seed
        if isinstance(seed, GENERATORS):
            return TracedGenerator(seed)
        if seed is None:
            raise unsupported(
                "making a generator without a seed inside a traced function, which runs once,",
                "create it outside: the function may draw from generators that it captures",
            )
        return TracedGenerator(make(_plain(seed)), made=True)

    return seeded


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **options: Any) -> Any:
        raise unsupported(f"np.random.{name} inside a traced function", "seed outside, before the call")

    return refuse


@substitutes("numpy.random")
def _of_numpy(random: ModuleType) -> Mapping[str, Any]:
    hidden = TracedGenerator(random.mtrand._rand)
    methods = {name: partial(hidden._draw, name) for name in DRAWS if hasattr(random, name)}
    made = {name: _made_inside(getattr(random, name)) for name in ("default_rng", "RandomState")}
    return {**methods, **made, "shuffle": hidden._shuffle, "seed": _refused("seed"), "set_state": _refused("set_state")}


# ------------------------------------------------------------------------------------------------------ states


class Watch:
    """Generators that code might draw from unseen: NumPy's hidden one, and attributes of objects that are read.

    The hidden one is not watched while other threads run, since they may draw from it.
    """

    def __init__(self) -> None:
        self._states: dict[int, tuple[Any, Any]] = {}
        if threading.active_count() == 1:
            self.add(np.random.mtrand._rand)

    def add(self, generator: Any) -> None:
        """Watch this one from now on."""
        self._states.setdefault(id(generator), (generator, state_of(generator)))

    def check(self) -> None:
        """Raise UnsupportedError if a watched generator was drawn from, and set it back."""
        moved = [(g, s) for g, s in self._states.values() if not same_state(s, state_of(g))]
        for generator, state in moved:
            restore(generator, state)
        if moved:
            raise unsupported(
                f"drawing from a {type(moved[0][0]).__name__} that the function reaches through an object or a library",
                "let the function name the generator itself, as a global, a closure or a default argument",
            )


def repeatable(run: Callable[..., Any], captures: Sequence[Any]) -> Callable[..., Any]:
    """Wrap ``run``: if it raises, as at a missing path, the captured generators are set back."""
    generators = [g for g in captures if isinstance(g, GENERATORS)]
    if not generators:
        return run

    def again(*args: Any) -> Any:
        check_ordered()
        before = [state_of(g) for g in generators]
        try:
            return run(*args)
        except Exception:
            for generator, state in zip(generators, before, strict=True):
                restore(generator, state)
            raise

    return again


STATEFUL.append(Stateful(GENERATORS, TracedGenerator, capture_generator, example_of, repeatable, rewinding, Watch))
