"""Each operation on a Tensor beside the same operation of torch: value and gradients of a random cotangent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg

torch = pytest.importorskip("torch")
F = torch.nn.functional

PAIRS_OF_SHAPES = [
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 1), (1, 3)),
    ((), (2, 3)),
    ((4, 2, 3), (2, 1)),
]
SHAPES = [((2, 3),), ((),), ((5,),), ((2, 1, 3),)]
MATRICES = [((2, 3), (3, 4)), ((3,), (3, 2)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (5, 3, 2)), ((5, 2, 3), (3, 2))]
SOBEL = np.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
LABELS = np.array([2, 0])


class Case(NamedTuple):
    """One operation in both libraries, the shapes of its operands, and the interval that these come from."""

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    shapes: list[tuple[tuple[int, ...], ...]]
    low: float = -2.0
    high: float = 2.0


def unary(ours: Any, theirs: Any, low: float = -2.0, high: float = 2.0) -> Case:
    return Case(ours, theirs, SHAPES, low, high)


def binary(ours: Any, theirs: Any, low: float = -2.0, high: float = 2.0) -> Case:
    return Case(ours, theirs, PAIRS_OF_SHAPES, low, high)


def shaped(ours: Any, theirs: Any, *shapes: tuple[int, ...]) -> Case:
    return Case(ours, theirs, [shapes])


CASES = {
    "add": binary(lambda x, y: x + y, lambda x, y: x + y),
    "sub": binary(lambda x, y: x - y, lambda x, y: x - y),
    "mul": binary(lambda x, y: x * y, lambda x, y: x * y),
    "div": binary(lambda x, y: x / y, lambda x, y: x / y, 0.5),
    "power": binary(lambda x, y: x**y, lambda x, y: x**y, 0.3),
    "maximum": binary(np.maximum, torch.maximum),
    "minimum": binary(np.minimum, torch.minimum),
    "arctan2": binary(np.arctan2, torch.atan2, 0.3),
    "hypot": binary(np.hypot, torch.hypot),
    "logaddexp": binary(np.logaddexp, torch.logaddexp),
    "remainder": binary(np.remainder, torch.remainder, 0.3),
    "where": binary(lambda x, y: np.where(x > y, x * y, y), lambda x, y: torch.where(x > y, x * y, y)),
    "constant first": unary(lambda x: 3 * x, lambda x: 3 * x),
    "constant minus": unary(lambda x: 1.5 - x, lambda x: 1.5 - x),
    "constant over": unary(lambda x: 2.0 / x, lambda x: 2.0 / x, 0.5),
    "constant to the power": unary(lambda x: 2.0**x, lambda x: 2.0**x),
    "constant array": Case(
        lambda x: np.array([1.0, 2.0, 3.0]) * x, lambda x: torch.tensor([1.0, 2.0, 3.0]).double() * x, [((2, 3),)]
    ),
    "neg": unary(lambda x: -x, lambda x: -x),
    "abs": unary(abs, torch.abs),
    "square": unary(np.square, torch.square),
    "cube": unary(lambda x: x**3, lambda x: x**3),
    "root": unary(lambda x: x**0.5, lambda x: x**0.5, 0.3),
    "reciprocal": unary(np.reciprocal, torch.reciprocal, 0.5),
    "sqrt": unary(np.sqrt, torch.sqrt, 0.3),
    "exp": unary(np.exp, torch.exp),
    "exp2": unary(np.exp2, torch.exp2),
    "expm1": unary(np.expm1, torch.expm1),
    "log": unary(np.log, torch.log, 0.3),
    "log2": unary(np.log2, torch.log2, 0.3),
    "log10": unary(np.log10, torch.log10, 0.3),
    "log1p": unary(np.log1p, torch.log1p, -0.5),
    "sin": unary(np.sin, torch.sin),
    "cos": unary(np.cos, torch.cos),
    "tan": unary(np.tan, torch.tan, -1.0, 1.0),
    "arcsin": unary(np.arcsin, torch.asin, -0.9, 0.9),
    "arccos": unary(np.arccos, torch.acos, -0.9, 0.9),
    "arctan": unary(np.arctan, torch.atan),
    "sinh": unary(np.sinh, torch.sinh),
    "cosh": unary(np.cosh, torch.cosh),
    "tanh": unary(np.tanh, torch.tanh),
    "arcsinh": unary(np.arcsinh, torch.asinh),
    "arccosh": unary(np.arccosh, torch.acosh, 1.2, 3.0),
    "arctanh": unary(np.arctanh, torch.atanh, -0.9, 0.9),
    "sigmoid": unary(lambda x: 1 / (1 + np.exp(-x)), torch.sigmoid),
    "sinc": unary(np.sinc, torch.sinc, 0.3),
    "clip": unary(lambda x: np.clip(x, -0.7, 0.9), lambda x: torch.clamp(x, -0.7, 0.9)),
    "floor": unary(lambda x: np.floor(x) * x, lambda x: torch.floor(x) * x),
    "sign": unary(lambda x: np.sign(x) * x, lambda x: torch.sign(x) * x),
    "relu": unary(rg.nn.relu, F.relu),
    "leaky_relu": unary(lambda x: rg.nn.leaky_relu(x, 0.1), lambda x: F.leaky_relu(x, 0.1)),
    "sum": unary(np.sum, torch.sum),
    "sum over rows": shaped(lambda x: x.sum(axis=0), lambda x: x.sum(0), (2, 3)),
    "sum, axis kept": shaped(lambda x: x.sum(axis=1, keepdims=True) * x, lambda x: x.sum(1, keepdim=True) * x, (2, 3)),
    "mean": unary(np.mean, torch.mean),
    "mean over columns": shaped(lambda x: x.mean(axis=-1), lambda x: x.mean(-1), (2, 3)),
    "var": shaped(lambda x: np.var(x, axis=0), lambda x: torch.var(x, 0, correction=0), (4, 3)),
    "std, sample": shaped(lambda x: np.std(x, axis=0, ddof=1), lambda x: torch.std(x, 0), (4, 3)),
    "prod": shaped(lambda x: x.prod(axis=1), lambda x: x.prod(1), (2, 3)),
    "max": unary(np.max, torch.max),
    "max over an axis": shaped(lambda x: x.max(axis=1), lambda x: x.amax(1), (2, 3)),
    "min over an axis": shaped(lambda x: x.min(axis=0), lambda x: x.amin(0), (2, 3)),
    "picked by argmax": shaped(
        lambda x: x[np.arange(2), np.argmax(x, axis=1)], lambda x: x[torch.arange(2), torch.argmax(x, 1)], (2, 3)
    ),
    "cumsum": shaped(lambda x: np.cumsum(x, axis=1), lambda x: torch.cumsum(x, 1), (2, 3)),
    "cumprod": shaped(lambda x: np.cumprod(x, axis=0), lambda x: torch.cumprod(x, 0), (4, 3)),
    "norm": shaped(lambda x: np.sqrt(np.sum(x * x)), torch.linalg.norm, (2, 3)),
    "sort": shaped(lambda x: np.sort(x, axis=1), lambda x: torch.sort(x, 1).values, (2, 5)),
    "matmul": Case(lambda x, y: x @ y, lambda x, y: x @ y, MATRICES),
    "dot": shaped(lambda x, y: x.dot(y), torch.dot, (4,), (4,)),
    "outer": shaped(np.outer, torch.outer, (3,), (4,)),
    "einsum": shaped(
        lambda x, y: np.einsum("bij,kj->bik", x, y), lambda x, y: torch.einsum("bij,kj->bik", x, y), (2, 3, 4), (5, 4)
    ),
    "tensordot": shaped(lambda x, y: np.tensordot(x, y, 1), lambda x, y: torch.tensordot(x, y, 1), (2, 3), (3, 2, 2)),
    "trace": shaped(np.trace, torch.trace, (3, 3)),
    "diagonal": shaped(lambda x: np.diagonal(x) * 2, lambda x: torch.diagonal(x) * 2, (3, 4)),
    "transpose": shaped(lambda x: x.T * np.arange(2.0), lambda x: x.T * torch.arange(2.0).double(), (2, 3)),
    "permuted axes": shaped(lambda x: x.transpose(2, 0, 1), lambda x: x.permute(2, 0, 1), (2, 3, 4)),
    "reshape": shaped(lambda x: x.reshape(3, -1), lambda x: x.reshape(3, -1), (2, 3)),
    "ravel": shaped(lambda x: x.ravel(), torch.ravel, (2, 3)),
    "new axis": shaped(lambda x: x[:, None] * x[None, :], lambda x: x[:, None] * x[None, :], (3,)),
    "slice": shaped(lambda x: x[1:, ::2], lambda x: x[1:, ::2], (3, 5)),
    "gather": shaped(lambda x: x[[0, 2, 0]], lambda x: x[[0, 2, 0]], (3, 2)),
    "mask": shaped(lambda x: x[x > 0] ** 2, lambda x: x[x > 0] ** 2, (3, 4)),
    "take": shaped(lambda x: np.take(x, [1, 1], axis=1), lambda x: x[:, [1, 1]], (2, 3)),
    "concatenate": shaped(lambda x, y: np.concatenate([x, y], 1), lambda x, y: torch.cat([x, y], 1), (2, 3), (2, 1)),
    "stack": shaped(lambda x, y: np.stack([x, y, x]), lambda x, y: torch.stack([x, y, x]), (2, 3), (2, 3)),
    "split": shaped(lambda x: np.multiply(*np.split(x, 2)), lambda x: torch.mul(*torch.chunk(x, 2)), (4, 3)),
    "flip": shaped(lambda x: np.flip(x, 1), lambda x: torch.flip(x, [1]), (2, 3)),
    "roll": shaped(lambda x: np.roll(x, 1, axis=1), lambda x: torch.roll(x, 1, 1), (2, 3)),
    "tile": shaped(lambda x: np.tile(x, (2, 1)), lambda x: torch.tile(x, (2, 1)), (2, 3)),
    "repeat": shaped(lambda x: np.repeat(x, 2, axis=0), lambda x: torch.repeat_interleave(x, 2, 0), (2, 3)),
    "broadcast_to": shaped(lambda x: np.broadcast_to(x, (4, 3)), lambda x: x.expand(4, 3), (3,)),
    "triangle": shaped(np.tril, torch.tril, (3, 3)),
    "pad": shaped(lambda x: np.pad(x, ((1, 0), (0, 2))), lambda x: F.pad(x, (0, 2, 1, 0)), (2, 3)),
    "log_softmax": shaped(rg.nn.log_softmax, lambda x: F.log_softmax(x, -1), (2, 5)),
    "cross_entropy": shaped(
        lambda x: rg.nn.cross_entropy(x, LABELS), lambda x: F.cross_entropy(x, torch.tensor(LABELS)), (2, 5)
    ),
    "linear": shaped(rg.nn.linear, lambda x, W, b: F.linear(x, W.T, b), (4, 3), (3, 2), (2,)),
    "conv2d": shaped(rg.nn.conv2d, F.conv2d, (2, 3, 6, 5), (4, 3, 3, 2), (4,)),
    "conv2d, strides": shaped(
        lambda x, W: rg.nn.conv2d(x, W, stride=2, padding=1),
        lambda x, W: F.conv2d(x, W, stride=2, padding=1),
        (1, 2, 7, 6),
        (3, 2, 3, 3),
    ),
    "sobel": shaped(
        lambda x: rg.nn.conv2d(x, SOBEL[None, None]),
        lambda x: F.conv2d(x, torch.tensor(SOBEL[None, None])),
        (1, 1, 6, 6),
    ),
    "float32": shaped(lambda x: x.astype(np.float32).sum(), lambda x: x.float().sum(), (2, 3)),
}


def test_there_are_sixty_and_more():
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients_are_torchs(name: str) -> None:
    case = CASES[name]
    for shapes in case.shapes:
        rng = np.random.default_rng(len(name))
        operands = [rng.uniform(case.low, case.high, shape) for shape in shapes]
        mine = [rg.eager.Tensor(x, requires_grad=True) for x in operands]
        theirs = [torch.tensor(x, requires_grad=True) for x in operands]
        out, other = case.ours(*mine), case.theirs(*theirs)
        assert out.shape == tuple(other.shape)
        assert out.dtype == other.detach().numpy().dtype
        rtol = 1e-12 if out.dtype == np.float64 else 1e-6
        np.testing.assert_allclose(out.data, other.detach().numpy(), rtol=rtol, atol=rtol / 10)
        ct = rng.normal(size=out.shape)
        out.backward(ct)
        other.backward(torch.tensor(ct, dtype=other.dtype))
        for a, b in zip(mine, theirs, strict=True):
            assert a.grad.shape == tuple(b.grad.shape)
            np.testing.assert_allclose(a.grad.data, b.grad.numpy(), rtol=1e-10, atol=1e-12)


class OursTimes(rg.eager.Function):
    """x · y."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, ct):
        x, y = ctx.saved_tensors
        return ct * np.conj(y), ct * np.conj(x)


