"""Upkeep of the registered checkpoints: what state they are in, whether they still score the same, making them anew."""

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from rich.table import Table

from course_utils import registry
from course_utils.checkpoint_files import UNRECOGNISED, VERIFIED, only_one_process, set_aside, state
from course_utils.paths import anchor, checkpoint_dir
from course_utils.registry import Entry

TOLERANCE = 0.01  # by which a re-measured accuracy may differ: other machines round other than ours
_COLOURS = {VERIFIED: "green", UNRECOGNISED: "red"}
_LIBRARIES = ("torch", "pytorch-lightning", "numpy", "scikit-learn")


def table_of(entries: Iterable[Entry]) -> Table:
    """A table of checkpoints: name, state, size and recorded metrics."""
    table = Table("name", "state", "size", "metrics", title="Checkpoints")
    for entry in entries:
        metrics = "\n".join(f"{name} = {value:.4g}" for name, value in entry.metrics.items())
        size = "" if entry.size is None else f"{entry.size:,}"
        found = state(entry)
        table.add_row(entry.name, f"[{_COLOURS.get(found, 'yellow')}]{found}[/]", size, metrics)
    return table


def failures_of(entries: Iterable[Entry], *, measure: bool, say: Callable[[str], None]) -> list[str]:
    """What is wrong with checkpoints, one sentence each: unrecognised files and, if asked for, metrics that have moved.

    Args:
        entries: the checkpoints; a missing one is not wrong.
        measure: measure the recorded metrics again.
        say: gets a line for each metric measured.
    """
    failures = []
    for entry in entries:
        found = state(entry)
        if found == UNRECOGNISED:
            failures.append(
                f"{entry.name}: {entry.file} in the folder {checkpoint_dir()} is not the registered file; "
                f"set it aside and fetch the right one with: course checkpoints fetch {entry.name}"
            )
        elif found == VERIFIED and measure:
            failures += _moved_metrics(entry, say)
    return failures


def _moved_metrics(entry: Entry, say: Callable[[str], None]) -> list[str]:
    if "with" not in entry.measured:
        say(f"{entry.name}: not measured again; its metrics are of {entry.measured['on']}")
        return []
    try:
        metrics = measured_metrics(entry)
    except ValueError as error:  # the registered file itself is unsafe, or does not fit
        return [f"{entry.name}: {error}"]
    moved = []
    for name, value in metrics.items():
        recorded = entry.metrics.get(name)
        say(f"{entry.name}: {name} = {value:.4f}, in the registry {recorded}")
        if recorded is None or abs(value - recorded) > TOLERANCE:
            moved.append(
                f"{entry.name}: {name} is {value:.4f} where the registry has {recorded} (tolerance {TOLERANCE}); "
                f"find out what changed, or train it anew with: course checkpoints make {entry.name}"
            )
    return moved


def measured_metrics(entry: Entry) -> dict[str, float]:
    """The metrics of a checkpoint, measured as its entry says.

    Raises:
        CheckpointMissingError: if it is not there and could not be fetched.
    """
    from course_utils import checkpoints  # imports torch, which a table does without

    model = checkpoints.load(_imported(entry.model), entry.name)
    return _imported(entry.measured["with"])(model, **entry.measured.get("arguments", {}))


def make(entry: Entry) -> dict[str, float]:
    """Train a checkpoint of ours as recorded, put it into the checkpoint folder, and bring the registry up to date.

    A file of that name that is not the registered one is set aside.

    Returns:
        The metrics of the new model.

    Raises:
        ValueError: if the entry has no function to train it, as for a published checkpoint.
        ImportError: as `registry.toml_writer`; before anything is trained.
    """
    if "function" not in entry.made:
        raise ValueError(f"{entry.name} was not made by this course ({entry.made['command']}): it cannot be made here")
    registry.toml_writer()
    from course_utils import checkpoints

    train = _imported(entry.made["function"])
    model, metrics = train(**entry.made["arguments"], seed=entry.made["seed"], checkpoint="none")
    path = checkpoint_dir() / entry.file
    with only_one_process(path):
        if state(entry) == UNRECOGNISED:
            set_aside(path)
        checkpoints.save(model, path)
        registry.update(entry.name, _facts(path.read_bytes(), model.hparams, metrics), made=_circumstances())
    return metrics


def _facts(content: bytes, hyper_parameters: Mapping[str, Any], metrics: Mapping[str, float]) -> dict[str, Any]:
    return {
        "size": len(content),
        "sha256": registry.sha256(content),
        "hyper_parameters": dict(hyper_parameters),
        "metrics": {name: round(value, 6) for name, value in metrics.items()},
    }


def _circumstances() -> dict[str, Any]:
    """Commit, versions and date of a training run."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    return {
        "commit": _commit(),
        "versions": {"python": python, **{name: version(name) for name in _LIBRARIES}},
        "date": datetime.now(UTC).date(),
    }


def _commit() -> str:
    """The commit of the checkout, marked -dirty where the library differs from it; "unknown" outside one."""
    try:
        commit = _git("rev-parse", "HEAD")
        changes = _git("status", "--porcelain", "--", "course_utils", ":!course_utils/registry.toml")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if changes else commit


def _git(*arguments: str) -> str:
    answer = subprocess.run(["git", *arguments], cwd=anchor(), capture_output=True, text=True, check=True)
    return answer.stdout.strip()


def _imported(name: str) -> Callable[..., Any]:
    """The object of an entry's "module:object"."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
