"""Grades as files: a table for a spreadsheet, and a page on what the class gets wrong."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jinja2

from course_utils.checks.exercise import Task
from course_utils.checks.grading import Grades, Mark
from course_utils.checks.outcome import FAILED, OPEN, PASSED

TABLE, PAGE = "grades.csv", "grades.html"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with these a spreadsheet would compute what a student has written


@dataclass(frozen=True)
class CommonMistake:
    """A diagnosis that some students have got.

    Attributes:
        exercise: its name.
        diagnosis: in a few words.
        students: their names, in order.
    """

    exercise: str
    diagnosis: str
    students: tuple[str, ...]


def exercises_of(grades: Sequence[Grades], tasks: Mapping[str, Task]) -> list[str]:
    """Names of the exercises to report on: all of the notebooks of which somebody handed in an exercise."""
    met = {name for one in grades for name in one.marks if name in tasks}
    notebooks = {tasks[name].notebook for name in met}
    return [name for name, task in tasks.items() if task.notebook in notebooks or not notebooks]


def csv_of(grades: Sequence[Grades], exercises: Sequence[str]) -> str:
    """A line for each student: counts, then state and diagnosis of each exercise.

    Args:
        grades: in the order of the lines.
        exercises: names in the order of the columns.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    columns = [column for name in exercises for column in (name, f"{name}: diagnosis")]
    writer.writerow(["student", "files", "status", *(PASSED, FAILED, OPEN), *columns])
    for one in grades:
        marks = [one.marks.get(name, Mark()) for name in exercises]
        counts = [one.count(state, exercises) for state in (PASSED, FAILED, OPEN)]
        cells = [text for mark in marks for text in (mark.state, mark.diagnosis)]
        row = [one.student, " ".join(one.files), one.status, *counts, *cells]
        writer.writerow([_harmless(cell) if isinstance(cell, str) else cell for cell in row])
    return stream.getvalue()


def common_mistakes(grades: Sequence[Grades]) -> list[CommonMistake]:
    """What went wrong how often, the most frequent first."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in grades:
        for name, mark in one.marks.items():
            if mark.state == FAILED:
                found.setdefault((name, mark.diagnosis), []).append(one.student)
    mistakes = [CommonMistake(*key, tuple(students)) for key, students in found.items()]
    return sorted(mistakes, key=lambda mistake: (-len(mistake.students), mistake.exercise, mistake.diagnosis))


def page_of(grades: Sequence[Grades], exercises: Sequence[str], tasks: Mapping[str, Task]) -> str:
    """The page on a class, in one file that needs no other.

    Args:
        grades: of all students.
        exercises: names, in the order of the course.
        tasks: all exercises by name.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("course_utils.checks", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    states = {name: Counter(one.marks.get(name, Mark()).state for one in grades) for name in exercises}
    return environment.get_template("grades.html").render(
        grades=grades,
        exercises=[tasks[name] for name in exercises],
        states=states,
        mistakes=common_mistakes(grades),
        tasks=tasks,
        no_mark=Mark(),
        signs={PASSED: "✓", FAILED: "✗", OPEN: "○"},
    )


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
