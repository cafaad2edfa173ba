"""What a notebook shows: pictures and tables, lines of cells by their numbers, and tracebacks without inner frames."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.parser import parse
from retrograd.ir.printer import to_text
from retrograd.looking.notebook import DRAWN, SourceText, drawing, highlighted
from retrograd.where import Where

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(ROOT.glob("examples/*.ipynb"))
X = np.linspace(0.1, 1.0, 4)


def loss(x, a):
    y = np.sin(x) * a
    return np.sum(y**2)


def executed(*cells: str, allow_errors: bool = False) -> list[Any]:
    """The outputs of each cell of a new notebook."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=allow_errors).execute()
    return [cell.outputs for cell in notebook.cells]


def plain(outputs: Any) -> str:
    """The text of outputs and errors, without colours."""
    parts = [line for o in outputs for line in [*o.get("traceback", ()), o.get("text", "")]]
    parts += [o["data"]["text/plain"] for o in outputs if "data" in o]
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(parts))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_run_and_show_html(path):
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [o["data"] for cell in notebook.cells for o in cell.get("outputs", ()) if "data" in o]
    html = [data["text/html"] for data in shown if "text/html" in data]
    assert len(html) >= 6
    assert sum("<svg" in text for text in html) >= 2
    assert any("Cell [2], line 4" in text for text in html)
    (fault,) = (o for cell in notebook.cells for o in cell.get("outputs", ()) if o["output_type"] == "error")
    assert fault["ename"] == "TracerConversionError"
    assert "/retrograd/" not in plain([fault])


def test_lines_of_cells_are_called_after_the_cell():
    outputs = executed(
        "import numpy as np, retrograd as rg",
        """
        def f(x):
            return np.sum(np.sin(x))
        """,
        "print(rg.grad(f).source(np.ones(2)))",
        "print(rg.grad(f).graph(np.ones(2)))",
        """
        with rg.config(verify=2):
            print(rg.grad(lambda x: np.sum(np.cos(x)))(np.ones(2)))
        """,
        """
        try:
            rg.grad(lambda x: float(x) + x * np.load(x))(1.0)
        except rg.RetrogradError as fault:
            print(fault)
        """,
    )
    assert "# Cell [2], line 2" in plain(outputs[2])
    assert "# Cell [2], line 2" in plain(outputs[3])
    assert "[-0.84" in plain(outputs[4])
    assert "at Cell [6], line 2" in plain(outputs[5])


def test_errors_in_cells_show_the_cells_frames_and_the_rest_on_request():
    outputs = executed(
        "import numpy as np, retrograd as rg",
        """
        def inner(x):
            return np.load(x)

        def f(x):
            return inner(x)
        """,
        "rg.grad(f)(1.0)",
        "rg.config.traceback = 'full'",
        "rg.grad(f)(1.0)",
        "1 / 0",
        allow_errors=True,
    )
    short, whole = plain(outputs[2]), plain(outputs[4])
    assert "return inner(x)" in short
    assert "/retrograd/" not in short
    assert "frames of retrograd not shown" in short
    assert "/retrograd/" in whole
    assert "not shown" not in whole
    assert "ZeroDivisionError" in plain(outputs[5])


def in_a_process(program: str) -> str:
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    return run.stderr


PROGRAM = """
import numpy as np, retrograd as rg
def f(x):
    raise ValueError("mine") from KeyError("deeper")
rg.config.traceback = {choice!r}
rg.grad(f)(1.0)
"""


def test_a_terminal_shows_the_users_frames_and_the_chain():
    said = in_a_process(PROGRAM.format(choice="user"))
    assert "/retrograd/" not in said
    assert "ValueError: mine" in said
    assert "KeyError: 'deeper'" in said
    assert 'File "<string>", line 6' in said
    assert 'File "<string>", line 4, in f' in said
    assert "rg.config.traceback = 'full'" in said


def test_all_frames_are_shown_on_request():
    assert "/retrograd/" in in_a_process(PROGRAM.format(choice="full"))


