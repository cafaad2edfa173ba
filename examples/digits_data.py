"""The two sets of handwritten digits that digits.py learns: scikit-learn's 8x8 images, and MNIST from its IDX files."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MNIST_FILES = {
    "train_images": "train-images-idx3-ubyte.gz",
    "train_labels": "train-labels-idx1-ubyte.gz",
    "test_images": "t10k-images-idx3-ubyte.gz",
    "test_labels": "t10k-labels-idx1-ubyte.gz",
}


class DataError(Exception):
    """The images cannot be loaded; the message says which file is at fault, or what to install."""


class Digits(NamedTuple):
    """Images as rows of pixels between 0 and 1, labels 0 to 9; the network never learns from the test part."""

    train_images: NDArray[np.float64]  # (images, pixels)
    train_labels: NDArray[np.int64]  # (images,)
    test_images: NDArray[np.float64]
    test_labels: NDArray[np.int64]


def load_sklearn() -> Digits:
    """The 1797 real 8x8 digits that come with scikit-learn: a fifth of each digit is held out, always the same ones."""
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415 - slow to import, and MNIST does without it
        from sklearn.model_selection import train_test_split  # noqa: PLC0415 - the same
    except ImportError as error:
        raise DataError("the 8x8 digits come with scikit-learn: pip install scikit-learn (or use --mnist)") from error
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16.0, labels.astype(np.int64), test_size=0.2, stratify=labels, random_state=0)
    train_images, test_images, train_labels, test_labels = split
    return Digits(train_images, train_labels, test_images, test_labels)


def load_mnist(folder: Path) -> Digits:
    """MNIST's 60,000 training and 10,000 test images of 28x28 pixels, from the four gzipped IDX files in `folder`."""
    if not folder.is_dir():
        raise DataError(f"--mnist: there is no folder {folder}")
    missing = [name for name in MNIST_FILES.values() if not (folder / name).is_file()]
    if missing:
        raise DataError(f"--mnist: these files are missing in {folder}:\n  " + "\n  ".join(missing))
    train_images, train_labels = _labelled_images(folder, "train")
    test_images, test_labels = _labelled_images(folder, "test")
    return Digits(train_images, train_labels, test_images, test_labels)


def _labelled_images(folder: Path, part: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    images = _read_idx(folder / MNIST_FILES[f"{part}_images"], dimensions=3)
    labels = _read_idx(folder / MNIST_FILES[f"{part}_labels"], dimensions=1)
    if len(images) != len(labels):
        raise DataError(f"--mnist: {len(images)} {part} images but {len(labels)} {part} labels in {folder}")
    return images.reshape(len(images), -1) / 255.0, labels.astype(np.int64)


def _read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """An IDX file: 0, 0, 8 (for unsigned bytes), the number of dimensions, each as a big-endian uint32, the bytes."""
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"--mnist: cannot unpack {path}: {error}") from error
    header = 4 + 4 * dimensions
    if len(content) < header or content[:4] != bytes([0, 0, 8, dimensions]):
        raise DataError(f"--mnist: {path} is not an IDX file of unsigned bytes in {dimensions} dimension(s)")
    shape = tuple(np.frombuffer(content, ">u4", count=dimensions, offset=4).tolist())
    if len(content) != header + int(np.prod(shape)):
        raise DataError(f"--mnist: {path} promises {shape} bytes and holds {len(content) - header}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
