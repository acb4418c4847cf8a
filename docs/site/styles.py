"""Keep of the theme's style sheet the rules that a page can use: most of it is for what this site does not have."""

import re
from pathlib import Path

_RULE = re.compile(r"([^{}]+)\{[^{}]*\}")
_CLASS = re.compile(r"\.((?:[A-Za-z_-]|\\.)(?:[\w-]|\\.)*)")
_STRINGS = re.compile(r"[\w-]+")


def keep_used(folder: Path) -> None:
    """Make the theme's style sheet small: a selector goes if it asks for a class that no page and no script names.

    Args:
        folder: of the built site.
    """
    sheet = folder / "_static" / "styles" / "pydata-sphinx-theme.css"
    users = [*folder.rglob("*.html"), *(folder / "_static").rglob("*.js")]
    words = {word for path in users for word in _STRINGS.findall(path.read_text(encoding="utf-8"))}
    # What Bootstrap's script puts together from a name and a state.
    places = ("top", "bottom", "start", "end", "auto")
    words |= {f"{stem}-{place}" for stem in ("bs-tooltip", "bs-popover") for place in places}

    def rule(match: re.Match) -> str:
        head = match[1]
        if head.lstrip().startswith("@") or ":is(" in head or ":not(" in head or ":where(" in head:
            return match[0]
        kept = [one for one in head.split(",") if all(name.replace("\\", "") in words for name in _CLASS.findall(one))]
        return match[0].replace(head, ",".join(kept), 1) if kept else ""

    text = _RULE.sub(rule, sheet.read_text(encoding="utf-8"))
    sheet.write_text(re.sub(r"@media[^{}]*\{\s*\}", "", text), encoding="utf-8")
