"""What the commands `course progress` and `course grade` do."""

from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from course_utils.atomic import write_atomically
from course_utils.checks import tasks
from course_utils.checks.grades_report import PAGE, TABLE, common_mistakes, csv_of, exercises_of, page_of
from course_utils.checks.grading import GRADED, Grades, Limits, copies_in, grade
from course_utils.checks.outcome import FAILED, OPEN, PASSED

_MOST_MISTAKES = 10  # in the terminal


class NothingToGradeError(ValueError):
    """A folder without notebooks."""


def grade_folder(folder: Path, output: Path, limits: Limits, jobs: int | None, console: Console) -> int:
    """Grade a folder, write the table and the page, and print a summary.

    Returns:
        The exit code: 0 if all notebooks were graded to the end, else 1.

    Raises:
        NothingToGradeError: if there is no notebook in the folder.
        OSError: if the files cannot be written.
    """
    known = tasks()
    copies = copies_in(folder, sorted({task.notebook for task in known.values()}))
    if not copies:
        raise NothingToGradeError(f"there are no .ipynb and no .py files in {folder}")
    output.mkdir(parents=True, exist_ok=True)
    total = sum(map(len, copies.values()))
    columns = [TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        grades = grade(copies, limits, jobs, lambda student, path: progress.advance(task))
    exercises = exercises_of(grades, known)
    write_atomically(output / TABLE, csv_of(grades, exercises).encode())
    write_atomically(output / PAGE, page_of(grades, exercises, known).encode())
    _print_summary(grades, exercises, console)
    for name in (TABLE, PAGE):
        console.print(f"{output / name}", markup=False, highlight=False, soft_wrap=True)
    return int(any(one.status != GRADED for one in grades))


def _print_summary(grades: list[Grades], exercises: list[str], console: Console) -> None:
    table = Table("student", "passed", "failed", "open", "status", title="Grades")
    for one in grades:
        counts = [str(one.count(state, exercises)) for state in (PASSED, FAILED, OPEN)]
        table.add_row(*map(escape, [one.student, *counts, one.status]))
    console.print(table)
    mistakes = common_mistakes(grades)
    if mistakes:
        common = Table("students", "exercise", "diagnosis", title="What went wrong most often")
        for mistake in mistakes[:_MOST_MISTAKES]:
            common.add_row(*map(escape, [str(len(mistake.students)), mistake.exercise, mistake.diagnosis]))
        console.print(common)
    states = Counter(one.status == GRADED for one in grades)
    console.print(f"{states[True]} of {len(grades)} students graded to the end", highlight=False)
