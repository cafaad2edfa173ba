"""The main example: it learns, agrees with its rivals at every step, and leaves source that runs without us."""

import gzip
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ARTEFACTS = {"forward.txt", "adjoint.txt", "gradient.txt", "gradient.dot", "gradient.py"}
NAMES = sorted(["W1", "b1", "W2", "b2"])

WITHOUT_RETROGRAD = """
import ast, sys
import numpy as np

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "retrograd":
            raise ImportError("retrograd is not here")

sys.meta_path.insert(0, Blocker())
source, arrays, results = sys.argv[1:]
scope = {}
text = open(source, encoding="utf-8").read()
exec(compile(text, source, "exec"), scope)
name = ast.get_docstring(ast.parse(text)).partition("(")[0]
loaded = np.load(arrays)
np.savez(results, *scope[name](*(loaded[key] for key in loaded.files)))
assert "retrograd" not in sys.modules
"""


def run(*command):
    """A Python that finds the package, from any working directory."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, *map(str, command)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)


def play(*options):
    return run(EXAMPLES / "digits.py", *options)


def accuracies(played):
    return [float(found) / 100 for found in re.findall(r"held-out accuracy ([\d.]+)%\n", played.stdout)]


def greatest_differences(played):
    found = re.findall(r"^  (\S+)  (gradients|weights) against (.+)$", played.stdout, re.MULTILINE)
    return {(rival, what): float(worst) for worst, what, rival in found}


@pytest.fixture
def example(monkeypatch):
    """The example's modules by name, imported here."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder that a short run wrote."""
    folder = tmp_path_factory.mktemp("digits") / "deep" / "out"
    played = play("--epochs", 1, "--hidden", 16, "--batch", 64, "--require", 0.1, "--out", folder)
    assert played.returncode == 0, played.stderr
    return folder


@pytest.fixture
def problem(example):
    """Random weights and images, small."""
    rng = np.random.default_rng(0)
    weights = example("digits").random_weights(rng, pixels=64, hidden=16)
    return weights, rng.uniform(size=(64, 64)), rng.integers(10, size=64)


def test_learns_the_digits_and_agrees_at_every_step(tmp_path):
    played = play("--check", "--out", tmp_path)
    assert played.returncode == 0, played.stderr
    assert len(accuracies(played)) == 20
    assert accuracies(played)[-1] >= 0.97
    assert "check passed: 880 steps" in played.stdout
    worst = greatest_differences(played)
    for rival in ("NumPy by hand", "records", "tensors"):
        assert {(rival, "gradients"), (rival, "weights")} <= worst.keys()
    assert max(worst.values()) <= 1e-8


@pytest.mark.slow
@pytest.mark.skipif("RETROGRAD_MNIST" not in os.environ, reason="RETROGRAD_MNIST does not name MNIST's folder")
@pytest.mark.parametrize(("options", "bar"), [((), 0.975), (("--check", "--epochs", 2, "--require", 0.95), 0.95)])
def test_learns_mnist(tmp_path, options, bar):
    played = play("--mnist", os.environ["RETROGRAD_MNIST"], "--out", tmp_path, *options)
    assert played.returncode == 0, played.stderr
    assert accuracies(played)[-1] >= bar
    assert max(greatest_differences(played).values(), default=0.0) <= 1e-8


def test_every_stage_is_written(written):
    assert {path.name for path in written.iterdir()} == ARTEFACTS
    for name in ("forward.txt", "adjoint.txt", "gradient.txt"):
        text = (written / name).read_text(encoding="utf-8")
        assert str(rg.ir.parse(text)).rstrip() == text.rstrip()
    assert (written / "gradient.dot").read_text(encoding="utf-8").startswith("digraph")


def test_the_written_source_gives_the_gradient_without_retrograd(written, tmp_path, example, problem):
    weights, images, labels = problem
    np.savez(tmp_path / "arrays.npz", *(weights[name] for name in NAMES), images, labels)
    files = written / "gradient.py", tmp_path / "arrays.npz", tmp_path / "results.npz"
    alone = run("-c", WITHOUT_RETROGRAD, *files)
    assert alone.returncode == 0, alone.stderr

    with np.load(tmp_path / "results.npz") as results:
        value, *gradient = results.values()
    by_hand = example("digits_check").ByHand(weights, momentum=0.0).gradient((images, labels))
    ours = example("digits").loss(weights, images, labels)
    np.testing.assert_array_equal(value, ours[0])
    for name, array in zip(NAMES, gradient, strict=True):
        np.testing.assert_array_equal(array, ours[1][name])
        np.testing.assert_allclose(array, by_hand[name], rtol=0, atol=1e-14)


def test_the_gradient_by_hand_agrees_with_finite_differences(example, problem):
    weights, images, labels = problem
    gradient = example("digits_check").ByHand(weights, momentum=0.0).gradient((images, labels))
    plain_loss = example("digits").loss.__wrapped__
    rng = np.random.default_rng(1)
    for name in NAMES:
        direction = rng.normal(size=weights[name].shape)
        there, back = (
            plain_loss({**weights, name: weights[name] + step * direction}, images, labels) for step in (1e-6, -1e-6)
        )
        assert (there - back) / 2e-6 == pytest.approx(np.sum(gradient[name] * direction), rel=1e-6)