def test_a_hook_that_others_have_set_stays():
    program = "import sys; sys.excepthook = mine = lambda *_: print('mine', file=sys.stderr)\nimport retrograd\n1 / 0"
    assert in_a_process(program) == "mine\n"


def test_an_error_without_frames_of_ours_is_shown_as_python_does():
    assert in_a_process("import retrograd\n1 / 0").rstrip().endswith("ZeroDivisionError: division by zero")


def test_the_setting_takes_two_values():
    with pytest.raises(rg.errors.OptionError, match="choose from 'user', 'full'"):
        rg.config.traceback = "none"
    assert rg.config.traceback == "user"
    f = rg.jit(np.sin)
    f(1.0)
    rg.config.traceback = "full"
    try:
        f(1.0)
        assert f.cache_info().misses == 1  # it is part of no key
    finally:
        rg.config.traceback = "user"


def test_a_graph_is_drawn_with_every_operation_once():
    graph = rg.grad(loss).graph(X, 2.0)
    svg = ET.fromstring(drawing(graph))
    boxes = svg.findall("{http://www.w3.org/2000/svg}rect")
    assert len(boxes) == len(graph.nodes) + len(graph.inputs) + len(graph.outputs)
    places = {(box.get("x"), box.get("y")) for box in boxes}
    assert len(places) == len(boxes)  # none hides another one


def test_a_large_graph_is_text():
    def long(x):
        for choice in np.random.default_rng(0).integers(0, 5, DRAWN):
            x = (np.sin, np.cos, np.tanh, np.arctan, np.exp)[choice](x)
        return np.sum(x)

    shown = rg.grad(long).graph(X)._repr_html_()
    assert "<svg" not in shown
    assert "<pre>graph long_grad" in shown


def test_a_source_is_text_and_two_columns():
    source = rg.grad(loss).source(X, 2.0)
    assert isinstance(source, str)
    exec(source, {})
    shown = source._repr_html_()
    assert highlighted("y = np.sin(x) * a") in shown
    assert "test_notebook.py" in shown


def test_a_source_with_constants_keeps_its_lines():
    def weighted(x):
        for k in range(120):
            x = np.sin(x) * (1.0 + 0.25 * k * k)
        return np.sum(x)

    source = rg.grad(weighted).source(X)
    text = source.splitlines()
    assert "constant_" in source  # numbers of all steps stand in the module
    for number, where in source.lines.items():
        assert text[number - 1].rstrip().endswith(where.short)


def test_html_is_inert():
    source = SourceText("x = '<script>alert(1)</script>'\n")
    source.lines = {1: Where("</td><img src=x>.py", 1)}
    graph = rg.grad(loss).graph(X, 2.0)
    graph.nodes[0].outputs[0].hint = "<script>"
    for shown in (source._repr_html_(), graph._repr_html_()):
        assert "<script" not in shown
        assert "<img" not in shown


@pytest.mark.parametrize("make", [rg.grad, rg.jit, lambda f: rg.vmap(f, in_axes=(0, None))])
def test_compiled_functions_show_their_signatures(make):
    f = make(loss)
    assert "none" in f._repr_html_()
    if "vmap" not in repr(f):
        f(X, 2.0)
        assert "x: f64[4], a: float" in f._repr_html_()


def test_reports_show_picture_and_text():
    f = rg.grad(loss)
    for found in (f.plan(X, 2.0), f.tradeoff(X, 2.0)):
        shown = found._repr_html_()
        assert "<svg" in shown
        assert "<pre>loss_grad" in shown
    undecided = rg.grad(lambda x: np.sum(rg.while_loop(lambda y: y[0] < 5, lambda y: y * y + 1, x))).plan(X)
    assert undecided.peak_bytes is None
    assert "<svg" not in undecided._repr_html_()


def test_text_of_graphs_with_cells_is_read_back():
    text = "graph f(%x: f64) {\n  %0 = sin %x : f64  # Cell [3], line 2\n  return %0\n}\n"
    assert to_text(parse(text)) == text
