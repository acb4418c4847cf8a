"""Checkpoint files that are there when needed: verified, fetched where they are missing, never lost.

Files are recognised by content. One that is not the registered file (cut off, or somebody's own training) is neither
used nor deleted: it is set aside under a name that carries its hash.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from course_utils import registry
from course_utils.atomic import write_atomically
from course_utils.downloads import DownloadError, download, offline
from course_utils.paths import checkpoint_dir
from course_utils.registry import BASE_URL_VARIABLE, Entry

VERIFIED, MISSING, UNRECOGNISED = "verified", "missing", "unrecognised"

_SECONDS_TO_WAIT_FOR_OTHERS = 600.0  # processes that fetch the same file
_TRAIN_INSTEAD = "train instead with the parameter checkpoint='none'"
_log = logging.getLogger(__name__)


class CheckpointMissingError(FileNotFoundError):
    """A checkpoint that was asked for is not there and could not be fetched.

    Attributes:
        reason: what is the matter with it, in words that are the same on every machine; the message says more.
    """

    def __init__(self, message: str, reason: str = "could not be fetched"):
        super().__init__(message)
        self.reason = reason


def fetch(name: str) -> Path:
    """The path of a verified checkpoint file: the one that is there, or else a download.

    Args:
        name: as in the registry, such as "reverse".

    Returns:
        Its path in the checkpoint folder. A folder that cannot be written to is fine if it holds the file.

    Raises:
        CheckpointMissingError: if it is not there and could not be fetched; says why and what to do.
    """
    entry = _registered(name)
    path = checkpoint_dir() / entry.file
    try:
        if state(entry) != VERIFIED:
            _fetch_missing(entry, path)
    except CheckpointMissingError:
        raise
    except OSError as error:  # no room, no permission, a folder where the file should be
        raise _folder_failure(entry, path, error) from error
    return path


def state(entry: Entry) -> str:
    """Whether the file of a registry entry is VERIFIED, MISSING or UNRECOGNISED. Changes nothing."""
    path = checkpoint_dir() / entry.file
    if not os.path.lexists(path):
        return MISSING
    if entry.size is not None and path.is_file() and path.stat().st_size != entry.size:
        return UNRECOGNISED
    try:
        return VERIFIED if path.is_file() and entry.recognises(path.read_bytes()) else UNRECOGNISED
    except PermissionError:
        return UNRECOGNISED


def set_aside(path: Path) -> Path:
    """Rename a file to a name that carries its hash, and return that; nothing is overwritten but an equal file."""
    digest = _digest(path)
    aside = path.with_name(f"{path.stem}.unrecognised-{digest[:12]}{path.suffix}")
    if os.path.lexists(aside) and _digest(aside) != digest:
        aside = path.with_name(f"{path.stem}.unrecognised-{digest}{path.suffix}")
    path.replace(aside)
    _log.warning("%s is not the registered checkpoint: it was set aside as %s", path.name, aside.name)
    return aside


@contextmanager
def only_one_process(path: Path) -> Iterator[None]:
    """Let one process at a time bring a file into place; the folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The system drops this lock when its process ends, however it ends.
    with FileLock(path.with_name(f".{path.name}.lock"), timeout=_SECONDS_TO_WAIT_FOR_OTHERS):
        yield


def _fetch_missing(entry: Entry, path: Path) -> None:
    """Bring the registered file into place, or raise CheckpointMissingError."""
    obstacle = _why_not_download(entry)
    if obstacle and not os.path.lexists(path):  # nothing to set aside: leave the folder as it is
        raise _missing(entry, path, f"is not there, and {obstacle}")
    with only_one_process(path):
        if state(entry) == VERIFIED:  # another process was faster
            return
        found = "is not there"
        if os.path.lexists(path):
            found = f"is not the registered one and was set aside as {set_aside(path).name}"
        if obstacle:
            raise _missing(entry, path, f"{found}, and {obstacle}")
        try:
            content = download(entry)
        except DownloadError as error:
            raise _missing(entry, path, f"{found} and could not be downloaded ({error})") from error
        write_atomically(path, content)


def _digest(path: Path) -> str:
    """SHA-256 of a file's content. A folder or a dangling link has none: what the system says of it serves instead."""
    return registry.sha256(path.read_bytes() if path.is_file() else repr(path.lstat()).encode())


def _registered(name: str) -> Entry:
    entries = registry.read()
    if name not in entries:
        raise CheckpointMissingError(
            f"there is no checkpoint {name!r} in the registry, which has {', '.join(entries)}; "
            f"ask for one of these, or {_TRAIN_INSTEAD}",
            reason="is not registered",
        )
    return entries[name]


def _why_not_download(entry: Entry) -> str:
    """What speaks against a download from the start, in words; empty if nothing does."""
    if not entry.urls:
        return f"the course's files have no address yet (it goes into {BASE_URL_VARIABLE})"
    return "COURSE_OFFLINE switches the network off" if offline() else ""


def _missing(entry: Entry, path: Path, what: str) -> CheckpointMissingError:
    by_hand = f"fetch it from {' or '.join(entry.urls)} by hand and put" if entry.urls else "put"
    reason = "could not be fetched" if entry.urls else "is not here"
    return CheckpointMissingError(
        f"the checkpoint {entry.file} {what}; {by_hand} it into the folder {path.parent}, or {_TRAIN_INSTEAD}", reason
    )


def _folder_failure(entry: Entry, path: Path, error: OSError) -> CheckpointMissingError:
    present = "is not the registered one" if os.path.lexists(path) else "is not there"
    return CheckpointMissingError(
        f"the checkpoint {entry.file} {present}, and the folder {path.parent} cannot be used to fetch it "
        f"({error.strerror or error}); free it, set PATH_CHECKPOINT to another folder, or {_TRAIN_INSTEAD}"
    )
