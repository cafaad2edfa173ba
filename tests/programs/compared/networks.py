"""Layers and losses of neural networks."""

import numpy as np

from tests.oracles.program import normal, number, program, uniform

LABELS = np.array([1, 0, 2, 1])
ROWS = np.arange(4)
CAUSAL = np.tril(np.ones((3, 3), bool))
WORDS = np.array([2, 0, 2, 1])


def softmax(np, x):
    raised = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return raised / np.sum(raised, axis=-1, keepdims=True)


def sigmoid(np, x):
    return 0.5 * (np.tanh(0.5 * x) + 1)


@program(normal(4, 3), normal(3, 4), normal(4), normal(4, 3), normal(3))
def perceptron_with_tanh(np, x, W1, b1, W2, b2):
    logits = np.tanh(x @ W1 + b1) @ W2 + b2
    return -np.mean(np.log(softmax(np, logits))[ROWS, LABELS])


@program(normal(4, 3), normal(3, 5), normal(5), normal(5))
def perceptron_with_relu(np, x, W, b, v):
    return np.sum((np.maximum(x @ W + b, 0.0) @ v - 1) ** 2)


@program(normal(4, 3))
def entropy_of_a_softmax(np, logits):
    p = softmax(np, logits)
    return -np.sum(p * np.log(p))


@program(normal(3, 5), uniform(0.5, 1.5, 5), normal(5))
def layer_norm(np, x, gain, bias):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return gain * centred / np.sqrt(np.var(x, axis=-1, keepdims=True) + 1e-5) + bias


@program(normal(6, 3), uniform(0.5, 1.5, 3), normal(3))
def batch_norm(np, x, gain, bias):
    scaled = (x - np.mean(x, axis=0)) / np.sqrt(np.mean((x - np.mean(x, axis=0)) ** 2, axis=0) + 1e-3)
    return np.sum(np.sin(gain * scaled + bias))


@program(normal(3, 4), uniform(0.5, 1.5, 4))
def root_mean_square_norm(np, x, gain):
    return np.sum((x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6) * gain) ** 3)


@program(normal(3, 4), normal(3, 4), normal(3, 4))
def attention(np, q, k, v):
    return softmax(np, q @ k.T / 2.0) @ v


@program(normal(3, 4), normal(4, 4), normal(4, 4), normal(4, 4))
def causal_attention_with_two_heads(np, x, wq, wk, wv):
    q, k, v = (np.transpose(np.reshape(x @ w, (3, 2, 2)), (1, 0, 2)) for w in (wq, wk, wv))
    scores = np.matmul(q, np.swapaxes(k, 1, 2)) / np.sqrt(2.0)
    mixed = np.matmul(softmax(np, np.where(CAUSAL, scores, -1e9)), v)
    return np.sum(np.reshape(np.transpose(mixed, (1, 0, 2)), (3, 4)) ** 2)


@program(normal(2, 7), normal(3, 2, 3), normal(3), bits=False)
def convolution_layer_by_slices(np, x, kernel, bias):
    windows = np.stack([x[:, k : k + 5] for k in range(3)], axis=-1)
    out = np.einsum("ctk,ock->ot", windows, kernel) + bias[:, None]
    return np.sum(np.maximum(out, 0.1 * out))


@program(normal(4, 2), normal(3), normal(3, 3, scale=0.5), normal(3, 2))
def recurrent_network_in_python(np, xs, h, W, U):
    for x in xs:
        h = np.tanh(W @ h + U @ x)
    return np.sum(h**2)


@program(normal(3), normal(2), normal(3, 5), normal(3, 5), normal(3, 5))
def gated_recurrent_unit(np, h, x, Wz, Wr, Wh):
    joined = np.concatenate([h, x])
    update, reset = sigmoid(np, Wz @ joined), sigmoid(np, Wr @ joined)
    candidate = np.tanh(Wh @ np.concatenate([reset * h, x]))
    return (1 - update) * h + update * candidate


@program(normal(2), normal(2), normal(2), normal(8, 4))
def long_short_term_memory(np, x, h, c, W):
    gates = np.reshape(W @ np.concatenate((h, x)), (4, 2))
    c = sigmoid(np, gates[0]) * c + sigmoid(np, gates[1]) * np.tanh(gates[2])
    return np.sum(sigmoid(np, gates[3]) * np.tanh(c)) + np.sum(c**2)


@program(normal(3, 4), normal(4))
def word_embeddings(np, table, query):
    words = table[WORDS]
    return np.sum(softmax(np, words @ query) * np.sum(words**2, axis=1))


@program(normal(6), uniform(0.5, 2, 6))
def smooth_activations(np, x, gain):
    gelu = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    swish = x / (1 + np.exp(-gain * x))
    softplus = np.logaddexp(0.0, x)
    elu = np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)))
    return np.sum(gelu * swish + softplus + elu)


@program(normal(4, 3), normal(4, 3))
def contrastive_loss(np, a, b):
    a = a / np.sqrt(np.sum(a**2, axis=1, keepdims=True))
    b = b / np.sqrt(np.sum(b**2, axis=1, keepdims=True))
    return -np.trace(np.log(softmax(np, a @ b.T / 0.5)))


@program(normal(3, 4), normal(3, 4), number(0.1, 1))
def triplet_loss(np, anchors, others, margin):
    near = np.sum((anchors - others) ** 2, axis=1)
    far = np.sum((anchors - others[np.array([1, 2, 0])]) ** 2, axis=1)
    return np.sum(np.maximum(near - far + margin, 0.0)) + np.mean(near)


@program(normal(4, 4), normal(4, 2), normal(2, 3))
def graph_convolution(np, adjacency, features, weights):
    weight = np.exp(adjacency)
    degree = np.sum(weight, axis=1)
    scaled = weight / np.sqrt(degree[:, None] * degree[None, :])
    return np.sum(np.tanh(scaled @ features @ weights))


@program(normal(5), normal(3, 4), normal(3, 4))
def network_with_residual_layers(np, x, W, V):
    h = x[:4]
    for t in range(3):
        h = h + np.tanh(W[t] * h + x[4]) * V[t]
    return np.sum(h**2)


@program(normal(4), normal(4), number(0.5, 2))
def reparametrised_autoencoder_loss(np, code, noise, beta):
    mean, log_variance = code[:2], code[2:]
    sample = mean + np.exp(0.5 * log_variance) * noise[:2]
    error = np.sum((np.tanh(sample) - noise[2:]) ** 2)
    return error - 0.5 * beta * np.sum(1 + log_variance - mean**2 - np.exp(log_variance))
