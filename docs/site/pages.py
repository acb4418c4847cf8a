"""The pages that the site takes from files of the repository, and the ways between them.

A page is a file that is read in the repository as well, so its links lead to other files there. On the site a link to
a page leads to that page, and a link to any other file to the published repository, or is plain text if there is none.
"""

import re
from pathlib import Path, PurePosixPath

from address import file_url

# Files of the repository: the name of each on the site. One that does not exist is left out.
PAGES = {
    "docs/site/index.md": "index",
    "docs/site/run_it.md": "run_it",
    "docs/teaching.md": "teaching",
    "docs/batch.md": "batch",
    "docs/cluster.md": "cluster",
    "docs/scaling.md": "scaling",
    "docs/set_anomaly_cifar100.md": "cifar100",
    "docs/set_anomaly_log.md": "cifar100_log",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
}
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z]+:", re.IGNORECASE)
_CODE = re.compile(r"(^(`{3,}|~{3,}).*?^\2`*\s*$|`+[^`\n]*`+)", re.MULTILINE | re.DOTALL)


def notebooks(root: Path) -> list[Path]:
    """The executed notebooks of the course, in the order of reading."""
    return sorted(root.glob("notebooks/[0-9]*.ipynb"))


def site_names(root: Path) -> dict[str, str]:
    """Each file of the repository that is a page: its document's name on the site."""
    names = {path: name for path, name in PAGES.items() if (root / path).is_file()}
    for notebook in notebooks(root):
        name = f"notebooks/{notebook.stem}"
        names[f"{name}.ipynb"] = names[f"{name}.py"] = name
    return names


def rewrite_links(text: str, origin: str, document: str, root: Path, address: str) -> str:
    """A page's Markdown with links that hold on the site.

    Args:
        text: the Markdown.
        origin: path of its file in the repository.
        document: its name on the site.
        root: folder of the repository.
        address: of the published repository; empty if there is none.
    """
    names = site_names(root)

    def rewritten(match: re.Match) -> str:
        target, hash_sign, fragment = match["target"].partition("#")
        if _ELSEWHERE.match(target):
            return match[0]
        if not target:
            return f"{match['image']}[{match['text']}](#{slug(fragment)})"
        path = _normal(PurePosixPath(origin).parent / target)
        if match["image"]:
            return f"![{match['text']}]({_from(document, path.removeprefix('docs/'))})"
        if path in names:
            suffix = ".ipynb" if names[path].startswith("notebooks/") else ".md"
            anchor = f"#{slug(fragment)}" if hash_sign else ""
            return f"[{match['text']}]({_from(document, names[path] + suffix)}{anchor})"
        url = file_url(address, path)
        return f"[{match['text']}]({url})" if url else match["text"]

    parts = _CODE.split(text)  # text, code, its fence, text, ...
    return "".join(
        _LINK.sub(rewritten, part) if index % 3 == 0 else (part or "") * (index % 3 == 1)
        for index, part in enumerate(parts)
    )


def slug(heading: str) -> str:
    """The anchor of a heading on the site: as on GitHub, so small letters and dashes for blanks.

    Jupyter keeps capital letters (`#Sources`), and both forms are written in the notebooks.
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _from(document: str, target: str) -> str:
    return "../" * document.count("/") + target
