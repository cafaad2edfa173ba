"""A primitive is one declaration: its maths, the storage of its results, and its texts for each target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import InternalError
from .embedded import embed
from .texts import TEXTS, NumPyText, Template
from .types import Aval

if TYPE_CHECKING:
    from .callbacks import (
        BatchRule,
        DceRule,
        FreshRule,
        JvpRule,
        LowerRule,
        RunRule,
        ScratchRule,
        ThroughRule,
        TransposeRule,
    )
    from .structure import Structure

Rule = Callable[..., Any]
F = TypeVar("F", bound=Rule)


@dataclass(frozen=True, slots=True)
class Pull:
    """The operation is linear in this operand: ``rule(ct, *operands, **attrs)`` is the operand's cotangent.

    With ``into``, the rule is ``rule(acc, ct, *operands, **attrs)`` and returns ``acc`` with the cotangent
    added: n slices of one array then share one buffer instead of making n arrays.
    """

    rule: Rule
    into: bool = False


@dataclass(frozen=True, slots=True)
class Push:
    """The operation is not linear in this operand: ``rule(t, out, *operands, **attrs)`` is the tangent of out."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class Unknown:
    """The derivative in this operand exists but has no formula here: wanting it is an error that names ``what``."""

    what: str


Derivative = Pull | Push | Unknown | None


def pull(rule: Rule, *, into: bool = False) -> Pull:
    """The derivative of an operand in which the operation is linear."""
    return Pull(rule, into)


def push(rule: Rule) -> Push:
    """The derivative of an operand in which the operation is not linear."""
    return Push(rule)


class JvpMode(NamedTuple):
    """How tangents are made; rules of structural primitives hand it on to the transforms of their bodies.

    With ``split`` nothing that gives results may depend on a tangent: a structural node becomes one that also gives
    residuals, and one that is linear in the tangents and reads them. With ``nan_safe`` a zero tangent annihilates.
    """

    split: bool
    nan_safe: bool