class TheirsTimes(torch.autograd.Function):
    """The same."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, ct):
        x, y = ctx.saved_tensors
        return ct * y.conj(), ct * x.conj()


COMPLEX = {
    "times": (lambda x, y: x * y, lambda x, y: x * y),
    "holomorphic": (lambda x, y: np.exp(x) / y, lambda x, y: torch.exp(x) / y),
    "not holomorphic": (lambda x, y: np.conj(x) * np.abs(y), lambda x, y: torch.conj(x) * torch.abs(y)),
    "to real numbers": (lambda x, y: np.real(x * y) * np.imag(x), lambda x, y: (x * y).real * x.imag),
    "a function of one's own": (OursTimes.apply, TheirsTimes.apply),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_gradients_are_torchs(name: str) -> None:
    ours, theirs = COMPLEX[name]
    rng = np.random.default_rng(2)
    x, y, ct = (rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3)) for _ in range(3))
    mine = [rg.eager.Tensor(v, requires_grad=True) for v in (x, y)]
    others = [torch.tensor(v, requires_grad=True) for v in (x, y)]
    out, other = ours(*mine), theirs(*others)
    ct = ct if np.iscomplexobj(out.data) else ct.real
    out.backward(ct)
    other.backward(torch.tensor(ct))
    for a, b in zip(mine, others, strict=True):
        np.testing.assert_allclose(a.grad.data, b.grad.resolve_conj().numpy(), rtol=1e-12, atol=1e-13)


def test_roles_of_tensors_are_torchs():
    def roles(make: Callable[..., Any]) -> list[tuple[bool, bool, bool]]:
        a, b = make(2.0, True), make(3.0, False)
        tensors = [a, b, a * b, (a * b).detach(), (a * b).detach() * a, b * b, a > b]
        return [(t.requires_grad, t.is_leaf, t.grad_fn is None) for t in tensors]

    assert roles(rg.eager.Tensor) == roles(lambda v, on: torch.tensor(v, requires_grad=on))


def test_a_detached_operand_contributes_nothing_as_in_torch():
    def slopes(make: Callable[..., Any]) -> list[float]:
        a, b = make(2.0), make(3.0)
        c = a * b
        (c.detach() * a + c * b).backward()
        return [float(t.grad.item()) for t in (a, b)]

    assert slopes(lambda v: rg.eager.Tensor(v, requires_grad=True)) == slopes(
        lambda v: torch.tensor(v, requires_grad=True)
    )
