"""Gather what the site is built from: the landing page, the notebooks, the guides and the pages of the library.

Nothing of it is written twice: every page but two comes from a file that is read in the repository as well, and the
table of notebooks from what they say of themselves.
"""

import re
import shutil
from pathlib import Path

import api_pages
import nbformat
import notebook_pages
from address import launchers, repository
from pages import PAGES, notebooks, rewrite_links

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def gather(target: Path, address: str | None = None) -> None:
    """Write all sources into a folder, which is emptied first.

    Args:
        target: the folder.
        address: of the published repository; None takes the setting.
    """
    address = repository(ROOT / "pyproject.toml") if address is None else address
    shutil.rmtree(target, ignore_errors=True)
    (target / "notebooks").mkdir(parents=True)
    for folder in ("library", "originals"):
        (target / folder).mkdir()
    shutil.copytree(ROOT / "docs" / "figures", target / "figures")
    for path in notebooks(ROOT):
        nbformat.write(notebook_pages.page(path, ROOT, address), target / "notebooks" / path.name)
        shutil.copyfile(path, target / "originals" / path.name)  # to be downloaded
    guides = {origin: name for origin, name in PAGES.items() if (ROOT / origin).is_file()}
    for origin, name in guides.items():
        text = rewrite_links((ROOT / origin).read_text(encoding="utf-8"), origin, name, ROOT, address)
        own = (ROOT / origin).parent == HERE  # the pages that are written for the site have parts that are made
        _write(target / f"{name}.md", _filled(text, address, guides) if own else text)
    found = api_pages.modules(ROOT / "course_utils")
    for name, text in api_pages.pages(found).items():
        _write(target / "library" / f"{name}.rst", text)
    _write(target / "library" / "index.md", api_pages.table(found))


def _filled(text: str, address: str, guides: dict[str, str]) -> str:
    """A page with the parts that are made: lines of the form `% name` in it."""
    made = {
        "notebooks": _path(),
        "contents": _contents(guides),
        "in the browser": _in_the_browser(address),
        "clone": f"```\ngit clone {address} transformer-course\ncd transformer-course\n```" if address else "",
    }
    lines = []
    for line in text.splitlines():
        if line.startswith("% "):
            lines += made[line[2:]].splitlines()
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _path() -> str:
    """The notebooks as a list: what each is about, what it asks for, and the time it takes."""
    items = []
    for path in notebooks(ROOT):
        said = notebook_pages.opening(nbformat.read(path, as_version=4), path.name)
        items += [
            "::::{container} step",
            f"**[{_title(path, said.title)}](notebooks/{path.name})**",
            "",
            said.build,
            "",
            f"**You need** {said.know[0].lower()}{said.know[1:]}",
            "",
            f"**Time.** {' '.join(re.split(r'(?<=[.!?]) ', said.time)[:2])}",
            "::::",
            "",
        ]
    return "\n".join(items)


def _title(path: Path, title: str) -> str:
    return f"{path.stem.partition('_')[0]} {title}"


def _contents(guides: dict[str, str]) -> str:
    def there(*names: str) -> list[str]:
        return [name for name in names if name in guides.values()]

    parts = {
        "Notebooks": [_entry(path) for path in notebooks(ROOT)],
        "Results": there("cifar100", "cifar100_log"),
        "Guides": ["run_it", *there("teaching", "batch", "cluster", "scaling")],
        "Reference": ["library/index", *there("contributing", "changelog")],
    }
    blocks = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *documents, "```"])
        for caption, documents in parts.items()
        if documents
    ]
    return "\n\n".join(blocks)


def _entry(path: Path) -> str:
    said = notebook_pages.opening(nbformat.read(path, as_version=4), path.name)
    return f"{_title(path, said.title)} <notebooks/{path.stem}>"


def _in_the_browser(address: str) -> str:
    offered = {path: launchers(address, f"notebooks/{path.name}") for path in notebooks(ROOT)}
    if not any(offered.values()):
        return ""
    names = [launcher.name for launcher in next(iter(offered.values()))]
    rows = [f"| notebook | {' | '.join(names)} |", "| --- |" + " --- |" * len(names)]
    rows += [
        f"| {path.stem} | " + " | ".join(f"[open in {one.name}]({one.url})" for one in found) + " |"
        for path, found in offered.items()
    ]
    return "\n".join(["## In the browser", "", "Nothing to install: choose a notebook and a service.", "", *rows])


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
