"""The `course` command."""

import ast
from pathlib import Path
from typing import Any

import click

from course_utils.paths import anchor


@click.group()
@click.version_option(package_name="transformer-course")
def main() -> None:
    """Run the Transformer course in batches."""


@main.command()
@click.argument("notebooks", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-p", "parameters", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a notebook's parameter (repeatable)."
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the executed copies.  [default: a dated one under runs/]",
)
def run(notebooks: tuple[Path, ...], parameters: tuple[tuple[str, str], ...], output: Path | None) -> None:
    """Execute NOTEBOOKS (default: all of the course) and print a table of the outcomes.

    Exit code: 0 if all passed, 1 if one failed, 2 for wrong usage.
    """
    # Imported here, so that `course --help` answers at once.
    from rich.console import Console

    from course_utils.execution.batch import new_output_dir, report, run_batch
    from course_utils.execution.notebook import UnknownParameterError

    chosen = notebooks or tuple(sorted((anchor() / "notebooks").glob("*.ipynb")))
    if not chosen:
        raise click.UsageError("no notebooks given, and there is no folder notebooks/ with some here")
    console = Console()
    if not console.is_terminal:
        console.width = 120  # a log has no width of its own
    values = {name: _value(text) for name, text in parameters}
    try:
        outcomes = run_batch(chosen, values, output or new_output_dir(), console)
    except UnknownParameterError as error:
        raise click.UsageError(str(error)) from error
    report(outcomes, console)
    if not all(outcome.passed for outcome in outcomes):
        raise SystemExit(1)


@main.command()
@click.argument("sources", metavar="[NOTEBOOK.py]...", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit with 1 if a notebook is not in step.")
def sync(sources: tuple[Path, ...], only_check: bool) -> None:
    """Bring the .ipynb beside each NOTEBOOK.py (default: all of the course) in step with it.

    A notebook is executed only where its code, or a library file that it depends on, has changed.
    Exit code: 0 if all are in step, 1 if one is not, 2 for wrong usage.
    """
    from rich.console import Console

    from course_utils.execution.sync import check_all, sync_all

    chosen = sources or tuple(sorted((anchor() / "notebooks").glob("[0-9]*.py")))
    if not chosen:
        raise click.UsageError("no notebooks given, and there is no folder notebooks/ with some here")
    for source in chosen:
        if source.suffix != ".py":
            raise click.UsageError(f"{source} is derived or no notebook; give the .py file that it is made from")
    in_step = (check_all if only_check else sync_all)(chosen, Console())
    if not in_step:
        raise SystemExit(1)


def _value(text: str) -> Any:
    """A value as Python writes it (3, 0.1, None, [1, 2]); any other text stands for itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
