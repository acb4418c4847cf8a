"""The checks of the exercises: `checks.NAME(answer)` says what is right, or what most likely went wrong.

    from course_utils import checks

    checks.multihead_split(my_function)     # a function to write
    checks.why_scale("b")                   # a choice
    checks.cost_at_double(4.0, measured=t)  # a number

An exercise is an `Exercise`, `Choice` or `Quantity` (see exercise.py) that stands at the top level of one of the files
that `tasks` reads, one for each notebook; it needs no other registration. In a notebook's source it takes four cells,
in this order, told by their tags:

    # %% [markdown] tags=["exercise"]
    # ### Exercise 1.2: Split into heads
    # *(medium, 10 minutes)* What is to be done, with the shapes.

    # %% [markdown] tags=["hint"]
    # <details><summary>Hint 1: where to look</summary>
    #
    # Text.
    # </details>
    # ... and two more <details>, three steps in all; none is `open`.

    # %% jupyter={"source_hidden": true} tags=["solution"]
    def my_split(x, num_heads):
        \"\"\"What it does, with the shapes; the student copy keeps this.\"\"\"
        lines = "kept, as they stand before the comment `# your turn`; without that comment, nothing of the body is"
        # your turn
        return "what is replaced by: raise NotImplementedError"

    # %% tags=["check"]
    checks.multihead_split(my_split)

A solution cell holds imports (kept), functions and classes (their bodies become stubs) and assignments
(`choice = "b"` becomes `choice = ...`), nothing else; comments above its first statement are kept. A cell that is no
check and no solution must not use the names that a solution defines: after the exercise a notebook uses the library's
version. A cell tagged `course-only` does not get into the student copy; each notebook with exercises has one that says
`checks.keep_progress(False)  # the answers here are the course's own`.
"""

import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from course_utils.checks.exercise import Task
    from course_utils.checks.outcome import Outcome


def tasks() -> "dict[str, Task]":
    """All exercises by name, in the order of the notebooks and of the lines in each file.

    Raises:
        ValueError: if two exercises have the same name, or one has that of a module of this package.
    """
    from course_utils.checks import attention, beyond, encoder, reverse, sets
    from course_utils.checks.exercise import Choice, Exercise, Quantity

    found: dict[str, Task] = {}
    for room in (attention, encoder, reverse, sets, beyond):
        for value in vars(room).values():
            if not isinstance(value, Exercise | Choice | Quantity):
                continue
            if found.get(value.name, value) is not value or _is_file(value.name):
                raise ValueError(f"the name {value.name!r} in {room.__name__} is taken; give the exercise another")
            found[value.name] = value
    return found


def keep_progress(kept: bool) -> None:
    """Say whether the outcomes of this session are kept as progress; they are, unless this is called with False."""
    from course_utils.checks import progress

    progress.keep(kept)


def _is_file(name: str) -> bool:
    return importlib.util.find_spec(f"{__name__}.{name}") is not None


def __getattr__(name: str) -> "Callable[..., Outcome]":
    if name.startswith("_") or _is_file(name):  # the import statement asks here before it loads a file
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    known = tasks()
    if name in known:
        from course_utils.checks.session import check_of

        return check_of(known[name])
    import difflib

    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(known)}"
    raise AttributeError(f"there is no exercise {name!r}; {hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *tasks()})
