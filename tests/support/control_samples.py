"""Samples of choices and of loops whose number of steps is not known before they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.ir import Aval

from .graphs import built, op
from .sampling import Draw, Family, a, case, declare, loop, of_aval, steps

INT = np.dtype(np.int64)
Body = Callable[..., Any]


def fixed(x: Any) -> Draw:
    """An operand that is the same in every draw."""
    return lambda rng: x


def avals_of(draws: Sequence[Draw]) -> list[Aval]:
    rng = np.random.default_rng(0)
    return [of_aval(draw(rng)) for draw in draws]


def one_of(*branches: Body, index: Draw, operands: Sequence[Draw]) -> Family:
    """A choice: of a bool first the branch for False."""
    graphs = [built(f, *avals_of(operands), name=f"f{k}") for k, f in enumerate(branches)]
    yield [index, *operands], {f"branch{k}": g for k, g in enumerate(graphs)}


def repeated(cond: Body, body: Body, *, carry: Sequence[Draw], consts: Sequence[Draw] = ()) -> Family:
    """A while loop of ``cond(*consts, *carry)`` and ``body(*consts, *carry) -> [*carry, *stacks]``."""
    avals = avals_of([*consts, *carry])

    def kept(*symbols: Any) -> list[Any]:
        found = body(*symbols)
        b = symbols[0].builder
        return [b.coerce(x, v) for x, v in zip(found, avals[len(consts) :], strict=False)] + found[len(carry) :]

    graphs = {"cond": built(cond, *avals, name="cond"), "body": built(kept, *avals, name="body")}
    yield [*consts, *carry], {**graphs, "carry": len(carry), "consts": len(consts)}


def counted(length: int, body: Body, **parts: Any) -> Family:
    """A scan whose number of steps is its first operand; the xs are lists."""
    for operands, attrs in loop(body, length=length, **parts):
        yield [fixed(np.int64(length)), *operands], {**attrs, "length": -1}


def listed(n: int, aval: str = "python") -> Aval:
    kind: Any = aval
    return Aval((), INT, kind, (n,))


PLAIN = [a((3,)), a((3,))]
declare(
    "cond",
    one_of(lambda x, y: [op("sin", x) * y], lambda x, y: [op("exp", x) - y], index=fixed(np.True_), operands=PLAIN),
    one_of(lambda x, y: [op("sin", x) * y], lambda x, y: [op("exp", x) - y], index=fixed(np.False_), operands=PLAIN),
    one_of(lambda x, y: [x, x * y], lambda x, y: [y, y], index=fixed(np.True_), operands=PLAIN),
    one_of(lambda x: [x * 0], lambda x: [op("tanh", x)], index=a("scalar", "?"), operands=[a("scalar")]),
    one_of(
        lambda x: [x],
        lambda x: [x * x],
        lambda x: [op("cos", x) * x],
        index=fixed(np.int64(1)),
        operands=[a((2,), "f")],
    ),
    one_of(
        lambda x: [x], lambda x: [x * x], lambda x: [op("cos", x) * x], index=fixed(np.int64(-4)), operands=[a((2,))]
    ),
    one_of(
        lambda x: [x], lambda x: [x * x], lambda x: [op("cos", x) * x], index=fixed(np.int64(7)), operands=[a((2,))]
    ),
    one_of(
        lambda x, n: [x * 2, n],
        lambda x, n: [op("exp", x), n + 1],
        index=fixed(np.False_),
        operands=[a((2, 2)), a("scalar", "l")],
    ),
)

START = fixed(np.int64(0))


def _three(*symbols: Any) -> Any:
    return op("lt", symbols[-1], 3)


declare(
    "while_loop",
    repeated(_three, lambda x, n: [op("sin", x), n + 1], carry=[a((3,)), START]),
    repeated(_three, lambda w, x, n: [op("tanh", w @ x), n + 1], consts=[a((3, 3))], carry=[a((3,)), START]),
    repeated(
        _three, lambda w, x, y, n: [y, op("sin", x * w) + y, n + 1], consts=[a((2,))], carry=[a((2,)), a((2,)), START]
    ),
    repeated(_three, lambda w, x, n: [x * op("exp", w), n + 1], consts=[a("scalar")], carry=[a("scalar"), START]),
    repeated(lambda x, n: op("lt", n, 0), lambda x, n: [op("log", x), n + 1], carry=[a((2,)), START]),
    repeated(
        lambda x: op("lt", op("sum", op("square", x), axis=(0,), keepdims=False), 100),
        lambda x: [x * 2],
        carry=[fixed(np.array([1.0, -1.1]))],
    ),
    repeated(_three, lambda x, n: [x * x, n + 1], carry=[a((2,), "f"), START]),
)

declare("stack_length", case(steps(3, a((2,)))), case(steps(2, a("scalar"))))
declare(
    "step_numbers",
    case(aval=listed(3)),
    case(aval=listed(1)),
    case(fixed(np.int64(4)), aval=listed(-1)),
    case(fixed(2), aval=listed(-1)),
)
declare(
    "absent",
    *(
        case(aval=v)
        for v in (
            Aval((3,), np.dtype(float)),
            Aval((), np.dtype(float)),
            Aval((), np.dtype(float), "scalar"),
            Aval((2,), np.dtype(np.float32), "array", (3,)),
            Aval((), np.dtype(float), "scalar", (2,)),
        )
    ),
)

declare(
    "throw_if",
    case(fixed(np.False_), a((3,)), form="({0},)", tag=0),
    case(fixed(np.False_), a("scalar"), a("scalar", "l"), form="{{'a': [{0}, 'too large'], 'b': {1}}}", tag=0),
    case(fixed(False), form="()", tag=0),
)

COUNTED = (
    counted(3, lambda c: ([op("sin", c)], [], []), carry=[a((2,))]),
    counted(3, lambda w, c: ([op("tanh", w * c)], [], []), consts=[a((2,))], carry=[a((2,))]),
    counted(0, lambda w, c: ([w * c], [], []), consts=[a("scalar")], carry=[a("scalar")]),
)
__all__ = ["COUNTED"]
