"""Check a number that a learner has found. What was expected is not told: it would be the solution."""

import math
import numbers
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from course_utils.checks.equality import VALUES, kind_of
from course_utils.checks.exercise import Quantity
from course_utils.checks.function_check import CheckBrokenError
from course_utils.checks.outcome import FAILED, OPEN, PASSED, Outcome
from course_utils.checks.surroundings import own_surroundings

NOT_A_NUMBER = "not a number"


def check_quantity(quantity: Quantity, answer: Any, **measured: Any) -> Outcome:
    """Check a number.

    Args:
        quantity: what is expected.
        answer: a number, or a tensor or array that holds a single one.
        measured: what the notebook measured, if the exercise is about that.

    Raises:
        CheckBrokenError: if a measurement is missing, or the expected number cannot be computed from it.
    """
    report = Outcome(quantity.name, quantity.title, quantity.notebook, quantity.section, FAILED)
    if answer is None or answer is Ellipsis or answer is NotImplemented:
        return replace(report, state=OPEN, message="Put your number in the cell above, then run this check again.")
    number = _number(answer)
    if number is None or not math.isfinite(number):
        what = kind_of(answer) if number is None else "NaN" if math.isnan(number) else "infinite"
        return replace(report, diagnosis=NOT_A_NUMBER, message=f"The answer is one finite number; this is {what}.")
    expected, wrong = _values(quantity, measured)
    shown = f"{number:.6g} {quantity.unit}".strip()
    if _close(quantity, number, expected):
        return replace(report, state=PASSED, covered=quantity.covered, message=f"{shown} is right.")
    matching = [w for w, value in zip(quantity.wrong_values, wrong, strict=True) if _close(quantity, number, value)]
    if len({w.name for w in matching}) == 1:
        message = f"{shown} is the number that comes of this: {matching[0].name}."
        return replace(report, diagnosis=matching[0].name, message=message, advice=matching[0].advice)
    return replace(report, diagnosis=VALUES, message=f"{shown} is not the number. {_in_which_way(number, expected)}")


def _in_which_way(number: float, expected: float) -> str:
    if number * expected < 0:
        return "Its sign should be the other one."
    return "It is too large." if number > expected else "It is too small."


def _values(quantity: Quantity, measured: dict[str, Any]) -> tuple[float, list[float]]:
    with own_surroundings():
        try:
            values = [
                float(value(**measured)) if callable(value) else float(value)
                for value in (quantity.expected, *(wrong.value for wrong in quantity.wrong_values))
            ]
        except Exception as error:
            raise CheckBrokenError(
                f"the check {quantity.name} could not compute what it expects from {sorted(measured)}, which says "
                f"nothing about your answer: {type(error).__name__}: {error}. Run the cells above it again"
            ) from error
    return values[0], values[1:]


def _number(answer: Any) -> float | None:
    """A single number in whatever holds it; None if there is none."""
    if isinstance(answer, torch.Tensor | np.ndarray | np.generic):
        if (answer.numel() if isinstance(answer, torch.Tensor) else answer.size) != 1:
            return None
        try:
            answer = answer.item()
        except RuntimeError:  # on the device meta, say
            return None
    if isinstance(answer, bool) or not isinstance(answer, numbers.Real):
        return None
    try:
        return float(answer)
    except OverflowError:
        return math.inf


def _close(quantity: Quantity, number: float, value: float) -> bool:
    return math.isfinite(value) and abs(number - value) <= quantity.atol + quantity.rtol * abs(value)
