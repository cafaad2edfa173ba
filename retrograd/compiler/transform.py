"""Transform: the definition of grad, vmap and the others: what is traced, and what is derived from the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import OptionError
from ..ir.graph import Graph
from ..ir.primitive import TRANSFORMS
from ..passes.inline import inline_into
from ..tracer.around import whole
from ..tracer.record import Place, Recorded
from ..tracer.trace import CURRENT
from .compilation import Derived
from .garbage import paused
from .recording import form_of, record_call, results_of
from .settings import CHOICES, Settings, config
from .signature import Call, take_apart

INLINE = 16  # nodes up to which a compiled function that is called in a trace is copied into it


@dataclass(frozen=True)
class Transform:
    """The function as it is, compiled: what ``rg.jit`` does. Other transforms override a few methods.

    Equal transforms of one function make the same, so that they may share its compilations.
    """

    label: str
    nan_safe: bool = False
    inline: int = field(default=INLINE, kw_only=True)  # nodes up to which it is copied into a trace
    backend: str | None = field(default=None, kw_only=True)  # in place of that of the settings

    def __deepcopy__(self, memo: dict[int, Any]) -> Transform:
        return self

    def accept(self, function: Any) -> None:
        """Raise OptionError unless this is a function, and the options are right."""
        if not isinstance(self.nan_safe, bool):
            raise OptionError(f"nan_safe={self.nan_safe!r}", remedy="choose from False and True")
        if self.backend not in (None, *CHOICES["backend"]):
            raise OptionError(f"backend={self.backend!r}", remedy=f"choose from {CHOICES['backend']}")
        if not callable(function):
            raise OptionError(
                f"{self.label} needs a function, got {type(function).__name__}",
                remedy=f"write {self.label}(f), and call the result with the arguments",
            )

    def describe(self, function: Callable[..., Any]) -> str:
        """The name of the function under this transform, for messages."""
        return f"<{self.label} of {getattr(function, '__qualname__', function)!s}>"

    def settings(self) -> Settings:
        """The settings for what is compiled now."""
        return config.now() if self.backend is None else config.now()._replace(backend=self.backend)

    def build(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function that is recorded, in place of the user's."""
        return function

    def take(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """A call, taken apart."""
        return take_apart(function, args, kwargs)

    def check(self, function: Callable[..., Any], call: Call) -> None:
        """Check the arguments before anything is recorded."""

    def examples(self, call: Call) -> Sequence[Any]:
        """The values to record with."""
        return call.values()

    @whole
    def record(self, function: Callable[..., Any], call: Call) -> tuple[Recorded, Derived]:
        """A call recorded, and what the transform makes of it."""
        backend = self.settings().backend if CURRENT.get() is None else config.backend  # the outermost one decides
        with config(nan_safe=self.nan_safe or config.nan_safe, backend=backend):
            self.check(function, call)
            recorded = record_call(function, call, self.examples(call))
            with paused:
                return recorded, TRANSFORMS.derived(self, function, recorded, call)

    def derive(self, function: Callable[..., Any], recorded: Recorded, call: Call) -> Derived:
        """The transform itself, on graphs."""
        return Derived(recorded.graph, results_of(recorded), form_of(recorded))

    def place(self, graph: Graph) -> Place:
        """The way into another trace: a copy if the graph is small or has effects, else a call."""
        called: Place = TRANSFORMS.make_call
        return inline_into if len(graph.nodes) <= self.inline or graph.effect else called
