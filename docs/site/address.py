"""Where the course is published: one setting, `repository` of `[tool.course]` in pyproject.toml.

It is empty as long as there is no public copy. Then nothing that would lead nowhere is shown.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

BRANCH = "main"


@dataclass(frozen=True)
class Launcher:
    """A service that runs a notebook in the browser.

    Attributes:
        name: what readers know it by.
        url: where it opens the notebook.
    """

    name: str
    url: str


def repository(project: Path) -> str:
    """The address in the setting; empty if there is none.

    Args:
        project: path of pyproject.toml.

    Raises:
        ValueError: if the setting is no https address.
    """
    tool = tomllib.loads(project.read_text(encoding="utf-8")).get("tool", {})
    return checked(tool.get("course", {}).get("repository", ""))


def checked(address: str) -> str:
    """An address without a slash or `.git` at its end.

    Args:
        address: as https://github.com/OWNER/NAME; or empty.

    Raises:
        ValueError: if it is neither.
    """
    address = address.strip().rstrip("/").removesuffix(".git")
    if address and not re.fullmatch(r"https://[\w.-]+(/[\w.~-]+)+", address):
        raise ValueError(f"`repository` must be like https://github.com/OWNER/NAME, or empty; got {address!r}")
    return address


def launchers(address: str, notebook: str) -> list[Launcher]:
    """The services that can run a notebook of a repository: none without an address.

    Args:
        address: of the repository, as `repository` gives it.
        notebook: path of the notebook in it.
    """
    match = re.fullmatch(r"https://(github|gitlab)\.com/(.+)", address)
    if not match:
        return []
    host, name = match.groups()
    if host == "gitlab":
        encoded = name.replace("/", "%2F")
        return [Launcher("Binder", f"https://mybinder.org/v2/gl/{encoded}/{BRANCH}?labpath={notebook}")]
    return [
        Launcher("Colab", f"https://colab.research.google.com/github/{name}/blob/{BRANCH}/{notebook}"),
        Launcher("Binder", f"https://mybinder.org/v2/gh/{name}/{BRANCH}?labpath={notebook}"),
        Launcher("Codespaces", f"https://codespaces.new/{name}"),
    ]


def file_url(address: str, path: str) -> str:
    """Where a file or folder of the repository is shown; empty without an address."""
    return f"{address}/blob/{BRANCH}/{path}" if address else ""
