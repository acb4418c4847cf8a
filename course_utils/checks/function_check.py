"""Check a function that a learner has written: run it on every case, hold it against the oracle, say what is wrong.

A mistake is named only where its effect is exactly the answer's, on all cases, and no other known mistake has the same.
All else is told as what it is: the smallest input that shows it, with what was got and what was expected.
"""

import copy
import dis
import hashlib
import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np
import torch

from course_utils.checks import equality
from course_utils.checks.call import Call, Raised, call, is_recursion, shown_name
from course_utils.checks.equality import Difference, compare, kind_of
from course_utils.checks.exercise import Case, Exercise
from course_utils.checks.observations import observations
from course_utils.checks.outcome import FAILED, OPEN, PASSED, Example, Outcome
from course_utils.checks.surroundings import own_surroundings
from course_utils.checks.wording import shown, shown_call

ENDLESS, CHANGES_INPUT, NOT_A_FUNCTION, ARGUMENTS, CHANGEABLE, LAW = (
    "does not come to an end",
    "changes its input",
    "not a function",
    "wrong arguments",
    "differs from call to call",
    "breaks a law",
)
_SHORTEST = 0.2  # seconds left for a case, at least


class CheckBrokenError(RuntimeError):
    """The check itself could not be made; that says nothing about the answer."""


@dataclass(frozen=True)
class _Tried:
    """A case, what the answer made of it, and what the oracle did."""

    case: Case
    call: Call
    expected: Any


@dataclass(frozen=True)
class _Fault:
    """What is wrong on one case."""

    tried: _Tried
    diagnosis: str
    message: str
    advice: str = ""


def check_function(exercise: Exercise, answer: Any, seconds: float | None = None) -> Outcome:
    """Check a function.

    Args:
        exercise: with its cases, oracle and mistakes.
        answer: the learner's function, or whatever stands in its place.
        seconds: for all cases together; by default what the exercise says.

    Raises:
        CheckBrokenError: if the cases or the oracle fail, as they do where PyTorch itself was tampered with.
    """
    report = Outcome(exercise.name, exercise.title, exercise.notebook, exercise.section, FAILED)
    if answer is None or answer is Ellipsis or answer is NotImplemented or is_stub(answer):
        return _still_open(report)
    if not callable(answer):
        message = f"The check needs the function itself, and got {kind_of(answer)}."
        return replace(report, diagnosis=NOT_A_FUNCTION, message=message, advice="Hand it over without calling it.")
    with own_surroundings():
        tried = _try_all(exercise, answer, exercise.seconds if seconds is None else seconds)
        if any(_is_not_written(one.call.raised) for one in tried):
            return _still_open(report)
        faults = [fault for one in tried if (fault := _fault(exercise, answer, one))]
        if not faults:
            return replace(report, state=PASSED, covered=exercise.covered, message="All examples agree.")
        mistake = _only_mistake_with_this_effect(exercise, tried, [fault.tried for fault in faults])
        fault = min(faults, key=lambda fault: _size(fault.tried.case))
        said = observations(_pairs(exercise, tried), exercise.rtol, exercise.atol)
        if mistake:
            message = f"Your answer gives exactly what comes of this: {mistake.name}."
            fault = replace(fault, diagnosis=mistake.name, message=message, advice=mistake.advice)
            said = ()
        elif fault.diagnosis == equality.VALUES and _differs_from_call_to_call(exercise, answer, fault.tried):
            message = "Two calls with the same input give different outputs."
            advice = "Is something random in it, or kept from one call to the next?"
            fault, said = replace(fault, diagnosis=CHANGEABLE, message=message, advice=advice), ()
        return _told(report, exercise, answer, fault, said)


def is_stub(answer: Any) -> bool:
    """Whether a function has no body yet: only a docstring, `pass`, `...` or `return`."""
    function = inspect.unwrap(answer) if callable(answer) else None
    if isinstance(function, types.MethodType):
        function = function.__func__
    if not isinstance(function, types.FunctionType):
        return False
    idle = {"RESUME", "NOP", "POP_TOP", "RETURN_VALUE", "RETURN_CONST", "COPY_FREE_VARS", "LOAD_CONST", "CACHE"}
    instructions = list(dis.get_instructions(function))
    constants = [i.argval for i in instructions if i.opname in {"LOAD_CONST", "RETURN_CONST"}]
    return all(i.opname in idle for i in instructions) and all(c in (None, Ellipsis) for c in constants)


