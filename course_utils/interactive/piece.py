"""An interactive piece: one string of HTML that needs nothing else, and the plain figure that stands in for it."""

import base64
import functools
import hashlib
import html
import io
import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from course_utils.figure_description import MIME_TYPE, describe

_FALLBACK_COLOURS = 48
_FALLBACK_DPI = 80


@dataclass(frozen=True)
class Piece:
    """What a reader can operate, in three forms.

    Attributes:
        html: a block of HTML with its styles, program and data in it. It asks nothing of the network, may stand on a
            page several times and beside other pieces, and shows the figure where JavaScript does not run.
        fallback: that figure.
        alt: what the piece shows, in a sentence or two.
        facts: the values behind it as plain data, for a test to compare with a tolerance.
    """

    html: str
    fallback: Figure
    alt: str
    facts: dict[str, Any]

    def bundle(self) -> dict[str, Any]:
        """The piece as Jupyter's display data, by MIME type."""
        description = describe(self.fallback) | {"piece": self.facts}
        return {"text/html": self.html, "text/plain": self.alt, MIME_TYPE: description}


def assemble(
    call: str,
    data: Any,
    *,
    scripts: Sequence[str],
    styles: Sequence[str],
    fallback: Figure,
    alt: str,
    facts: dict[str, Any],
) -> Piece:
    """Put a piece together from files of this folder and the data that they show.

    Args:
        call: name of the JavaScript function that builds the piece, as `call(box, data)`.
        data: plain data for JSON.
        scripts: names of JavaScript files, in their order; page.js comes first by itself.
        styles: names of style sheets; piece.css comes first by itself.
        fallback: the figure for readers without JavaScript.
        alt: what the piece shows, in a sentence or two.
        facts: the values that a test compares, as plain data.

    Raises:
        ValueError: if alt is empty.
    """
    if not alt.strip():
        raise ValueError("an interactive piece needs alt text: say in a sentence what it shows")
    program = "\n".join(source(name) for name in ("page.js", *scripts))
    style = "\n".join(source(name) for name in ("piece.css", *styles))
    content = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    key = hashlib.sha256("\0".join((program, style, call, content, alt)).encode()).hexdigest()[:12]
    block = (
        f'<div data-course-piece="{key}">'
        f'<img alt="{html.escape(alt)}" src="{png_url(png(fallback))}" '
        'style="background:#fff;height:auto;max-width:100%">'
        f"<p><small>Where JavaScript runs (in Jupyter: in a trusted notebook), this figure can be operated.</small></p>"
        f"</div>\n"
        f'<script>(function () {{\n"use strict";\n{program}\n'
        f"mount({_for_script(key)}, {_for_script(style)}, (box) => {call}(box, {_inside_script(content)}));\n"
        f"}})();</script>"
    )
    return Piece(html=block, fallback=fallback, alt=alt, facts={"kind": call} | facts)


@functools.cache
def source(name: str) -> str:
    """A JavaScript file or style sheet of this folder, without comment lines and indentation.

    Raises:
        ValueError: if it holds what would end the script element that it is put into.
    """
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    text = "\n".join(line for line in lines if line and not line.startswith("//"))
    if re.search(r"</script|<!--", text, flags=re.IGNORECASE):
        raise ValueError(f"{name} holds </script or <!--, which would end its element in the page")
    return text


def png(figure: Figure) -> bytes:
    """A figure as a small PNG of few colours."""
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # matplotlib's font lacks some scripts; the page has them
        figure.savefig(drawn, format="png", dpi=_FALLBACK_DPI, bbox_inches="tight", metadata={"Software": None})
    return _small_png(
        Image.open(drawn)
        .convert("RGB")
        .quantize(_FALLBACK_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )


def picture_url(image: np.ndarray, *, inverted: bool = False) -> str:
    """An image uint8 [height, width] or [height, width, 3] as a data URL that a page shows by itself.

    Args:
        image: grey or RGB values from 0 to 255.
        inverted: draw 0 as white and 255 as black, as ink on paper.
    """
    return png_url(_small_png(Image.fromarray(255 - image if inverted else image)))


def png_url(content: bytes) -> str:
    """The bytes of a PNG as a data URL."""
    return "data:image/png;base64," + base64.b64encode(content).decode()


def _small_png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def _for_script(text: str) -> str:
    return _inside_script(json.dumps(text, ensure_ascii=False))


def _inside_script(content: str) -> str:
    r"""JSON that may stand in a script element: no text in it can end the element, since < is written \u003c."""
    return content.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
