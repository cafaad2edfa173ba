"""Compiled functions in PyTorch's graphs: PyTorch's own checks, and the same numbers as the same function there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special

import retrograd as rg
from retrograd import errors
from retrograd.tracer.tree import flatten
from tests.support.changing_model import Model

torch = pytest.importorskip("torch")

X = np.array([0.3, -0.7, 1.1])
M = np.array([[1.0, 0.5, -0.2], [0.3, 2.0, 0.1]])


class Case(NamedTuple):
    """A function in NumPy, the same in PyTorch, and arguments, all of which are differentiated."""

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    args: tuple[Any, ...]


CASES = {
    "a number": Case(lambda x: np.sum(np.sin(x) * x), lambda x: torch.sum(torch.sin(x) * x), (X,)),
    "a vector": Case(lambda x: np.tanh(x[::-1] * x), lambda x: torch.tanh(x.flip(0) * x), (X,)),
    "two arguments": Case(lambda a, x: np.exp(a @ x), lambda a, x: torch.exp(a @ x), (M, X)),
    "several results": Case(
        lambda a, x: (a.T @ (a @ x), np.sum(x**3)), lambda a, x: (a.T @ (a @ x), torch.sum(x**3)), (M, X)
    ),
    "without axes": Case(lambda x: x**3, lambda x: x**3, (np.array(2.0),)),
    "laid out by columns": Case(lambda a: a @ a.T, lambda a: a @ a.T, (np.asfortranarray(M),)),
    "complex": Case(lambda z: np.exp(z) * np.conj(z), lambda z: torch.exp(z) * z.conj(), (X + 1j * X[::-1],)),
    "complex from real": Case(lambda x: np.exp(1j * x), lambda x: torch.exp(1j * x), (X,)),
    "real from complex": Case(
        lambda z: np.sum(np.abs(z) ** 2 + np.real(z * z * 1j)),
        lambda z: torch.sum(torch.abs(z) ** 2 + torch.real(z * z * 1j)),
        (X + 2j,),
    ),
}
every_case = pytest.mark.parametrize("name", CASES)


def tensors(name: str, dtype: Any = None) -> list[Any]:
    def cast(x: np.ndarray) -> np.ndarray:
        return x if dtype is None else x.astype(np.result_type(dtype, 1j) if np.iscomplexobj(x) else dtype)

    return [torch.from_numpy(cast(x)).requires_grad_() for x in CASES[name].args]


def gradients(f: Callable[..., Any], args: list[Any], **options: Any) -> Any:
    outs = flatten(f(*args))[0]
    cts = [(torch.arange(y.numel()).reshape(y.shape) + 1.5).to(y.dtype) for y in outs]
    return torch.autograd.grad(outs, args, cts, **options)


def close(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a.detach(), b.detach())


@every_case
def test_pytorch_checks_both_orders(name):
    f, args = rg.to_torch(CASES[name].ours), tensors(name)
    assert torch.autograd.gradcheck(f, args)
    assert torch.autograd.gradgradcheck(f, args)


@every_case
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_and_gradients_are_those_of_pytorch(name, dtype):
    f, args = rg.to_torch(CASES[name].ours), tensors(name, dtype)
    close(flatten(f(*args))[0], flatten(CASES[name].theirs(*args))[0])
    close(gradients(f, args), gradients(CASES[name].theirs, args))


def test_third_derivatives():
    def third(f: Callable[..., Any]) -> Any:
        x = torch.from_numpy(X).requires_grad_()
        (slope,) = torch.autograd.grad(f(x), x, create_graph=True)
        (bend,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
        return torch.autograd.grad(bend.sum(), x)

    close(third(rg.to_torch(CASES["a number"].ours)), third(CASES["a number"].theirs))


def test_trees_integers_texts_and_constants():
    def f(p: Any, i: Any, scale: float, *, k: Any) -> Any:
        return {"y": p["w"] @ p["x"][0] * scale, "at": p["x"][0][i], "n": np.argmax(p["w"]), "t": "text", "k": k * 2}

    w, x = torch.from_numpy(M).requires_grad_(), torch.from_numpy(X)
    found = rg.to_torch(f)({"w": w, "x": (x,)}, torch.tensor([0, 2]), 2.0, k=np.arange(2))
    assert {name: getattr(y, "requires_grad", None) for name, y in found.items()} == {
        "y": True,
        "at": True,
        "n": False,
        "t": None,
        "k": False,
    }
    assert (int(found["n"]), found["t"], found["k"].tolist()) == (4, "text", [0, 2])
    found["y"].sum().backward()
    torch.testing.assert_close(w.grad, 2.0 * x.expand(2, 3))
    assert x.grad is None


def test_only_what_needs_a_gradient_is_differentiated():
    f = rg.to_torch(lambda x, order: np.sum(x * scipy.special.jv(order, 1.0)))  # no derivative by the order
    x, order = torch.from_numpy(X).requires_grad_(), torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    f(x, order).backward()
    np.testing.assert_allclose(x.grad, scipy.special.jv(order.numpy(), 1.0))
    assert order.grad is None
    with pytest.raises(errors.NonDifferentiableError):
        f(x, order.clone().requires_grad_())


def test_without_gradients_there_is_no_graph():
    f, x = rg.to_torch(np.sin), torch.from_numpy(X)
    assert not f(x).requires_grad
    with torch.no_grad():
        assert not f(x.requires_grad_()).requires_grad


def test_layers_train_as_pytorchs_own():
    def run(layer: Callable[..., Any]) -> list[float]:
        torch.manual_seed(0)
        linear = torch.nn.Linear(3, 2)
        optimizer = torch.optim.SGD(linear.parameters(), lr=0.1, momentum=0.9)
        inputs, wanted, losses = torch.randn(8, 3), torch.randn(8, 2), []
        for _ in range(5):
            optimizer.zero_grad()
            loss = ((layer(inputs, linear.weight, linear.bias) - wanted) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        return losses

    ours = run(rg.to_torch(lambda x, w, b: np.tanh(x @ w.T + b)))
    np.testing.assert_allclose(ours, run(lambda x, w, b: torch.tanh(x @ w.T + b)), rtol=1e-5)


def test_writes_between_forward_and_backward_are_noticed():
    a, b = torch.ones(3, dtype=torch.float64, requires_grad=True), torch.ones(3, dtype=torch.float64)
    f = rg.to_torch(lambda a, b: np.sum(np.exp(a) * b * b))
    for options in ({}, {"create_graph": True}):
        y = f(a, b)
        b.mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(y, a, **options)
    out = rg.to_torch(np.exp)(a)
    out.mul_(5.0)
    torch.testing.assert_close(torch.autograd.grad(out.sum(), a)[0], 5.0 * torch.exp(a.detach()))


def test_the_function_writes_into_copies():
    def f(x):
        x[0] = 0.0
        return np.sum(x**2)

    x = torch.from_numpy(X.copy()).requires_grad_()
    rg.to_torch(f)(x).backward()
    np.testing.assert_allclose(x.grad, [0.0, *2 * X[1:]])
    assert x.tolist() == X.tolist()


def test_a_graph_may_be_kept():
    x = torch.from_numpy(X).requires_grad_()
    y = rg.to_torch(CASES["a number"].ours)(x)
    close(torch.autograd.grad(y, x, retain_graph=True), torch.autograd.grad(y, x))


def test_python_may_decide():
    f = rg.to_torch(lambda x: x * x if x > 0 else -3.0 * x)
    for at, slope in ((2.0, 4.0), (-2.0, -3.0), (3.0, 6.0)):
        x = torch.tensor(at, requires_grad=True)
        f(x).backward()
        assert float(x.grad) == slope


SCALE = [2.0]


def test_what_the_function_reads_is_read_anew():
    model, x = Model(2.0), torch.from_numpy(X).requires_grad_()
    read, passed = rg.to_torch(lambda x: np.sum(SCALE[0] * x)), rg.to_torch(lambda m, x: np.sum(m.k * x))

    def slopes(m: Model) -> list[float]:
        return [float(torch.autograd.grad(y, x)[0][0]) for y in (read(x), passed(m, x))]

    assert slopes(model) == [2.0, 2.0]
    SCALE[0] = model.k = 5.0
    try:
        assert slopes(model) == [5.0, 5.0]
        assert slopes(Model(7.0)) == [5.0, 7.0]
    finally:
        SCALE[0] = 2.0


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # its own look at tensors
def test_what_torch_compile_meets_it_leaves_alone():
    f = rg.to_torch(CASES["a number"].ours)
    x = torch.from_numpy(X).requires_grad_()
    compiled = torch.compile(lambda x: f(x * 2.0) + 1.0, backend="eager")
    close(torch.autograd.grad(compiled(x), x), torch.autograd.grad(CASES["a number"].theirs(x * 2.0), x))


def test_it_is_the_function_itself_in_a_trace():
    np.testing.assert_allclose(rg.grad(rg.to_torch(lambda x: np.sum(x**3)))(X), 3 * X**2)


def test_what_is_drawn_is_the_same_on_the_way_back():
    rng = np.random.default_rng(0)
    f, x = rg.to_torch(lambda x: np.sum(x * rng.normal(size=3))), torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = f(x)
    (slope,) = torch.autograd.grad(y, x, retain_graph=True)
    torch.testing.assert_close(slope.sum(), y.detach())
    with pytest.raises(errors.UnsupportedError, match="draws random numbers, and double backward runs it again"):
        torch.autograd.grad(y, x, create_graph=True)


UNKNOWN = {
    "bfloat16": (lambda: torch.ones(3, dtype=torch.bfloat16), r"x\.float\(\)"),
    "elsewhere": (lambda: torch.ones(3, device="meta"), r"x\.cpu\(\)"),
    "sparse": (lambda: torch.eye(3).to_sparse(), r"x\.to_dense\(\)"),
}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("moving", [False, True])
def test_tensors_that_numpy_does_not_have_are_refused(name, moving):
    make, remedy = UNKNOWN[name]
    with pytest.raises(errors.UnsupportedError, match=f"remedy: pass {remedy}"):
        rg.to_torch(np.sin)(make().requires_grad_(moving))


def test_transforms_of_torch_func_are_refused():
    x = torch.from_numpy(X)
    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.grad(rg.to_torch(CASES["a number"].ours))(x)
    with pytest.raises(errors.UnsupportedError, match=r"remedy: call the function outside of torch\.func's transforms"):
        torch.func.vmap(rg.to_torch(np.sin))(x)


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(errors.UnsupportedError, match=r"(?s)the package torch, .*python -m pip install torch"):
        rg.to_torch(np.sin)