def cases_of(exercise: Exercise) -> list[Case]:
    """The cases of an exercise, the same each time.

    Raises:
        CheckBrokenError: if they cannot be made.
    """
    seed = int(hashlib.sha256(exercise.name.encode()).hexdigest()[:8], 16)
    torch.manual_seed(seed)
    try:
        return list(exercise.cases(np.random.default_rng(seed)))
    except Exception as error:
        raise _broken(exercise, error) from error


def _try_all(exercise: Exercise, answer: Callable, seconds: float) -> list[_Tried]:
    """Call the answer on each case, until it takes too long."""
    cases = cases_of(exercise)
    expected = [_expected(exercise, case) for case in cases]
    tried, end = [], monotonic() + seconds
    for case, right in zip(cases, expected, strict=True):
        tried.append(_Tried(case, call(answer, case, max(end - monotonic(), _SHORTEST)), right))
        if tried[-1].call.out_of_time or _is_not_written(tried[-1].call.raised):
            break
    return tried


def _expected(exercise: Exercise, case: Case) -> Any:
    if exercise.oracle is None:
        return None
    arguments, keywords = copy.deepcopy((case.arguments, dict(case.keywords)))
    try:
        return exercise.oracle(*arguments, **keywords)
    except Exception as error:
        raise _broken(exercise, error) from error


def _broken(exercise: Exercise, error: Exception) -> CheckBrokenError:
    return CheckBrokenError(
        f"the check {exercise.name} could not compute what it expects, which says nothing about your answer: "
        f"{type(error).__name__}: {error}. If you have changed functions of PyTorch or NumPy, restart the kernel"
    )


def _is_not_written(raised: Raised | None) -> bool:
    return raised is not None and raised.kind is NotImplementedError and raised.in_answer


def _fault(exercise: Exercise, answer: Callable, tried: _Tried) -> _Fault | None:
    """What is wrong on one case; None if nothing is."""
    made = tried.call
    if made.out_of_time:
        message = "It was stopped, as it took too long on this example. Does each loop come to its end?"
        return _Fault(tried, ENDLESS, message)
    if made.raised:
        return _of_exception(answer, tried, made.raised)
    difference = None
    if exercise.oracle is not None:
        difference = compare(made.value, tried.expected, exercise.rtol, exercise.atol, exercise.exact_type)
    elif made.value is None:
        difference = Difference(equality.NOTHING, "The output is None.")
    if difference:
        message, advice = difference.message, ""
        if difference.kind == equality.NOTHING:
            advice = "Does each way through the function end in a return?"
        elif inspect.isgenerator(made.value) or isinstance(made.value, types.CoroutineType):
            advice = "It should return its result: without yield, and without async."
        elif difference.kind == equality.NAN:
            advice = "NaN comes of 0 times infinity, infinity minus infinity, or 0 divided by 0."
        elif made.changed:
            advice = f"It also changes {_changed_arguments(answer, made)} in place."
        elif broken := _broken_law(exercise, tried):
            advice = f"It should be that {broken}; here it is not."
        return _Fault(tried, difference.kind, message, advice)
    if made.changed:
        names = _changed_arguments(answer, made)
        message = f"The output is right, but {names} is not what it was before the call."
        return _Fault(tried, CHANGES_INPUT, message, "Whoever calls the function still needs what was handed over.")
    if broken := _broken_law(exercise, tried):
        return _Fault(tried, LAW, f"It should be that {broken}; here it is not.")
    return None


def _of_exception(answer: Callable, tried: _Tried, raised: Raised) -> _Fault:
    if issubclass(raised.kind, TypeError) and (reason := _cannot_be_called_so(answer, tried.case)):
        return _Fault(tried, ARGUMENTS, reason, "The exercise says which arguments the function takes.")
    name = shown_name(raised.kind)
    text = f"It raises {name}" + (f": {raised.message}" if raised.message else "")
    text += f" ({raised.line})" if raised.line else ""
    advice = "The function calls itself without end." if is_recursion(raised) else ""
    return _Fault(tried, f"raises {name}", text if text.endswith((".", ")")) else f"{text}.", advice)


def _cannot_be_called_so(answer: Callable, case: Case) -> str:
    """Why the function cannot take the arguments of a case; empty if it can, or if its signature is not known."""
    try:
        signature = inspect.signature(answer)
    except (ValueError, TypeError):
        return ""
    try:
        signature.bind(*case.arguments, **case.keywords)
    except TypeError:
        count = len(case.arguments)
        names = "".join(f", and by name {name}" for name in case.keywords)
        parameters = list(signature.parameters)
        takes = f"takes ({', '.join(parameters)})" if parameters else "takes none"
        return f"It is called with {count} argument{'s' * (count != 1)}{names}, and {takes}."
    return ""


