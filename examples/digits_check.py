"""What `digits.py --check` compares with: the same training by hand, by records, by tensors, and by PyTorch."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import retrograd as rg

TOLERANCE = 1e-8

Weights = dict[str, NDArray[np.float64]]
Batch = tuple[NDArray[np.float64], NDArray[np.int64]]


class CheckError(Exception):
    """A gradient or a weight is further than the tolerance from a rival's; the message says which, and when."""


class Rival(Protocol):
    """The same network, trained apart from the same start on the same batches."""

    name: str

    @property
    def weights(self) -> Weights: ...

    def step(self, batch: Batch, rate: float) -> Weights:
        """Take one step of SGD, and return the gradient that it followed."""


class ByHand:
    """Forward and backward pass written out in NumPy, line by line."""

    name = "NumPy by hand"

    def __init__(self, weights: Weights, momentum: float) -> None:
        self.weights = {name: weight.copy() for name, weight in weights.items()}
        self.velocity = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.momentum = momentum

    def gradient(self, batch: Batch) -> Weights:
        """The derivative of the mean cross-entropy by each weight."""
        images, labels = batch
        W1, b1, W2, b2 = (self.weights[name] for name in ("W1", "b1", "W2", "b2"))

        before_relu = images @ W1 + b1
        hidden = np.where(before_relu > 0, before_relu, 0.0)
        scores = hidden @ W2 + b2
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        softmax = odds / odds.sum(axis=1, keepdims=True)

        d_scores = (softmax - np.eye(softmax.shape[1])[labels]) / len(labels)
        d_hidden = d_scores @ W2.T
        d_before_relu = np.where(before_relu > 0, d_hidden, 0.0)
        return {
            "W1": images.T @ d_before_relu,
            "b1": d_before_relu.sum(axis=0),
            "W2": hidden.T @ d_scores,
            "b2": d_scores.sum(axis=0),
        }

    def step(self, batch: Batch, rate: float) -> Weights:
        gradient = self.gradient(batch)
        for name in self.weights:
            self.velocity[name] = self.momentum * self.velocity[name] + gradient[name]
            self.weights[name] = self.weights[name] - rate * self.velocity[name]
        return gradient


def mean_cross_entropy(weights: dict[str, Any], images: NDArray[np.float64], labels: NDArray[np.int64]) -> Any:
    """The loss of weights of any kind: tensors of a record, or tensors."""
    hidden = rg.nn.relu(rg.nn.linear(images, weights["W1"], weights["b1"]))
    return rg.nn.cross_entropy(rg.nn.linear(hidden, weights["W2"], weights["b2"]), labels)


class ByRecord:
    """A record in each step, and momentum from `rg.optim`."""

    name = "records"

    def __init__(self, weights: Weights, momentum: float) -> None:
        self.weights = {name: weight.copy() for name, weight in weights.items()}
        self.state = rg.optim.momentum(1.0, momentum).init(self.weights)
        self.momentum = momentum

    def step(self, batch: Batch, rate: float) -> Weights:
        with rg.eager.Record() as rec:
            tensors = {name: rec.tensor(weight) for name, weight in self.weights.items()}
            grads = mean_cross_entropy(tensors, *batch).grad()
        gradient = {name: grads.wrt(tensor) for name, tensor in tensors.items()}
        optimiser = rg.optim.momentum(rate, self.momentum)
        self.weights, self.state = optimiser.update(gradient, self.state, self.weights)
        return gradient


class ByTensor:
    """Eager tensors that accumulate their gradients, as PyTorch's do."""

    name = "tensors"

    def __init__(self, weights: Weights, momentum: float) -> None:
        self.tensors = {name: rg.eager.Tensor(weight, requires_grad=True) for name, weight in weights.items()}
        self.velocity = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.momentum = momentum

    @property
    def weights(self) -> Weights:
        return {name: tensor.data for name, tensor in self.tensors.items()}

    def step(self, batch: Batch, rate: float) -> Weights:
        for tensor in self.tensors.values():
            tensor.zero_grad()
        mean_cross_entropy(self.tensors, *batch).backward()
        gradient = {name: tensor.grad.data for name, tensor in self.tensors.items()}
        for name, tensor in self.tensors.items():
            self.velocity[name] = self.momentum * self.velocity[name] + gradient[name]
            tensor.data = tensor.data - rate * self.velocity[name]
        return gradient


