"""The `course` command."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from course_utils.paths import anchor

if TYPE_CHECKING:
    from rich.console import Console

    from course_utils.execution.batch import Engine
    from course_utils.execution.line import Lines
    from course_utils.execution.outcome import Outcome
    from course_utils.execution.plan import Run
    from course_utils.execution.stopping import Stop
    from course_utils.execution.watch import Limits
    from course_utils.registry import Entry


@click.group()
@click.version_option(package_name="transformer-course")
def main() -> None:
    """Run the Transformer course in batches."""


@main.command()
@click.argument("notebooks", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-p",
    "parameters",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="Set a parameter of all notebooks, or as NOTEBOOK.NAME of one (repeatable).",
)
@click.option(
    "-f",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Set the parameters of a YAML file; -p goes before it.",
)
@click.option("--sweep", "sweeps", multiple=True, metavar="NAME=V1,V2,...", help="Run with each value (repeatable).")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the executed copies and the report.  [default: a dated one under runs/]",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Notebooks at the same time.  [default: one on each core]")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds that a notebook may take.")
@click.option("--cell-timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds that a cell may take.")
@click.option(
    "--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True, help="What runs them."
)
@click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler; without it, --engine dask starts workers here.")
@click.option("--fail-fast", is_flag=True, help="Stop all as soon as one has failed.")
def run(
    notebooks: tuple[Path, ...],
    parameters: tuple[tuple[str, str], ...],
    files: tuple[Path, ...],
    sweeps: tuple[str, ...],
    output: Path | None,
    jobs: int | None,
    timeout: float | None,
    cell_timeout: float | None,
    engine: str,
    scheduler: str | None,
    fail_fast: bool,
) -> None:
    """Execute NOTEBOOKS, .ipynb or .py (default: all of the course), and print a table of the outcomes.

    Exit code: 0 if all passed, 1 if one failed, 2 for wrong usage, 130 if interrupted.
    """
    # Imported here, so that `course --help` answers at once.
    from course_utils.execution.batch import FolderError, own_folder, print_table, run_batch
    from course_utils.execution.plan import PlanError, plan
    from course_utils.execution.report import remove_earlier_report, write_report
    from course_utils.execution.settings import SettingError, settings_of_file, typed_setting, typed_sweep
    from course_utils.execution.watch import Limits

    chosen = notebooks or tuple(sorted((anchor() / "notebooks").glob("*.ipynb")))
    if not chosen:
        raise click.UsageError("no notebooks given, and there is no folder notebooks/ with some here")
    console = _console()
    try:
        settings = [setting for file in files for setting in settings_of_file(file)]
        settings += [typed_setting(name, text) for name, text in parameters]
        runs = plan(chosen, settings, [typed_sweep(text) for text in sweeps])
        with own_folder(output) as folder:
            remove_earlier_report(folder)
            work = _engine(engine, scheduler, folder, Limits(timeout, cell_timeout), jobs)
            batch = run_batch(runs, work, folder, console, fail_fast, on_change=write_report)
    except (SettingError, PlanError, FolderError) as error:
        raise click.UsageError(str(error)) from error
    except KeyboardInterrupt as error:  # before the first kernel, or twice
        raise SystemExit(130) from error
    print_table(batch, console)
    console.print(f"Report: {folder / 'index.html'}", markup=False, highlight=False, soft_wrap=True)
    raise SystemExit(batch.exit_code)


@main.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
def results(path: Path) -> None:
    """Print the results of an executed copy, or of all in the folder of a run, a line each.

    Exit code: 0 if they could be read, 1 if a result is recorded twice, 2 if PATH is neither.
    """
    from course_utils.execution.recorded import NoResultsError, lines_of

    try:
        lines = lines_of(path)
    except NoResultsError as error:
        raise click.UsageError(str(error)) from error
    except ValueError as error:
        raise click.ClickException(f"{path.name}: {error}") from error
    for line in lines:
        click.echo(line)


@main.command()
@click.argument("sources", metavar="[NOTEBOOK.py]...", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit with 1 if a notebook is not in step.")
def sync(sources: tuple[Path, ...], only_check: bool) -> None:
    """Bring the .ipynb beside each NOTEBOOK.py (default: all of the course) in step with it.

    A notebook is executed only where its code, or a library file that it depends on, has changed. One with exercises
    also has a student copy, without solutions, in the folder exercises/ beside that of the notebooks.
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
    copies_in_step = _sync_student_copies(chosen, only_check, whole_course=not sources)
    if not (in_step and copies_in_step):
        raise SystemExit(1)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Also write it to this file, as XML.")
