"""A primitive is one declaration: shape, code, derivative of each operand, batching, aliasing, effects."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from ..errors import InternalError
from .callbacks import BatchRule, DceRule, FreshRule, JvpRule, LowerRule, RunRule, ScratchRule, TransposeRule
from .graph import Graph, Node
from .structure import Structure
from .types import Aval

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


class Operand:
    """What a primitive can be applied to: a symbol of a graph, or a hole of a rewrite pattern."""

    __slots__ = ()

    def bind(self, prim: Primitive, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
        raise NotImplementedError

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
    """What a shape rule says of the only result of an operation without attributes."""
    return (shape(*in_avals),)


@dataclass(frozen=True, eq=False, kw_only=True)
class Primitive:
    """One operation of the IR, declared once.

    ``shape(*avals, **attrs)`` gives the aval of the result (a tuple of them if ``multi``). ``code`` is a
    format string of Python source over operands ``{0}, {1}, ...`` (``{args}`` is all of them) and attributes
    by name, or makes such a string from the node; the interpreter evaluates it and the emitter prints it. A
    primitive that writes has a ``statement`` instead, a structural one ``run`` and ``emit``. ``diff`` has a Pull,
    a Push, an Unknown or None (zero) per operand, the last standing for all further ones.
    """

    name: str
    shape: Rule
    code: str | Callable[[Node], str] = ""
    statement: str | Callable[[Node], str] = ""  # instead of code: it changes {0}, a fresh copy of operand `writes`
    helper: str = ""  # source of a function that the code calls; it stands once in a module
    op: str = ""  # operator form of the code, where it rounds as the code does
    ufunc: str = ""  # the NumPy ufunc: it broadcasts, casts and takes out=
    takes_out: bool = False  # code with ", out=X" appended inside the last parenthesis is legal
    diff: tuple[Derivative, ...] = ()
    joint: bool = False  # linear in all its Pull operands together
    numbers: tuple[int, ...] = ()  # operands whose constants NumPy must get as numbers: it rounds otherwise with arrays
    loose: tuple[int, ...] = ()  # operands that NumPy broadcasts and casts by itself; a ufunc does so for all
    batch: BatchRule | None = None
    alias: int | None = None  # the result may share storage with this operand
    writes: int | None = None  # the result may overwrite this operand where nothing else needs it
    fresh: FreshRule | None = None  # with several results: node -> positions of those that share no storage
    order: str = ""  # of axes in memory, as NumPy says: K as the operands, A if they are in C order, C always
    scratch: ScratchRule | None = None  # (*avals, **attrs) -> bytes of workspace that NumPy allocates inside
    effect: bool = False  # never merged, dropped or reordered
    multi: bool = False
    final: bool = False  # made by the last passes, which have laws of their own: neither differentiated nor batched
    cheap: bool = False  # may be recomputed rather than kept
    typed: bool = False  # the result's aval is the attribute `aval`, printed as the node's type
    weak: bool = False  # operands that are all Python numbers give a Python number
    jvp: JvpRule | None = None
    transpose: TransposeRule | None = None
    dce: DceRule | None = None
    lower: LowerRule | None = None  # what it becomes once all differentiation is done
    structure: Structure | None = None  # of a primitive with graphs among its attributes
    run: RunRule | None = None
    emit: Rule | None = None

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        for operand in operands:
            if isinstance(operand, Operand):
                return operand.bind(self, operands, attrs)
        raise InternalError(f"primitive {self.name} applied to no symbol")

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

    def render(self, node: Node, operands: Sequence[str], template: str | Callable[[Node], str] = "") -> str:
        """The code with operand names and attribute literals filled in."""
        attrs = node.attrs
        fields = {name: literal(value) for name, value in attrs.items() if not isinstance(value, (Graph, Aval))}
        if "aval" in attrs:
            aval: Aval = attrs["aval"]
            fields |= {"shape": literal(aval.shape), "dtype": literal(aval.dtype), "size": str(aval.size)}
        if "index" in attrs:
            fields["index"] = subscript(attrs["index"], operands)
        template = template or self.code
        text = template if isinstance(template, str) else template(node)
        return text.format(*operands, args=", ".join(operands), **fields)


def literal(value: Any) -> str:
    """Python source of an attribute; ``np`` is in scope there."""
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    if isinstance(value, complex):
        return _complex_literal(value)
    if isinstance(value, tuple):
        items = ", ".join(map(literal, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, np.dtype):
        return f"np.{'bool' if value == np.bool_ else value.name}"
    if value is Ellipsis:
        return "..."
    return repr(value)


def _complex_literal(value: complex) -> str:
    """Source that gives back the very bits: ``1-2j`` adds to zeros, and ``-1j`` has the real part -0.0."""
    negative_zero = [part == 0 and math.copysign(1, part) < 0 for part in (value.real, value.imag)]
    if cmath.isfinite(value):
        if not any(negative_zero) and (value.real or value.imag >= 0):
            return repr(value)
        if negative_zero[0] and value.imag < 0:
            return f"-{-value!r}"
    return f"complex({literal(value.real)}, {literal(value.imag)})"


@dataclass(frozen=True, slots=True)
class Arg:
    """In an index: the operand at this position, an array of integers."""

    position: int


def subscript(index: tuple[Any, ...], operands: Sequence[str] = ()) -> str:
    """An index as it stands between square brackets: ``1:, 0, ::2``; operands as ``arg1`` or by name."""
    parts = []
    for item in index:
        if isinstance(item, Arg):
            parts.append(operands[item.position] if operands else f"arg{item.position}")
        elif isinstance(item, slice):
            start, stop = ("" if x is None else str(x) for x in (item.start, item.stop))
            parts.append(f"{start}:{stop}" + ("" if item.step is None else f":{item.step}"))
        else:
            parts.append(literal(item))
    return ", ".join(parts) or "()"


class Registry(dict[str, Primitive]):
    """All primitives by name; the only global state, filled at import."""

    def add(self, prim: Primitive) -> Primitive:
        if prim.name in self:
            raise InternalError(f"two primitives are called {prim.name}")
        own = not isinstance(prim.code, str) or prim.code == prim.op or prim.code.startswith(f"{prim.ufunc}({{0}}")
        if prim.ufunc and not own:  # out= is appended to a call of the ufunc, not to the code
            raise InternalError(f"the code of {prim.name} is no call of {prim.ufunc}: leave the ufunc empty")
        self[prim.name] = prim
        return prim


REGISTRY = Registry()


class Transforms:
    """The transforms that rules of structural primitives need of their bodies; passes register here.

    ``jvp``, ``linearize``, ``transpose``, ``batch`` and ``inline`` become attributes: ``ops`` can so use
    passes that it must not import. ``nan_safe()`` tells whether zero annihilates in derivatives, a setting.
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


def primitive(name: str, shape: Rule, code: str | Callable[[Node], str] = "", **fields: Any) -> Primitive:
    """Declare and register a primitive."""
    fields.setdefault("order", "K" if fields.get("ufunc") else "A" if fields.get("takes_out") else "")
    return REGISTRY.add(Primitive(name=name, shape=shape, code=code, **fields))