class ByTorch:
    """PyTorch's own layers, loss, gradient and optimiser, in float64."""

    name = "PyTorch"

    def __init__(self, weights: Weights, momentum: float) -> None:
        import torch  # noqa: PLC0415 - optional, and slow to import

        torch.set_num_threads(1)  # or its threads and NumPy's would wait for each other at every step
        self.torch = torch
        self.tensors = {name: torch.tensor(weight, requires_grad=True) for name, weight in weights.items()}
        self.optimiser = torch.optim.SGD(self.tensors.values(), momentum=momentum)

    @property
    def weights(self) -> Weights:
        return {name: tensor.detach().numpy() for name, tensor in self.tensors.items()}

    def step(self, batch: Batch, rate: float) -> Weights:
        images, labels = map(self.torch.from_numpy, batch)
        tensors = self.tensors
        hidden = self.torch.relu(images @ tensors["W1"] + tensors["b1"])
        scores = hidden @ tensors["W2"] + tensors["b2"]
        self.optimiser.zero_grad()
        self.torch.nn.functional.cross_entropy(scores, labels).backward()
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.step()
        return {name: tensor.grad.numpy() for name, tensor in tensors.items()}


class Referee:
    """Trains the rivals alongside, and compares each step's gradients and weights with theirs.

    The rivals never see our weights after the start, so that an error, once made, stays and grows.
    """

    def __init__(self, weights: Weights, momentum: float) -> None:
        self.rivals: list[Rival] = [rival(weights, momentum) for rival in (ByHand, ByRecord, ByTensor)]
        if find_spec("torch") is not None:
            self.rivals.append(ByTorch(weights, momentum))
        self.worst = {(rival.name, what): 0.0 for rival in self.rivals for what in ("gradients", "weights")}
        self.steps = 0

    def compare(self, batch: Batch, rate: float, gradient: Weights, weights: Weights) -> None:
        """Let each rival take the step that led to `gradient` and `weights`; raises CheckError if they disagree."""
        self.steps += 1
        for rival in self.rivals:
            for what, ours, theirs in (
                ("gradients", gradient, rival.step(batch, rate)),
                ("weights", weights, rival.weights),
            ):
                difference = self._difference(ours, theirs, f"step {self.steps}, {what} against {rival.name}")
                self.worst[rival.name, what] = max(self.worst[rival.name, what], difference)

    @staticmethod
    def _difference(ours: Weights, theirs: Weights, where: str) -> float:
        if ours.keys() != theirs.keys():
            raise CheckError(f"{where}: we have {sorted(ours)}, they have {sorted(theirs)}")
        worst = 0.0
        for name, array in ours.items():
            if (array.shape, array.dtype) != (theirs[name].shape, theirs[name].dtype):
                raise CheckError(
                    f"{where}: {name} is {array.dtype}{array.shape}, not {theirs[name].dtype}{theirs[name].shape}"
                )
            difference = float(np.max(np.abs(array - theirs[name])))
            if not difference <= TOLERANCE:  # written so that nan fails too
                raise CheckError(f"{where}: {name} differs by {difference:.1e}, more than {TOLERANCE:.0e}")
            worst = max(worst, difference)
        return worst

    def report(self) -> str:
        """The greatest difference that any step had from each rival."""
        lines = [f"check passed: {self.steps} steps, all within {TOLERANCE:.0e}; the greatest differences were"]
        lines += [f"  {worst:.1e}  {what} against {rival}" for (rival, what), worst in self.worst.items()]
        if not any(isinstance(rival, ByTorch) for rival in self.rivals):
            lines.append("  (PyTorch is not installed: not compared)")
        return "\n".join(lines)