def _changed_arguments(answer: Callable, made: Call) -> str:
    try:
        names = list(inspect.signature(answer).parameters)
    except (ValueError, TypeError):
        names = []
    words = [
        place if isinstance(place, str) else names[place] if place < len(names) else f"argument {place + 1}"
        for place in made.changed
    ]
    return " and ".join(f"`{word}`" for word in words)


def _broken_law(exercise: Exercise, tried: _Tried) -> str:
    """The first law that an output breaks; empty if it breaks none, or if they cannot be told of such an output."""
    for law in exercise.laws:
        try:
            if not law.holds(tried.case, tried.call.value):
                return law.name
        except Exception:  # the output is of another kind, which is told elsewhere
            return law.name if exercise.oracle is None else ""
    return ""


def _only_mistake_with_this_effect(exercise: Exercise, tried: Sequence[_Tried], wrong: Sequence[_Tried]) -> Any:
    """The one known mistake that gives what the answer gives on every case; None if none does, or several do."""
    if any(one.call.out_of_time for one in tried):
        return None
    if all(not one.call.raised and _tells_nothing(one.call.value) for one in tried):
        return None
    limit = max(exercise.seconds / 2, 1.0)
    matching = []
    for mistake in exercise.mistakes:
        made = ((one, call(mistake.wrong, one.case, limit)) for one in tried)
        if all(_same_effect(exercise, one.call, other) for one, other in made):
            matching.append(mistake)
    about_change = all(not one.call.raised and _right(exercise, one) for one in wrong)
    if about_change:  # outputs do not tell them apart; what they do to the input does
        matching = [m for m in matching if all(call(m.wrong, o.case, limit).changed == o.call.changed for o in tried)]
    return matching[0] if len({mistake.name for mistake in matching}) == 1 else None


def _tells_nothing(value: Any) -> bool:
    """Whether an output is NaN all over, which it may be for many reasons."""
    arrays = equality.parts(equality.plain(value))
    return bool(arrays) and all(array.dtype.kind == "f" and np.isnan(array).all() for array in arrays)


def _same_effect(exercise: Exercise, one: Call, other: Call) -> bool:
    if one.raised or other.raised or other.out_of_time:
        # The same exception with another text comes from another place, and may have another cause.
        kinds = {made.raised and (made.raised.kind, made.raised.message) for made in (one, other)}
        return len(kinds) == 1 and not other.out_of_time
    return compare(one.value, other.value, exercise.rtol, exercise.atol, exercise.exact_type) is None


def _right(exercise: Exercise, tried: _Tried) -> bool:
    return compare(tried.call.value, tried.expected, exercise.rtol, exercise.atol, exercise.exact_type) is None


def _differs_from_call_to_call(exercise: Exercise, answer: Callable, tried: _Tried) -> bool:
    again = call(answer, tried.case, max(exercise.seconds / 2, 1.0))
    return not (again.raised or again.out_of_time) and not _same_effect(exercise, tried.call, again)


def _pairs(exercise: Exercise, tried: Sequence[_Tried]) -> list[tuple[Any, Any]]:
    """Outputs and expected ones, of answers that came to their end on each case."""
    if exercise.oracle is None or any(one.call.raised or one.call.out_of_time for one in tried):
        return []
    return [(one.call.value, one.expected) for one in tried]


def _told(report: Outcome, exercise: Exercise, answer: Callable, fault: _Fault, said: tuple[str, ...]) -> Outcome:
    made = fault.tried.call
    nothing_got = made.raised is not None or made.out_of_time
    got = shown(made.value) if not nothing_got else _shown_exception(made.raised)
    example = Example(
        shown_call(answer, fault.tried.case),
        "" if fault.diagnosis == CHANGES_INPUT else got,
        "" if exercise.oracle is None or fault.diagnosis == CHANGES_INPUT else shown(fault.tried.expected),
        fault.tried.case.note,
    )
    return replace(
        report,
        diagnosis=fault.diagnosis,
        message=fault.message,
        advice=fault.advice,
        observations=said,
        example=example,
    )


def _shown_exception(raised: Raised | None) -> str:
    return shown_name(raised.kind) if raised else ""


def _still_open(report: Outcome) -> Outcome:
    return replace(
        report, state=OPEN, message="Write your answer in the cell above, run it, then run this check again."
    )


def _size(case: Case) -> int:
    """How much there is to look at in an input."""
    return sum(array.size for array in equality.parts(equality.plain(list(case.arguments)))) + len(case.arguments)
