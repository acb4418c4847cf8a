"""A check as a notebook calls it: the answer is judged, the outcome kept as progress and handed back."""

from collections.abc import Callable
from typing import Any

from course_utils.checks import progress
from course_utils.checks.choice_check import check_choice
from course_utils.checks.exercise import Choice, Exercise, Task
from course_utils.checks.function_check import check_function
from course_utils.checks.outcome import Outcome
from course_utils.checks.quantity_check import check_quantity


def judge(task: Task, answer: Any, **measured: Any) -> Outcome:
    """Judge an answer; nothing is kept.

    Args:
        task: the exercise.
        answer: a function, a label or a number, as the exercise asks.
        measured: for a number about a measurement.
    """
    if isinstance(task, Exercise):
        return check_function(task, answer)
    if isinstance(task, Choice):
        return check_choice(task, answer)
    return check_quantity(task, answer, **measured)


def check_of(task: Task) -> Callable[..., Outcome]:
    """The function that `course_utils.checks` gives for an exercise."""

    def check(answer: Any = None, **measured: Any) -> Outcome:
        outcome = judge(task, answer, **measured)
        progress.note(outcome)
        return outcome

    check.__name__ = check.__qualname__ = task.name
    check.__doc__ = f"Check the exercise “{task.title}” of {task.notebook} ({task.difficulty}, {task.minutes} minutes)."
    return check
