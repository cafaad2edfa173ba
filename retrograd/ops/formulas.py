"""Formulas on parts of arrays whose lengths are operands: their values, and writes of them into parts.

``value_within`` is ``formula(x0[...], x1[...], ...)``. ``write_within`` is its first operand after
``x[...] = formula``, or after ``+=`` or ``-=``, as ``sign`` says. A formula is text: primitives applied to the parts
x0, x1, ... and to numbers, with letters for lengths that are operands. A part is described axis by axis: "" is the
whole axis, "#" an element at a position that is an operand, "a" a slice of length a from 0, and "a:" one from an
operand on. Operands are arrays, then the lengths by letter, then the positions. NumPy gets the slices themselves, so
values have their bits and nothing outside takes part. A value with lengths in its shape fills the front of an array
with the largest lengths, ``limits``; the rest is zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.graph import Node
from ..ir.primitive import JvpMode, Primitive, primitive
from ..ir.types import Aval
from .batching import Flags, lanes
from .elementwise import add, literal_value
from .formula_text import (
    FRONT,
    Formula,
    SliceNumber,
    Window,
    batched,
    derived,
    formula_of,
    in_front,
    part_shape,
    turned,
    zeros_of,
)
from .gather import INT
from .lane_loops import looped


def _formula(avals: Sequence[Aval], attrs: dict[str, Any], first: int) -> Formula:
    windows = attrs["windows"]
    arrays = avals[first : first + len(windows)]
    if any(a.dtype.char not in "fd" for a in (*avals[:first], *arrays)):
        raise ValueError(f"{', '.join(map(str, avals))} are not arrays of real numbers")
    found = formula_of(attrs["formula"], tuple(arrays), windows, attrs.get("target", ()))
    numbers = avals[first + len(windows) :]
    if len(numbers) != len(found.numbers) or any(n.shape or n.dtype != INT for n in numbers):
        raise ValueError(f"{', '.join(map(str, numbers))} are not {len(found.numbers)} lengths and positions")
    return found


def _value_shape(*avals: Aval, **attrs: Any) -> Aval:
    found = _formula(avals, attrs, 0)
    shape = found.shape(attrs["limits"])
    return Aval(shape, found.aval.dtype, "array" if shape else "scalar")


def _write_shape(x: Aval, *avals: Aval, **attrs: Any) -> Aval:
    found = _formula((x, *avals), attrs, 1)
    if part_shape(x, attrs["target"]) != found.aval.shape or found.aval.dtype != x.dtype:
        raise ValueError(f"{found.aval} does not fit into the part {attrs['target']} of {x}")
    return Aval(x.shape, x.dtype)


def _value_code(node: Node) -> str:
    return _formula([v.aval for v in node.inputs], dict(node.attrs), 0).value(node.attrs["limits"])


def _write_code(node: Node) -> str:
    return _formula([v.aval for v in node.inputs], dict(node.attrs), 1).write(node.attrs["sign"])


def numbers_of(prim: Primitive, args: Sequence[Any], attrs: Mapping[str, Any]) -> dict[SliceNumber, Any]:
    """The lengths and positions among operands, by what they are."""
    first = 1 if prim is write_within else 0
    windows, target = attrs["windows"], attrs.get("target", ())
    found = formula_of(attrs["formula"], tuple(a.aval for a in args[first : first + len(windows)]), windows, target)
    return dict(zip(found.numbers, args[first + len(windows) :], strict=True))


def _jvp(
    b: Builder, node: Node, args: list[Symbol], tans: list[Symbol | None], mode: JvpMode
) -> tuple[Sequence[Symbol], Sequence[Symbol | None]]:
    """One node for each tangent, which is linear in it, and reads of other operands what its formula needs."""
    attrs, first = dict(node.attrs), 1 if node.prim is write_within else 0
    windows = attrs["windows"]
    arrays, numbers = args[first : first + len(windows)], numbers_of(node.prim, args, attrs)
    avals = tuple(a.aval for a in arrays)
    terms: list[tuple[str, list[Operand]]] = []
    for i, t in enumerate(tans[first : first + len(windows)]):
        formula, read = ("", ()) if t is None else derived(attrs["formula"], avals, windows, i, mode.nan_safe)
        if t is not None and formula:
            terms.append((formula, [(t, windows[i], i), *(_as_read(arrays[k], k, numbers, attrs) for k in read)]))
    out = b.copy_node(node, [s.value for s in args])  # after the reads, so that it may overwrite what they read
    if not first:
        found = [_apply(value_within, operands, numbers, attrs, formula) for formula, operands in terms]
        return out, [reduce(add, found) if found else None]
    dot = tans[0] if tans[0] is not None else b.zeros(args[0].aval)
    if not attrs["sign"]:
        dot = _cleared(dot, attrs, numbers)
    for formula, operands in terms:
        dot = _apply(write_within, operands, numbers, attrs, formula, dot, sign=attrs["sign"] or "+")
    return out, [dot]


Operand = tuple[Symbol, Window, int]  # an array, its part, and the operand whose positions its part has


def _as_read(x: Symbol, k: int, numbers: dict[SliceNumber, Any], attrs: dict[str, Any]) -> Operand:
    """An operand that a derivative reads: of an array with further axes, the part alone, which is then kept."""
    return _small((x, attrs["windows"][k], k), numbers, attrs)


def _small(operand: Operand, numbers: dict[SliceNumber, Any], attrs: dict[str, Any]) -> Operand:
    """The part of an operand as an array of its own, if it has fewer axes."""
    _, window, k = operand
    if "#" not in window:
        return operand
    return _apply(value_within, [operand], numbers, attrs, "x0"), in_front(window), k


def _apply(
    prim: Primitive,
    operands: Sequence[Operand],
    numbers: dict[SliceNumber, Any],
    attrs: dict[str, Any],
    formula: str,
    target: Symbol | None = None,
    into: tuple[Window, int] | None = None,
    sign: str = "+",
) -> Symbol:
    """A primitive on operands with the lengths and positions of a node, which writes ``into`` its target or a part."""
    windows = tuple(window for _, window, _ in operands)
    where, own = into or (attrs.get("target", ()), -1)
    writes = prim is write_within
    wanted = formula_of(formula, tuple(x.aval for x, _, _ in operands), windows, where if writes else ())
    of = {k: own_k for k, (_, _, own_k) in enumerate(operands)} | {-1: own}
    found = [numbers[n if n.letter else n.of(of[n.operand])] for n in wanted.numbers]
    limit = dict(zip(_letters(numbers), attrs["limits"], strict=True))
    more: dict[str, Any] = {"target": where, "sign": sign} if writes else {}
    limits = tuple(limit[letter] for letter in wanted.letters)
    front = (target,) if writes else ()
    result: Symbol = prim(
        *front, *(x for x, _, _ in operands), *found, formula=formula, windows=windows, limits=limits, **more
    )
    return result


def _letters(numbers: dict[SliceNumber, Any]) -> list[str]:
    return [number.letter for number in numbers if number.letter]


def _cleared(x: Symbol, attrs: dict[str, Any], numbers: dict[SliceNumber, Any]) -> Symbol:
    """The array with zeros in the target."""
    zeros = zeros_of(x.aval, attrs["target"])
    return _apply(write_within, [], numbers, attrs, zeros, x, sign="")


def _transpose(b: Builder, node: Node, operands: list[Any], cts: list[Symbol | None]) -> Sequence[Symbol | None]:
    """What ``_jvp`` makes is linear in the array that is written into and in the first one that the formula reads."""
    (ct,), attrs, first = cts, dict(node.attrs), int(node.prim is write_within)
    found: list[Symbol | None] = [None] * len(operands)
    if ct is None:
        return found
    numbers = numbers_of(node.prim, operands, attrs)
    if first and not isinstance(operands[0], Symbol):
        found[0] = ct if attrs["sign"] else _cleared(ct, attrs, numbers)
    if not attrs["windows"] or isinstance(operands[first], Symbol):
        return found
    formula, read = _turned(ct, first, operands, attrs)
    x, window, sign = operands[first], attrs["windows"][0], attrs.get("sign") or "+"
    if not x.shape:
        part = _apply(value_within, read, numbers, attrs, formula)
        found[first] = -part if sign == "-" else part
        return found
    given, *others = read
    if _axes(window) > _axes(given[1]):  # an outer product, which needs no array of its own
        read = [_small(given, numbers, attrs), *others]
    else:
        part = _apply(value_within, read, numbers, attrs, formula)  # read before anything is added to ct
        formula, read = "x0", [(part, in_front(window), 0)]
    found[first] = _apply(write_within, read, numbers, attrs, formula, b.zeros(x.aval), (window, 0), sign)
    return found


def _axes(window: Window) -> int:
    """The axes of a part."""
    return len(window) - window.count("#")


def _turned(ct: Symbol, first: int, operands: Sequence[Any], attrs: dict[str, Any]) -> tuple[str, list[Operand]]:
    """The cotangent of the first array as a formula, and the arrays that it reads."""
    windows = attrs["windows"]
    arrays = operands[first : first + len(windows)]
    formula, others, shape = turned(attrs["formula"], tuple(a.aval for a in arrays), windows)
    window = attrs["target"] if first else shape
    return formula, [(ct, window, -1), *((arrays[k], windows[k], k) for k in others)]


def onto(acc: Symbol, ct: Symbol) -> Symbol:
    """The sum of both. What was added to parts of zeros is added to parts of ``ct``."""
    made = acc.builder.made.get(acc.value)
    if literal_value(acc) == 0:
        return ct
    if made is None or made.prim is not write_within or not made.attrs["sign"]:
        total: Symbol = acc + ct
        return total
    x, *rest = (acc.builder.symbol(v) for v in made.inputs)
    added: Symbol = write_within(onto(x, ct), *rest, **made.attrs)
    return added


def _batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, **attrs: Any) -> Any:
    """The formula on lanes along first axes; one lane after the other if it has none, or lengths differ."""
    first, windows = int(prim is write_within), attrs["windows"]
    end = first + len(windows)
    on = tuple(flags[first:end])
    avals = tuple(
        Aval(x.shape[1:], x.dtype, "array" if x.ndim > 1 else "scalar") if flag else x.aval
        for x, flag in zip(args[first:end], on, strict=True)
    )
    formula = None if any(flags[end:]) else batched(attrs["formula"], avals, windows, on, size)
    if formula is None:
        return looped(prim, size, args, flags, **attrs)
    wide = tuple(("", *w) if flag else w for w, flag in zip(windows, on, strict=True))
    attrs |= {"formula": formula, "windows": wide}
    if not first:
        return prim(*args, **attrs)
    return prim(lanes(size, args[0], flags[0]), *args[1:], **attrs | {"target": ("", *attrs["target"])})


def formula_at(node: Node) -> Formula:
    """The formula of a node."""
    return _formula([v.aval for v in node.inputs], dict(node.attrs), int(node.prim is write_within))


def factors(node: Node) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The shapes of both factors of each product of matrices in a formula, with its largest lengths."""
    found = formula_at(node)
    products = [inner.inputs for inner in found.graph.nodes if inner.prim.name == "matmul"]
    limits = node.attrs["limits"]
    return [(found.largest(a.aval.shape, limits), found.largest(b.aval.shape, limits)) for a, b in products]


def operations(node: Node) -> int:
    """How many operations on the slices themselves a node on slices stands for."""
    attrs = node.attrs
    return attrs["formula"].count("(") + len(attrs["windows"]) + ("target" in attrs) if "formula" in attrs else 1


def _scratch(*avals: Aval, limits: tuple[int, ...], **attrs: Any) -> int:
    first = 1 if "target" in attrs else 0
    return _formula(avals, {**attrs, "limits": limits}, first).scratch(limits)


value_within: Primitive = primitive(
    "value_within",
    _value_shape,
    _value_code,
    helper=FRONT,
    names="np.zeros",
    batch=_batch,
    jvp=_jvp,
    transpose=_transpose,
    scratch=_scratch,
)
write_within: Primitive = primitive(
    "write_within",
    _write_shape,
    statement=_write_code,
    writes=0,
    batch=_batch,
    jvp=_jvp,
    transpose=_transpose,
    scratch=_scratch,
)
