"""A Sphinx extension: docstrings are plain text, and stay so.

The docstrings of this project are written to be read in an editor: `|x|` is an absolute value in them, `a * b` a
product, and an indented block code. For reStructuredText these would be something else, or errors.
"""

import re
from collections.abc import Iterator

from sphinx.application import Sphinx
from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer

_SECTION = re.compile(r"[A-Z][a-z]+( [a-z]+)?:$")
_CODE = re.compile(r"(`+[^`]+`+)")
_FIRST = 100  # before napoleon, which reads the sections


def plain_text(lines: list[str]) -> list[str]:
    """A docstring in reStructuredText that looks like the docstring.

    Args:
        lines: of the docstring, the first indented like the others.
    """
    return list(_converted(lines))


def _converted(lines: list[str]) -> Iterator[str]:
    in_section = in_code = False
    previous = ""
    for line in lines:
        indented = line.startswith("    ")
        if line and not indented:
            in_section, in_code = bool(_SECTION.match(line)), False
        if indented and not in_section and not in_code and not previous.strip():
            yield from ("::", "")
            in_code = True
        yield line if in_code else _escaped(line)
        previous = line


def _escaped(line: str) -> str:
    if line.lstrip().startswith("*"):  # *args, which napoleon reads
        return line
    parts = _CODE.split(line)
    parts[::2] = [re.sub(r"(?<=\w)_(?!\w)|[\\*|]", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def _process(app, what, name, obj, options, lines: list[str]) -> None:
    lines[:] = plain_text(lines)


def _shorten(app, what, name, obj, options, signature: str | None, returns: str | None):
    """A default that has no notation, `<factory>` say, is three dots; else Sphinx could not read the types either."""
    return (re.sub(r"=\s*<[^<>]+(<[^<>]*>)?[^<>]*>", "=...", signature), returns) if signature else None


def _analyse_only_the_course() -> None:
    """Leave out the sources of foreign base classes, PyTorch's and Lightning's: reading them takes seconds."""
    analyse = ModuleAnalyzer.for_module

    def for_module(name: str) -> ModuleAnalyzer:
        if name.partition(".")[0] != "course_utils":
            raise PycodeError(f"{name} is not documented here")
        return analyse(name)

    ModuleAnalyzer.for_module = for_module


def setup(app: Sphinx) -> dict[str, object]:
    """Convert each docstring before anything else reads it."""
    _analyse_only_the_course()
    app.connect("autodoc-process-docstring", _process, priority=_FIRST)
    app.connect("autodoc-process-signature", _shorten)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
