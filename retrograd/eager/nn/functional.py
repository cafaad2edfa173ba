"""Functions of networks, in plain NumPy: they take arrays, traced arrays, tensors of records and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import OptionError, ShapeError


def linear(x: Any, W: Any, b: Any = None) -> Any:
    """``x @ W + b``; weights from PyTorch are transposed, ``rg.nn.linear(x, W.T, b)``.

    Parameters
    ----------
    x : array
        Rows, of shape (..., n_in).
    W : array
        Of shape (n_in, n_out).
    b : array, optional
        Of shape (n_out,).

    Returns
    -------
    array
        Of shape (..., n_out).

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.nn.linear(np.array([[1.0, 2.0]]), np.eye(2), np.array([0.5, 0.0]))
    array([[1.5, 2. ]])
    """
    return x @ W if b is None else x @ W + b


def relu(x: Any) -> Any:
    """max(x, 0) elementwise, with derivative 0 at 0.

    Parameters
    ----------
    x : array
        Of any shape.

    Returns
    -------
    array
        Of the shape of x.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.grad(lambda x: np.sum(rg.nn.relu(x)))(np.array([-1.0, 0.0, 2.0]))
    array([0., 0., 1.])
    """
    return np.where(x <= 0, 0, x)


def leaky_relu(x: Any, slope: float = 0.01) -> Any:
    """x if it is positive, else ``slope * x``, elementwise; the derivative at 0 is ``slope``.

    Parameters
    ----------
    x : array
        Of any shape.
    slope : float
        The factor of negative numbers.

    Returns
    -------
    array
        Of the shape of x.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.nn.leaky_relu(np.array([-1.0, 2.0]), slope=0.1)
    array([-0.1,  2. ])
    """
    return np.where(x <= 0, slope * x, x)


def log_softmax(x: Any, axis: int = -1) -> Any:
    """log(eˣ / Σ eˣ) along an axis, relative to the maximum, so that nothing overflows.

    Parameters
    ----------
    x : array
        Of any shape.
    axis : int
        The axis of the sum.

    Returns
    -------
    array
        Of the shape of x.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.grad(lambda x: np.sum(rg.nn.log_softmax(x)))(np.array([1.0, 2.0, 3.0, 4.0]))
    array([ 0.87176559,  0.65142273,  0.05246873, -1.57565704])
    """
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def cross_entropy(scores: Any, labels: Any) -> Any:
    """The mean of -log softmax(scores)[label] over rows.

    Parameters
    ----------
    scores : array
        Of shape (rows, classes).
    labels : array
        Integers of shape (rows,).

    Returns
    -------
    scalar
        The mean.

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> print(rg.nn.cross_entropy(np.zeros((2, 4)), np.array([0, 3])).round(12), np.log(4.0).round(12))
    1.386294361120 1.386294361120
    """
    if len(scores.shape) != 2 or np.shape(labels) != scores.shape[:1]:
        raise ShapeError(
            f"cross_entropy got scores of shape {scores.shape} and labels of shape {np.shape(labels)}",
            remedy="pass scores of shape (rows, classes) and labels of shape (rows,)",
        )
    return -np.mean(log_softmax(scores)[np.arange(scores.shape[0]), labels])


def conv2d(x: Any, W: Any, b: Any = None, *, stride: int = 1, padding: int = 0) -> Any:
    """The cross-correlation of images with kernels, as networks use it.

    out[n, o, i, j] = Σ W[o, c, p, q] · x[n, c, i·stride + p, j·stride + q] over c, p, q.

    Parameters
    ----------
    x : array
        Images of shape (n, c_in, height, width).
    W : array
        Kernels of shape (c_out, c_in, k, l).
    b : array, optional
        One number for each output channel, of shape (c_out,).
    stride : int
        The step from one place of the kernel to the next.
    padding : int
        Rows and columns of zeros around each image.

    Returns
    -------
    array
        Of shape (n, c_out, (height + 2·padding - k) // stride + 1, (width + 2·padding - l) // stride + 1).

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    OptionError
        If stride or padding is wrong.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> rg.nn.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)))[0, 0]
    array([[4., 4.],
           [4., 4.]])
    """
    if stride < 1 or padding < 0:
        raise OptionError(
            f"conv2d with stride={stride}, padding={padding}",
            remedy="use a stride from 1 and a padding from 0",
        )
    if len(x.shape) != 4 or len(W.shape) != 4 or x.shape[1] != W.shape[1]:
        raise ShapeError(
            f"conv2d got images of shape {x.shape} and kernels of shape {W.shape}",
            remedy="pass images (n, c_in, height, width) and kernels (c_out, c_in, k, l)",
        )
    if padding:
        x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    _, _, k, m = W.shape
    rows, columns = (x.shape[2] - k) // stride + 1, (x.shape[3] - m) // stride + 1
    if rows < 1 or columns < 1:
        raise ShapeError(
            f"kernels of {k} by {m} are larger than images of {x.shape[2]} by {x.shape[3]}",
            remedy="pad the images, or use smaller kernels",
        )
    down, right = stride * (rows - 1) + 1, stride * (columns - 1) + 1
    patches = [x[:, :, p : p + down : stride, q : q + right : stride] for p in range(k) for q in range(m)]
    flat = np.reshape(W, (W.shape[0], W.shape[1], k * m))
    out = np.einsum("pnchw,ocp->nohw", np.stack(patches), flat)
    return out if b is None else out + np.reshape(b, (1, b.shape[0], 1, 1))
