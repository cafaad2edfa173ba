"""Samples of linear algebra and of Fourier transforms: matrices whose spectra keep apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from .sampling import Rng, Shape, a, case, declare

SQUARE: tuple[Shape, ...] = ((3, 3), (1, 1), (2, 2), (2, 3, 3), (0, 2, 2), (2, 1, 2, 2))
TALL: tuple[Shape, ...] = ((3, 2), (2, 4, 3), (3, 1))
WIDE: tuple[Shape, ...] = ((2, 3), (2, 1, 2))


def apart(rng: Rng, shape: Shape) -> Any:
    """Matrices near a diagonal of 2, 4, 6, ...: of full rank, with a simple spectrum."""
    x = rng.uniform(-0.3, 0.3, shape)
    for k in range(min(shape[-2:])):
        x[..., k, k] += 2.0 + 2 * k
    return x


def turning(rng: Rng, shape: Shape) -> Any:
    """Matrices near a rotation: their eigenvalues are complex."""
    x = rng.uniform(-0.1, 0.1, shape)
    x[..., 0, 1] += 2.0
    x[..., 1, 0] -= 3.0
    return x


def singular(rng: Rng, shape: Shape) -> Any:
    """Matrices of integers whose last row is the difference of the first two, or zero."""
    x = rng.integers(-2, 3, shape) + 3.0 * np.eye(shape[-1])
    x[..., -1, :] = x[..., 0, :] - x[..., -2, :] if shape[-1] > 2 else 0
    return x


for _name in ("inv", "cholesky", "det", "slogdet"):
    declare(_name, *(case(a(s, t, apart)) for t in "dfD" for s in (SQUARE if t == "d" else SQUARE[:1])))
declare("det", case(a((3, 3), "d", singular)), case(a((2, 2, 2), "d", singular)))
declare("cofactors", *(case(a(s, t, apart)) for t in "dfD" for s in (SQUARE if t == "d" else SQUARE[:1])))
declare("cofactors", case(a((3, 3), "d", singular)), case(a((2, 4, 4), "d", singular)))
declare(
    "solve",
    *(
        case(a(s, t, apart), a(r, t))
        for t in "dfD"
        for s, r in (
            ((3, 3), (3,)),
            ((3, 3), (3, 2)),
            ((2, 3, 3), (2, 3, 1)),
            ((1, 1), (1,)),
            ((2, 2), (2, 0)),
            ((0, 2, 2), (0, 2, 1)),
        )
    ),
)


def positive(rng: Rng, shape: Shape) -> Any:
    """Matrices whose lower triangles are those of positive definite ones; the upper ones have no meaning."""
    return rng.uniform(-0.4, 0.4, shape) + 3.0 * np.eye(shape[-1])


for _name in ("half_inverse", "half_log_det"):
    declare(_name, *(case(a(s, t, positive)) for t in "df" for s in (SQUARE if t == "d" else SQUARE[:1])))
for _name in ("solve_positive", "inverse_form"):
    declare(
        _name,
        *(
            case(a(s, t, positive), a(r, t))
            for t in "df"
            for s, r in (
                ((3, 3), (3,)),
                ((3, 3), (3, 2)),
                ((2, 3, 3), (2, 3, 1)),
                ((1, 1), (1,)),
                ((0, 2, 2), (0, 2, 1)),
            )
        ),
        *(case(a((3, 3), "d", positive), a(r, "d"), checked=True) for r in ((3,), (3, 2))),
    )
declare("pinv", *(case(a(s, t, apart), rcond=1e-15) for t in "dfD" for s in (*TALL, *WIDE, (2, 2))))
declare("pinv", *(case(a(s, t, apart), rcond=0.8) for t in "dfD" for s in (*TALL, *WIDE, (3, 3))))
declare(
    "lstsq",
    *(
        case(a(s, t, apart), a(r, t), rcond=None)
        for t in "dfD"
        for s, r in (((3, 2), (3,)), ((4, 3), (4, 2)), ((2, 3), (2,)), ((2, 2), (2, 1)))
    ),
    case(a((3, 2), "d", apart), a((3,)), rcond=1e-3),
    case(a((2, 3), "d", apart), a((2, 2)), rcond=0.8),
)
for _mode in ("reduced", "r"):
    declare("qr", *(case(a(s, t, apart), mode=_mode) for t in "dfD" for s in (*TALL, (2, 2), (0, 3, 2))))
declare("qr", case(a((3, 3), "d", apart), mode="complete"))
# differences of vectors are too coarse in single precision, and the phases of complex ones are free
for _vectors in (True, False):
    for _shape in (*TALL, *WIDE, (2, 2), (0, 2, 3)):
        declare("svd", case(a(_shape, "d", apart), full=False, vectors=_vectors))
        declare("svd", *(case(a(_shape, t, apart), full=False, vectors=_vectors) for t in "fD"), smooth=not _vectors)
    for _uplo in "LU":
        declare("eigh", *(case(a(s, "d", apart), vectors=_vectors, uplo=_uplo) for s in SQUARE))
        declare("eigh", *(case(a((3, 3), t, apart), vectors=_vectors, uplo=_uplo) for t in "fD"), smooth=not _vectors)
    declare("eig", *(case(a(s, "D", apart), vectors=_vectors) for s in SQUARE))
    declare("eig", *(case(a((3, 3), t, apart), vectors=_vectors) for t in "dfF"))
    declare("eig", *(case(a(s, "d", turning), vectors=_vectors) for s in ((2, 2), (2, 2, 2))))

NORMS = ("backward", "ortho", "forward")
TRANSFORMS: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    ((4,), (0,)),
    ((5,), (0,)),
    ((1,), (0,)),
    ((2,), (0,)),
    ((3, 4), (1,)),
    ((4, 3), (0,)),
    ((2, 3), (0, 1)),
    ((3, 4), (1, 0)),
    ((2, 4, 3), (0, 2)),
    ((0, 3), (1,)),
)
for _norm in NORMS:
    for _shape, _axis in TRANSFORMS if _norm == "backward" else TRANSFORMS[4:8]:
        for _inverse in (False, True):
            declare("fft", *(case(a(_shape, t), axis=_axis, inverse=_inverse, norm=_norm) for t in "dDf"))
        declare("rfft", *(case(a(_shape, t), axis=_axis, norm=_norm) for t in "df"))
        _n = _shape[_axis[-1]]
        _part = tuple(_n // 2 + 1 if k == _axis[-1] else m for k, m in enumerate(_shape))
        declare("irfft", *(case(a(_part, t), axis=_axis, n=_n, norm=_norm) for t in "DF"))
