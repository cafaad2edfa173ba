"""Files stay short, and whatever silences a tool says why."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_FILE = 400

IGNORED_RULE = re.compile(r'^ +"[A-Z]+\d+"', re.MULTILINE)
IGNORED_RULE_WITH_REASON = re.compile(r'^ +"[A-Z]+\d+", +# \S', re.MULTILINE)
SUPPRESSION = re.compile(r"# *(?:noqa|type: *ignore|pragma: *no cover)\b")
SUPPRESSION_WITH_REASON = re.compile(
    r"# (?:noqa: [A-Z]+\d+(?:, [A-Z]+\d+)*|type: ignore\[[\w, -]+\]|pragma: no cover) +(?:# |- )\S"
)


def suppressions_without_reason(text: str) -> list[str]:
    return [line for line in text.splitlines() if SUPPRESSION.search(line) and not SUPPRESSION_WITH_REASON.search(line)]


def test_no_file_is_long():
    lengths = {path.relative_to(ROOT): path.read_text().count("\n") for path in (ROOT / "retrograd").rglob("*.py")}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_every_ignored_rule_has_its_reason():
    config = (ROOT / "pyproject.toml").read_text()
    ignores = config[config.index("\nignore = [") : config.index("\n[tool.ruff.lint.flake8-tidy-imports]")]
    rules = IGNORED_RULE.findall(ignores)
    assert rules
    assert len(IGNORED_RULE_WITH_REASON.findall(ignores)) == len(rules)


def test_every_suppression_has_its_reason():
    silent = {
        path.relative_to(ROOT): lines
        for path in (ROOT / "retrograd").rglob("*.py")
        if (lines := suppressions_without_reason(path.read_text()))
    }
    assert silent == {}


@pytest.mark.parametrize(
    ("line", "has_reason"),
    [
        ("exec(code)  # noqa: S102 - the text has passed the allowlist", True),
        ("exec(code)  # noqa: S102, BLE001 - the text has passed the allowlist", True),
        ("return x  # type: ignore[no-any-return]  # NumPy's stubs forget the dtype", True),
        ("exec(code)  # noqa: S102", False),
        ("exec(code)  # noqa", False),
        ("return x  # type: ignore[no-any-return]", False),
        ("return x  # an ordinary comment", True),
    ],
)
def test_the_form_of_a_reason(line, has_reason):
    assert (suppressions_without_reason(line) == []) == has_reason
