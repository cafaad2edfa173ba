"""Make the pictures of the gallery, by running the examples.

    python docs/gallery_pictures.py                all of them, in some minutes
    python docs/gallery_pictures.py wave digits    some

The pictures of pages and notebooks need Chromium.
"""

from __future__ import annotations

import linecache
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib as mpl
import nbformat
import numpy as np
from matplotlib.figure import Figure
from nbclient import NotebookClient

import retrograd as rg

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "_static" / "gallery"
sys.path.insert(0, str(ROOT / "examples"))
mpl.use("Agg")  # it draws into files


def screenshot(page: Path, picture: Path, width: int, height: int) -> None:
    """A page as Chromium shows it."""
    browser = shutil.which("chromium") or "google-chrome"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=20000"]
    size = f"--window-size={width},{height}"
    subprocess.run([browser, *options, size, f"--screenshot={picture}", page.as_uri()], check=True, timeout=120)


def wave(folder: Path) -> None:
    """The ground, what was found of it, and what budgets cost."""
    import_module("wave").main(["--out", str(folder)])


def function_space(folder: Path) -> None:
    """What was learned, on the training points and between them."""
    import_module("function_space").main(folder)


def memory_curves(folder: Path) -> None:
    """The peak of memory against the work."""
    import_module("memory_curves").main(["--quick", "--out", str(folder)])


def sampler(folder: Path) -> None:
    """The draws of three quantities."""
    example = import_module("sampler")
    found = [example.UNRAVEL(x) for x in example.run(500).points.reshape(-1, example.FLAT.size)]
    columns = {
        "mean of schools": [p["mean"] for p in found],
        "spread of schools": [np.exp(p["log_spread"]) for p in found],
        "effect in school A": [p["mean"] + np.exp(p["log_spread"]) * p["offsets"][0] for p in found],
    }
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(1, 3), columns.items(), strict=True):
        axes.hist(values, bins=80, range=np.quantile(values, [0.002, 0.998]), color="#3b82f6")
        axes.set_title(title)
        axes.set_yticks([])
    figure.savefig(folder / "sampler.png", dpi=110)


def many_shards(folder: Path) -> None:
    """The sums over shards come closer to the price and its derivatives, the more paths they have."""
    example = import_module("many_shards")
    value, slope = rg.value_and_grad(example.exact)(example.MARKET)
    right = np.array([value, *slope])
    size, counts = 4_000, 2 ** np.arange(9)
    off = []
    for count in counts:
        load = partial(example.draw, paths=size)
        f = rg.distributed.value_and_grad(example.payoffs, shards=range(count), load=load)
        found, slopes = f(example.MARKET)
        off.append(np.abs(np.array([found, *slopes]) / (count * size) - right) / np.abs(right))
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = figure.subplots()
    for name, errors in zip(
        ("price", *(f"d/d {name}" for name in example.Market._fields)), np.transpose(off), strict=True
    ):
        axes.loglog(size * counts, errors, marker="o", markersize=4, label=name)
    axes.loglog(size * counts, 1.0 / np.sqrt(size * counts), color="gray", linestyle="--", label="1/√paths")
    axes.set_xlabel("paths, in shards of 4,000")
    axes.set_ylabel("relative error")
    axes.legend(fontsize=8)
    figure.savefig(folder / "many_shards.png", dpi=110)


def digits(folder: Path) -> None:
    """Held-out digits and what the network reads, and the page about a call of its gradient."""
    text = (ROOT / "examples" / "digits.py").read_text(encoding="utf-8")
    linecache.cache["digits.py"] = (len(text), None, text.splitlines(keepends=True), "digits.py")
    scope: dict[str, Any] = {"__name__": "digits"}
    exec(compile(text, "digits.py", "exec"), scope)  # the page then shows no folder of this machine
    data = import_module("digits_data").load_sklearn()
    weights, _ = scope["train"](data, scope["parse"](["--epochs", "10"]))
    images, labels = data.test_images[:24], data.test_labels[:24]
    read = np.argmax(scope["network"](weights, images), axis=1)
    figure = Figure(figsize=(9, 2.2), layout="constrained")
    for axes, image, label, digit in zip(figure.subplots(2, 12).flat, images, labels, read, strict=True):
        axes.imshow(image.reshape(8, 8), cmap="gray_r")
        axes.set_title(str(digit), color="#1a7f37" if digit == label else "#cf222e", fontsize=11)
        axes.set_axis_off()
    figure.savefig(folder / "digits.png", dpi=110)
    page = scope["loss"].report(folder / "report.html", weights, images, labels, check=False)
    screenshot(page, folder / "report.png", 1400, 860)


def notebook(folder: Path) -> None:
    """The graph and the source of a gradient, as cells of the notebook show them."""
    book = nbformat.read(ROOT / "examples" / "looking_inside.ipynb", as_version=4)
    NotebookClient(book, timeout=300).execute()
    parts = []
    for cell in [cell for cell in book.cells if cell.cell_type == "code"][2:4]:
        (shown,) = [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
        parts.append(f"<pre>{cell.source}</pre>{shown}")
    page = folder / "notebook.html"
    style = "body { font: 14px sans-serif; margin: 16px } pre { background: #f6f8fa; padding: 8px }"
    page.write_text(f"<meta charset=utf-8><style>{style}</style>{''.join(parts)}", encoding="utf-8")
    screenshot(page, folder / "notebook.png", 1000, 1260)


MAKERS: dict[str, Callable[[Path], None]] = {
    maker.__name__: maker for maker in (digits, wave, memory_curves, function_space, sampler, many_shards, notebook)
}


def main(names: list[str]) -> None:
    """Make pictures, and put them into the gallery."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in names or MAKERS:
        with tempfile.TemporaryDirectory() as folder:
            MAKERS[name](Path(folder))
            for picture in Path(folder).glob("*.png"):
                shutil.copy(picture, PICTURES / picture.name)


if __name__ == "__main__":
    main(sys.argv[1:])
