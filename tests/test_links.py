"""Links inside the repository resolve: in the Markdown files and in the text of the notebooks."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import jupytext
import pytest

ROOT = Path(__file__).resolve().parents[1]
NOT_OURS = {".venv", ".git", "runs", "data", "build", "dist", "node_modules", "_build", ".pytest_cache", ".hypothesis"}
CODE = re.compile(r"```.*?```|`[^`\n]*`", flags=re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)|<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"")
ANCHOR = re.compile(r"<\w+\b[^>]*?\b(?:id|name)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", flags=re.MULTILINE)


def pages() -> list[Path]:
    """Each file with text for readers; of a notebook, its source."""
    found = [*ROOT.rglob("*.md"), *(ROOT / "notebooks").glob("[0-9]*.py")]
    return sorted(path for path in found if not NOT_OURS.intersection(path.relative_to(ROOT).parts))


def text_of(path: Path) -> str:
    """The page as Markdown, without code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        cells = jupytext.reads(text, fmt="py:percent").cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return CODE.sub("", text)


def anchors(path: Path) -> set[str]:
    """What a link may lead to within a page: explicit ids, and headings as the sites that show them write these."""
    text = text_of(path)
    found = set(ANCHOR.findall(text))
    for heading in HEADING.findall(text):
        found.add(heading.strip().replace(" ", "-"))  # Jupyter
        found.add(re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-"))  # hosting sites
    return found


def broken_links(path: Path) -> Iterator[str]:
    """Each link that leads nowhere, as it is written."""
    for match in LINK.finditer(text_of(path)):
        link = unquote(match.group(1) or match.group(2))
        if not re.match(r"[a-z][a-z0-9+.-]*:", link) and not resolves(link, path):  # others lead to another site
            yield link


def resolves(link: str, page: Path) -> bool:
    """Whether a link on a page leads to a file of the repository, and there to an anchor if it names one."""
    place, _, anchor = link.partition("#")
    target = (page.parent / place).resolve() if place else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not anchor or target.suffix not in (".md", ".ipynb", ".py") or anchor in anchors(_with_text(target))


def _with_text(target: Path) -> Path:
    """Of a notebook, its source."""
    return target.with_suffix(".py") if target.suffix == ".ipynb" else target


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page):
    assert list(broken_links(page)) == []


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "other.md").write_text('# Other page\n\n## What is it, then?\n\n<a id="Sources"></a>\n')
    return tmp_path


@pytest.mark.parametrize(
    "link",
    [
        "[a](other.md)",
        "[a](other.md#other-page)",
        "[a](other.md#what-is-it-then)",
        "[a](other.md#Sources)",
        '[a](other.md "a title")',
        "[a](#here)",
        "[a](https://example.org/nowhere)",
        "`[a](code.md)`",
        '<a href="other.md">a</a>',
    ],
)
def test_good_links_are_left_alone(site, link):
    page = site / "page.md"
    page.write_text(f"# Here\n\n{link}\n")
    assert list(broken_links(page)) == []


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("[a](missing.md)", "missing.md"),
        ("[a](other.md#nowhere)", "other.md#nowhere"),
        ("[a](#nowhere)", "#nowhere"),
        ("[a](../outside.md)", "../outside.md"),
        ('<img src="missing.png">', "missing.png"),
        ("![a figure](missing.png)", "missing.png"),
    ],
)
def test_broken_links_are_found(site, link, found):
    page = site / "page.md"
    page.write_text(f"# Here\n\n{link}\n")
    assert list(broken_links(page)) == [found]
