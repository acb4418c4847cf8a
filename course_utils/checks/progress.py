"""Outcomes of checks, kept in a file on this computer and sent nowhere.

The file is the environment variable PATH_PROGRESS, by default transformer-course/progress.jsonl in the user's folder
for such things. Each line is one outcome, appended under a lock, so that two kernels do not disturb each other; a line
that cannot be read is passed over.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from course_utils.checks.outcome import FAILED, OPEN, PASSED, Outcome

DONE, TRIED = "done", "tried"
_PATIENCE = 5.0  # seconds for another kernel to write its line
_WORD = {PASSED: DONE, FAILED: TRIED}

_kept = True
_listeners: list[Callable[[Outcome], None]] = []


@dataclass(frozen=True)
class Standing:
    """Where a learner stands with one exercise.

    Attributes:
        state: done once it has passed, tried if it has only failed, open otherwise.
        tries: how often it was checked until it passed for the first time.
        diagnosis: of the last failure; empty if there was none.
        last: when it was checked last, as an ISO time in UTC; empty if never.
    """

    state: str = OPEN
    tries: int = 0
    diagnosis: str = ""
    last: str = ""


def progress_file() -> Path:
    """Where the outcomes are kept."""
    if chosen := os.environ.get("PATH_PROGRESS"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(folder) / "transformer-course" / "progress.jsonl"


def keep(kept: bool) -> None:
    """Say whether outcomes of this process are kept."""
    global _kept
    _kept = bool(kept)


def listen(listener: Callable[[Outcome], None]) -> None:
    """Have a function called with each outcome of this process, whether it is kept or not."""
    _listeners.append(listener)


def note(outcome: Outcome) -> None:
    """Keep an outcome. One that cannot be kept, on a read-only disk say, is let go: the check counts, not its trace."""
    for listener in _listeners:
        listener(outcome)
    if not _kept:
        return
    line = {
        "exercise": outcome.exercise,
        "notebook": outcome.notebook,
        "state": outcome.state,
        "diagnosis": outcome.diagnosis,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        _append(progress_file(), json.dumps(line))
    except (OSError, RuntimeError, Timeout):  # RuntimeError: there is no home folder
        return


def standings(file: Path | None = None) -> dict[str, Standing]:
    """Where the learner stands, by exercise; those that were never checked are missing.

    Args:
        file: of outcomes; by default this user's.
    """
    found: dict[str, Standing] = {}
    for line in _lines(file or progress_file()):
        before = found.get(line["exercise"], Standing())
        found[line["exercise"]] = _after(before, line)
    return found


def _after(before: Standing, line: dict[str, str]) -> Standing:
    state, counts = line["state"], before.state != DONE and line["state"] != OPEN
    return Standing(
        DONE if DONE in (before.state, _WORD.get(state)) else _WORD.get(state, before.state),
        before.tries + counts,
        line["diagnosis"] if state == FAILED else before.diagnosis,
        line["time"],
    )


def _lines(file: Path) -> list[dict[str, str]]:
    try:
        texts = file.read_bytes().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line for text in texts if (line := _read(text))]


def _read(text: str) -> dict[str, str] | None:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    keys = ("exercise", "notebook", "state", "diagnosis", "time")
    if not isinstance(line, dict) or not all(isinstance(line.get(key), str) for key in keys):
        return None
    return line if line["state"] in (PASSED, FAILED, OPEN) else None


def _append(file: Path, line: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{file}.lock", timeout=_PATIENCE), file.open("ab+") as stream:
        stream.seek(0, os.SEEK_END)
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":  # what a power cut left of a line
                line = f"\n{line}"
        stream.write(f"{line}\n".encode())
        stream.flush()
        os.fsync(stream.fileno())
