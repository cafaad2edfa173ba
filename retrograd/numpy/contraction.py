"""Contractions of two arrays with labelled axes: each becomes one product of matrices, of rows, or of elements."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from ..ops import linear, reduce
from ..tracer.array import apply
from ..tracer.operands import astype
from .shapes import reshape, transpose

Labels = tuple[Hashable, ...]


def common(*operands: Any, dtype: Any = None) -> list[Any]:
    """Make the operands tracers with the dtype of their product."""
    if dtype is None and len({x.dtype for x in operands}) == 1:
        return list(operands)
    wanted = np.dtype(dtype) if dtype is not None else np.result_type(*(x.dtype for x in operands))
    return [x if x.dtype == wanted else astype(x, wanted) for x in operands]


def summed(x: Any, labels: Labels, keep: Collection[Hashable]) -> tuple[Any, Labels]:
    """Sum over the labels that are not kept, in the dtype of ``x``."""
    axes = tuple(k for k, l in enumerate(labels) if l not in keep)
    if not axes:
        return x, labels
    wide = np.add.reduce(np.empty(0, x.dtype)).dtype  # NumPy sums small integers in larger ones
    out = apply(reduce.sum_, [x if x.dtype == wide else astype(x, wide)], axis=axes, keepdims=False)
    return (out if x.dtype == wide else astype(out, x.dtype)), tuple(l for l in labels if l in keep)


def ordered(x: Any, labels: Labels, wanted: Sequence[Hashable]) -> Any:
    """``x`` with its axes in another order."""
    axes = tuple(labels.index(l) for l in wanted)
    return x if axes == tuple(range(len(axes))) else transpose(x, axes)


def stretched(terms: list[tuple[Any, Labels]]) -> list[tuple[Any, Labels]]:
    """Drop axes of length 1 that another operand would stretch: the factor is the same along the whole axis."""
    sizes: dict[Hashable, int] = {}
    for x, labels in terms:
        for l, n in zip(labels, x.shape, strict=True):
            if sizes.setdefault(l, n) == 1:
                sizes[l] = n
            elif n not in (1, sizes[l]):
                raise ValueError(f"operands could not be broadcast together: {sizes[l]} and {n} of one subscript")

    def squeezed(x: Any, labels: Labels) -> tuple[Any, Labels]:
        kept = [k for k, l in enumerate(labels) if x.shape[k] == sizes[l]]
        if len(kept) == len(labels):
            return x, labels
        return reshape(x, tuple(x.shape[k] for k in kept)), tuple(labels[k] for k in kept)

    return [squeezed(x, labels) for x, labels in terms]


def contract(a: Any, la: Labels, b: Any, lb: Labels, out: Labels) -> Any:
    """The sum of ``a * b`` over all labels that are not in ``out``; no label occurs twice in one array."""
    a, la = summed(a, la, {*lb, *out})
    b, lb = summed(b, lb, {*la, *out})
    inner = [l for l in la if l in lb and l not in out]
    if not inner:
        return _multiplied(a, la, b, lb, out)
    batch = [l for l in out if l in la and l in lb]
    free = [l for l in out if l not in batch]
    left, right = [l for l in la if l in free], [l for l in lb if l in free]
    if left and right and free[0] in right:  # exchanged, the product has the wanted order of axes
        a, la, left, b, lb, right = b, lb, right, a, la, left
    inner = min(inner, [l for l in lb if l in inner], key=lambda order: _copied(order, la, a) + _copied(order, lb, b))
    sizes = dict(zip((*la, *lb), (*a.shape, *b.shape), strict=True))
    rows = not left and not right and bool(batch) and a.dtype.kind != "c"
    if rows:
        product = apply(linear.vecdot, [_grouped(a, la, batch, inner), _grouped(b, lb, batch, inner)])
    else:
        product = _matrix_product(a, la, b, lb, batch, left, inner, right)
    labels = (*batch, *left, *right)
    shape = tuple(sizes[l] for l in labels)
    product = product if np.shape(product) == shape else reshape(product, shape)
    return ordered(product, labels, out)


def _matrix_product(
    a: Any, la: Labels, b: Any, lb: Labels, batch: list[Any], left: list[Any], inner: list[Any], right: list[Any]
) -> Any:
    """A product of stacks of matrices; without a stack, vectors stay vectors."""
    stacked = bool(batch)
    a = _grouped(a, la, batch, *([left] if left or stacked else []), inner)
    b = _grouped(b, lb, batch, inner, *([right] if right or stacked else []))
    return apply(linear.matmul, [a, b])


def _grouped(x: Any, labels: Labels, batch: list[Any], *groups: list[Any]) -> Any:
    """Permute to the axes of the batch, then join each group of labels to one axis."""
    sizes = dict(zip(labels, x.shape, strict=True))
    shape = (*(sizes[l] for l in batch), *(math.prod(sizes[l] for l in group) for group in groups))
    x = ordered(x, labels, [*batch, *(l for group in groups for l in group)])
    return x if x.shape == shape else reshape(x, shape)


def _copied(order: list[Any], labels: Labels, x: Any) -> int:
    """The number of elements to copy in order to join these labels, in this order, to one axis."""
    first = labels.index(order[0])
    return 0 if labels[first : first + len(order)] == tuple(order) else x.size


def _multiplied(a: Any, la: Labels, b: Any, lb: Labels, out: Labels) -> Any:
    """The elementwise product, for no label is summed."""

    def spread(x: Any, labels: Labels) -> Any:
        sizes = dict(zip(labels, x.shape, strict=True))
        first = next((k for k, l in enumerate(out) if l in sizes), len(out))
        shape = tuple(sizes.get(l, 1) for l in out[first:])
        x = ordered(x, labels, [l for l in out if l in sizes])
        return x if x.shape == shape else reshape(x, shape)

    return np.multiply(spread(a, la), spread(b, lb))