def progress(as_json: bool, junit: Path | None) -> None:
    """Show which exercises are done, tried and open on this computer.

    The outcomes of checks are kept in a file, which the environment variable PATH_PROGRESS may name.
    """
    from course_utils.atomic import write_atomically
    from course_utils.checks import tasks
    from course_utils.checks.progress import standings
    from course_utils.checks.standing_report import json_of, junit_of, table_of

    known, found = tasks(), standings()
    if junit is not None:
        try:
            write_atomically(junit, junit_of(known, found))
        except OSError as error:
            raise click.UsageError(f"{junit} cannot be written: {error.strerror}") from error
    if as_json:
        click.echo(json_of(known, found))
    else:
        _console().print(table_of(known, found))


@main.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), help="Folder of the reports.  [default: FOLDER]"
)
@click.option("--jobs", type=click.IntRange(min=1), help="Notebooks at the same time.  [default: one on each core]")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300,
    show_default=True,
    help="Seconds that a notebook may take.",
)
@click.option(
    "--cell-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    help="Seconds that a cell may take.",
)
@click.option(
    "--memory",
    type=click.FloatRange(min=0.5),
    default=4,
    show_default=True,
    help="GiB that a notebook may take.",
)
def grade(
    folder: Path, output: Path | None, jobs: int | None, timeout: float, cell_timeout: float, memory: float
) -> None:
    """Grade the student notebooks in FOLDER: one file, or one folder of files, for each student.

    Writes grades.csv, with a diagnosis for each exercise, and grades.html, with what the class gets wrong most often.
    Exit code: 0 if all were graded to the end, whatever the marks, 1 if one was not, 2 for wrong usage, 130 if
    interrupted.
    """
    from course_utils.checks.commands import NothingToGradeError, grade_folder
    from course_utils.checks.grading import Limits

    limits = Limits(timeout, cell_timeout, int(memory * 2**30))
    try:
        code = grade_folder(folder, output or folder, limits, jobs, _console())
    except NothingToGradeError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(f"the reports cannot be written: {error}") from error
    except KeyboardInterrupt as error:
        raise SystemExit(130) from error
    raise SystemExit(code)


@main.command()
@click.option("--images", default="cifar100", show_default=True, help="The image set.")
@click.option("--backbone", default="efficientnet_lite0", show_default=True, help="What turns an image into features.")
@click.option("--size", type=click.IntRange(min=1), help="Pixels to bring images to.  [default: the backbone's]")
@click.option("--mirrored", is_flag=True, help="Exchange left and right of the images.")
@click.option("--precision", default="float32", show_default=True, help="float32 or bfloat16, which is faster.")
@click.option("--shard", metavar="I/N", default="1/1", help="Do only the part I of N, so that machines share the work.")
@click.option("--workers", type=click.IntRange(min=1), help="Batches at the same time on a CPU.  [default: its cores]")
def features(
    images: str, backbone: str, size: int | None, mirrored: bool, precision: str, shard: str, workers: int | None
) -> None:
    """Compute features of images once and keep them, in the folder PATH_FEATURES.

    It can be stopped at any time, and goes on where it was. Parts made on several machines become one where the
    folders of chunks that they leave are copied together, and the command is called without --shard.
    Exit code: 0 if all went well, 1 if images or packages are missing, 2 for wrong usage.
    """
    from course_utils.feature_cache import command

    try:
        command(images, backbone, size, mirrored, precision, shard, workers, say=click.echo)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except (ImportError, OSError) as error:
        raise click.ClickException(str(error)) from error


@main.group(invoke_without_command=True)
@click.pass_context
def checkpoints(context: click.Context) -> None:
    """List the checkpoints: name, state (verified, missing or unrecognised), size and recorded metrics."""
    if context.invoked_subcommand is None:
        _show_checkpoints([])


