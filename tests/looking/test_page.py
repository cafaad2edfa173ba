"""report: the page is whole, needs no network, and works in a browser with mouse and keyboard."""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.looking.anatomy import Anatomy
from retrograd.looking.groups import Grouping
from retrograd.looking.page import as_script
from tests.support.browser import Browser, browser, needs_chromium
from tests.support.long_program import long_program

X = np.linspace(0.1, 1.0, 6)
WHOLE = 2_000_000  # bytes of a page besides its graph
OPERATION = "#graph .node"


def inner(x, a):
    y = np.sin(x * a)
    return y / np.sum(y)


def loss(x, a):
    y = inner(x, a)
    z = rg.fori_loop(10, lambda i, z: np.cos(z) * x, y, memory=rg.Snapshots(3))
    return np.sum(z**2)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return rg.grad(loss).report(tmp_path_factory.mktemp("pages") / "report.html", X, 2.0)


@pytest.fixture(scope="module")
def tab(tmp_path_factory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def data_of(page: Path) -> Any:
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_is_one_file_of_bounded_size(made):
    text = made.read_text(encoding="utf-8")
    assert len(text.encode()) - len(json.dumps(data_of(made))) < WHOLE
    assert "default-src 'none'" in text
    before_scripts = text.split('<script type="application/json"')[0]
    assert set(re.findall(r"""(?:src|href)=["']([^"']*)""", before_scripts)) == {"data:,"}


def test_operations_know_line_statement_shape_bytes_cost_and_adjoint(made):
    data = data_of(made)
    sine = next(n for n in data["nodes"] if n["op"] == "sin" and n["part"] == "forward")
    assert sine["where"].endswith(f"test_page.py:{inner.__code__.co_firstlineno + 1}")
    assert any("np.sin" in text for text in sine["statements"])
    assert sine["values"] == ["y: f64[6]"]
    assert sine["bytes"] == "48 bytes"
    assert sine["flops"] == "6"
    by_id = {n["id"]: n for n in data["nodes"]}
    assert all(by_id[n]["part"] == "adjoint" for n in sine["adjoint"])


def test_groups_are_parts_functions_lines_and_loops():
    grouping = Grouping(Anatomy(rg.grad(loss), (X, 2.0), {}))
    kinds = {g.kind for g in grouping.groups.values()}
    assert kinds == {"part", "function", "line", "loop"}
    assert {g.label.split()[0] for g in grouping.groups.values() if g.kind == "function"} == {"inner", "loss"}
    for group in grouping.groups.values():
        assert group.parent is None or group.parent in grouping.groups
        assert group.kind != "line" or len(group.members) > 1
    assert set(grouping.of) == {op.number for op in grouping.shown}


def stepped(x, a):
    for _ in range(200):
        x = 3.0 * np.sin(x * a) + 0.5
    return np.sum(x / 7.0)


@pytest.mark.parametrize("function", [loss, stepped])
def test_edges_stay_in_a_body_and_constants_stand_beside_what_reads_them(function, tmp_path):
    """A body of the adjoint may share its constants with the body of the function that it comes from."""
    data = data_of(rg.grad(function).report(tmp_path / "report.html", X, 2.0, check=False))
    by_id = {n["id"]: n for n in data["nodes"]}
    assert len(by_id) == len(data["nodes"])
    constants = [(by_id[a], by_id[b]) for a, b in data["edges"] if by_id[a]["op"] == "const"]
    assert constants
    assert all(a["part"] == b["part"] for a, b in constants)
    assert {a for a, _ in data["edges"]} >= {n["id"] for n in data["nodes"] if n["op"] == "const"}
    sizes = {g["id"]: g["size"] for g in data["groups"]}
    for group in data["groups"]:
        below = [n for n in data["nodes"] if n["group"] == group["id"]]
        assert group["size"] == len(below) + sum(sizes[g["id"]] for g in data["groups"] if g["parent"] == group["id"])


def test_constants_show_their_numbers(tmp_path):
    data = data_of(rg.grad(stepped).report(tmp_path / "report.html", X, 2.0, check=False))
    labels = {(n["label"], n["part"]) for n in data["nodes"] if n["op"] == "const"}
    assert {("3.0", "forward"), ("3.0", "adjoint"), ("0.5", "forward")} <= labels


def test_a_file_that_cannot_be_written_is_not_begun(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        rg.grad(loss).report(tmp_path / "nowhere" / "report.html", X, 2.0)
    rg.grad(loss).report(tmp_path / "report.html", X, 2.0, check=False)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_what_is_vendored_has_its_licences():
    folder = resources.files("retrograd.looking") / "page_parts" / "vendored"
    notice = (folder / "NOTICE.txt").read_text(encoding="utf-8")
    for name in re.findall(r"LICENSE\.\S+\.txt", notice):
        assert len((folder / name).read_text(encoding="utf-8")) > 5000
    assert "Apache License" in (folder / "LICENSE.wasm-graphviz.txt").read_text(encoding="utf-8")


def test_nothing_in_data_ends_its_script():
    hostile = {"a": "</script><!--", "b": "\u2028 & <script>"}
    text = as_script(hostile)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == hostile


@pytest.mark.parametrize("f", [rg.jit(loss), rg.value_and_grad(loss), rg.jacfwd(loss)], ids=["jit", "vag", "jacfwd"])
def test_other_transforms_have_pages(f, tmp_path):
    assert data_of(f.report(tmp_path / "report.html", X, 2.0))["nodes"]


def test_a_program_whose_steps_data_decide_has_a_page(tmp_path):
    f = rg.jit(lambda x: rg.while_loop(lambda y: y[0] < 5, lambda y: y + 1, x))
    assert "Data decide" in f.report(tmp_path / "report.html", X).read_text(encoding="utf-8")


@needs_chromium
def test_the_page_opens_without_errors_and_without_a_network(tab, made):
    tab.show(made)
    assert tab.errors == []
    assert {url.partition(":")[0] for url in tab.asked} == {"file"}
    assert tab.run("document.querySelectorAll('#graph .node').length") > 5
    assert tab.run("document.querySelectorAll('#curves svg').length") == 2


@needs_chromium
def test_a_click_on_an_operation_shows_all_about_it(tab, made):
    tab.show(made)
    sine = next(n for n in data_of(made)["nodes"] if n["op"] == "sin" and n["part"] == "forward")
    tab.run("document.querySelector('#levels [value=operation]').click()")
    tab.wait(f"document.querySelector('#n{sine['id']}') !== null")
    tab.click(f"#n{sine['id']}")
    detail = tab.run("document.getElementById('detail').innerText")
    for said in (sine["where"], "np.sin", "f64[6]", "48 bytes", "its adjoint", "y = np.sin(x * a)"):
        assert said in detail
    assert tab.run("document.querySelectorAll('#graph .chosen').length") == 1
    assert tab.run("document.querySelectorAll('#graph .related').length") >= 1
    assert "np.sin" in tab.run("document.querySelector('#made .lit').innerText")
    assert "np.sin" in tab.run("document.querySelector('#mine .lit').innerText")
    assert tab.errors == []


@needs_chromium
def test_groups_open_and_close(tab, made):
    tab.show(made)
    tab.run("document.querySelector('#levels [value=part]').click()")
    tab.wait("document.querySelectorAll('#graph .node').length < 6")
    few = tab.run("document.querySelectorAll('#graph .node').length")
    tab.click("#graph .node text", times=2)
    tab.wait(f"document.querySelectorAll('#graph .node').length > {few}")
    tab.click("#graph .cluster text")
    tab.wait(f"document.querySelectorAll('#graph .node').length === {few}")
    assert tab.errors == []


@needs_chromium
def test_times_are_written_with_units_that_suit_them(tab, made, tmp_path):
    slow = tmp_path / "slow.html"
    text, count = re.subn(r'"spent": ?[0-9.e-]+', '"spent": 0.00672', made.read_text(encoding="utf-8"))
    slow.write_text(text, encoding="utf-8")
    tab.show(slow)
    shown = tab.run("Array.from(document.querySelectorAll('.listing .spent')).map((x) => x.innerText).join(';')")
    times = {time for time in shown.split(";") if time}
    assert count
    assert times
    assert times <= {f"{k * 6.72:.{2 if k == 1 else 1 if k < 15 else 0}f} ms" for k in range(1, 100)}


@needs_chromium
def test_the_keyboard_is_enough(tab, made):
    tab.show(made)
    tab.run("document.querySelector('#levels [value=operation]').click()")
    tab.wait("document.querySelectorAll('#graph .cluster').length > 3")
    tab.run("document.querySelector('#graph .node').focus()")
    before = tab.run("document.activeElement.id")
    tab.press("Tab")
    assert tab.run("document.activeElement.id") != before
    tab.press("Enter", "\r")
    assert tab.run("document.querySelector('#graph .chosen').id") == tab.run("document.activeElement.id")
    assert tab.run("document.activeElement.getAttribute('aria-label')")
    tab.press("/", "/")
    assert tab.run("document.activeElement.id") == "search"
    for letter in "tanh sin":
        tab.press(letter, letter)
    assert tab.run("document.getElementById('found').innerText") == "0 operations"
    tab.press("Escape")
    assert tab.run("document.getElementById('search').value") == ""


@needs_chromium
def test_search_finds_by_line_and_shows_what_was_found(tab, made):
    tab.show(made)
    tab.run("document.querySelector('#levels [value=part]').click()")
    tab.run("document.getElementById('search').focus()")
    for letter in "np.sin(x":
        tab.press(letter, letter)
    assert tab.run("document.querySelectorAll('#found button').length") >= 2
    tab.press("Enter", "\r")
    assert "np.sin(x * a)" in tab.run("document.getElementById('detail').innerText")
    assert tab.run("document.querySelectorAll('#graph .chosen').length") == 1  # the closed group that holds it


@needs_chromium
def test_dark_mode_has_dark_paper_and_light_ink(tab, made):
    def brightness(of, name):
        colour = tab.run(f"getComputedStyle(document.querySelector({json.dumps(of)})).{name}")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    for dark in (False, True):
        tab.show(made, dark=dark)
        paper, ink = brightness("body", "backgroundColor"), brightness("body", "color")
        assert (paper < ink) == dark
        shape = brightness("#graph .node path, #graph .node polygon", "fill")
        assert abs(shape - brightness("#graph .node text", "fill")) > 200
        assert abs(brightness("#curves text", "fill") - paper) > 300


@needs_chromium
@pytest.mark.parametrize("width", [800, 1600])
def test_nothing_is_wider_than_the_window(tab, made, width):
    tab.show(made, width=width)
    assert tab.run("document.documentElement.scrollWidth") <= width


def many_lines(n: int) -> Any:
    """A function of so many lines that none waits for another, so that its drawing is wide."""
    lines = ["def wide(x):", *(f"    v{k} = np.sin(x * 1.{k:03}) * x + np.cos(x)" for k in range(1, n + 1))]
    source = "\n".join([*lines, f"    return np.sum({' * '.join(f'v{k}' for k in range(1, n + 1))})", ""])
    scope: dict[str, Any] = {"np": np}
    file = f"/programs/wide_{n}.py"
    exec(compile(source, file, "exec"), scope)
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    return scope["wide"]


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Path:
    return rg.grad(many_lines(24)).report(tmp_path_factory.mktemp("wide") / "report.html", X, check=False)


def boxes(tab: Browser) -> dict[str, list[float]]:
    """Of the box of the graph, and of all its shapes: left, top, right, bottom."""
    found = tab.run(
        "(() => { const of = (e) => { const r = e.getBoundingClientRect();"
        " return [r.left, r.top, r.right, r.bottom]; }; return { pane: of(document.getElementById('graph')), shapes:"
        " [...document.querySelectorAll('#graph .node, #graph .cluster')].map(of) }; })()"
    )
    left, top, right, bottom = zip(*found["shapes"], strict=True)
    return {"pane": found["pane"], "shapes": [min(left), min(top), max(right), max(bottom)]}


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [800, 1600])
def test_a_wide_graph_is_seen_whole_at_first(tab, wide, width, dark):
    tab.show(wide, width=width, dark=dark)
    assert tab.run("document.querySelectorAll('#graph .node.adjoint').length") > 10
    for _ in range(2):
        found = boxes(tab)
        pane, shapes = found["pane"], found["shapes"]
        assert pane[0] <= shapes[0] <= shapes[2] <= pane[2]
        assert pane[1] <= shapes[1] <= shapes[3] <= pane[3]
        tab.run("document.getElementById('in').click()")
        tab.run("document.getElementById('fit').click()")
    assert max((shapes[2] - shapes[0]) / (pane[2] - pane[0]), (shapes[3] - shapes[1]) / (pane[3] - pane[1])) > 0.7
    assert tab.errors == []


@needs_chromium
def test_what_is_larger_than_the_box_can_be_scrolled_to(tab, wide):
    tab.show(wide, width=800)
    for _ in range(8):
        tab.run("document.getElementById('in').click()")
    found = boxes(tab)
    assert found["shapes"][2] - found["shapes"][0] > 2 * (found["pane"][2] - found["pane"][0])
    tab.run("document.getElementById('graph').scrollTo(0, 0)")
    found = boxes(tab)
    assert all(p <= s for p, s in zip(found["pane"][:2], found["shapes"][:2], strict=True))
    tab.run("document.getElementById('graph').scrollTo(1e6, 1e6)")
    found = boxes(tab)
    assert all(s <= p for p, s in zip(found["pane"][2:], found["shapes"][2:], strict=True))
    assert tab.run("document.documentElement.scrollWidth") <= 800


@needs_chromium
def test_the_mouse_drags_the_drawing_and_the_wheel_zooms(tab, wide):
    def mouse(kind: str, x: float, y: float, **more: Any) -> None:
        tab.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    tab.show(wide, width=800)
    tab.run("document.getElementById('graph').scrollIntoView({block: 'center'})")
    pane = boxes(tab)["pane"]
    x, y = (pane[0] + pane[2]) / 2, (pane[1] + pane[3]) / 2
    before = boxes(tab)["shapes"]
    for _ in range(6):
        mouse("mouseWheel", x, y, deltaX=0, deltaY=-100, modifiers=2)
    tab.wait(f"document.querySelector('#graph svg').getBoundingClientRect().width > {2 * (before[2] - before[0])}")
    begun = boxes(tab)["shapes"]
    mouse("mousePressed", x, y, button="left", clickCount=1)
    mouse("mouseMoved", x - 60, y - 40, button="left", buttons=1)
    mouse("mouseReleased", x - 60, y - 40, button="left", clickCount=1)
    ended = boxes(tab)["shapes"]
    assert [b - a for a, b in zip(begun, ended, strict=True)] == pytest.approx([-60, -40, -60, -40], abs=1.5)
    assert tab.run("document.querySelectorAll('#graph .chosen').length") == 0  # a drag is no click


@needs_chromium
def test_what_is_found_is_large_enough_to_read(tab, wide):
    tab.show(wide, width=800)
    tab.run("document.querySelector('#made .linked').click()")
    height = tab.run("document.querySelector('#graph .chosen text').getBoundingClientRect().height")
    assert height > 6
    inside = (
        "(() => { const p = document.getElementById('graph').getBoundingClientRect(),"
        " r = document.querySelector('#graph .chosen').getBoundingClientRect();"
        " return p.left <= r.left && r.right <= p.right && p.top <= r.top && r.bottom <= p.bottom; })()"
    )
    assert tab.run(inside)


@needs_chromium
def test_hostile_names_are_inert(tab, tmp_path):
    evil = "<img src=x onerror=alert(1)></script><script>alert(2)</script>\"'\\N\\l{{7*7}}"
    source = f"def f(x):\n    y = np.sin(x)  # {evil}\n    return np.sum(y * y)\n"
    file = f"/tmp/{evil}.py"
    scope: dict[str, Any] = {"np": np}
    exec(compile(source, file, "exec"), scope)
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope["f"].__name__ = scope["f"].__qualname__ = evil
    page = rg.grad(scope["f"]).report(tmp_path / "report.html", X)
    tab.show(page)
    tab.run("document.querySelector('#levels [value=operation]').click()")
    tab.click(OPERATION)
    assert tab.errors == []
    assert tab.run("document.querySelectorAll('img').length") == 0
    assert tab.run("document.querySelectorAll('script').length") == 3
    assert evil[:20] in tab.run("document.querySelector('h1').innerText")
    assert evil in tab.run("document.getElementById('mine').innerText")


@needs_chromium
def test_five_hundred_operations_are_drawn_one_by_one(tab, tmp_path):
    page = rg.grad(long_program(42)).report(tmp_path / "report.html", X, check=False)
    count = len(data_of(page)["nodes"])
    assert 500 < count < 700
    tab.show(page)
    assert tab.run("document.querySelectorAll('#graph .node').length") < 240  # lines, at first
    tab.run("document.querySelector('#levels [value=operation]').click()")
    tab.wait(f"document.querySelectorAll('#graph .node').length === {count}")
    assert tab.errors == []


@needs_chromium
@pytest.mark.slow
def test_five_thousand_operations_are_drawn_in_groups(tab, tmp_path):
    page = rg.grad(long_program(600)).report(tmp_path / "report.html", X, check=False)
    assert len(data_of(page)["nodes"]) > 5000
    tab.show(page)
    assert tab.run("document.querySelectorAll('#graph .node').length") < 240
    tab.run("document.querySelector('#levels [value=operation]').click()")
    tab.wait("document.getElementById('state').textContent.includes('too many')")
    assert tab.run("document.querySelectorAll('#graph .node').length") < 240  # what was drawn stays
    assert tab.errors == []
