"""The registry of checkpoints: what each file is, how it is recognised, where it lies and how it was made.

It is kept in registry.toml beside this file, which explains its fields.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urljoin

from course_utils.atomic import write_atomically

PATH = Path(__file__).with_name("registry.toml")
BASE_URL_VARIABLE = "COURSE_CHECKPOINT_URL"


@dataclass(frozen=True)
class Entry:
    """What the registry says of one checkpoint.

    Attributes:
        name: as for `checkpoints.fetch`.
        file: name of the file in the checkpoint folder.
        task: what the model does, in words.
        model: its class, as "module:Class".
        urls: full addresses in order of preference; none while those of our own files are not known.
        size: bytes of the file, if known.
        sha256: of the file; None if it is known by its git blob id only, or not made yet.
        git_blob: the file's id in a git repository; None if sha256 is given.
        stands_in_for: name of the checkpoint of ours that this published one may replace.
        hyper_parameters: arguments of the model.
        metrics: recorded results by name, such as test_acc.
        measured: what the metrics were measured on ("on"), and the function that does ("with", "arguments").
        made: how the file was made: command, function and arguments, seed, commit, versions, date.
    """

    name: str
    file: str
    task: str
    model: str
    urls: tuple[str, ...] = ()
    size: int | None = None
    sha256: str | None = None
    git_blob: str | None = None
    stands_in_for: str | None = None
    hyper_parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)

    def recognises(self, content: bytes) -> bool:
        """Whether these are the bytes of the registered file."""
        if self.sha256 is not None:
            return sha256(content) == self.sha256.lower()
        return self.git_blob is not None and git_blob_id(content) == self.git_blob.lower()


def sha256(content: bytes) -> str:
    """The SHA-256 of some bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def git_blob_id(content: bytes) -> str:
    """The id under which git keeps a file of these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def read() -> dict[str, Entry]:
    """All entries by name, in the registry's order.

    Raises:
        ValueError: if the base URL is no web address.
    """
    document = tomllib.loads(PATH.read_text(encoding="utf-8"))
    base_url = _base_url(document.get("base_url", ""))
    return {name: _entry(name, fields, base_url) for name, fields in document["checkpoints"].items()}


def stand_in(name: str) -> str | None:
    """The published checkpoint that replaces a missing one of ours; None if there is none, or ours has an address."""
    entries = read()
    if name in entries and entries[name].urls:
        return None
    return next((entry.name for entry in entries.values() if entry.stands_in_for == name), None)


def toml_writer() -> ModuleType:
    """The package that writes TOML and keeps comments; only maintainers need it.

    Raises:
        ImportError: if it is not installed.
    """
    try:
        import tomlkit
    except ImportError as error:
        raise ImportError(
            "writing the registry needs tomlkit; install it with: pip install 'transformer-course[maintain]'"
        ) from error
    return tomlkit


def update(name: str, facts: Mapping[str, Any], made: Mapping[str, Any]) -> None:
    """Write facts into an entry, and add to what it says of how the file was made. Comments and order stay.

    Raises:
        ImportError: as `toml_writer`.
    """
    tomlkit = toml_writer()
    document = tomlkit.parse(PATH.read_text(encoding="utf-8"))
    entry = document["checkpoints"][name]
    entry.update(facts)
    entry["made"].update(made)
    text = re.sub(r"(?m)^([^#\n].*\n)\[", r"\1\n[", tomlkit.dumps(document))  # a blank line before each table
    write_atomically(PATH, text.encode())


def _base_url(registered: str) -> str:
    """Address of the folder of our own files, with a slash at the end; empty while there is none."""
    url = os.environ.get(BASE_URL_VARIABLE, "").strip() or registered
    if url and not url.startswith(("http://", "https://")):
        raise ValueError(
            f"the address of the course's checkpoints must begin with https:// or http://, got {url!r}; "
            f"correct or unset the environment variable {BASE_URL_VARIABLE}"
        )
    return url.rstrip("/") + "/" if url else ""


def _entry(name: str, fields: Mapping[str, Any], base_url: str) -> Entry:
    urls = (url if "://" in url else base_url and urljoin(base_url, url) for url in fields.get("urls", ()))
    return Entry(name=name, **{**fields, "urls": tuple(url for url in urls if url)})