@checkpoints.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
def fetch(names: tuple[str, ...]) -> None:
    """Bring the checkpoints NAME (default: all) into the checkpoint folder, verified.

    Exit code: 0 if all are there, 1 if one is not, 2 for wrong usage.
    """
    from course_utils.checkpoint_files import CheckpointMissingError
    from course_utils.checkpoint_files import fetch as fetch_file

    failed = False
    for entry in _registered_checkpoints(names):
        try:
            click.echo(f"{entry.name}: {fetch_file(entry.name)}")
        except CheckpointMissingError as error:
            failed = True
            click.echo(f"{entry.name}: {error}", err=True)
    if failed:
        raise SystemExit(1)


@checkpoints.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--measure", is_flag=True, help="Measure the recorded metrics again, too.")
def verify(names: tuple[str, ...], measure: bool) -> None:
    """Check that the files of the checkpoints NAME (default: all) are the registered ones. Changes nothing.

    Exit code: 0 if so, 1 if one is unrecognised or a metric has left the registry's value by more than 0.01,
    2 for wrong usage. A missing file is no failure.
    """
    from course_utils.upkeep import failures_of

    entries = _show_checkpoints(names)
    failures = failures_of(entries, measure=measure, say=click.echo)
    for failure in failures:
        click.echo(failure, err=True)
    if failures:
        raise SystemExit(1)


@checkpoints.command()
@click.argument("name")
def make(name: str) -> None:
    """Train the checkpoint NAME anew with its recorded command, and bring the registry up to date."""
    from course_utils.upkeep import make as make_anew

    (entry,) = _registered_checkpoints([name])
    try:
        metrics = make_anew(entry)
    except (ValueError, ImportError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{name}: {', '.join(f'{metric} = {value:.4f}' for metric, value in metrics.items())}")


def _registered_checkpoints(names: Sequence[str]) -> list["Entry"]:
    """The registry's entries of these names; of none, all."""
    from course_utils.registry import read

    try:
        entries = read()
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for name in names:
        if name not in entries:
            raise click.UsageError(f"there is no checkpoint {name!r}; there are: {', '.join(entries)}")
    return [entries[name] for name in names or entries]


def _show_checkpoints(names: Sequence[str]) -> list["Entry"]:
    """Print a table of these checkpoints, or of all."""
    from rich.console import Console

    from course_utils.upkeep import table_of

    entries = _registered_checkpoints(names)
    Console().print(table_of(entries))
    return entries


def _sync_student_copies(sources: Sequence[Path], only_check: bool, whole_course: bool) -> bool:
    """Bring the student copies in step, or only check them; whether all of them are."""
    from course_utils.execution.source import SourceError
    from course_utils.execution.student_copy import copy_problem, leftover_copies, write_copy

    problems = leftover_copies(sources) if whole_course else []
    for source in sources:
        if only_check:
            problems += filter(None, [copy_problem(source)])
            continue
        try:
            if done := write_copy(source):
                click.echo(f"{source.stem}: {done}")
        except (SourceError, SyntaxError) as error:
            problems.append(f"{source.name}: {error}")
    for problem in problems:
        click.echo(problem)
    return not problems


def _engine(name: str, scheduler: str | None, folder: Path, limits: "Limits", jobs: int | None) -> "Engine":
    """What runs the notebooks of a batch."""
    if name == "local":
        if scheduler:
            raise click.UsageError("--scheduler is for --engine dask")
        from course_utils.execution.local import run_locally

        return lambda runs, lines, stop: run_locally(runs, folder, limits, jobs, lines, stop)
    if scheduler and jobs:
        raise click.UsageError("--jobs does not go with --scheduler: as many notebooks run as its workers have threads")
    try:
        from course_utils.execution.cluster import ClusterError, run_on_cluster
    except ImportError as error:
        raise click.UsageError(
            f"--engine dask needs {error.name}: pip install 'transformer-course[cluster]'"
        ) from error

    def run(runs: "Sequence[Run]", lines: "Lines", stop: "Stop") -> "Iterator[Outcome]":
        try:
            yield from run_on_cluster(runs, folder, limits, jobs, scheduler, lines, stop)
        except ClusterError as error:
            raise click.UsageError(str(error)) from error

    return run


def _console() -> "Console":
    """The terminal, or a log."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = 120  # a log has no width of its own
    return console
