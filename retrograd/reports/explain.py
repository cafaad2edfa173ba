"""Explain each error, with a program that raises it and a corrected program: ``python -m retrograd errors``.

The explanations are in ``errors.md`` beside the exceptions.
"""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from .. import errors
from ..errors import OptionError, RetrogradError

PREAMBLE = "import numpy as np\nimport retrograd as rg\n\n"
SECTION = re.compile(r"^## (RG\d{4}) (\w+)\n(.*?)```python\n(.*?)```\n\n```python\n(.*?)```$", re.MULTILINE | re.DOTALL)


class Explanation(NamedTuple):
    """An error's name, the reason for it, a whole program that raises it, and the mended program."""

    name: str
    why: str
    wrong: str
    right: str


@lru_cache(maxsize=1)
def explanations() -> dict[str, Explanation]:
    """All explanations, by code."""
    page = resources.files("retrograd").joinpath("errors.md").read_text(encoding="utf-8")
    return {
        code: Explanation(name, " ".join(why.split()), PREAMBLE + wrong, PREAMBLE + right)
        for code, name, why, wrong, right in SECTION.findall(page)
    }


def explain(code: str) -> str:
    """The explanation for a code or the name of an error class; OptionError for any other text.

    >>> print(explain("RG0103").splitlines()[0])
    RG0103  NonScalarOutputError
    """
    known = explanations()
    found = next((c for c, e in known.items() if code.strip().lower() in (c.lower(), e.name.lower())), None)
    if found is None:
        raise OptionError(f"there is no error {code!r}", remedy=f"choose from {', '.join(known)}")
    name, why, wrong, right = known[found]
    parts = [
        f"{found}  {name}",
        textwrap.fill(why, 100),
        "This raises it:",
        textwrap.indent(wrong, "    "),
        "This does not:",
        textwrap.indent(right, "    "),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def overview() -> str:
    """The tree of all errors, as their module draws it."""
    tree = (errors.__doc__ or "").split("\n\n")[1]
    return textwrap.dedent(tree).rstrip() + "\n\npython -m retrograd errors CODE explains one of them.\n"


def codes() -> dict[str, type[RetrogradError]]:
    """The class of each code."""
    found = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, RetrogradError)]
    return {cls.code: cls for cls in found}
