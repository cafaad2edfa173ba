"""Samples of a primitive: operands drawn in safe domains, and attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retrograd.ir import Aval, Graph
from retrograd.ir.primitive import REGISTRY, Primitive
from retrograd.ir.texts import Arg

from .graphs import built, one_node
from .values import of_aval

Rng = np.random.Generator
Shape = tuple[int, ...]
Domain = Callable[[Rng, Shape], np.ndarray[Any, Any]]
Draw = Callable[[Rng], Any]

SHAPES: tuple[Shape, ...] = ((), (0,), (1,), (3,), (2, 3), (2, 0, 2))


@dataclass(frozen=True)
class Sample:
    """A primitive with attributes, and a source of operands: another seed gives other operands of the same avals.

    ``smooth`` is False where derivatives are not the limits of differences at the sampled points.
    """

    prim: Primitive
    draws: tuple[Draw, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    smooth: bool = True

    def operands(self, seed: int = 0) -> list[Any]:
        """Concrete operands."""
        rng = np.random.default_rng(seed)
        return [draw(rng) for draw in self.draws]

    @property
    def avals(self) -> list[Aval]:
        return [of_aval(x) for x in self.operands()]

    def graph(self) -> Graph:
        """The graph of this one node."""
        return one_node(self.prim, self.avals, self.attrs)

    def __str__(self) -> str:
        shown = {k: v for k, v in self.attrs.items() if not isinstance(v, Graph)}
        return f"{self.prim.name}({', '.join(map(str, self.avals))}){shown or ''}"


SAMPLES: dict[str, list[Sample]] = {}


def declare(name: str, *families: Iterable[tuple[Sequence[Draw], Mapping[str, Any]]], smooth: bool = True) -> None:
    """Add samples of a primitive."""
    found = [Sample(REGISTRY[name], tuple(draws), attrs, smooth) for family in families for draws, attrs in family]
    SAMPLES.setdefault(name, []).extend(found)


# --- domains: numbers of a shape, where the operation is defined and smooth --------------------------------


def normal(rng: Rng, shape: Shape) -> np.ndarray[Any, Any]:
    """Numbers in (-1.5, 1.5)."""
    return rng.uniform(-1.5, 1.5, shape)


def positive(rng: Rng, shape: Shape) -> np.ndarray[Any, Any]:
    """Numbers in (0.5, 2)."""
    return rng.uniform(0.5, 2.0, shape)


def nonzero(rng: Rng, shape: Shape) -> np.ndarray[Any, Any]:
    """Numbers of both signs, off zero by 0.3."""
    return rng.uniform(0.3, 1.5, shape) * rng.choice([-1.0, 1.0], shape)


def distinct(rng: Rng, shape: Shape) -> np.ndarray[Any, Any]:
    """Numbers that differ from each other by at least 0.3."""
    size = int(np.prod(shape))
    return (rng.permutation(size) * 0.4 - 0.7 + rng.uniform(-0.05, 0.05, size)).reshape(shape)


def small(rng: Rng, shape: Shape) -> np.ndarray[Any, Any]:
    """Numbers among 0, 1, 2: for ties, and for exponents."""
    return rng.integers(0, 3, shape).astype(float)


def off_integers(rng: Rng, shape: Shape) -> np.ndarray[Any, Any]:
    """Numbers in (-2, 2) that are no multiples of a half, by at least 0.15."""
    return rng.integers(-4, 4, shape) / 2 + rng.uniform(0.15, 0.35, shape)


def between(low: float, high: float) -> Domain:
    """Numbers in an interval."""
    return lambda rng, shape: rng.uniform(low, high, shape)


# --- draws: one operand ------------------------------------------------------------------------------------


def a(shape: Shape | str, dtype: Any = "d", domain: Domain = normal) -> Draw:
    """An array; ``"scalar"`` and ``"python"`` in place of a shape give NumPy scalars and Python numbers."""
    dims: Shape = () if isinstance(shape, str) else shape

    def draw(rng: Rng) -> Any:
        x = domain(rng, dims)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.uniform(-0.5, 0.5, dims)
        elif np.dtype(dtype).kind == "b":
            x = x > 0
        elif np.dtype(dtype).kind in "iu":
            x = np.rint(2 * x)
        x = np.asarray(x).astype(dtype)
        return x if not isinstance(shape, str) else x.item() if shape == "python" else x[()]

    return draw


def ints(high: int, shape: Shape, *, low: int = 0, dtype: Any = np.int64) -> Draw:
    """An array of indices below ``high``."""
    return lambda rng: np.asarray(rng.integers(low, high, shape), dtype)


def number(kind: str = "scalar", high: int = 4, *, low: int | None = None) -> Draw:
    """A NumPy scalar or Python int: an index below ``high``, also a negative one."""
    return lambda rng: (np.int64 if kind == "scalar" else int)(rng.integers(-high if low is None else low, high))


def some(high: int, count: int) -> Draw:
    """An array of different indices below ``high``."""
    return lambda rng: rng.permutation(high)[:count]


def steps(length: int, draw: Draw) -> Draw:
    """A list of steps."""
    return lambda rng: [draw(rng) for _ in range(length)]


# --- families of samples -----------------------------------------------------------------------------------

Family = Iterator[tuple[list[Draw], dict[str, Any]]]


def same(*domains: Domain, dtypes: str = "dfD", **attrs: Any) -> Family:
    """One operand for each domain, all of one shape and dtype, for many shapes and dtypes."""
    for dtype in dtypes:
        full = dtype == dtypes[0]
        kinds: list[Shape | str] = [*SHAPES, "scalar"] if full else ["scalar", (3,)]
        if dtype in "dlD?":
            kinds.append("python")
        for kind in kinds:
            yield [a(kind, dtype, domain) for domain in domains], attrs
        if full and len(domains) == 2:
            for k, l in (("python", "scalar"), ("scalar", ()), ((), "python")):
                yield [a(k, dtype, domains[0]), a(l, dtype, domains[1])], attrs


def unary(domain: Domain = normal, dtypes: str = "dfD", **attrs: Any) -> Family:
    """A function of one operand, element by element."""
    return same(domain, dtypes=dtypes, **attrs)


def binary(x: Domain = normal, y: Domain = normal, dtypes: str = "dfD", **attrs: Any) -> Family:
    """A function of two operands, element by element."""
    return same(x, y, dtypes=dtypes, **attrs)


def case(*draws: Draw, **attrs: Any) -> Family:
    """One sample."""
    yield list(draws), attrs


def reductions(domain: Domain = normal, dtypes: str = "df", *, empty: bool = True) -> Family:
    """Reductions over several axes; of nothing, where that is defined."""
    axes: list[tuple[Shape, Shape]] = [
        ((3,), (0,)),
        ((1,), (0,)),
        ((2, 3), (0,)),
        ((2, 3), (1,)),
        ((2, 3), (0, 1)),
        ((2, 3, 2), (0, 2)),
        ((2, 1, 2), (1,)),
        ((0, 3), (1,)),
        ((2, 3), ()),
        ((3,), ()),
        ((), ()),
    ]
    axes += [((0,), (0,)), ((2, 0, 3), (1,))] if empty else []
    for dtype in dtypes:
        for shape, axis in axes if dtype == dtypes[0] else axes[3:5]:
            for keepdims in (False, True):
                yield [a(shape, dtype, domain)], {"axis": axis, "keepdims": keepdims}


def along(domain: Domain = normal, dtypes: str = "df", **attrs: Any) -> Family:
    """Operations along one axis, an int."""
    for dtype in dtypes:
        for shape, axis in (((3,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3, 2), 1), ((1,), 0), ((0, 3), 1)):
            yield [a(shape, dtype, domain)], {"axis": axis, **attrs}


def retyped(pairs: Sequence[tuple[Shape | str, Shape]], dtypes: str = "dfD") -> Family:
    """Operations whose attribute is the aval of the result: pairs of shapes."""
    for dtype in dtypes:
        for before, after in pairs if dtype == dtypes[0] else pairs[:2]:
            yield [a(before, dtype)], {"aval": Aval(after, np.dtype(dtype))}


def indexed(*cases: tuple[Shape, tuple[Any, ...]], write: bool = False, dtypes: str = "dfD") -> Family:
    """Reads, or with ``write`` writes, by basic indices."""
    for dtype in dtypes:
        for shape, index in cases if dtype == dtypes[0] else cases[:2]:
            part = np.empty(shape)[index].shape
            draws = [a(shape, dtype), a(part, dtype)] if write else [a(shape, dtype)]
            yield draws, {"index": index}


def picked(*cases: tuple[Any, ...], write: bool = False, **attrs: Any) -> Family:
    """Reads or writes by operands: cases of shape, index with Ellipsis for operands, draws of the operands."""
    for shape, pattern, *draws in cases:
        first = 2 if write else 1
        places = iter(range(first, first + len(draws)))
        index = tuple(Arg(next(places)) if i is Ellipsis else i for i in pattern)
        found = iter([draw(np.random.default_rng(0)) for draw in draws])
        part = np.empty(shape)[tuple(next(found) if i is Ellipsis else i for i in pattern)].shape
        for dtype in "df":
            yield [a(shape, dtype), *([a(part, dtype)] if write else []), *draws], {"index": index, **attrs}


def sliced(shape: Shape, axis: int, size: int, step: int, kind: str, *, write: bool = False) -> Family:
    """Reads or writes of slices that begin at an operand, a number of this kind."""
    last = shape[axis] - (size - 1) * step
    part = (*shape[:axis], size, *shape[axis + 1 :])
    for dtype in "dfD":
        yield (
            [a(shape, dtype), *([a(part, dtype)] if write else []), number(kind, last, low=0)],
            {"axis": axis, "size": size, "step": step},
        )


def within(lead: Shape, dtype: str, starts: tuple[bool, bool], *, update: bool) -> Family:
    """Operations on slices whose length and starts are operands."""
    numbers = [number("python" if lead else "scalar", 4, low=0) for _ in range(1 + sum(starts))]
    factor = [a(lead or "scalar", dtype)] if update else []
    yield [a((*lead, 7), dtype), *factor, a((*lead, 6), dtype), *numbers], {"starts": starts}


def formula(
    text: str,
    shapes: Sequence[Shape],
    windows: Sequence[tuple[str, ...]],
    numbers: int,
    target: tuple[str, ...] | None = None,
    sign: str = "",
    dtype: str = "d",
) -> Family:
    """A formula on parts of arrays, or a write of it into a part; lengths and positions are at most 3."""
    letters = {item[0] for window in (*windows, target or ()) for item in window if item not in ("", "#")}
    attrs: dict[str, Any] = {"formula": text, "windows": tuple(windows), "limits": (4,) * len(letters)}
    if target is not None:
        attrs |= {"target": target, "sign": sign}
    yield [*(a(s, dtype) for s in shapes), *(number("scalar", 4, low=0) for _ in range(numbers))], attrs


def loop(
    body: Callable[..., tuple[Sequence[Any], Sequence[Any], Sequence[Any]]],
    *,
    consts: Sequence[Draw] = (),
    carry: Sequence[Draw] = (),
    xs: Sequence[Draw] = (),
    length: int = 3,
    reverse: bool = False,
) -> Family:
    """A scan of a body of symbols, ``body(*consts, *carry, *x) -> (carry, arrays, stacks)``."""
    rng = np.random.default_rng(0)
    avals = [of_aval(draw(rng)) for draw in (*consts, *carry)]
    for draw in xs:
        x = of_aval(draw(rng)) if length else Aval((0,), np.dtype(float))
        kind: Any = "array" if len(x.shape) > 1 else "scalar"
        avals.append(x.unstacked() if x.steps is not None else Aval(x.shape[1:], x.dtype, kind))
    counts: list[int] = []

    def flat(*symbols: Any) -> list[Any]:
        parts = body(*symbols)
        counts.append(len(parts[1]))
        b = symbols[0].builder
        kept = [b.coerce(c, v) for c, v in zip(parts[0], avals[len(consts) :], strict=False)]
        return [*kept, *parts[1], *parts[2]]

    graph = built(flat, *avals, name="body")
    attrs = {
        "arrays": counts[0],
        "body": graph,
        "carry": len(carry),
        "consts": len(consts),
        "length": length,
        "reverse": reverse,
    }
    yield [*consts, *carry, *xs], attrs


def constants() -> Family:
    """Constants of all kinds."""
    f, i = np.dtype(float), np.dtype(np.int64)
    for aval in (*(Aval(s, f) for s in ((), (2, 3), (3,), (0,))), Aval((), f, "scalar"), Aval((), f, "python")):
        for value in (0.0, -0.0, 1.0, -2.5, 1e300, np.inf, -np.inf, np.nan):
            yield [], {"aval": aval, "value": value}
    for dtype, value in ((np.float32, 0.1), (np.complex128, 1 - 2j), (np.complex128, complex(-0.0, np.inf))):
        for shape in ((), (2,)):
            yield [], {"aval": Aval(shape, np.dtype(dtype)), "value": np.dtype(dtype).type(value).item()}
    for aval, number in ((Aval((3,), i), 7), (Aval((), i, "python"), -7), (Aval((), i, "scalar"), 0)):
        yield [], {"aval": aval, "value": number}
    for aval in (Aval((2,), np.dtype(bool)), Aval((), np.dtype(bool), "python"), Aval((), np.dtype(bool), "scalar")):
        yield [], {"aval": aval, "value": True}
    yield [], {"aval": Aval((2, 2), f), "value": ((1.0, -0.0), (np.nan, 0.5))}
    yield [], {"aval": Aval((3,), i), "value": (3, 1, 2)}
    yield [], {"aval": Aval((1,), np.dtype(np.float32)), "value": (0.5,)}


def casts() -> Family:
    """Casts between dtypes and kinds."""
    for before, after in ("df", "fd", "dl", "ld", "?d", "?l", "lf", "dD", "fD", "Dd", "Df", "fF", "li"):
        for shape in ((3,), (), (0, 2)):
            yield [a(shape, before)], {"aval": Aval(shape, np.dtype(after))}
        yield [a("scalar", before)], {"aval": Aval((), np.dtype(after), "scalar")}
    for dtype in "dl?D":
        target = np.dtype(dtype)
        for kind, to in (("python", "scalar"), ("scalar", "python"), ("python", "array"), ("scalar", "array")):
            yield [a(kind, dtype)], {"aval": Aval((), target, to)}  # type: ignore[arg-type]
        yield [a((), dtype)], {"aval": Aval((), target, "scalar")}
        yield [a((), dtype)], {"aval": Aval((), target, "python")}
    yield [a("python", "l")], {"aval": Aval((), np.dtype(float), "scalar")}
    yield [a("python", "l")], {"aval": Aval((), np.dtype(float), "python")}


def places(length: int, shape: Shape, axis: int) -> Draw:
    """Indices below ``length`` that are distinct along an axis."""

    def draw(rng: Rng) -> Any:
        rows = np.argsort(rng.random((*shape[:axis], length, *shape[axis + 1 :])), axis=axis)
        return np.take(rows, range(shape[axis]), axis)

    return draw


def gappy(rng: Rng, shape: Shape) -> np.ndarray[Any, Any]:
    """Distinct numbers, the second of each five NaN."""
    x = distinct(rng, shape)
    x.reshape(-1)[1::5] = np.nan
    return x


def ascending(rng: Rng, shape: Shape) -> np.ndarray[Any, Any]:
    """Numbers in ascending order."""
    return np.sort(small(rng, shape), axis=-1)


def runs(shape: Shape, axis: int, starts: Sequence[int], dtype: Any = "d", domain: Domain = normal) -> Family:
    """Runs of one axis: the array, their starts, and the number of the run of each place."""
    first = np.zeros(shape[axis], np.int64)
    first[[*starts]] = 1
    given = (np.array(starts, np.int64), np.cumsum(first) - 1)
    yield [a(shape, dtype, domain), *((lambda rng, x=x: x) for x in given)], {"axis": axis}
