"""Run several notebooks one after the other, showing how far they are, and report on all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
from rich.console import Console
from rich.table import Table

from course_utils.execution.bounds import expected_beside, violations
from course_utils.execution.line import progress_line
from course_utils.execution.notebook import (
    Outcome,
    UnknownParameterError,
    known_parameters,
    run_notebook,
)
from course_utils.execution.parameters import default_parameters, default_profile
from course_utils.paths import runs_dir

# Parameters under which the ranges of the results still hold; any other makes it another experiment.
_KEEP_THE_RANGES = {"profile", "checkpoint", "seed"}


def run_batch(
    notebooks: Sequence[Path], parameters: Mapping[str, Any], output_dir: Path, console: Console
) -> list[Outcome]:
    """Run notebooks in order; one that fails does not stop the others.

    Args:
        notebooks: .ipynb files.
        parameters: each goes to the notebooks that know it.
        output_dir: folder of the executed copies.
        console: where progress is shown.

    Raises:
        UnknownParameterError: if one of the notebooks does not know a parameter; before anything is run.
        ExpectedError: if the file of expected results beside a notebook has a mistake; before anything is run.
    """
    _check_parameters(notebooks, parameters)
    for notebook in notebooks:
        expected_beside(notebook)
    output_dir.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for number, notebook in enumerate(notebooks, start=1):
        with progress_line(console, f"[{number}/{len(notebooks)}] {notebook.stem}") as on_cell:
            outcome = run_notebook(notebook, output_dir / notebook.name, parameters, on_cell)
        outcome = hold_to_ranges(outcome, parameters)
        status = "[green]passed[/]" if outcome.passed else "[red]FAILED[/]"
        console.print(f"\\[{number}/{len(notebooks)}] {notebook.stem}: {status} in {outcome.seconds:.1f} s")
        outcomes.append(outcome)
    return outcomes


def hold_to_ranges(outcome: Outcome, parameters: Mapping[str, Any]) -> Outcome:
    """The outcome of a notebook, failed if a result is outside the range that expected.toml beside it states.

    Args:
        outcome: of a run.
        parameters: that were given to it. The ranges are those of its profile; they do not apply if something else
            than the checkpoint or the seed was changed, which is then noted.
    """
    source = nbformat.read(outcome.notebook, as_version=4)
    ranges = expected_beside(outcome.notebook).of(
        outcome.notebook.stem, parameters.get("profile", default_profile(source))
    )
    if not outcome.passed or not ranges:
        return outcome
    defaults = default_parameters(source)
    changed = [name for name, value in parameters.items() if name not in defaults or defaults[name] != value]
    others = sorted(set(changed) - _KEEP_THE_RANGES)
    if others:
        return replace(outcome, note=f"ranges not applied: {', '.join(others)} changed")
    return replace(outcome, error="; ".join(violations(outcome.results, ranges)))


def report(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print a table of the outcomes, and below it what failed where."""
    table = Table("notebook", "status", "seconds", "results", "executed copy", title="Course run")
    for outcome in outcomes:
        recorded = "\n".join(f"{name} = {value:.6g}" for name, value in outcome.results.items())
        status = "[green]passed[/]" if outcome.passed else "[red]FAILED[/]"
        status += f"\n{outcome.note}" if outcome.note else ""
        table.add_row(outcome.notebook.stem, status, f"{outcome.seconds:.1f}", recorded, _shown(outcome.output))
    console.print(table)
    for outcome in outcomes:
        if not outcome.passed:
            console.print(f"[red]{outcome.notebook.stem} failed:[/] ", end="")
            console.print(outcome.error, markup=False, highlight=False, soft_wrap=True)


def new_output_dir() -> Path:
    """A dated folder under runs/."""
    return runs_dir() / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")


def _check_parameters(notebooks: Sequence[Path], parameters: Mapping[str, Any]) -> None:
    for notebook in notebooks:
        known = known_parameters(notebook)
        for name in parameters:
            if name not in known:
                raise UnknownParameterError(
                    f"{notebook.name} has no parameter {name!r}; it has: {', '.join(sorted(known)) or 'none'}"
                )


def _shown(path: Path) -> str:
    """A path relative to the working directory where it lies below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
