"""Check a choice between statements; each has its own explanation."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from course_utils.checks.exercise import Choice
from course_utils.checks.outcome import FAILED, OPEN, PASSED, Outcome

NO_SUCH_CHOICE = "no such choice"
INCOMPLETE = "right, but not all"


def check_choice(choice: Choice, answer: Any) -> Outcome:
    """Check a chosen label, or several.

    Args:
        choice: with the options.
        answer: "b"; or "ac", "a, c", ["a", "c"] or a set, where more than one may be right.
    """
    report = Outcome(choice.name, choice.title, choice.notebook, choice.section, FAILED)
    nothing = answer is None or answer is Ellipsis or answer is NotImplemented
    if nothing or (isinstance(answer, str | list | tuple | set) and not answer):
        return replace(report, state=OPEN, message=f"Choose from {_listed(choice.options)}, then run this check again.")
    chosen = _labels(answer)
    if chosen is None or not chosen <= set(choice.options):
        message = f"The answer {_short(answer)} is none of {_listed(choice.options)}."
        return replace(report, diagnosis=NO_SUCH_CHOICE, message=message)
    right = {label for label, option in choice.options.items() if option.right}
    wrong = sorted(chosen - right)
    if wrong:
        explained = " ".join(f"({label}) {choice.options[label].explanation}" for label in wrong)
        return replace(report, diagnosis=f"chose {', '.join(wrong)}", message=explained)
    if chosen != right:
        return replace(report, diagnosis=INCOMPLETE, message="What you chose is right, but it is not all that is.")
    others = [label for label in choice.options if label not in right]
    explained = " ".join(f"({label}) {choice.options[label].explanation}" for label in [*sorted(right), *others])
    return replace(report, state=PASSED, message=explained)


def _labels(answer: Any) -> set[str] | None:
    """The labels in an answer; None if it is of another kind."""
    if isinstance(answer, str):
        return {letter for letter in answer.lower() if letter.isalnum()} or None
    if not isinstance(answer, Iterable):
        return None
    items = list(answer)
    if not items or not all(isinstance(item, str) and len(item.strip()) == 1 for item in items):
        return None
    return {item.strip().lower() for item in items}


def _listed(labels: Iterable[str]) -> str:
    return ", ".join(repr(label) for label in labels)


def _short(answer: Any) -> str:
    text = repr(answer) if isinstance(answer, str | int | float) else f"of type {type(answer).__name__}"
    return text if len(text) <= 40 else text[:40] + " ..."