def test_an_accuracy_below_the_bar_is_a_failure(tmp_path):
    played = play("--epochs", 1, "--hidden", 2, "--out", tmp_path)
    assert played.returncode == 1
    assert re.search(r"digits: held-out accuracy \d\d\.\d\d% is below the required 97.00%", played.stderr)


@pytest.mark.parametrize("error", [1e-6, np.nan])
def test_a_wrong_gradient_fails_the_check(example, problem, monkeypatch, tmp_path, error):
    digits = example("digits")
    _, images, labels = problem
    data = example("digits_data").Digits(images, labels, images, labels)

    def wrong(weights, images, labels):
        gradient = example("digits_check").ByHand(weights, momentum=0.0).gradient((images, labels))
        gradient["W2"][3, 4] += error
        return 1.0, gradient

    monkeypatch.setattr(digits, "loss", wrong)
    monkeypatch.setattr(digits, "load_sklearn", lambda: data)
    complaint = digits.main(["--check", "--out", str(tmp_path)])
    assert complaint.startswith("digits: step 1, gradients against NumPy by hand: W2 differs by ")


def test_a_wrong_weight_fails_the_check(example, problem):
    check = example("digits_check")
    weights, *batch = problem
    referee = check.Referee(weights, momentum=0.9)
    gradient = check.ByHand(weights, momentum=0.9).gradient(batch)
    with pytest.raises(check.CheckError, match="weights against NumPy by hand: W1 differs"):
        referee.compare(batch, 0.1, gradient, {name: weights[name] - 0.2 * gradient[name] for name in NAMES})


class TestMnistFiles:
    IMAGES = np.arange(2 * 28 * 28).reshape(2, 28, 28) % 256

    def write(self, folder, part, images=IMAGES, labels=(3, 9)):
        names = importlib.import_module("digits_data").MNIST_FILES
        for what, array in (("images", np.asarray(images)), ("labels", np.asarray(labels))):
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            content = header + array.astype(np.uint8).tobytes()
            (folder / names[f"{part}_{what}"]).write_bytes(gzip.compress(content))

    def test_are_read(self, example, tmp_path):
        data = example("digits_data")
        self.write(tmp_path, "train")
        self.write(tmp_path, "test")
        loaded = data.load_mnist(tmp_path)
        np.testing.assert_array_equal(loaded.train_images, self.IMAGES.reshape(2, 784) / 255)
        np.testing.assert_array_equal(loaded.test_labels, [3, 9])

    def test_a_missing_folder_is_named(self, example, tmp_path):
        assert example("digits").main(["--mnist", str(tmp_path / "none")]).endswith(f"no folder {tmp_path / 'none'}")

    def test_missing_files_are_named(self, example, tmp_path):
        digits = example("digits")
        self.write(tmp_path, "train")
        complaint = digits.main(["--mnist", str(tmp_path)])
        assert "t10k-images-idx3-ubyte.gz\n  t10k-labels-idx1-ubyte.gz" in complaint
        assert "train-images" not in complaint

    def test_labels_for_other_images_are_refused(self, example, tmp_path):
        data = example("digits_data")
        self.write(tmp_path, "train", labels=[1, 2, 3])
        self.write(tmp_path, "test")
        with pytest.raises(data.DataError, match="2 train images but 3 train labels"):
            data.load_mnist(tmp_path)

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            (b"not gzip", "cannot unpack"),
            (gzip.compress(b"\0" * 64)[:-4], "cannot unpack"),
            (gzip.compress(b"\0\0\x0d\3" + b"\0" * 12), "is not an IDX file of unsigned bytes in 3 dimension"),
            (gzip.compress(b"\0\0\x08\3" + b"\0\0\0\1" * 3), "holds 0"),
        ],
        ids=["no gzip", "cut short", "floats", "no pixels"],  # gzip writes the time: it must not name the test
    )
    def test_a_damaged_file_is_named(self, example, tmp_path, content, complaint):
        data = example("digits_data")
        self.write(tmp_path, "train")
        self.write(tmp_path, "test")
        (tmp_path / data.MNIST_FILES["train_images"]).write_bytes(content)
        with pytest.raises(data.DataError, match=complaint) as caught:
            data.load_mnist(tmp_path)
        assert "train-images-idx3-ubyte.gz" in str(caught.value)


def test_a_batch_of_more_than_all_images_is_refused(example, problem, monkeypatch):
    digits = example("digits")
    _, images, labels = problem
    data = example("digits_data").Digits(images, labels, images, labels)
    monkeypatch.setattr(digits, "load_sklearn", lambda: data)
    assert "--batch 65 is more than the 64 training images" in digits.main(["--batch", "65"])
