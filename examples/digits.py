"""Teach a two-layer network to read handwritten digits. The loss is plain NumPy; retrograd compiles its gradient.

    python examples/digits.py                  scikit-learn's 8x8 digits, in a few seconds
    python examples/digits.py --mnist DIR      MNIST, from its four gzipped IDX files in DIR
    python examples/digits.py --check          compare every step with NumPy by hand, with records and tensors (the
                                               two eager front ends), and with PyTorch if it is installed

At the end, `out/` has everything the compiler made of the loss on the way to its gradient:

    forward.txt     the graph that was traced from `loss`
    adjoint.txt     the graph that carries the derivative back through it
    gradient.txt    both together, optimised
    gradient.dot    the same as a drawing (dot -Tsvg out/gradient.dot)
    gradient.py     the same as NumPy source, which runs without retrograd
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from digits_check import CheckError, Referee
from digits_data import DataError, Digits, load_mnist, load_sklearn
from numpy.typing import NDArray
from tqdm import tqdm

import retrograd as rg

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Weights = dict[str, Floats]

MOMENTUM = 0.9
DIGITS = {"epochs": 20, "batch": 32, "require": 0.97}
MNIST = {"epochs": 10, "batch": 128, "require": 0.975}


# ------------------------------------------------------------------------------------- the network, in plain NumPy


def network(weights: Weights, images: Floats) -> Floats:
    """Ten scores for each image, shape (images, 10): the highest is the digit that the network reads."""
    hidden = np.maximum(images @ weights["W1"] + weights["b1"], 0.0)
    return hidden @ weights["W2"] + weights["b2"]


@rg.value_and_grad
def loss(weights: Weights, images: Floats, labels: Labels) -> Floats:
    """Mean cross-entropy. The decorated function returns it together with its gradient, a dict like `weights`."""
    scores = network(weights, images)
    scores = scores - np.max(scores, axis=1, keepdims=True)  # changes no probability, and exp cannot overflow
    log_probabilities = scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))
    return -np.mean(log_probabilities[np.arange(len(labels)), labels])


def accuracy(weights: Weights, images: Floats, labels: Labels) -> float:
    """The share of images that the network reads right."""
    return float(np.mean(np.argmax(network(weights, images), axis=1) == labels))


# ------------------------------------------------------------------------------------------------------ training


def random_weights(rng: np.random.Generator, pixels: int, hidden: int) -> Weights:
    """A start that keeps the size of the signal through a relu layer (He et al., arXiv 1502.01852)."""
    return {
        "W1": rng.normal(size=(pixels, hidden)) * np.sqrt(2 / pixels),
        "b1": np.zeros(hidden),
        "W2": rng.normal(size=(hidden, 10)) * np.sqrt(2 / hidden),
        "b2": np.zeros(10),
    }


def minibatches(rng: np.random.Generator, data: Digits, size: int) -> Iterator[tuple[Floats, Labels]]:
    """The training images in a new order, `size` at a time. All have one shape, so the loss is compiled once."""
    order = rng.permutation(len(data.train_images))
    for start in range(0, len(order) - size + 1, size):
        chosen = order[start : start + size]
        yield data.train_images[chosen], data.train_labels[chosen]


def train(data: Digits, options: argparse.Namespace) -> tuple[Weights, float]:
    """SGD with momentum, its rate falling to 0. Returns the weights, and their accuracy on the held-out images."""
    rng = np.random.default_rng(options.seed)
    weights = random_weights(rng, data.train_images.shape[1], options.hidden)
    velocity = {name: np.zeros_like(weight) for name, weight in weights.items()}
    referee = Referee(weights, MOMENTUM) if options.check else None
    right = 0.0

    steps = len(data.train_images) // options.batch
    with tqdm(total=options.epochs * steps, unit=" steps", mininterval=0.5) as progress:
        for epoch in range(1, options.epochs + 1):
            total = 0.0
            for batch in minibatches(rng, data, options.batch):
                rate = options.rate * (1 - progress.n / progress.total)
                value, gradient = loss(weights, *batch)
                for name in weights:
                    velocity[name] = MOMENTUM * velocity[name] + gradient[name]
                    weights[name] = weights[name] - rate * velocity[name]
                if referee:
                    referee.compare(batch, rate, gradient, weights)
                total += float(value)
                progress.update()
            right = accuracy(weights, data.test_images, data.test_labels)
            progress.write(f"epoch {epoch:3}   loss {total / steps:.4f}   held-out accuracy {right:.2%}")
    if referee:
        print(referee.report())
    return weights, right


# --------------------------------------------------------------------------------------- what the compiler made


def write_artefacts(folder: Path, weights: Weights, images: Floats, labels: Labels) -> None:
    """Write each stage of the compiled loss, for arguments of these shapes."""
    example = weights, images, labels
    artefacts = {
        "forward.txt": loss.graph(*example, stage="traced"),
        "adjoint.txt": loss.graph(*example, stage="adjoint"),
        "gradient.txt": loss.graph(*example, stage="optimised"),
        "gradient.dot": loss.dot(*example),
        "gradient.py": loss.source(*example),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in artefacts.items():
        (folder / name).write_text(f"{content}".rstrip() + "\n", encoding="utf-8")
    print(f"wrote {', '.join(artefacts)} into {folder}")


# ------------------------------------------------------------------------------------------------- command line


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Train, write what was compiled, and return what went wrong, if anything did."""
    options = parse(arguments)
    try:
        data = load_mnist(options.mnist) if options.mnist else load_sklearn()
        if options.batch > len(data.train_images):
            return f"digits: --batch {options.batch} is more than the {len(data.train_images)} training images"
        weights, right = train(data, options)
    except (DataError, CheckError) as error:
        return f"digits: {error}"
    write_artefacts(options.out, weights, data.train_images[: options.batch], data.train_labels[: options.batch])
    if right < options.require:
        return f"digits: held-out accuracy {right:.2%} is below the required {options.require:.2%} (--require)"
    return None


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; --help lists them."""

    def positive(text: str) -> int:
        if int(text) < 1:
            raise ValueError
        return int(text)

    description, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--mnist", type=Path, metavar="DIR", help="learn MNIST, from the IDX files in this folder")
    parser.add_argument("--epochs", type=positive, help="passes over the training images (20, or 10 on MNIST)")
    parser.add_argument("--batch", type=positive, help="images in a step (32, or 128 on MNIST)")
    parser.add_argument("--rate", type=float, default=0.1, help="learning rate of the first step (0.1)")
    parser.add_argument("--hidden", type=positive, default=128, help="hidden units (128)")
    parser.add_argument("--seed", type=int, default=0, help="for the first weights and the order of the images (0)")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where the artefacts go (out)")
    parser.add_argument("--check", action="store_true", help="compare every step with other ways to take it")
    parser.add_argument("--require", type=float, help="held-out accuracy to reach (0.97, or 0.975 on MNIST)")
    options = parser.parse_args(arguments)
    for name, value in (MNIST if options.mnist else DIGITS).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


if __name__ == "__main__":
    sys.exit(main())
