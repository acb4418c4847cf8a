"""What the built pages lead to: every link, image and script of them, and those that lead nowhere."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Where a page of HTML names something else, by element.
_ATTRIBUTES = {
    "a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src", "source": "src", "object": "data",
}  # fmt: skip
_NOT_FETCHED = {"index", "search", "next", "prev", "canonical", "author", "copyright"}  # kinds of <link>


@dataclass
class Page:
    """What a built page has and names.

    Attributes:
        path: of the file.
        anchors: the names that a link can end in.
        links: the targets of its links, as they are written.
        files: the targets that a browser fetches by itself: images, scripts, styles.
        images_without_alt: targets of the images that nothing describes.
        headings: level and text of each heading, in order.
    """

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    images_without_alt: list[str] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self, page: Page) -> None:
        super().__init__()
        self.page = page
        self.heading = 0
        self.skipped = 0  # depth within what is only for print

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.page.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        target = values.get(_ATTRIBUTES.get(tag, ""))
        if target is not None:
            linked = tag == "a" or (tag == "link" and set((values.get("rel") or "").split()) & _NOT_FETCHED)
            (self.page.links if linked else self.page.files).append(target)
        if tag == "img" and values.get("alt") in (None, "", values.get("src")):  # Sphinx puts the path for none
            self.page.images_without_alt.append(values.get("src") or "")
        if tag == "div" and (self.skipped or "onlyprint" in (values.get("class") or "").split()):
            self.skipped += 1
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6") and not self.skipped:
            self.heading = int(tag[1])
            self.page.headings.append((self.heading, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "div" and self.skipped:
            self.skipped -= 1
        if tag == f"h{self.heading}":
            self.heading = 0

    def handle_data(self, data: str) -> None:
        if self.heading:
            level, text = self.page.headings[-1]
            self.page.headings[-1] = (level, text + data)


def read(path: Path) -> Page:
    """Read one page.

    Args:
        path: of an HTML file.
    """
    page = Page(path)
    _Reader(page).feed(path.read_text(encoding="utf-8"))
    return page


def read_all(folder: Path) -> dict[Path, Page]:
    """Read all pages of a site by the paths of their files.

    Args:
        folder: of the site.
    """
    return {path: read(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}


def broken(pages: dict[Path, Page]) -> Iterator[str]:
    """Each link and each file that leads nowhere within the site, with the page that names it.

    Args:
        pages: of the whole site.
    """
    root = Path(os.path.commonpath([path.parent for path in pages]))
    for path, page in pages.items():
        for target in [*page.links, *page.files]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = file.is_file() and file.is_relative_to(root)
            if there and parts.fragment and file in pages:
                there = unquote(parts.fragment) in {*pages[file].anchors, "top"}
            if not there:
                yield f"{path.relative_to(root)} -> {target}"


def external(pages: dict[Path, Page]) -> dict[str, list[str]]:
    """Addresses outside of the site, each with the pages that lead there; and fetched ones, which no page may have.

    Args:
        pages: of the whole site.

    Returns:
        `links` and `files`, sorted and each named once.
    """
    found = {"links": set(), "files": set()}
    for page in pages.values():
        for kind, targets in (("links", page.links), ("files", page.files)):
            found[kind] |= {
                target for target in targets if urlsplit(target).scheme in ("http", "https") or target.startswith("//")
            }
    return {kind: sorted(targets) for kind, targets in found.items()}
