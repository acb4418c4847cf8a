"""Run several notebooks, hold their results to the ranges, and keep the report up to date while they run."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from course_utils.execution.bounds import expected_beside, violations
from course_utils.execution.line import Lines
from course_utils.execution.outcome import INTERRUPTED, RANGE, STOPPED, Failure, Outcome
from course_utils.execution.plan import Run
from course_utils.execution.stopping import Stop, stopped_by_signals
from course_utils.paths import runs_dir

# Parameters under which the ranges of the results still hold; any other makes it another experiment.
_KEEP_THE_RANGES = {"profile", "checkpoint", "seed"}
_COLOURS = {"passed": "[green]passed[/]", "failed": "[red]FAILED[/]"}

# Runs some notebooks, and gives their outcomes in the order in which they end.
Engine = Callable[[Sequence[Run], Lines, Stop], Iterator[Outcome]]


class FolderError(OSError):
    """The output folder cannot be used."""


@dataclass
class Batch:
    """A batch of runs, and what has come of it so far.

    Attributes:
        runs: all that was planned.
        folder: of the executed copies and the report.
        started: when.
        outcomes: those that are known, in the order of the runs.
        ended: when; None while it runs.
        interrupted: whether it was broken off by the user.
    """

    runs: Sequence[Run]
    folder: Path
    started: datetime = field(default_factory=lambda: datetime.now().astimezone())
    outcomes: list[Outcome] = field(default_factory=list)
    ended: datetime | None = None
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """0 if all passed, 130 if it was interrupted, else 1."""
        if self.interrupted:
            return 130
        return 0 if all(outcome.passed for outcome in self.outcomes) else 1


def run_batch(
    runs: Sequence[Run],
    engine: Engine,
    folder: Path,
    console: Console,
    fail_fast: bool = False,
    on_change: Callable[[Batch], None] = lambda batch: None,
) -> Batch:
    """Run notebooks; one that fails does not stop the others.

    Args:
        runs: a plan.
        engine: what runs them.
        folder: of the executed copies; it exists and is ours.
        console: where progress is shown.
        fail_fast: stop at the first that fails.
        on_change: called after each notebook, and at the end.
    """
    batch, stop = Batch(runs, folder), Stop()
    order = {run.file_name: number for number, run in enumerate(runs)}
    with stopped_by_signals(stop), Lines(console, len(runs)) as lines:
        for outcome in engine(runs, lines, stop):
            outcome = hold_to_ranges(outcome)
            batch.outcomes.append(outcome)
            batch.outcomes.sort(key=lambda one: order[one.run.file_name])
            lines.ended(outcome.run.title, _COLOURS.get(outcome.status, outcome.status), outcome.seconds)
            if fail_fast and not outcome.passed:
                stop.now(STOPPED)
            on_change(batch)
    batch.ended, batch.interrupted = datetime.now().astimezone(), stop.why() == INTERRUPTED
    on_change(batch)
    return batch


def hold_to_ranges(outcome: Outcome) -> Outcome:
    """The outcome of a notebook, failed if a result is outside the range that expected.toml beside it states.

    The ranges are those of the run's profile. They do not apply if something else than the checkpoint or the seed
    was changed, which is then noted.
    """
    run = outcome.run
    ranges = expected_beside(run.notebook).of(run.notebook.stem, run.profile)
    if not outcome.passed or not ranges:
        return outcome
    changed = [
        name for name, value in run.parameters.items() if name not in run.defaults or run.defaults[name] != value
    ]
    others = sorted(set(changed) - _KEEP_THE_RANGES)
    if others:
        return replace(outcome, note=f"ranges not applied: {', '.join(others)} changed")
    outside = violations(outcome.results, ranges)
    return replace(outcome, failure=Failure(RANGE, "; ".join(outside))) if outside else outcome


def print_table(batch: Batch, console: Console) -> None:
    """Print a table of the outcomes, and below it what failed where."""
    table = Table("notebook", "status", "seconds", "results", title="Course run")
    table.add_column("executed copy", overflow="fold")  # a path that is cut could not be opened
    for outcome in batch.outcomes:
        recorded = "\n".join(f"{name} = {value:.6g}" for name, value in outcome.results.items())
        status = _COLOURS.get(outcome.status, outcome.status)
        status += f"\n{outcome.note}" if outcome.note else ""
        copy = _shown(batch.folder / outcome.run.file_name) if outcome.copy is not None else ""
        table.add_row(escape(outcome.run.title), status, f"{outcome.seconds:.1f}", recorded, copy)
    console.print(table)
    for outcome in batch.outcomes:
        if outcome.failure:
            console.print(f"[red]{escape(outcome.run.title)} {outcome.status}:[/] ", end="", highlight=False)
            console.print(str(outcome.failure), markup=False, highlight=False, soft_wrap=True)


@contextmanager
def own_folder(folder: Path | None) -> Iterator[Path]:
    """A folder that no other batch writes to meanwhile.

    Args:
        folder: created if need be; None for a new dated one under runs/.

    Raises:
        FolderError: if it cannot be written to, or another batch is writing to it.
    """
    chosen = folder or _dated_folder()
    lock = FileLock(chosen / ".lock")
    try:
        chosen.mkdir(parents=True, exist_ok=folder is not None)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise FolderError(f"another run is writing to {chosen}; choose another folder with --output") from error
    except OSError as error:
        raise FolderError(f"the folder {chosen} cannot be written to: {error.strerror}") from error
    try:
        yield chosen
    finally:
        lock.release()


def _dated_folder() -> Path:
    name = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    names = itertools.chain([name], (f"{name}__{number}" for number in itertools.count(2)))  # two in one second
    return next(folder for folder in (runs_dir() / one for one in names) if not folder.exists())


def _shown(path: Path) -> str:
    """A path relative to the working directory where it lies below it."""
    path = path.absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
