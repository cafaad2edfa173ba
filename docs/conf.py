"""Sphinx's settings. `make docs` builds the site in build/site, and fails at any warning."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes

import retrograd as rg

project = "retrograd"
author = "the retrograd developers"
project_copyright = "2026, the retrograd developers"
version = release = rg.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_static"]
root_doc = "index"

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]

autodoc_typehints = "none"  # the sections of a docstring say what an argument may be
autodoc_member_order = "bysource"
add_module_names = False
python_maximum_signature_line_length = 90
napoleon_google_docstring = False
napoleon_use_param = False  # types are words, such as "callable", which name no class
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = "retrograd"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "retrograd"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars: dict[str, list[str]] = {"index": [], "gallery": [], "glossary": [], "limits": []}


def _without_signature(_app: Any, kind: str, *_rest: Any) -> tuple[str, str] | None:
    """Users catch exceptions and do not make them, so no signature is shown."""
    return ("", "") if kind == "exception" else None


def _with_code(_app: Any, kind: str, _name: str, thing: Any, _options: Any, lines: list[str]) -> None:
    """An error has a code, and a page that explains it."""
    if kind == "exception" and thing.__module__ == rg.errors.__name__ and hasattr(thing, "code"):
        place = f"explanations.html#{thing.code.lower()}-{thing.__name__.lower()}"
        lines[:] = [*lines, "", f"`{thing.code}, explained <{place}>`__", ""]


def _named_exception(_app: Any, _env: Any, reference: Any, shown: nodes.Element) -> nodes.Element | None:
    """A docstring names an exception without its package; those of Python itself have no page here."""
    name = reference.get("reftarget", "")
    if reference.get("refdomain") != "py" or "." in name:
        return None
    for module, page in ((rg.errors, "errors"), (rg.distributed, "distributed")):
        found = getattr(module, name, None)
        if isinstance(found, type) and found.__module__.startswith(module.__name__):
            place = _app.builder.get_relative_uri(reference["refdoc"], f"reference/{page}")
            return nodes.reference("", "", shown, internal=True, refuri=f"{place}#{module.__name__}.{name}")
    return shown if name in ("ImportError", "OSError", "ValueError") else None


# Files beside the docs folder, and the pages that include them. Links between them are written for the repository.
OUTSIDE = {
    "README": "index",
    "bench/README": "benchmark",
    "CONTRIBUTING": "contributing",
    "CHANGELOG": "changelog",
    "SECURITY": "security",
}
LINK = re.compile(r"\]\(((?:\.\./|docs/)*)([\w/]+)\.md(?=[#)])")


def _inside(prefix: str, text: str) -> str:
    """The text of a page in which links to files beside the docs folder lead to their pages."""

    def target(found: re.Match[str]) -> str:
        page = OUTSIDE.get(found[2])
        if page:
            return f"]({prefix}{page}.md"
        return f"]({found[1].replace('docs/', '').replace('../', '')}{found[2]}.md" if "docs/" in found[1] else found[0]

    return LINK.sub(target, text)


def _read(_app: Any, name: str, source: list[str]) -> None:
    text = _inside("../" * name.count("/"), source[0])
    source[0] = re.sub(r"\n\n```$", "\n```", text, flags=re.MULTILINE)  # doctests end in an empty line


def _read_included(_app: Any, _path: Path, _parent: str, content: list[str]) -> None:
    content[0] = _inside("", content[0])


def setup(app: Any) -> None:
    """Connect what is above."""
    app.connect("autodoc-process-signature", _without_signature)
    app.connect("autodoc-process-docstring", _with_code)
    app.connect("missing-reference", _named_exception)
    app.connect("source-read", _read)
    app.connect("include-read", _read_included)
