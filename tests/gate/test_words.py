"""Pages and messages use the field's terms: private words, and sentences that begin with a riddle, do not come back."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import retrograd as rg

pytestmark = pytest.mark.whole  # every page in each run
ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *sorted(ROOT.glob("docs/**/*.md")),
    ROOT / "bench" / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "retrograd" / "errors.md",
]
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`[^`]+`|\]\([^)]*\)")

# What is not written, and the term of the field.
PRIVATE = {
    r"lanes?": "batch element",
    r"recordings?": "trace",
    r"(?<!two )(?<!other )ways": "paths",
    r"(?:goes|go|went) (?:an)?other ways?": "follows another path",
    r"rooms?": "package",
    r"house": "package, code",
    r"doors?": "public function, API",
    r"fronts?(?! of\b)": "API",
    r"wings?(?! *\|)": "extension",
    r"clos(?:es?|ed|ing) over": "captures",
    r"hand(?:s|ed|ing)? (?:over|on|out|back)": "passes, returns",
    r"anew": "again",
    r"texts": "text, strings, code",
    r"kin": "similar functions",
    r"laid open": "inlined",
    r"(?<!there )(?:is|are) no (?!longer\b|larger\b|more\b|better\b)": "is not a",
}
WORDS = re.compile(r"\b(?:" + "|".join(PRIVATE) + r")\b", re.IGNORECASE)
MESSAGE_WORDS = re.compile(
    r"\b(?:" + "|".join(p for p in PRIVATE if p not in ("texts", "anew")) + r")\b", re.IGNORECASE
)
FRONTED = re.compile(r"(?:(?<=[.:] )|^)(?:What|Who|Whoever|Whatever)\b[^.?|#]*\.", re.MULTILINE)


CODE = ("<", "def ", ".", '"')  # how texts begin that are no sentences: HTML, source, CSS


def prose(page: str) -> str:
    """A page without its code."""
    return QUOTED.sub("", FENCED.sub("", page))


def private_words(text: str) -> list[str]:
    """The private words of a text."""
    return [found.group(0).lower() for found in WORDS.finditer(text)]


def riddles(text: str) -> list[str]:
    """Sentences that begin with a relative clause; headings and questions may."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith(("#", "|")))
    return [found.group(0) for found in FRONTED.finditer(lines)]


def public() -> Iterator[tuple[str, str]]:
    """The public names, and members of public classes, with their docstrings."""
    for package in (rg, rg.errors, rg.functions, rg.eager, rg.nn, rg.optim, rg.distributed, rg.progress, rg.tree):
        for name in dir(package):
            thing = getattr(package, name)
            inner = [(f"{name}.{m}", getattr(thing, m)) for m in dir(thing)] if inspect.isclass(thing) else []
            for label, found in [(name, thing), *inner]:
                text = inspect.getdoc(found) if getattr(found, "__module__", "") is not None else None
                if (
                    text
                    and str(getattr(found, "__module__", "")).startswith("retrograd")
                    and not label.rpartition(".")[2].startswith("_")
                ):
                    yield label, text


def sentences(source: str) -> Iterator[str]:
    """The constant texts of a module that may be shown to a user: more than one word, and no docstring."""
    tree = ast.parse(source)
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in silent else None
        if isinstance(text, str) and " " in text.strip() and not text.lstrip().startswith(CODE):
            yield text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_the_terms_of_the_field(page: Path) -> None:
    text = prose(page.read_text(encoding="utf-8"))
    assert private_words(text) == [], f"write instead: {PRIVATE}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_begin_with_their_subject(page: Path) -> None:
    assert riddles(prose(page.read_text(encoding="utf-8"))) == []


def test_messages_use_the_terms_of_the_field() -> None:
    found = {
        (str(path.relative_to(ROOT)), text)
        for path in sorted((ROOT / "retrograd").rglob("*.py"))
        for text in sentences(path.read_text(encoding="utf-8"))
        if MESSAGE_WORDS.search(text)
    }
    assert found == set()


def test_docstrings_use_the_terms_of_the_field() -> None:
    found = dict(public())
    assert len(found) > 150
    assert {name: private_words(text) for name, text in found.items() if private_words(text)} == {}
    assert {name: riddles(text) for name, text in found.items() if riddles(text)} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Each lane has its own recording.", ["lane", "recording"]),
        ("The function goes another way here.", ["goes another way"]),
        ("A function that closes over `lanes` is no lens.", ["closes over", "is no "]),
        ("There is no tape, and it is no longer needed.", []),
        ("The batch element in front of the others; see [it](house.md).", []),
        ("```\nlanes\n```\nOne path.", []),
    ],
)
def test_private_words_are_found(text: str, found: list[str]) -> None:
    assert private_words(prose(text)) == found


def test_riddles_are_found() -> None:
    text = "# What it costs\nIt is slow. What it does is quick.\n\nWho reads this, knows. What runs? This: a page.\n"
    assert riddles(text) == ["What it does is quick.", "Who reads this, knows."]


def test_messages_are_found() -> None:
    source = '"""A lane."""\ndef f(x):\n    """A lane."""\n    raise ValueError(f"{x} lanes", remedy="two lanes")\n'
    assert list(sentences(source)) == ["two lanes"]
    assert list(sentences('raise ValueError(f"{x} lanes differ")')) == [" lanes differ"]
