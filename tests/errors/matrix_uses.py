"""Bad uses of linear algebra, and of what looks for nan."""

from __future__ import annotations

import numpy as np

import retrograd as rg
from retrograd import errors
from tests.errors.bad_uses import bad

TALL = np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.25]])


@bad(errors.NonDifferentiableError)
def the_free_basis_of_a_complete_qr():
    def f(x):
        q = np.linalg.qr(x, mode="complete")[0]  # <-
        return np.sum(q)

    rg.grad(f)(TALL)


@bad(errors.NonDifferentiableError)
def the_free_vectors_of_a_full_svd():
    def f(x):
        u, s, vh = np.linalg.svd(x)  # <-
        return np.sum(u) + np.sum(s) + np.sum(vh)

    rg.grad(f)(TALL)


@bad(errors.UnsupportedError)
def a_traced_cut_of_a_pseudo_inverse():
    def f(x):
        return np.linalg.pinv(x, rcond=x[0, 0])  # <-

    rg.jit(f)(TALL)


@bad(errors.NanError)
def a_nan_in_the_function():
    def f(x):
        return np.sum(np.log(x))  # <-

    with np.errstate(all="ignore"), rg.debug_nans():
        rg.jit(f)(TALL)


@bad(errors.NanError)
def an_infinity_in_the_derivative():
    def f(x):
        return np.sum(np.sqrt(x * 0.0))  # <-

    with np.errstate(all="ignore"), rg.debug_nans():
        rg.grad(f)(TALL)