class Operand:
    """An object that a primitive can be applied to: a symbol of a graph, or a hole of a rewrite pattern."""

    __slots__ = ()
    __array_ufunc__ = None  # so that numbers of NumPy's leave operators to it

    def bind(self, prim: Primitive, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise TypeError(f"np.{function.__name__} does not take symbols")

    def __add__(self, other: Any) -> Any:
        return REGISTRY["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return REGISTRY["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        return REGISTRY["sub"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return REGISTRY["sub"](other, self)

    def __mul__(self, other: Any) -> Any:
        return REGISTRY["mul"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return REGISTRY["mul"](other, self)

    def __truediv__(self, other: Any) -> Any:
        return REGISTRY["div"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return REGISTRY["div"](other, self)

    def __pow__(self, other: Any) -> Any:
        return REGISTRY["power"](self, other)

    def __matmul__(self, other: Any) -> Any:
        return REGISTRY["matmul"](self, other)

    def __neg__(self) -> Any:
        return REGISTRY["neg"](self)


@lru_cache(maxsize=8192)
def _only(shape: Rule, *in_avals: Aval) -> tuple[Aval, ...]:
    """The aval that a shape rule gives for the only result of an operation without attributes."""
    return (shape(*in_avals),)


_NOTHING = NumPyText()


@dataclass(frozen=True, eq=False, kw_only=True)
class Primitive:
    """One operation of the IR, declared once.

    ``shape(*avals, **attrs)`` gives the aval of the result (a tuple of avals if ``multi``). ``diff`` has a Pull, a
    Push, an Unknown or None (zero) per operand; the last entry stands for all further operands. ``texts`` holds the
    texts of each target that needs any; a structural one has emitters in the targets instead, and ``run`` to interpret.
    """

    name: str

    # maths
    shape: Rule
    diff: tuple[Derivative, ...] = ()
    joint: bool = False  # linear in all its Pull operands together
    jvp: JvpRule | None = None
    transpose: TransposeRule | None = None
    batch: BatchRule | None = None
    dce: DceRule | None = None
    lower: LowerRule | None = None  # what it becomes once all differentiation is done
    run: RunRule | None = None  # where there is no code to evaluate
    structure: Structure | None = None  # of a primitive with graphs among its attributes
    mark: bool = False  # it is found in the graph later, so it is recorded even if all operands are plain numbers
    final: bool = False  # made by the last passes, which have laws of their own: neither differentiated nor batched

    # results and their storage
    multi: bool = False
    typed: bool = False  # the result's aval is the attribute `aval`, printed as the node's type
    effect: bool = False  # never merged, dropped or reordered
    cheap: bool = False  # may be recomputed rather than kept
    alias: int | None = None  # the result may share storage with this operand
    through: ThroughRule | None = None  # what a write through such a view makes of the operand; None if it has none
    writes: int | None = None  # the result may overwrite this operand where nothing else needs it
    into: bool = False  # the result can be computed into given storage
    over: bool = False  # ... also into the storage of an operand that is read for it
    fresh: FreshRule | None = None  # with several results: node -> positions of those that share no storage
    order: str = ""  # of axes in memory, in NumPy's letters: K as the operands, A if they are in C order, C always
    scratch: ScratchRule | None = None  # (*avals, **attrs) -> bytes of workspace that is allocated inside

    # texts
    texts: dict[str, Any] = field(default_factory=dict)  # by target
    numpy: NumPyText = field(init=False)  # the texts among these that the interpreter evaluates, too

    def __post_init__(self) -> None:
        object.__setattr__(self, "numpy", self.texts.get("numpy", _NOTHING))

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        for operand in operands:
            if isinstance(operand, Operand):
                return operand.bind(self, operands, attrs)
        raise InternalError(f"primitive {self.name} applied to no operand")

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def derivative(self, i: int) -> Derivative:
        """The derivative of operand ``i``."""
        return self.diff[min(i, len(self.diff) - 1)] if self.diff else None

    def avals(self, in_avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Aval, ...]:
        """The avals of all results."""
        if not attrs and not self.multi:
            return _only(self.shape, *in_avals)
        out = self.shape(*in_avals, **attrs)
        return out if self.multi else (out,)


class Registry(dict[str, Primitive]):
    """All primitives by name; the only global state, filled at import."""

    def add(self, prim: Primitive) -> Primitive:
        if prim.name in self:
            raise InternalError(f"two primitives are called {prim.name}")
        text = prim.numpy
        own = not isinstance(text.code, str) or text.code == text.op or text.code.startswith(f"{text.ufunc}({{0}}")
        if text.ufunc and not own:  # out= is appended to a call of the ufunc, not to the code
            raise InternalError(f"the code of {prim.name} is not a call of {text.ufunc}: leave the ufunc empty")
        embed(text.helper)
        self[prim.name] = prim
        return prim

    def describe(self, target: str, texts: Mapping[str, Any]) -> None:
        """Add a target's texts for primitives that are declared elsewhere, by name."""
        for name, text in texts.items():
            if name not in self:
                raise InternalError(f"the target {target} describes {name}, which is not a primitive")
            if self[name].texts.setdefault(target, text) is not text:
                raise InternalError(f"the target {target} describes {name} twice")


REGISTRY = Registry()


class Transforms:
    """The transforms that rules of structural primitives need of their bodies; passes register here.

    ``jvp``, ``linearize``, ``transpose``, ``batch``, ``inline`` and others become attributes: ``ops`` can so use
    passes that it must not import.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, Rule] = {}

    def register(self, name: str) -> Callable[[F], F]:
        def add(rule: F) -> F:
            self._by_name[name] = rule
            return rule

        return add

    def __getattr__(self, name: str) -> Rule:
        try:
            return self._by_name[name]
        except KeyError:
            raise AttributeError(f"no pass registered the transform {name!r}") from None


TRANSFORMS = Transforms()


def primitive(name: str, shape: Rule, code: Template = "", **fields: Any) -> Primitive:
    """Declare and register a primitive; keywords are its fields, and the fields of the texts for targets."""
    fields["code"] = code
    texts = {}
    for target, record in TEXTS.items():
        own = {key: fields.pop(key) for key in record.__dataclass_fields__ if key in fields}
        if any(own.values()):
            texts[target] = record(**own)
    text: NumPyText = texts.get("numpy", _NOTHING)
    fields.setdefault("into", bool(text.ufunc or text.takes_out))
    fields.setdefault("over", text.broadcasts)
    fields.setdefault("order", "K" if text.ufunc else "A" if text.takes_out else "")
    return REGISTRY.add(Primitive(name=name, shape=shape, texts=texts, **fields))
