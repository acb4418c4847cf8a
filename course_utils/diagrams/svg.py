"""Boxes, arrows and words as SVG: what the diagrams are put together from.

A diagram stands on a light card of its own, so that it reads the same on a light page, on a dark one and in print.
No meaning rests on a colour alone: what is coloured is also named.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

Point = tuple[float, float]

# Fills by role; dark text on each has a contrast above 9:1.
FILLS = {
    "query": "#fde2b8",
    "key": "#cfe6f7",
    "value": "#c9ecdd",
    "weight": "#f4d3e4",
    "operation": "#f3f3f3",
    "layer": "#e3e6f7",
    "token": "#ffffff",
    "faded": "#fafafa",
}
INK, PALE = "#1d1d1f", "#8a8a8e"
_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass
class Drawing:
    """An SVG that grows by what is added to it; places and sizes in its own units, of which 1 is a pixel at full size.

    Attributes:
        name: in lower case, unique on a page.
        title: a few words.
        description: what it shows, for readers who cannot see it.
        width: of the drawing.
        height: of the drawing.
    """

    name: str
    title: str
    description: str
    width: float
    height: float
    _parts: list[str] = field(default_factory=list)

    def box(
        self, centre: Point, text: str, role: str = "operation", width: float = 110, height: float = 34, **style
    ) -> None:
        """A rounded box with a text in its middle; lines of the text are separated by newlines."""
        x, y = centre
        dashed = ' stroke-dasharray="5 4"' if role == "faded" else ""
        outline = PALE if role == "faded" else INK
        self._parts.append(
            f'<rect x="{_n(x - width / 2)}" y="{_n(y - height / 2)}" width="{_n(width)}" height="{_n(height)}" rx="6" '
            f'fill="{FILLS[role]}" stroke="{outline}" stroke-width="1.3"{dashed}/>'
        )
        self.text(centre, text, colour="#5b5b60" if role == "faded" else INK, **style)

    def frame(self, corner: Point, width: float, height: float, fill: str = "none", colour: str = PALE) -> None:
        """A rounded frame around other things; draw it before them."""
        self._parts.append(
            f'<rect x="{_n(corner[0])}" y="{_n(corner[1])}" width="{_n(width)}" height="{_n(height)}" rx="10" '
            f'fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
        )

    def text(
        self,
        centre: Point,
        text: str,
        size: float = 15,
        anchor: str = "middle",
        bold: bool = False,
        italic: bool = False,
        colour: str = INK,
    ) -> None:
        """Words around a point (or from it, with the anchor "start"; up to it, with "end")."""
        lines = text.split("\n")
        weight = ' font-weight="600"' if bold else ""
        slant = ' font-style="italic"' if italic else ""
        for number, line in enumerate(lines):
            y = centre[1] + (number - (len(lines) - 1) / 2) * size * 1.2 + size * 0.35
            self._parts.append(
                f'<text x="{_n(centre[0])}" y="{_n(y)}" font-size="{_n(size)}" text-anchor="{anchor}" '
                f'fill="{colour}"{weight}{slant}>{escape(line)}</text>'
            )

    def line(
        self,
        points: Sequence[Point],
        *,
        head: bool = True,
        width: float = 1.5,
        colour: str = INK,
        dashed: bool = False,
    ) -> None:
        """A line through points, with an arrow's head at its end."""
        path = "M" + " L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        self._stroke(path, head, width, colour, dashed)

    def curve(self, start: Point, bend: Point, end: Point, *, width: float = 1.5, colour: str = INK) -> None:
        """A curved line without a head that leaves its start towards a bend and comes from there to its end."""
        path = f"M{_n(start[0])} {_n(start[1])} Q{_n(bend[0])} {_n(bend[1])} {_n(end[0])} {_n(end[1])}"
        self._stroke(path, False, width, colour, False)

    def _stroke(self, path: str, head: bool, width: float, colour: str, dashed: bool) -> None:
        marker = f' marker-end="url(#{self.name}-head)"' if head else ""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{_n(width)}"{dashes}{marker}/>'
        )

    def dot(self, centre: Point, radius: float = 5, colour: str = INK) -> None:
        """A filled circle."""
        self._parts.append(f'<circle cx="{_n(centre[0])}" cy="{_n(centre[1])}" r="{_n(radius)}" fill="{colour}"/>')

    def svg(self) -> str:
        """The whole as a text."""
        size = f"{_n(self.width)} {_n(self.height)}"
        head = (
            f'<defs><marker id="{self.name}-head" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" '
            f'markerWidth="9" markerHeight="9" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="{INK}"/>'
            "</marker></defs>"
        )
        opening = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{_n(self.width)}" '
            f'height="{_n(self.height)}" style="max-width:100%;height:auto" role="img" '
            f'aria-labelledby="{self.name}-title {self.name}-desc" font-family="{_FONT}">'
        )
        card = f'<rect width="{_n(self.width)}" height="{_n(self.height)}" rx="12" fill="#ffffff"/>'
        words = (
            f'<title id="{self.name}-title">{escape(self.title)}</title>'
            f'<desc id="{self.name}-desc">{escape(self.description)}</desc>'
        )
        return "\n".join([opening, words, head, card, *self._parts, "</svg>"]) + "\n"


def _n(number: float) -> str:
    """A number in as few characters as show it to a tenth."""
    return f"{number:.1f}".removesuffix(".0")
