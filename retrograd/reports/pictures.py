"""Curves with axes, as SVG text and as matplotlib figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

WIDTH, HEIGHT = 640, 390
LEFT, RIGHT, TOP, BOTTOM = 68, 28, 64, 56
BEYOND = 1.06, 1.12  # the lengths of the axes, as multiples of the largest values
TICKS = 6  # numbers on an axis, at most
BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))
INK, FAINT, LINE, LIMIT = "#333333", "#e4e4e4", "#1f5fa8", "#b5452c"


@dataclass(frozen=True)
class Note:
    """A few words above a point; on its left if there is more room."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Picture:
    """A curve with axes from zero.

    ``dots`` draws its points, else the area below is shaded. ``limit`` is a dashed line with a few words: upright if
    there are dots, else level.
    """

    title: str
    x: str
    y: str
    points: Sequence[tuple[float, float]]
    dots: bool = False
    notes: Sequence[Note] = ()
    limit: tuple[float, str] | None = None

    def _ends(self) -> tuple[float, float]:
        """The ends of the axes: a little beyond everything that is drawn."""
        xs, ys = [x for x, _ in self.points], [y for _, y in self.points]
        if self.limit is not None:
            (xs if self.dots else ys).append(self.limit[0])
        wide, high = BEYOND
        return (wide if self.dots else 1.0) * max(xs, default=0.0) or 1.0, high * max(ys, default=0.0) or 1.0

    def svg(self) -> str:
        """The picture as SVG text."""
        end_x, end_y = self._ends()
        wide, high, floor = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, HEIGHT - BOTTOM

        def place(x: float, y: float) -> tuple[float, float]:
            return LEFT + wide * x / end_x, floor - high * y / end_y

        size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Helvetica, Arial, sans-serif" fill="{INK}">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            _text(LEFT, 26, self.title, size=15),
        ]
        for tick in ticks(end_y):
            y = place(0, tick)[1]
            parts.append(f'<path d="M{LEFT} {y:.1f} H{WIDTH - RIGHT}" stroke="{FAINT}"/>')
            parts.append(_text(LEFT - 8, y + 4, f"{tick:g}", "end"))
        for tick in ticks(end_x):
            x = place(tick, 0)[0]
            parts += [f'<path d="M{x:.1f} {floor} v5" stroke="{INK}"/>', _text(x, floor + 20, f"{tick:g}", "middle")]
        parts += [
            f'<path d="M{LEFT} {floor} H{WIDTH - RIGHT}" stroke="{INK}"/>',
            _text(LEFT + wide / 2, HEIGHT - 12, self.x, "middle"),
            _text(18, TOP + high / 2, self.y, "middle", f'transform="rotate(-90 18 {TOP + high / 2})"'),
            *self._curve([place(*point) for point in self.points], floor),
        ]
        if self.limit is not None:
            value, words = self.limit
            x, y = place(value, value)
            way = f"M{x:.1f} {TOP - 6} V{floor}" if self.dots else f"M{LEFT} {y:.1f} H{WIDTH - RIGHT}"
            x, y, side = (x, TOP - 12, "middle") if self.dots else (LEFT + 4, y - 6, "start")
            parts.append(f'<path d="{way}" stroke="{LIMIT}" stroke-dasharray="5 4"/>')
            parts.append(_text(x, y, words, side, f'fill="{LIMIT}"'))
        for note in self.notes:
            x, y = place(note.x, note.y)
            left = note.x > end_x / 2
            x, side = (x - 6, "end") if left else (x + 6, "start")
            for paper in ('stroke="white" stroke-width="5"', ""):  # to be readable on a line, too
                parts.append(_text(x, y - 8, note.text, side, paper))
        return "\n".join([*parts, "</svg>", ""])

    def _curve(self, places: Sequence[tuple[float, float]], floor: float) -> list[str]:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        line = f'<polyline points="{path}" fill="none" stroke="{LINE}" stroke-width="1.6" stroke-linejoin="round"/>'
        if self.dots:
            return [line, *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{LINE}"/>' for x, y in places)]
        if not places:
            return []
        (first, _), (last, _) = places[0], places[-1]
        area = f'<path d="M{first:.1f} {floor} L{path} L{last:.1f} {floor} Z" fill="{LINE}" fill-opacity="0.12"/>'
        return [area, line]

    def figure(self) -> Any:
        """The picture as a matplotlib figure, which the caller may add to and save."""
        from matplotlib.figure import Figure  # heavy, and optional

        end_x, end_y = self._ends()
        figure = Figure(figsize=(6.4, 3.9), layout="constrained")
        axes = figure.subplots()
        xs, ys = [x for x, _ in self.points], [y for _, y in self.points]
        axes.plot(xs, ys, "o-" if self.dots else "-", color=LINE, linewidth=1.6, markersize=4.5, clip_on=False)
        if not self.dots:
            axes.fill_between(xs, ys, color=LINE, alpha=0.12, linewidth=0)
        beside: dict[str, Any] = {"textcoords": "offset points", "fontsize": "small"}
        if self.limit is not None:
            value, words = self.limit
            (axes.axvline if self.dots else axes.axhline)(value, color=LIMIT, linestyle="--", linewidth=1.2)
            if self.dots:
                where, kind, at, side = (value, 1.0), ("data", "axes fraction"), (0, 4), "center"
            else:
                where, kind, at, side = (0.0, value), ("axes fraction", "data"), (4, 4), "left"
            axes.annotate(words, where, at, xycoords=kind, ha=side, color=LIMIT, **beside)
        for note in self.notes:
            left = note.x > end_x / 2
            at, side = (-5 if left else 5, 6), "right" if left else "left"
            paper = {"facecolor": "white", "linewidth": 0, "pad": 1}
            axes.annotate(note.text, (note.x, note.y), at, ha=side, bbox=paper, **beside)
        axes.set_title(self.title, loc="left", pad=20)
        axes.set(xlabel=self.x, xlim=(0, end_x), xticks=ticks(end_x))
        axes.set(ylabel=self.y, ylim=(0, end_y), yticks=ticks(end_y))
        axes.grid(axis="y", color=FAINT)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        return figure


@dataclass(frozen=True)
class Drawn:
    """Plain data that has a picture."""

    def picture(self) -> Picture:
        """The picture."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data."""
        return asdict(self)

    def to_svg(self) -> str:
        """The picture as SVG."""
        return self.picture().svg()

    def figure(self) -> Any:
        """The picture as a matplotlib figure, which the caller may add to and save."""
        return self.picture().figure()

    def _repr_html_(self) -> str:
        """The picture, and the text below it, as notebooks show them."""
        shown = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in str(self))
        return f"{self.to_svg() if self.drawable else ''}<pre>{escape(shown)}</pre>"

    @property
    def drawable(self) -> bool:
        """Whether there is anything to draw."""
        return bool(self.picture().points)


def _text(x: float, y: float, text: str, anchor: str = "start", more: str = "", size: int = 12) -> str:
    attributes = " ".join(filter(None, [f'text-anchor="{anchor}" font-size="{size}"', more]))
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(shown)}</text>'


def ticks(most: float) -> list[float]:
    """At most a few numbers from zero on, 1, 2 or 5 times a power of ten apart.

    >>> ticks(64.0), ticks(3.0)
    ([0.0, 20.0, 40.0, 60.0], [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    """
    power = 10.0 ** math.floor(math.log10(most / TICKS))
    step = next(power * k for k in (1, 2, 5, 10) if most / (power * k) <= TICKS)
    return [k * step for k in range(int(most / step + 1e-9) + 1)]


def byte_unit(most: float) -> tuple[float, str]:
    """The unit in which so many bytes are a short number, and its name.

    >>> byte_unit(64e6), byte_unit(0)
    ((1000000.0, 'MB'), (1.0, 'bytes'))
    """
    return next((unit for unit in BYTES if most >= unit[0]), BYTES[-1])
