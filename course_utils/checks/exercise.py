"""The three kinds of exercises: a function to write, a choice between statements, a number to find.

Each is plain data. What makes a check of it stands in `function_check`, `choice_check` and `quantity_check`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

DIFFICULTIES = ("easy", "medium", "hard")


@dataclass(frozen=True)
class Case:
    """One input of a function.

    Attributes:
        arguments: what the function is called with, by position, so that learners may name theirs as they like.
        keywords: arguments by name, where the exercise prescribes the name.
        note: what is special about this input, in a few words ("one head", "a row that sees nothing"); may be empty.
    """

    arguments: tuple
    keywords: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Mistake:
    """A common mistake in a function, which is recognised by its effect.

    It is named only where the answer gives what `wrong` gives on every case, and where no other mistake does that.

    Attributes:
        name: what the answer does, in a few words ("softmax over the queries").
        wrong: an implementation that makes it, called like the answer.
        advice: what to think about; never the solution.
    """

    name: str
    wrong: Callable
    advice: str


@dataclass(frozen=True)
class Law:
    """A property that each right output has.

    Attributes:
        name: the property as the end of "it should be that ..." ("each row sums to 1").
        holds: called with the case and the output (tensors and arrays as the answer gave them); whether it holds.
    """

    name: str
    holds: Callable[[Case, Any], bool]


@dataclass(frozen=True)
class _Task:
    """What all kinds have in common.

    Attributes:
        name: by which `course_utils.checks` knows it: an identifier, unique in the course.
        title: a short heading.
        notebook: stem of the notebook that it stands in ("01_attention").
        section: the heading in that notebook which tells what is needed.
        difficulty: easy, medium or hard.
        minutes: how long it takes.
    """

    name: str
    title: str
    notebook: str
    section: str
    difficulty: str
    minutes: int

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"an exercise's name must be an identifier such as multihead_split, got {self.name!r}")
        if self.difficulty not in DIFFICULTIES:
            raise ValueError(f"the difficulty of {self.name} must be one of {DIFFICULTIES}, got {self.difficulty!r}")


@dataclass(frozen=True)
class Exercise(_Task):
    """A function to write.

    The inputs lie in `cases`; the right outputs come from `oracle`, which must not use the course's own layers.
    Outputs may be tensors, arrays, numbers, texts, None, and tuples, lists or dicts of these. A list passes for a
    tuple, an array for a tensor, and another number type where the numbers agree, unless `exact_type` is set.

    Attributes:
        oracle: the right function, by PyTorch's own or NumPy's means; None where the laws alone decide.
        cases: called with a seeded generator; fixed inputs and random ones, edge cases, odd sizes, small ones first.
        mistakes: the common ones, three or more.
        covered: what the cases hold, for those who pass ("1 to 4 heads, odd lengths, a batch of none").
        rtol, atol: how far a number may be from the oracle's.
        laws: properties of right outputs, told to a learner whose output breaks one.
        exact_type: whether the kind of number (boolean, integer, float) must be the oracle's as well.
        seconds: for all cases together.
    """

    oracle: Callable | None
    cases: Callable[[np.random.Generator], Iterable[Case]]
    mistakes: tuple[Mistake, ...]
    covered: str
    rtol: float = 1e-4
    atol: float = 1e-5
    laws: tuple[Law, ...] = ()
    exact_type: bool = False
    seconds: float = 10.0


@dataclass(frozen=True)
class Option:
    """One statement to choose.

    Attributes:
        right: whether it is true.
        explanation: why; shown to the one who chooses it, so it must not tell which other one is right.
    """

    right: bool
    explanation: str


@dataclass(frozen=True)
class Choice(_Task):
    """A choice between statements; the statements themselves stand in the notebook.

    The answer is a label ("b"), or several (["a", "c"] or "ac") where more than one is right.

    Attributes:
        options: the statements by their label, a single lower-case letter.
    """

    options: Mapping[str, Option]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(option.right for option in self.options.values()):
            raise ValueError(f"none of the options of {self.name} is right")
        if odd := [label for label in self.options if len(label) != 1 or not label.islower()]:
            raise ValueError(f"the labels of {self.name} must be single lower-case letters, got {odd}")


@dataclass(frozen=True)
class WrongValue:
    """A number that comes of a common mistake.

    Attributes:
        name: the mistake in a few words ("forgets the biases").
        value: the number, or a function of what the notebook measured.
        advice: what to think about; never the solution.
    """

    name: str
    value: float | Callable[..., float]
    advice: str


@dataclass(frozen=True)
class Quantity(_Task):
    """A number to find: `checks.NAME(answer)`, or `checks.NAME(answer, seconds=measured)` about a measurement.

    Attributes:
        expected: the right number, or a function of the keyword arguments that the check is called with.
        wrong_values: the common mistakes, three or more.
        covered: what the right answer shows, for those who pass.
        rtol, atol: how far the answer may be off.
        unit: of the number; may be empty.
    """

    expected: float | Callable[..., float]
    wrong_values: tuple[WrongValue, ...]
    covered: str = ""
    rtol: float = 1e-2
    atol: float = 0.0
    unit: str = ""


Task = Exercise | Choice | Quantity
