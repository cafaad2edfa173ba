"""``np.einsum``: contracts two operands at a time, in an order that is chosen once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..tracer.array import shadow_of
from ..tracer.creation import holds_tracers
from ..tracer.operands import into, lifted
from ..tracer.table import implements
from ..tracer.trace import unsupported
from ..tracer.ufuncs import as_operand
from .contraction import Labels, common, contract, ordered, stretched, summed
from .diagonals import diagonal_view
from .own_errors import check_by_numpy


@implements(np.einsum)
def einsum(
    *operands: Any, out: Any = None, dtype: Any = None, order: str = "K", casting: str = "safe", optimize: Any = False
) -> Any:
    if out is not None or not isinstance(operands[0], str):
        check_by_numpy(np.einsum, *operands, out=out, dtype=dtype, order=order, casting=casting, optimize=optimize)
    arrays, labels, result = _parsed(operands)
    arrays = common(*lifted(*arrays), dtype=dtype)
    if arrays[0].dtype == np.bool_:
        raise unsupported("np.einsum of bools", "convert them: x.astype(int)")
    terms = [_diagonals(x, l) for x, l in zip(arrays, labels, strict=True)]
    terms = stretched(terms)
    for group in _path(terms, result, optimize):
        picked = [terms[k] for k in group]
        terms = [t for k, t in enumerate(terms) if k not in group]
        rest = {l for _, labels in terms for l in labels} | set(result)
        term = picked[0]
        for k, other in enumerate(picked[1:], 2):
            later = rest.union(*(set(labels) for _, labels in picked[k:]))
            term = _pair(term, other, later, result if not terms and k == len(picked) else None)
        terms.append(term)
    ((x, names),) = terms
    x, names = summed(x, names, result)
    x = ordered(x, names, result)
    return into(out, x if x.ndim or isinstance(shadow_of(x), np.generic) else x[()])


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    operands = tuple(x if isinstance(x, str) or not holds_tracers(x) else as_operand(x) for x in operands)
    return np.einsum_path(*map(shadow_of, operands), optimize=optimize)


def _pair(x: tuple[Any, Labels], y: tuple[Any, Labels], keep: set[Hashable], out: Labels | None) -> tuple[Any, Labels]:
    (a, la), (b, lb) = x, y
    wanted = tuple(l for l in dict.fromkeys((*la, *lb)) if l in keep) if out is None else out
    return contract(a, la, b, lb, wanted), wanted


def _parsed(operands: Sequence[Any]) -> tuple[list[Any], list[Labels], Labels]:
    """Arrays, their labels and those of the result; the label of an ellipsis axis is its position from the right."""
    if isinstance(operands[0], str):
        text, arrays = operands[0].replace(" ", ""), [as_operand(x) for x in operands[1:]]
        left, arrow, right = text.partition("->")
        inputs: list[list[Any]] = [_letters(part) for part in left.split(",")]
        target = _letters(right) if arrow else None
    else:
        count = len(operands) // 2
        arrays = [as_operand(operands[2 * k]) for k in range(count)]
        inputs = [list(operands[2 * k + 1]) for k in range(count)]
        target = list(operands[-1]) if len(operands) % 2 else None
    if len(inputs) != len(arrays):
        raise ValueError("the number of operands does not fit the subscripts")
    labels = [_expanded(names, np.ndim(shadow_of(x))) for names, x in zip(inputs, arrays, strict=True)]
    wide = sorted({l for names in labels for l in names if isinstance(l, tuple)}, reverse=True)
    if target is None:
        counts = Counter(l for names in labels for l in names if not isinstance(l, tuple))
        once: list[Any] = [l for l, n in counts.items() if n == 1]
        return arrays, labels, (*wide, *sorted(once))
    if Ellipsis in target:
        k = target.index(Ellipsis)
        target = [*target[:k], *wide, *target[k + 1 :]]
    result = tuple(target)
    known = {l for names in labels for l in names}
    if len(set(result)) != len(result) or not known.issuperset(result):
        raise ValueError(f"the subscripts {result} of the result repeat, or name no axis")
    return arrays, labels, result


def _letters(text: str) -> list[Any]:
    """Subscripts as a list with Ellipsis for ``...``."""
    before, dots, after = text.partition("...")
    names = [*before, *([Ellipsis] if dots else []), *after]
    if any(n is not Ellipsis and not n.isalpha() for n in names):
        raise ValueError(f"invalid subscripts {text!r}")
    return names


def _expanded(names: list[Any], ndim: int) -> Labels:
    full = ndim - len(names) + 1 if Ellipsis in names else 0
    if full < 0 or (Ellipsis not in names and len(names) != ndim):
        raise ValueError(f"an operand has {ndim} axes, its subscripts name {len(names)}")
    if Ellipsis not in names:
        return tuple(names)
    k = names.index(Ellipsis)
    return (*names[:k], *((n,) for n in range(full, 0, -1)), *names[k + 1 :])


def _diagonals(x: Any, labels: Labels) -> tuple[Any, Labels]:
    """Merge axes with the same label into their diagonal."""
    while len(set(labels)) < len(labels):
        i = next(k for k, l in enumerate(labels) if l in labels[k + 1 :])
        j = labels.index(labels[i], i + 1)
        if x.shape[i] != x.shape[j]:
            raise ValueError(f"axes of lengths {x.shape[i]} and {x.shape[j]} have one subscript")
        view = diagonal_view(x, 0, i, j)
        view.shadow.flags.writeable, x = x.shadow.flags.writeable, view  # unlike that of np.diagonal
        labels = (*(l for k, l in enumerate(labels) if k not in (i, j)), labels[i])
    return x, labels


def _path(terms: list[tuple[Any, Labels]], result: Labels, optimize: Any) -> list[tuple[int, ...]]:
    """The positions of the terms to contract, step by step; each result is appended at the end."""
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        return [tuple(group) for group in optimize[1:]]
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    number = {l: k for k, l in enumerate(dict.fromkeys(l for _, labels in terms for l in labels))}
    given: list[Any] = []
    for x, labels in terms:
        given += [np.broadcast_to(np.empty(()), x.shape), [number[l] for l in labels]]
    method = ("optimal" if len(terms) <= 5 else "greedy", 2**62)
    found = np.einsum_path(*given, [number[l] for l in result], optimize=method)[0]
    return [tuple(group) for group in found[1:]]
