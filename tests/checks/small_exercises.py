"""A small exercise of each kind, to test what surrounds them."""

import torch
import torch.nn.functional as F

from course_utils.checks.exercise import Case, Choice, Exercise, Law, Mistake, Option, Quantity, WrongValue

HEAD = {"notebook": "01_attention", "section": "By hand", "difficulty": "easy", "minutes": 5}


def _cases(rng):
    yield Case((torch.from_numpy(rng.normal(size=(2, 3, 4))).float(),))
    yield Case((torch.tensor([[1.0, 2.0], [3.0, 5.0]]),), note="two by two")
    yield Case((torch.from_numpy(rng.normal(size=(1, 5))).float(),), note="one row")


def _sums_to_one(case, output):
    return bool(torch.allclose(output.sum(-1), torch.ones(output.shape[:-1])))


WEIGHTS = Exercise(
    name="weights",
    title="Weights from scores",
    **HEAD,
    oracle=lambda scores: F.softmax(scores, -1),
    cases=_cases,
    mistakes=(
        Mistake("softmax over the queries", lambda s: s.softmax(-2), "Which sums should be 1?"),
        Mistake("no exponential", lambda s: s / s.sum(-1, keepdim=True), "Can a score be negative?"),
        Mistake("not normalised", lambda s: s.exp(), "What do the weights sum to?"),
    ),
    covered="matrices and batches",
    laws=(Law("each row sums to 1", _sums_to_one),),
    seconds=60.0,  # the machine may be busy
)

WHY = Choice(
    name="why",
    title="Why scale?",
    **HEAD,
    options={
        "a": Option(False, "The mean is 0 with and without."),
        "b": Option(True, "The variance grows with the width."),
        "c": Option(False, "It costs a division more."),
    },
)

TIMES = Quantity(
    name="times",
    title="Twice as long",
    **HEAD,
    expected=lambda seconds: 4 * seconds,
    wrong_values=(
        WrongValue("grows with the length", lambda seconds: 2 * seconds, "How many scores are there?"),
        WrongValue("grows with its third power", lambda seconds: 8 * seconds, "How many scores are there?"),
        WrongValue("the time of now", lambda seconds: seconds, "Twice as long."),
    ),
    covered="the square",
    unit="s",
)
