"""Tables as aligned text or Markdown, and times and ratios as people read them."""

from __future__ import annotations

from collections.abc import Sequence

MISSING = "–"


def render(header: Sequence[str], rows: Sequence[Sequence[str]], *, markdown: bool) -> str:
    """The first column is flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |" if markdown else "  ".join(padded).rstrip()

    rule = [f"{'-' * (width - 1)}:" if i else "-" * width for i, width in enumerate(widths)]
    return "\n".join(map(line, [header, rule if markdown else ["-" * width for width in widths], *rows]))


def time(median: float, minimum: float | None = None) -> str:
    """Seconds in the median's unit, the minimum in brackets."""
    unit, scale = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e3)) if median * s >= 1), ("µs", 1e6))
    return f"{median * scale:.3g} {unit}" + ("" if minimum is None else f" [{minimum * scale:.3g}]")


def ratio(of_medians: float, of_minima: float) -> str:
    """The ratio of minima in brackets."""
    return f"{of_medians:.2f} [{of_minima:.2f}]"
