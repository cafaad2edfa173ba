"""How arrays lie in memory: values, writes through reshapes, orders A and K, and the layout of results are NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import UnsupportedError
from retrograd.ir.types import in_order
from retrograd.tracer.memory_order import laid_alike, walked

Array = np.ndarray[Any, Any]


def written_through(m: Any) -> Any:
    y = m * 2.0
    flat = y.reshape(-1)
    flat[0] = 7.0
    return y, flat


def written_argument(m: Any) -> Any:
    flat = m.reshape(-1)
    flat[1] = 5.0
    return m * 1.0, flat


def written_row(m: Any) -> Any:
    y = np.sin(m)
    y[0] = 1.0
    return np.sum(y), y


def grown(m: Any) -> Any:
    for _ in range(30):
        m = np.tanh(m * 1.1 + 0.1)
    return m, np.sum(m)


def filled(m: Any) -> Any:
    z = np.zeros_like(m)
    z[...] = m
    return z + 1.0, np.ones_like(m) * m, np.full_like(m, m[0, 0])


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "ravel K": lambda m: m.ravel("K") * np.arange(m.size),
    "reshape A": lambda m: np.reshape(m, -1, order="A") * np.arange(m.size),
    "flatten": lambda m: (m.flatten("K"), m.flatten("A"), m.flatten("F"), m.flatten()),
    "written through": written_through,
    "written argument": written_argument,
    "written row": written_row,
    "itself": lambda m: m,
    "transposed": lambda m: m.T,
    "copies": lambda m: (m.copy(), np.copy(m), m.astype(float), np.array(m), np.array(m, order="F"), m.copy("A")),
    "sums of copies": lambda m: (np.sum(m.copy()), np.sum(np.copy(m)), np.sum(m), np.sum(m * 1.0)),
    "filled": filled,
    "joined": lambda m: (np.cumsum(m, 0), np.sort(m, 0), np.concatenate([m, m]), np.stack([m, m])),
    "products": lambda m: (-m.T * 1.0, (m.T @ m) * 1.0, np.max(np.abs(m.T))),
    "grown": grown,
}
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": lambda m: m,
    "F": np.asfortranarray,
    "turned": lambda m: np.ascontiguousarray(m.T).T,
    "columns": lambda m: np.repeat(m, 2, axis=1)[:, ::2],
    "rows": lambda m: np.repeat(m, 2, axis=0)[::2],
    "upside down": lambda m: m[::-1].copy()[::-1],
    "stretched": lambda m: np.broadcast_to(m[0], m.shape),
}
WITH_GAPS = {"columns", "rows", "upside down", "stretched"}  # results of compiled functions have none


def laid(m: Array, layout: str) -> Array:
    """The array in a layout, in memory of its own."""
    return LAYOUTS[layout](m.copy())


def axes(found: Any) -> list[Any]:
    """The order of the axes of each array of a result."""
    return [walked(x) if isinstance(x, np.ndarray) else None for x in (found if type(found) is tuple else (found,))]


def bits(found: Any) -> list[bytes]:
    """The elements of each array of a result, to the last bit."""
    return [np.asarray(x).tobytes() for x in (found if type(found) is tuple else (found,))]


@pytest.mark.parametrize("shape", [(3, 4), (60, 70), (1, 5), (5, 1)], ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_layouts_are_numpys(program: str, shape: tuple[int, int]) -> None:
    m, f = np.random.default_rng(0).normal(size=shape), PROGRAMS[program]
    g = rg.jit(f)
    for layout in (*LAYOUTS, *LAYOUTS):
        if program == "written argument" and layout == "stretched":
            continue  # NumPy refuses the write
        expected, found = f(laid(m, layout)), g(laid(m, layout))
        if program in ("written row", "written argument") and layout in WITH_GAPS:
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
            continue
        assert bits(found) == bits(expected), layout
        if layout not in WITH_GAPS:
            assert axes(found) == axes(expected), layout


def test_a_captured_array_of_another_layout_is_recorded_anew() -> None:
    box = {"m": np.arange(6.0).reshape(2, 3)}
    f = rg.jit(lambda x: x * box["m"].ravel("K"))
    for layout in ("C", "F", "C", "turned"):
        box["m"] = laid(np.arange(6.0).reshape(2, 3), layout)
        assert np.array_equal(f(np.ones(6)), box["m"].ravel("K"))


def test_derivatives_of_writes_follow_the_layout() -> None:
    def f(m: Any) -> Any:
        y = m * 2.0
        y.reshape(-1)[0] = 7.0
        return np.sum(y**2)

    g = rg.grad(f)
    m = np.arange(1.0, 7.0).reshape(2, 3)
    first = 8.0 * m
    first[0, 0] = 0.0
    assert np.array_equal(g(m), first)
    assert np.array_equal(g(np.asfortranarray(m)), 8.0 * m)  # the reshape is a copy there


def arrays() -> Iterator[Array]:
    """Views of one array in all kinds of layouts."""
    rng = np.random.default_rng(1)
    whole = rng.normal(size=(6, 8, 10))
    for _ in range(400):
        x: Array = whole
        for _ in range(rng.integers(0, 4)):
            match rng.integers(5):
                case 0:
                    x = x.transpose(rng.permutation(x.ndim))
                case 1:
                    x = x[tuple(slice(None, None, int(rng.choice([1, 2, -1, -2]))) for _ in range(x.ndim))]
                case 2:
                    x = np.asfortranarray(x)
                case 3 if x.ndim < 4:
                    x = np.broadcast_to(x, (3, *x.shape))
                case 4 if x.ndim > 2 and x.shape[0] > 1:
                    x = x[1]
        yield x


def test_a_copy_lies_as_its_original() -> None:
    for x in arrays():
        copy = laid_alike(x)
        assert np.array_equal(copy, x)
        assert not np.shares_memory(copy, x)
        assert in_order(copy) == in_order(x)
        assert (copy + 1).strides == (x + 1).strides
        assert np.array_equal(copy.ravel("K"), x.ravel("K"))
        assert np.array_equal(x.transpose(walked(x)).reshape(-1), x.ravel("K"))
        for shape in [(-1,), (x.shape[0], -1), (-1, x.shape[-1]), (-1, 2)]:
            if x.size % 2 == 0:
                is_view = np.shares_memory(x.reshape(shape), x)
                assert np.shares_memory(copy.reshape(shape), copy) == is_view


# arguments that share memory


def swapped(a: Any, b: Any) -> Any:
    a[0] = b[1] * 2.0
    return np.sum(a) + np.sum(b)


@pytest.mark.parametrize("second", [lambda x: x, lambda x: x[:2], lambda x: x[::-1]], ids=["itself", "view", "flipped"])
@pytest.mark.parametrize("transform", [rg.jit, rg.grad], ids=["jit", "grad"])
def test_a_write_into_one_of_two_arguments_that_share_memory_is_refused(transform: Any, second: Any) -> None:
    x = np.arange(1.0, 5.0)
    f = transform(swapped)
    assert f(x, x.copy()) is not None
    with pytest.raises(UnsupportedError, match="shares memory"):
        f(x, second(x))
    assert f(x, second(x).copy()) is not None


def test_arguments_that_share_memory_are_fine_where_nothing_is_written() -> None:
    x = np.arange(4.0)
    assert rg.jit(lambda a, b: np.sum(a * b))(x, x) == np.sum(x * x)
    assert rg.jit(swapped)(x[::2], x[1::2]) == swapped(*(y.copy() for y in (x[::2], x[1::2])))


def test_a_write_into_an_argument_that_the_function_also_reads_outside_is_refused() -> None:
    x = np.arange(4.0)

    def f(a: Any) -> Any:
        a[0] = 9.0
        return np.sum(x * a)

    g = rg.jit(f)
    assert g(np.ones(4)) == 6.0
    with pytest.raises(UnsupportedError, match="shares memory"):
        g(x)


def test_inner_functions_refuse_writes_into_arguments_that_share_memory() -> None:
    inner = rg.jit(swapped)
    x = np.arange(4.0)
    with pytest.raises(UnsupportedError, match="shares memory"):
        rg.jit(lambda a: inner(a, a[1:]))(x)
    assert rg.jit(lambda a: inner(a, a.copy()))(x) == swapped(x.copy(), x.copy())
