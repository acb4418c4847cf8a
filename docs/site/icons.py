"""Keep of the theme's icons those that the pages show: two thousand of them would be a quarter of a page's weight."""

import io
import re
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

_RULE = re.compile(r'(?P<names>(?:\.fa-[\w-]+,?)+)\{--fa:"(?P<glyphs>[^"]*)"\}')
_NAME = re.compile(r"\bfa-([a-z0-9-]+)")
_ESCAPE = re.compile(r"\\u?([0-9a-fA-F]{2,6}) ?")
_ELSEWHERE = re.compile(r'(?:content|--pst-icon-[\w-]+):\s*"([^"]*)"')


def keep_used(folder: Path) -> None:
    """Make the theme's style sheet and its fonts of icons small.

    Args:
        folder: of the built site.
    """
    static = folder / "_static"
    sheet = static / "styles" / "pydata-sphinx-theme.css"
    css = sheet.read_text(encoding="utf-8")
    users = [*folder.rglob("*.html"), *static.glob("scripts/*theme.js"), *static.glob("*.css")]
    used = {name for path in users for name in _NAME.findall(path.read_text(encoding="utf-8"))}
    kept: list[str] = [text for path in (sheet, *static.rglob("*.css")) for text in _ELSEWHERE.findall(_read(path))]

    def rule(match: re.Match) -> str:
        if not used & set(_NAME.findall(match["names"])):
            return ""
        kept.append(match["glyphs"])
        return match[0]

    sheet.write_text(_RULE.sub(rule, css), encoding="utf-8")
    glyphs = {int(code, 16) for text in kept for code in _ESCAPE.findall(text)} | {ord(one) for one in "".join(kept)}
    for path in static.rglob("fa-*.woff2"):
        path.write_bytes(_smaller(path.read_bytes(), glyphs))
    # The same icons once more, as a script of a megabyte.
    (static / "scripts" / "fontawesome.js").write_text("/* The icons come as a font. */\n", encoding="utf-8")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _smaller(data: bytes, glyphs: set[int]) -> bytes:
    font = TTFont(io.BytesIO(data), recalcTimestamp=False)  # the same bytes at each build
    subsetter = subset.Subsetter(subset.Options())
    subsetter.populate(unicodes=glyphs)
    subsetter.subset(font)
    font.flavor = "woff2"
    buffer = io.BytesIO()
    font.save(buffer)
    return buffer.getvalue()
