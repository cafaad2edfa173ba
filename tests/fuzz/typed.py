"""Random programs over all dtypes as source text; NumPy itself types them, since each line runs while it is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

import retrograd as rg

Draw = Callable[..., Any]
LARGEST = 50.0
MOST_ELEMENTS = 60
PARAMETERS = ("x", "w", "u", "z", "s", "k", "m")

# Expressions by the kind of dtype of their operand: {0} is a name, {n} a small natural number.
REAL = [
    "np.sin({0})", "np.tanh({0})", "np.exp(-{0} * {0})", "np.log1p({0} * {0})", "{0} ** 2", "{0} ** 3", "-{0}",
    "np.sqrt(1 + {0} * {0})", "np.arctan({0})", "{0} / 4", "2 - {0}", "np.abs({0})", "np.maximum({0}, 0.25)",
    "np.where({0} > 0.2, {0}, 0.5 * {0})", "np.clip({0}, -0.7, 0.9)", "np.logaddexp({0}, 0.25)",
    "np.cbrt(2 + np.sin({0}))", "np.power(np.abs({0}) + 0.5, 1.75)", "(np.abs({0}) + 0.5) ** -1", "np.floor({0})",
    "np.sign({0})", "np.round({0}, 1)", "{0} > 0.25", "{0} <= 0", "np.isfinite({0})", "{0}.astype(np.float32)",
    "{0}.astype(np.float64)", "{0} + 0.5j", "{0}.astype(np.complex128)", "{0}.astype(int)", "1j * {0}",
    "np.nan_to_num({0})", "np.fmin({0}, 0.5)", "np.mod({0}, 0.75)", "np.arcsinh({0})",
    "np.reciprocal(2 + np.cos({0}))", "np.hypot({0}, 1)", "np.copysign({0}, -1)", "np.sinc({0})",
]  # fmt: skip
COMPLEX = [
    "{0} * {0}", "np.conj({0})", "{0}.real", "{0}.imag", "np.abs(1 + {0} * np.conj({0}))", "np.exp(1j * {0}.real)",
    "-{0}", "{0} / (3 + {0} * np.conj({0}))", "{0} * 1j", "np.sin({0}.real) + 1j * {0}.imag", "{0} ** 2", "{0} + 1",
    "np.cos({0} / 4)", "np.angle({0} + 3)", "np.real({0})", "{0} == {0}", "np.square({0})",
]  # fmt: skip
INTEGER = [
    "{0} + 1", "{0} * 2", "{0} // 2", "{0} % 3", "-{0}", "np.abs({0})", "{0} ** 2", "{0}.astype(float)", "{0} > 1",
    "{0} / 2", "np.minimum({0}, 3)", "np.sin({0})", "{0}.astype(np.float32)", "{0} & 3", "{0} << 1",
    "np.clip({0}, -2, 2)", "np.sign({0})",
]  # fmt: skip
BOOLEAN = [
    "~{0}", "{0}.astype(float)", "np.logical_not({0})", "{0} * 0.5", "np.where({0}, 0.5, -0.25)", "{0}.astype(int)",
]  # fmt: skip
BINARY = [
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (2 + {1} * {1})", "np.maximum({0}, {1})", "np.minimum({0}, {1})",
    "np.hypot(1 + {0}, {1})", "np.where({0} > {1}, {0}, {1})", "np.arctan2({0}, 2 + np.cos({1}))",
    "np.where({0} != 0, {1}, {0})", "{0} < {1}", "{0} == {1}", "np.logaddexp({0}, {1})", "np.copysign({0}, {1})",
    "np.add({0}, {1}, dtype=np.complex128)", "np.fmax({0}, {1})", "({0} > 0) & ({1} < 1)",
    "np.select([{0} > 0.5, {0} < -0.5], [{0}, {1}], 0.125)", "np.outer({0}, {1})", "np.kron({0}, {1})",
    "np.subtract.outer({0}, {1})", "np.inner({0}, {1})", "np.dot({0}, {1})", "{0} @ {1}", "np.tensordot({0}, {1}, 1)",
    "np.vdot({0}, {1})", "np.power(np.abs({0}) + 1, {1} / 8)", "np.cross({0}, {1})", "np.convolve({0}, {1})",
    "np.append({0}, {1})", "np.stack([{0}, {1}], axis=-1)", "np.interp({0}, [0.0, 1.0], [0.5, 2.0])",
]  # fmt: skip
REDUCE = [
    "np.sum({0}, {a})", "np.mean({0}, {a})", "np.max({0}, {a})", "np.min({0}, {a})", "np.prod(np.tanh({0}), {a})",
    "np.std({0} + np.arange({0}.size).reshape({0}.shape), {a})", "np.var({0}, {a})", "np.any({0}, {a})",
    "np.all({0}, {a})", "{0}.sum({a})", "np.sum({0}, {a}, where={0} > 0)", "np.mean({0} * 2, {a}, dtype=np.float64)",
    "np.linalg.norm({0} + 3)", "np.max({0}, {a}, where={0} < 0.5, initial=-1)", "np.sum({0}, {a}, initial=2)",
    "np.count_nonzero({0}, {a})", "np.ptp({0}, {a})", "np.nansum({0}, {a})", "np.median({0}, {a})",
    "np.logaddexp.reduce({0} * 1.0, {a})", "np.average({0}, {a})",
]  # fmt: skip
ALONG = [
    "np.cumsum({0}, axis={b})", "np.cumprod(np.tanh({0}), axis={b})", "np.sort({0}, axis={b})",
    "np.argsort({0}, axis={b})", "np.argmax({0}, axis={b})", "np.diff({0}, axis={b})", "np.flip({0}, {b})",
    "np.roll({0}, 2, axis={b})", "np.argmin({0}, {b})",
    "np.take_along_axis({0}, np.argsort({0}, axis={b}), axis={b})", "np.repeat({0}, 2, axis={b})",
    "np.partition({0}, 1, axis={b})", "np.concatenate([{0}, {0} * 2], axis={b})",
    "np.stack([{0}, {0} + 1], axis={b})", "np.maximum.accumulate({0}, axis={b})", "np.quantile({0}, 0.3, axis={b})",
    "np.take({0}, [0, -1, 0], axis={b})", "np.expand_dims({0}, {b})", "np.moveaxis({0}, {b}, 0)",
    "np.split({0}, [1], axis={b})[1]", "np.delete({0}, 0, axis={b})", "np.add.reduceat({0}, [0, 1], axis={b})",
    "np.insert({0}, 1, 0.5, axis={b})", "np.gradient({0}, axis={b})", "np.trapezoid({0}, axis={b})",
    "np.apply_along_axis(np.sum, {b}, {0})",
]  # fmt: skip
MOVE = [
    "{0}.T", "{0}.reshape(-1)", "np.ravel({0})", "{0}[None]", "{0}[..., None]",
    "np.broadcast_to({0}, (2, *{0}.shape))", "{0}.copy()", "np.pad({0}, 1)", "np.tile({0}, 2)", "np.atleast_2d({0})",
    "np.squeeze({0})", "{0}[::-1]", "{0}[1:]", "{0}[..., :-1]", "{0}[0]", "{0}[[0, -1, 0]]",
    "{0}[np.array([[0], [-1]])]", "{0}[..., [1, 0]]", "{0}[::2, None]", "np.rot90(np.atleast_2d({0}))",
    "np.tril(np.atleast_2d({0}))", "np.diag(np.ravel({0}))", "np.swapaxes(np.atleast_2d({0}), 0, 1)",
    "np.diagonal(np.atleast_2d({0}))", "{0}[np.arange(len({0})) != 1]", "{0}[k % len({0})]", "{0}[k[0] % len({0})]",
    "{0}[k[:2] % len({0}), ..., None]", "np.trace(np.atleast_2d({0}))",
    "np.flatnonzero([0, 1, 1])[:len({0})] * {0}[:2]", "np.meshgrid({0}, [1.0, 2.0])[0]", "np.array([{0}, {0}])",
]  # fmt: skip
CREATE = [
    "np.zeros({0}.shape)", "np.ones_like({0})", "np.full({0}.shape, 0.25)", "np.zeros({0}.shape, np.float32)",
    "np.zeros({0}.shape, complex)", "np.arange({0}.size).reshape({0}.shape)", "np.eye(3)", "np.linspace(0, 1, 4)",
    "np.array({0})",
]  # fmt: skip
CALLS = [
    "rg.jit(lambda a: np.tanh(a) * a + np.sin(a) - np.cos(a) * 2)({0})",
    "rg.grad(lambda a: np.sum(np.sin(a) * a))({0})", "rg.vmap(lambda a: np.sum(a * a))({0})",
    "rg.jvp(lambda a: np.exp(-a * a), ({0},), ({0} * 0.5,))[1]",
    "rg.scan(lambda c, r: (np.tanh(c + r), c * r), {0}[0] * 1.0, {0})[1]",
    "rg.scan(lambda c, r: (c * 0.5 + r, None), {0}[0] * 0.0, {0})[0]",
    "rg.value_and_grad(lambda a: np.mean(a**3))({0})[1]", "rg.vmap(rg.grad(lambda a: np.sum(np.cos(a))))({0})",
    "rg.stop_gradient({0})", "rg.hessian(lambda a: np.sum(a**3))(np.ravel({0})[:2])",
    "rg.vjp(np.sin, {0})[1]({0})[0]",
]  # fmt: skip
WRITES = [
    "{0}[1:] = {1}", "{0}[0] {op}= {1}", "{0}[...] {op}= {1}", "{0} += {1}", "{0} *= {1}", "{0}[::-1] = {0} * 0.5",
    "{0}[{0} > 0.3] = 0.125", "{0}[{0} < 0] *= -0.5", "np.add.at({0}, [0, 0, -1], {1})", "np.add({0}, {1}, out={0})",
    "np.copyto({0}, {1}, where={0} > 0)", "{0}.fill(0.5)", "{0}.sort()", "{0}[[0, -1]] {op}= {1}",
    "{0}[k % len({0})] = {1}", "{0}[..., 0] {op}= {1}", "{0}[1:] {op}= {0}[:-1] * 0.5",
    "np.multiply({1}, 0.5, out={0}, where={0} > 0.1)", "np.put({0}, [0, 1], {1})", "{0}.T[0] = {1}",
    "{0}.reshape(-1)[::2] {op}= 0.25", "np.fill_diagonal({0}, 0.75)", "np.clip({0}, -0.5, 0.5, out={0})",
    "np.cumsum({0}, axis=0, out={0})",
]  # fmt: skip


def arguments(seed: int) -> tuple[Any, ...]:
    """A vector, a matrix, a single-precision matrix, a complex vector, a number, integers and bools."""
    rng = np.random.default_rng(seed)
    return (
        rng.uniform(-1.5, 1.5, 3), rng.uniform(-1.5, 1.5, (3, 3)), rng.uniform(-1.5, 1.5, (2, 3)).astype(np.float32),
        rng.uniform(-1, 1, 3) + 1j * rng.uniform(-1, 1, 3), float(rng.uniform(0.2, 1)), np.array([2, 0, 1, 2]),
        np.array([True, False, True]),
    )  # fmt: skip


@dataclass
class Fuzzed:
    """A program under construction: its lines, and what NumPy computed for its variables."""

    values: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    owned: set[str] = field(default_factory=set)

    def run(self, line: str) -> bool:
        """Add a line if NumPy can run it without a complaint and its values stay moderate."""
        before = {
            name: np.copy(v) for name, v in self.values.items() if isinstance(v, np.ndarray) and v.flags.writeable
        }
        scope = {"np": np, "rg": rg, **self.values}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(line, scope)
        except Exception:  # noqa: BLE001 - a line that does not fit, in whatever way, is not part of the program
            fits = False
        else:
            found = {name: v for name, v in scope.items() if name not in ("np", "rg", "__builtins__")}
            fits = all(map(moderate, found.values()))
        if not fits:
            for name, value in before.items():
                self.values[name][...] = value
            return False
        self.values = found
        self.lines.append(line)
        return True

    def assign(self, expression: str) -> None:
        name = f"v{len(self.values) - len(PARAMETERS)}"
        if self.run(f"{name} = {expression}"):
            value = self.values[name]
            bases = [v for n, v in self.values.items() if n in PARAMETERS]
            if (
                isinstance(value, np.ndarray)
                and value.flags.writeable
                and not any(np.shares_memory(value, b) for b in bases)
            ):
                self.owned.add(name)

    def source(self) -> str:
        """A function that returns all its variables."""
        made = [name for name in self.values if name not in PARAMETERS]
        body = [*self.lines, f"return ({', '.join([*made, 's'])},)"]
        return "\n    ".join([f"def f({', '.join(PARAMETERS)}):", *body])


def moderate(value: Any) -> bool:
    """Whether a value is numeric, small, finite, and far from overflow."""
    if not isinstance(value, (np.ndarray, np.generic, int, float, complex)):
        return False
    array = np.asarray(value)
    if array.dtype.kind not in "biufc" or array.size > MOST_ELEMENTS or not array.size:
        return False
    return bool(np.isfinite(array).all()) and bool((np.abs(array) <= LARGEST).all())


def _expression(draw: Draw, p: Fuzzed, calls: bool) -> str:
    name = draw(st.sampled_from(sorted(p.values)))
    value = p.values[name]
    families = [BINARY, BINARY, {"f": REAL, "c": COMPLEX, "b": BOOLEAN}.get(np.asarray(value).dtype.kind, INTEGER)] * 2
    if isinstance(value, np.ndarray):
        families += [REDUCE, ALONG, MOVE, MOVE, CREATE]
        if calls and value.dtype.kind == "f":
            families.append(CALLS)
    template = draw(st.sampled_from(draw(st.sampled_from(families))))
    other = draw(st.sampled_from(sorted(p.values)))
    axes: list[Any] = [None, *range(-np.ndim(value), np.ndim(value)), tuple(range(np.ndim(value)))]
    reduced = f"axis={draw(st.sampled_from(axes))}" + draw(st.sampled_from(["", ", keepdims=True"]))
    axis = draw(st.integers(-1, max(np.ndim(value) - 1, 0)))
    return str(template.format(name, other, a=reduced, b=axis))


@st.composite
def typed_programs(draw: Draw, least: int = 5, most: int = 25, *, calls: bool = False) -> str:
    """Source of ``f`` over arrays of many dtypes that returns every array it makes."""
    p = Fuzzed(dict(zip(PARAMETERS, arguments(0), strict=True)))
    for _ in range(draw(st.integers(least, most))):
        if p.owned and draw(st.integers(0, 3)) == 0:
            target, other = draw(st.sampled_from(sorted(p.owned))), draw(st.sampled_from(sorted(p.values)))
            p.run(draw(st.sampled_from(WRITES)).format(target, other, op=draw(st.sampled_from(["", "+", "-", "*"]))))
        else:
            p.assign(_expression(draw, p, calls))
    return p.source()
