"""What a check says of a choice and of a number."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from small_exercises import HEAD, TIMES, WHY

from course_utils.checks.choice_check import check_choice
from course_utils.checks.exercise import Choice, Exercise, Option, Quantity, WrongValue
from course_utils.checks.function_check import CheckBrokenError
from course_utils.checks.outcome import FAILED, OPEN, PASSED
from course_utils.checks.quantity_check import check_quantity

BOTH = dataclasses.replace(WHY, options={**WHY.options, "c": Option(True, "So is this.")})


@pytest.mark.parametrize("answer", [None, ..., "", [], set()])
def test_no_choice_is_open(answer):
    outcome = check_choice(WHY, answer)
    assert (outcome.state, outcome.message) == (OPEN, "Choose from 'a', 'b', 'c', then run this check again.")


@pytest.mark.parametrize("answer", ["b", " B ", "(b)", ["b"], {"b"}, ("b",), np.array(["b"])])
def test_the_right_choice_passes_and_all_are_explained(answer):
    outcome = check_choice(WHY, answer)
    assert outcome.state == PASSED
    assert outcome.message == (
        "(b) The variance grows with the width. (a) The mean is 0 with and without. (c) It costs a division more."
    )


def test_a_wrong_choice_is_explained_without_telling_the_right_one():
    outcome = check_choice(WHY, "a")
    assert (outcome.state, outcome.diagnosis) == (FAILED, "chose a")
    assert outcome.message == "(a) The mean is 0 with and without."
    assert "variance" not in str(outcome)
    assert "(b)" not in str(outcome)


@pytest.mark.parametrize("answer", ["d", "bd", 2, ["b", 2], torch.ones(2), object(), "the second one", ["abc"]])
def test_what_is_no_choice_is_told(answer):
    outcome = check_choice(WHY, answer)
    assert (outcome.state, outcome.diagnosis) == (FAILED, "no such choice")
    assert outcome.message.endswith("is none of 'a', 'b', 'c'.")


def test_all_right_ones_are_wanted_where_there_are_several():
    assert check_choice(BOTH, "bc").passed
    assert check_choice(BOTH, "c, b").passed
    assert check_choice(BOTH, {"c", "b"}).passed
    assert check_choice(BOTH, "b").diagnosis == "right, but not all"
    assert check_choice(BOTH, "abc").diagnosis == "chose a"


@pytest.mark.parametrize("answer", [None, ..., NotImplemented])
def test_no_number_is_open(answer):
    assert check_quantity(TIMES, answer, seconds=2.0).state == OPEN


@pytest.mark.parametrize("answer", [8, 8.0, 8.05, np.float32(8), np.array([8]), torch.tensor(8.0), torch.tensor([[8]])])
def test_the_right_number_passes(answer):
    outcome = check_quantity(TIMES, answer, seconds=2.0)
    assert (outcome.state, outcome.covered) == (PASSED, "the square")
    assert outcome.message in {"8 s is right.", "8.05 s is right."}


@pytest.mark.parametrize(("answer", "name"), [(4, TIMES.wrong_values[0].name), (16, TIMES.wrong_values[1].name)])
def test_the_number_of_a_common_mistake_is_named(answer, name):
    outcome = check_quantity(TIMES, answer, seconds=2.0)
    assert (outcome.state, outcome.diagnosis, outcome.advice) == (FAILED, name, "How many scores are there?")
    assert outcome.message == f"{answer} s is the number that comes of this: {name}."


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (9, "9 s is not the number. It is too large."),
        (7, "7 s is not the number. It is too small."),
        (-8, "-8 s is not the number. Its sign should be the other one."),
    ],
)
def test_another_number_is_not_named_and_the_right_one_not_told(answer, message):
    outcome = check_quantity(TIMES, answer, seconds=2.0)
    assert (outcome.diagnosis, outcome.message, outcome.example) == ("not equal", message, None)


def test_two_mistakes_with_one_number_are_not_told_apart():
    other = WrongValue("adds instead of multiplying", lambda seconds: 2 * seconds, "What is four times two?")
    outcome = check_quantity(dataclasses.replace(TIMES, wrong_values=(*TIMES.wrong_values, other)), 4, seconds=2.0)
    assert outcome.diagnosis == "not equal"


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ("8", "a text"),
        (True, "True or False"),
        (math.nan, "NaN"),
        (math.inf, "infinite"),
        (10**400, "infinite"),
        (3 + 4j, "a number"),
        ([8], "a list of 1"),
        (torch.ones(2), "a tensor of shape [2]"),
        (torch.ones(1, device="meta"), "a tensor of shape [1]"),
        (lambda: 8, "an object of type function"),
    ],
)
def test_what_is_no_number_is_told(answer, what):
    outcome = check_quantity(TIMES, answer, seconds=2.0)
    assert (outcome.state, outcome.diagnosis) == (FAILED, "not a number")
    assert outcome.message == f"The answer is one finite number; this is {what}."


def test_a_missing_measurement_is_not_blamed_on_the_answer():
    with pytest.raises(CheckBrokenError, match=r"times could not compute what it expects from \[\].*Run the cells"):
        check_quantity(TIMES, 8)


def test_exercises_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="must be an identifier"):
        Quantity(name="two words", title="", **HEAD, expected=1.0, wrong_values=())
    with pytest.raises(ValueError, match="difficulty of x must be one of"):
        Quantity(name="x", title="", **{**HEAD, "difficulty": "fair"}, expected=1.0, wrong_values=())
    with pytest.raises(ValueError, match="none of the options of x is right"):
        Choice(name="x", title="", **HEAD, options={"a": Option(False, "")})
    with pytest.raises(ValueError, match=r"single lower-case letters, got \['A'\]"):
        Choice(name="x", title="", **HEAD, options={"A": Option(True, "")})
    with pytest.raises(TypeError):
        Exercise(name="x", title="", **HEAD)
