"""Charts as SVG in the page's colours: `class` names are those of its style sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

WIDTH, HEIGHT = 400, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 390, 22, 190

_HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="hatch-ground" width="6" height="6"/><line class="hatch-line" x1="0" y1="0" x2="0" y2="6"/>'
    "</pattern></defs>"
)


class Chart:
    """A chart under construction; places are given in its own units.

    Args:
        across, upward: ranges of the two axes.
        marks: where the vertical axis has lines and numbers, below 0 without a sign; `number` writes them.
        ticks: where the horizontal axis has numbers.
    """

    def __init__(
        self,
        horizontal: str,
        vertical: str,
        across: tuple[float, float],
        upward: tuple[float, float],
        *,
        marks: Iterable[float],
        ticks: Iterable[float],
        number: str = "{:,.0f}",
    ) -> None:
        self.across, self.upward, self.parts = across, upward, list[str]()
        for mark in marks:
            y = self.y(mark)
            self.line((LEFT, y), (RIGHT, y), "axis" if mark == 0 else "gridline")
            self.text(LEFT - 6, y + 4, number.format(abs(mark)), "end")
        for tick in ticks:
            self.text(self.x(tick), BOTTOM + 16, f"{tick:g}", "middle")
        self.text((LEFT + RIGHT) / 2, HEIGHT - 6, horizontal, "middle")
        self.text(4, 12, vertical)

    def x(self, value: float) -> float:
        low, high = self.across
        return LEFT + (RIGHT - LEFT) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self.upward
        return BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low)

    def text(self, x: float, y: float, words: str, anchor: str = "start") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>')

    def line(self, start: tuple[float, float], end: tuple[float, float], look: str) -> None:
        (x1, y1), (x2, y2) = start, end
        self.parts.append(f'<line class="{look}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def box(self, x: float, y: float, width: float, height: float, look: str) -> None:
        self.parts.append(
            f'<rect class="{look}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(0.0, height):.1f}"/>'
        )

    def curve(self, points: Sequence[tuple[float, float]], look: str) -> None:
        places = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<polyline class="{look}" points="{places}"/>')

    def dot(self, x: float, y: float, radius: float, look: str = "dot") -> None:
        self.parts.append(f'<circle class="{look}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius:.1f}"/>')

    def drawn(self, said: str) -> Markup:
        """The element; `said` is what those hear who do not see it."""
        return svg(self.parts, said)


def svg(parts: Iterable[str], said: str, *, height: int = HEIGHT) -> Markup:
    inside = "".join(parts)
    hatch = _HATCH if "flagged" in inside else ""
    return Markup(f'<svg role="img" aria-label="{escape(said)}" viewBox="0 0 {WIDTH} {height}">{hatch}{inside}</svg>')


def nice_top(largest: float) -> float:
    """The next number of 1, 2, 4 or 8 times a power of ten: its quarters read well."""
    power = 10 ** (len(str(max(1, int(largest)))) - 1)
    return float(next(step * power for step in (1, 2, 4, 8, 10, 20) if step * power >= largest))


def quarters(top: float) -> list[float]:
    return [top * quarter / 4 for quarter in range(5)]
