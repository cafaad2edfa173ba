"""Regressions, factorisations and forms of matrices."""

import numpy as np

from tests.oracles.program import normal, number, program, uniform

TARGET = np.linspace(-1.0, 1.0, 5)
RATINGS = np.array([[5.0, 3.0, 0.0, 1.0], [4.0, 0.0, 0.0, 1.0], [1.0, 1.0, 5.0, 4.0]])


@program(normal(5, 3), normal(3), number(0.1, 1))
def ridge_regression(np, A, w, penalty):
    residual = A @ w - TARGET
    return residual @ residual + penalty * w @ w


@program(normal(5, 3), normal(3), number(0.1, 1))
def lasso_regression(np, A, w, penalty):
    return 0.5 * np.mean((np.dot(A, w) - TARGET) ** 2) + penalty * np.sum(np.abs(w))


@program(normal(5, 3), normal(3), uniform(0.1, 1, 2))
def elastic_net(np, A, w, penalties):
    return np.sum((A @ w - TARGET) ** 2) + penalties[0] * np.sum(np.abs(w)) + penalties[1] * np.sum(w**2)


@program(normal(6, 3), normal(3))
def variance_along_a_principal_direction(np, X, v):
    centred = X - np.mean(X, axis=0)
    return np.sum((centred @ v) ** 2) / (6 * np.sum(v**2))


@program(normal(5, 3), normal(3, 2))
def reconstruction_error_of_a_projection(np, X, W):
    return np.sum((X - X @ W @ W.T) ** 2)


@program(normal(3, 2), normal(2, 4), number(0.01, 0.1), single=1e-3)
def masked_matrix_factorisation(np, U, V, penalty):
    error = (RATINGS > 0) * (RATINGS - U @ V)
    return np.sum(error**2) + penalty * (np.sum(U**2) + np.sum(V**2))


@program(uniform(0.2, 2, 3, 2), uniform(0.2, 2, 2, 4), single=1e-3)
def poisson_matrix_factorisation(np, W, H):
    rate = np.matmul(W, H)
    return np.sum(rate - RATINGS * np.log(rate))


@program(normal(4), normal(4, 3), normal(3))
def bilinear_form(np, x, A, y):
    return np.dot(x, np.dot(A, y))


@program(normal(4), normal(4, 4))
def rayleigh_quotient(np, x, A):
    return (x @ (A + A.T) @ x) / (x @ x)


@program(normal(4, 3), normal(2, 3), normal(4, 2), bits=False)
def trilinear_contraction(np, A, B, C):
    return np.einsum("ij,kj,ik->", A, B, C)


@program(normal(2, 3, 2), normal(2, 2, 3), autograd=0)
def batched_product_and_trace(np, A, B):
    return np.sum(np.trace(A @ B, axis1=1, axis2=2) ** 2)


@program(normal(3, 3), number(0.1, 0.3))
def truncated_exponential_of_a_matrix(np, A, scale):
    term, total = np.eye(3), np.eye(3)
    for k in range(1, 5):
        term = term @ A * (scale / k)
        total = total + term
    return np.sum(total**2)


@program(normal(3, 3))
def log_determinant_by_cofactors(np, A):
    M = A @ A.T + np.eye(3)
    det = (
        M[0, 0] * (M[1, 1] * M[2, 2] - M[1, 2] * M[2, 1])
        - M[0, 1] * (M[1, 0] * M[2, 2] - M[1, 2] * M[2, 0])
        + M[0, 2] * (M[1, 0] * M[2, 1] - M[1, 1] * M[2, 0])
    )
    return np.log(det)


@program(normal(3, 3), normal(3))
def power_iteration(np, A, v):
    M = A @ A.T
    for _ in range(3):
        v = M @ v
        v = v / np.sqrt(np.sum(v**2))
    return v @ M @ v


@program(normal(3, 4), uniform(0.5, 1.5, 3), uniform(0.5, 1.5, 4))
def sinkhorn_distance(np, cost, row_mass, column_mass):
    kernel = np.exp(-(cost**2))
    u, v = np.ones(3), np.ones(4)
    for _ in range(3):
        u = row_mass / (kernel @ v)
        v = column_mass / (u @ kernel)
    return np.sum(u[:, None] * kernel * v * cost**2)


@program(normal(3, 3), normal(3))
def quadratic_form_of_a_kronecker_product(np, A, x):
    wide = np.kron(A, x[:, None])
    return np.sum(wide**2) + np.sum(np.tril(A) * np.triu(A.T, 1))


@program(normal(2, 3, 2), normal(3, 2, 2), autograd=0)
def tensor_train_contraction(np, first, second):
    joined = np.tensordot(first, second, axes=([1, 2], [0, 1]))
    return np.sum(np.tanh(joined)) + np.vdot(first[0, 0], second[0, 0])


@program(normal(3), normal(3), normal(3))
def triple_product_and_gram_matrix(np, a, b, c):
    gram = np.inner(np.stack([a, b, c]), np.stack([a, b, c]))
    return np.dot(a, np.cross(b, c)) + np.sum(gram**2)


@program(normal(4, 3), normal(3))
def hinge_loss_of_a_support_vector_machine(np, X, w):
    margin = np.array([1.0, -1.0, 1.0, -1.0]) * (X @ w)
    return np.mean(np.maximum(0.0, 1 - margin)) + 0.5 * np.sum(w**2)


@program(normal(5), normal(5), normal(4, 2), normal(5, 2))
def factorisation_machine(np, x, w, context, V):
    pairwise = 0.5 * np.sum((x @ V) ** 2 - (x**2) @ (V**2))
    return np.dot(w, x) + pairwise + np.sum(np.dot(context, V.T) * x)
