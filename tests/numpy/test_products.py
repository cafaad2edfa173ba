"""Products of matrices and vectors, contractions, convolutions and polynomials, against NumPy and differences."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import LAYOUTS, assert_differentiable, assert_same, assert_traced, distinct, outcome

RANKS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((4, 2, 3), (3,)),
    ((3,), (4, 3, 2)),
    ((4, 2, 3), (3, 2)),
    ((2, 3), (4, 3, 2)),
    ((4, 2, 3), (4, 3, 2)),
    ((4, 1, 2, 3), (5, 3, 2)),
    ((1, 2, 3), (4, 3, 1)),
    ((2, 0), (0, 3)),
    ((0, 2, 3), (0, 3, 1)),
    ((4, 2, 3), (1, 3)),
    ((2, 2, 2, 3), (2, 1, 3, 2)),
    ((), (3,)),
    ((2,), ()),
    ((), ()),
    ((2, 3), (2, 3)),
    ((1,), (3,)),
    ((1, 1), (1, 1)),
    ((3, 1), (1, 3)),
    ((5, 0, 3), (3, 2)),
]
PRODUCTS: dict[str, Any] = {
    "matmul": np.matmul,
    "@": lambda a, b: a @ b,
    "linalg.matmul": np.linalg.matmul,
    "dot": np.dot,
    "dot method": lambda a, b: a.dot(b),
    "inner": np.inner,
    "outer": np.outer,
    "linalg.outer": np.linalg.outer,
    "vdot": np.vdot,
    "vecdot": np.vecdot,
    "linalg.vecdot": lambda a, b: np.linalg.vecdot(a, b, axis=0),
    "matvec": np.matvec,
    "vecmat": np.vecmat,
    "tensordot": np.tensordot,
    "tensordot one": lambda a, b: np.tensordot(a, b, 1),
    "tensordot nothing": lambda a, b: np.tensordot(a, b, 0),
    "tensordot axes": lambda a, b: np.tensordot(a, b, ([-1], [0])),
    "kron": np.kron,
}
EINSUMS: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("i,i", ((3,), (3,))),
    ("ij,jk", ((2, 3), (3, 4))),
    ("ij,jk->ki", ((2, 3), (3, 4))),
    ("ij->", ((2, 3),)),
    ("ij->j", ((2, 3),)),
    ("ji", ((2, 3),)),
    ("ii", ((3, 3),)),
    ("ii->i", ((3, 3),)),
    ("iij->ji", ((3, 3, 2),)),
    ("ijij->ij", ((2, 3, 2, 3),)),
    ("iii", ((3, 3, 3),)),
    ("bij,bjk->bik", ((4, 2, 3), (4, 3, 2))),
    ("bij,bj->bi", ((4, 2, 3), (4, 3))),
    ("bi,bi->b", ((4, 3), (4, 3))),
    ("ni,nj->nij", ((4, 2), (4, 3))),
    ("i,j->ij", ((2,), (3,))),
    ("i,j->ji", ((2,), (3,))),
    ("ij,ij->ij", ((2, 3), (2, 3))),
    ("ij,ij->", ((2, 3), (2, 3))),
    ("ij,kj->ik", ((2, 3), (4, 3))),
    ("kij,nkj->nki", ((2, 3, 4), (5, 2, 4))),
    ("ij,bjk->bik", ((2, 3), (4, 3, 2))),
    ("...ij,...jk->...ik", ((4, 2, 3), (3, 2))),
    ("...i,...i", ((4, 3), (3,))),
    ("i...->...", ((3, 2),)),
    ("...->...", ((2, 3),)),
    ("...ii->...", ((2, 3, 3),)),
    ("i...j,j->i...", ((2, 3, 4), (4,))),
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))),
    ("ij,jk,kl,lm->im", ((2, 3), (3, 4), (4, 2), (2, 3))),
    ("i,ij,j", ((2,), (2, 3), (3,))),
    ("ab,bc,cd,de,ef,fa->", ((2, 3), (3, 2), (2, 3), (3, 2), (2, 3), (3, 2))),
    ("i,i,i->i", ((3,), (3,), (3,))),
    ("i,,j->ij", ((2,), (), (3,))),
    ("ij,kl->", ((2, 3), (2, 2))),
    ("ij,k->ik", ((2, 3), (2,))),
    ("bqhd,bkhd->bhqk", ((2, 3, 2, 4), (2, 5, 2, 4))),
    ("bhqk,bkhd->bqhd", ((2, 2, 3, 5), (2, 5, 2, 4))),
    ("ijk,ilm->kjml", ((2, 3, 2), (2, 3, 2))),
    ("abc,acd->bd", ((2, 3, 4), (2, 4, 2))),
    ("abc,cab->b", ((2, 3, 4), (4, 2, 3))),
    ("ij,jk", ((2, 1), (3, 4))),
    ("ij,ij->ij", ((2, 1), (1, 3))),
    ("i,i->", ((1,), (4,))),
    ("ij,jk->ik", ((2, 0), (0, 3))),
    ("bi,bi->b", ((0, 3), (0, 3))),
    ("bi,bi->b", ((2, 0), (2, 0))),
    ("->", ((),)),
    (",->", ((), ())),
    (" i j , j k -> i k ", ((2, 3), (3, 2))),
    ("aBc,Bd->cd", ((2, 3, 2), (3, 4))),
    ("ijk->kij", ((2, 3, 4),)),
    ("ij,jj->i", ((2, 3), (3, 3))),
]
VECTORS: dict[str, Any] = {
    "cross": np.cross,
    "linalg.cross": np.linalg.cross,
    "cross axis": lambda a, b: np.cross(np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0), axis=0),
    "cross axes": lambda a, b: np.cross(a.T, b, axisa=0, axisc=0),
}
CONVOLUTIONS: dict[str, Any] = {
    f"{f.__name__} {mode}": lambda a, v, f=f, mode=mode: f(a, v, mode)
    for f, mode in product((np.convolve, np.correlate), ("full", "same", "valid"))
} | {
    "convolve": np.convolve,
    "correlate": np.correlate,
    "polyadd": np.polyadd,
    "polysub": np.polysub,
    "polymul": np.polymul,
}
POLYNOMIALS: dict[str, Any] = {
    "polyval": np.polyval,
    "polyval matrix": lambda p, x: np.polyval(p, np.outer(x, x)),
    "polyval number": lambda p, x: np.polyval(p, x[0]),
    "polyval at 2": lambda p, x: np.polyval(p, 2.0) * x,
    "vander": lambda p, x: np.vander(x),
    "vander wide": lambda p, x: np.vander(x, 4, increasing=True) * p[0],
    "vander narrow": lambda p, x: np.vander(p, 1),
    "vander nothing": lambda p, x: np.vander(x, 0),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shapes", RANKS, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_all_ranks(name: str, shapes: Any) -> None:
    a, b = (distinct(s, seed=k) for k, s in enumerate(shapes))
    assert_traced(PRODUCTS[name], a, b)
    assert_traced(lambda a: PRODUCTS[name](a, b), a)
    if name not in {"@", "dot method"}:
        assert_traced(lambda b: PRODUCTS[name](a, b), b)
    if not isinstance(outcome(PRODUCTS[name], [a, b]), type) and a.size and b.size and "method" not in name:
        assert_differentiable(PRODUCTS[name], a, b, order=2 if a.ndim + b.ndim == 5 else 1)


@pytest.mark.parametrize("dtypes", ["ff", "fd", "DD", "dD", "ii", "id", "?i", "??", "FF", "ee", "iB"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_have_the_types_that_numpy_gives(name: str, dtypes: str) -> None:
    for p, q in (((3,), (3,)), ((3, 3), (3, 3)), ((2, 3, 3), (3,))):
        a, b = (_typed(s, t, k) for k, (s, t) in enumerate(zip((p, q), dtypes, strict=True)))
        assert_traced(PRODUCTS[name], a, b)
        inexact = dtypes[0] in "fdDF" and dtypes[1] in "fdDF"
        if inexact and not isinstance(outcome(PRODUCTS[name], [a, b]), type):
            assert_differentiable(PRODUCTS[name], a, b, order=1)


def _typed(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    x = distinct(shape, dtype if dtype in "dfDFe" else "d", seed)
    return x > 0 if dtype == "?" else x if dtype in "dfDFe" else np.rint(np.abs(x) * 3).astype(dtype)


@pytest.mark.parametrize("layout", ["transposed", "negative stride", "broadcast"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_layouts_make_no_difference(name: str, layout: str) -> None:
    a, b = (LAYOUTS[layout](distinct((3, 3), seed=k)) for k in range(2))
    assert_traced(PRODUCTS[name], a, b)


@pytest.mark.parametrize(("subscripts", "shapes"), EINSUMS, ids=str)
def test_einsum(subscripts: str, shapes: Any) -> None:
    def contracted(*args: Any) -> Any:
        return np.einsum(subscripts, *args)

    operands = [distinct(s, seed=k) for k, s in enumerate(shapes)]
    assert_traced(contracted, *operands)
    assert_traced(contracted, *(_typed(s, "D", k) for k, s in enumerate(shapes)))
    assert_traced(contracted, *(_typed(s, "i", k) for k, s in enumerate(shapes)))
    if all(x.size for x in operands):
        assert_differentiable(contracted, *operands, order=1 if len(operands) > 2 else 2)
        assert_differentiable(contracted, *(_typed(s, "D", k) for k, s in enumerate(shapes)), order=1)


def test_einsum_takes_lists_of_labels_and_options() -> None:
    a, b = distinct((2, 3)), distinct((3, 4), seed=1)
    for function in (
        lambda a, b: np.einsum(a, [0, 1], b, [1, 2]),
        lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [2, 0]),
        lambda a, b: np.einsum(a, [..., 1], b, [1, 2], [..., 2]),
        lambda a, b: np.einsum("ij,jk", a, b, dtype=np.complex128),
        lambda a, b: np.einsum("ij,jk", a, b, out=np.zeros((2, 4))),
        lambda a, b: np.einsum("ij,jk,k", a, b, b[0], optimize="greedy"),
        lambda a, b: np.einsum("ij,jk,k", a, b, b[0], optimize=["einsum_path", (1, 2), (0, 1)]),
        lambda a, b: np.einsum("ij,jk,k", a, b, b[0], optimize=["einsum_path", (0, 1, 2)]),
    ):
        assert_traced(function, a, b)
        assert_differentiable(function, a, b, order=1)


@pytest.mark.parametrize(
    "shapes", [((3,), (3,)), ((2, 3), (3,)), ((4, 1, 3), (2, 3)), ((0, 3), (0, 3)), ((2, 2), (2, 2)), ((3, 3), (3, 3))]
)
@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors")
def test_cross_products(name: str, shapes: Any) -> None:
    a, b = (distinct(s, seed=k) for k, s in enumerate(shapes))
    if a.shape[-1] == 3 or name == "linalg.cross":
        assert_traced(VECTORS[name], a, b)
    if a.size and not isinstance(outcome(VECTORS[name], [a, b]), type) and a.shape[-1] == 3:
        assert_differentiable(VECTORS[name], a, b)
        assert_differentiable(VECTORS[name], a.astype("f"), b.astype("D"), order=1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sizes", [(5, 2), (2, 5), (3, 3), (4, 3), (3, 4), (1, 4), (6, 1)])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str, sizes: Any) -> None:
    a, v = (distinct((n,), seed=k) for k, n in enumerate(sizes))
    assert_traced(CONVOLUTIONS[name], a, v)
    assert_traced(CONVOLUTIONS[name], _typed(a.shape, "D"), _typed(v.shape, "f"))
    assert_traced(CONVOLUTIONS[name], _typed(a.shape, "i") + 1, _typed(v.shape, "i", 1) + 1)
    assert_differentiable(CONVOLUTIONS[name], a, v)
    assert_differentiable(CONVOLUTIONS[name], _typed(a.shape, "D"), _typed(v.shape, "D", 1))


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    for p, x in (
        (distinct((4,)), distinct((3,), seed=1)),
        (distinct((1,)), distinct((1,), seed=1)),
        (distinct((3,), "D"), distinct((2,), "f")),
    ):
        assert_traced(POLYNOMIALS[name], p, x)
        assert_differentiable(POLYNOMIALS[name], p, x, order=1 if x.dtype == "f" else 2)
    assert_traced(POLYNOMIALS[name], np.array([1, 2, 3]), np.array([2, 3]))


def test_multi_dot() -> None:
    shapes = [(5,), (5, 2), (2, 7), (7, 3), (3,)]
    arrays = [distinct(s, seed=k) for k, s in enumerate(shapes)]
    for first, last in ((0, 5), (1, 4), (0, 3), (2, 5), (0, 2), (1, 3), (3, 5)):
        chain = arrays[first:last]
        assert_traced(lambda *xs: np.linalg.multi_dot(xs), *chain)
        assert_differentiable(lambda *xs: np.linalg.multi_dot(xs), *chain, order=1)
    for wrong in ([arrays[1]], [arrays[1], arrays[0], arrays[2]], [arrays[1], arrays[1]]):
        assert_same(
            outcome(rg.jit(lambda *xs: np.linalg.multi_dot(xs)), wrong),
            outcome(lambda *xs: np.linalg.multi_dot(xs), wrong),
        )


def test_a_chain_is_multiplied_in_the_cheapest_order() -> None:
    a, b, v = np.ones((20, 30)), np.ones((30, 40)), np.ones(40)
    for function in (lambda a, b, v: np.linalg.multi_dot([a, b, v]), lambda a, b, v: np.einsum("ij,jk,k->i", a, b, v)):
        text = rg.jit(function).source(a, b, v)
        assert text.index("b @ v") < text.index("a @ ")


def test_the_gradient_of_a_stack_times_a_matrix_is_one_product() -> None:
    x, w = distinct((5, 4, 3)), distinct((3, 2), seed=1)
    text = rg.grad(lambda w, x: np.sum((x @ w) ** 2)).source(w, x)
    assert text.count("@") == 2
    assert "transpose" not in text
    assert "reduce" not in text
    assert_differentiable(lambda w, x: x @ w, w, x)


def test_attention_is_products_of_stacks() -> None:
    q, k, v = (distinct((2, 5, 3, 4), seed=n) for n in range(3))

    def attention(q: Any, k: Any, v: Any) -> Any:
        return np.einsum("bhqk,bkhd->bqhd", np.tanh(np.einsum("bqhd,bkhd->bhqk", q, k)), v)

    assert_differentiable(attention, q, k, v)
    assert "einsum" not in rg.grad(lambda q, k, v: np.sum(attention(q, k, v))).source(q, k, v)


def test_products_over_lanes() -> None:
    a, b = distinct((5, 2, 3)), distinct((3,), seed=1)
    cases = [
        (np.dot, (a, b), (0, None)),
        (lambda b, a: np.dot(a, b), (np.stack([b] * 5), a[0]), (0, None)),
        (lambda x, y: np.einsum("ij,kj->ik", x, y), (a, a), (0, 0)),
        (np.convolve, (a[:, 0], b), (0, None)),
        (np.cross, (a, b), (0, None)),
        (lambda x: np.einsum("ij,ij->i", x, x), (a,), (0,)),
        (np.vdot, (a[:, 0], a[:, 1]), (0, 0)),
        (lambda x: np.linalg.trace(x[:, :2]) * x, (a,), (0,)),
        (np.diag, (a[:, 0],), (0,)),
    ]
    for function, args, axes in cases:
        lanes = [[x[k] if axis == 0 else x for x, axis in zip(args, axes, strict=True)] for k in range(5)]
        assert_same(rg.vmap(function, in_axes=axes)(*args), np.stack([function(*lane) for lane in lanes]))


ERRORS: dict[str, Any] = {
    "matmul": lambda x: x @ x,
    "matmul number": lambda x: np.matmul(x, 2.0),
    "dot": lambda x: np.dot(x, x),
    "inner": lambda x: np.inner(x, x[:, :2]),
    "vdot": lambda x: np.vdot(x, x[0]),
    "vecdot": lambda x: np.vecdot(x, x[:, 1:]),
    "matvec": lambda x: np.matvec(x, x[:, 0]),
    "tensordot": lambda x: np.tensordot(x, x, 1),
    "linalg.outer": lambda x: np.linalg.outer(x, x),
    "cross": lambda x: np.cross(x, x),
    "einsum": lambda x: np.einsum("ij,jk", x, x),
    "einsum count": lambda x: np.einsum("ij,jk", x),
    "einsum axes": lambda x: np.einsum("ijk", x),
    "einsum result": lambda x: np.einsum("ij->k", x),
    "einsum repeated": lambda x: np.einsum("ij->ii", x),
    "einsum diagonal": lambda x: np.einsum("ii", x),
    "einsum text": lambda x: np.einsum("i;j", x),
    "convolve": lambda x: np.convolve(x, x),
    "convolve mode": lambda x: np.convolve(x[0], x[0], "most"),
    "convolve nothing": lambda x: np.convolve(x[0, :0], x[0]),
    "vander": np.vander,
    "out": lambda x: np.dot(x, x.T, out=np.zeros((2, 2))),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_numpy(name: str) -> None:
    x = distinct((3, 4))
    expected = outcome(ERRORS[name], [x])
    assert isinstance(expected, type)
    assert_same(outcome(rg.jit(ERRORS[name]), [x]), expected)


@pytest.mark.parametrize("function", [lambda x: np.einsum("i,i", x > 0, x > 1)])
def test_what_is_not_traced_says_so(function: Any) -> None:
    with pytest.raises(rg.errors.UnsupportedError, match="remedy"):
        rg.jit(function)(distinct((3,)))
