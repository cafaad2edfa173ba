"""Curves, as SVG text and as matplotlib figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 80, 20, 40, 50
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def curve_svg(title: str, x: str, y: str, points: Sequence[tuple[float, float]], *, line: bool = False) -> str:
    """A curve with axes from zero, three numbers on each, and dots at the points unless it is a plain line."""
    most_x = max((p for p, _ in points), default=0.0) or 1.0
    most_y = max((q for _, q in points), default=0.0) or 1.0
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    places = [(LEFT + wide * p / most_x, HEIGHT - BOTTOM - high * q / most_y) for p, q in points]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-size="12">',
        "<style>text { font-family: Helvetica, sans-serif }</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="22" text-anchor="middle" font-size="14">{escape(title)}</text>',
        f'<path d="M{LEFT} {TOP} V{HEIGHT - BOTTOM} H{WIDTH - RIGHT}" fill="none" stroke="#444"/>',
    ]
    for part in (0.0, 0.5, 1.0):
        px, py = LEFT + wide * part, HEIGHT - BOTTOM - high * part
        parts.append(
            f'<text x="{px:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{short(most_x * part)}</text>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{py + 4:.1f}" text-anchor="end">{short(most_y * part)}</text>')
    parts.append(f'<text x="{LEFT + wide / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x)}</text>')
    turn = f'transform="rotate(-90 16 {TOP + high / 2})"'
    parts.append(f'<text x="16" y="{TOP + high / 2}" text-anchor="middle" {turn}>{escape(y)}</text>')
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
    parts.append(f'<polyline points="{path}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>')
    if not line:
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" fill="#1f5fa8"/>' for px, py in places]
    return "\n".join([*parts, "</svg>", ""])


def short(number: float) -> str:
    """A number with the unit that leaves it short.

    >>> short(0.0), short(1500.0), short(64e6)
    ('0', '1.5 k', '64 M')
    """
    scale, unit = next(((s, u) for s, u in UNITS if abs(number) >= s), (1.0, ""))
    return f"{number / scale:.3g} {unit}".strip()


def figure_of(title: str, x: str, y: str, points: Sequence[tuple[float, float]], *, line: bool = False) -> Any:
    """The same as a matplotlib figure, which the caller may add to and save."""
    from matplotlib.figure import Figure  # heavy, and optional
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot([p for p, _ in points], [q for _, q in points], "-" if line else "o-", color="#1f5fa8", clip_on=False)
    axes.set(title=title, xlabel=x, ylabel=y, xlim=(0, None), ylim=(0, None))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(EngFormatter(sep=" "))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
