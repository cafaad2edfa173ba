"""Tables with titles, as text and as HTML in which everything that comes from users is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .amounts import printable, table

# Colours follow those of the page that shows them, so that a dark notebook stays dark.
STYLE = """
.rg{font:13px/1.45 system-ui,sans-serif;max-width:100%;overflow-x:auto}
.rg h4{margin:.2em 0}.rg summary{cursor:pointer;font-weight:600}
.rg table{border-collapse:collapse;margin:.3em 0 .8em}
.rg td,.rg th{padding:.1em .7em;text-align:right;white-space:pre;border:0;background:none;color:inherit}
.rg td.l,.rg th.l{text-align:left}.rg td{font:12px/1.4 ui-monospace,monospace}
.rg tr+tr{border-top:1px solid color-mix(in srgb,currentColor 15%,transparent)}
.rg pre{font:12px/1.4 ui-monospace,monospace;margin:.3em 0}
"""


@dataclass(frozen=True)
class Section:
    """A table with a title. ``plain`` ones are lines of text; of more than ``most`` rows, the first are shown."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    left: frozenset[int] = frozenset({0})
    most: int | None = None
    rest: str = ""
    plain: bool = False

    @property
    def shown(self) -> list[list[str]]:
        """The rows that are shown, printable."""
        return [[printable(cell) for cell in row] for row in self.rows[: self.most]]

    def text(self) -> list[str]:
        """The rows as lines of text."""
        rest = [f"  {self.rest}"] if self.rest else []
        if self.plain:
            return [*(f"  {row[0]}" for row in self.shown), *rest]
        if not self.rows:
            return rest or ["  none"]
        lines = table(self.head, self.shown, self.left)
        return [*(lines if any(self.head) else lines[1:]), *rest]

    def html(self) -> str:
        """The rows as HTML."""
        rest = f"<p>{escape(self.rest)}</p>" if self.rest else ""
        if self.plain:
            return f"<pre>{escape(chr(10).join(row[0] for row in self.shown))}</pre>{rest}"
        if not self.rows:
            return rest or "<p>none</p>"
        head = f"<tr>{self._cells(self.head, 'th')}</tr>" if any(self.head) else ""
        body = "".join(f"<tr>{self._cells(row, 'td')}</tr>" for row in self.shown)
        return f"<table>{head}{body}</table>{rest}"

    def _cells(self, row: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=l' if k in self.left else ''}>{escape(cell)}</{tag}>" for k, cell in enumerate(row)
        )


def page_of(name: str, headline: str, sections: Sequence[Section]) -> str:
    """Sections that fold, below a headline; the first ones are open."""
    parts = [
        f"<details{' open' if k < 3 else ''}><summary>{escape(s.title)}</summary>{s.html()}</details>"
        for k, s in enumerate(sections)
    ]
    title = f"<h4>{escape(printable(name))}</h4><div>{escape(headline)}</div>"
    return f'<div class="rg"><style>{STYLE}</style>{title}{"".join(parts)}</div>'
