"""One call of a learner's function: on copies of the input, in limited time, whatever it raises."""

import contextlib
import copy
import linecache
import signal
import sysconfig
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.checks.equality import identical
from course_utils.checks.exercise import Case
from course_utils.checks.patience import AlarmError, OutOfTimeError, call_within
from course_utils.checks.quiet import quiet

_LONGEST_MESSAGE = 300
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_ENGINE = str(Path(__file__).resolve().parent)


@dataclass(frozen=True)
class Raised:
    """An exception that came out of a call.

    Attributes:
        kind: its type.
        message: its text, cut if it is long.
        line: the number of the learner's line in its cell or file, and the line itself; empty if unknown.
        in_answer: whether it arose in the learner's own code, rather than in a library or on the way into the function.
        began: whether the function began to run.
    """

    kind: type[BaseException]
    message: str
    line: str
    in_answer: bool
    began: bool


@dataclass(frozen=True)
class Call:
    """What came of a call.

    Attributes:
        value: what was returned.
        raised: what was raised, if anything.
        out_of_time: whether the call was given up.
        changed: positions (from 0) and names of the arguments that are not what they were before.
    """

    value: Any = None
    raised: Raised | None = None
    out_of_time: bool = False
    changed: tuple[int | str, ...] = ()


def call(function: Callable, case: Case, seconds: float) -> Call:
    """Call a function on a copy of a case.

    Args:
        function: the learner's.
        case: its input; it stays as it is.
        seconds: after which the call is given up.

    Raises:
        KeyboardInterrupt: only where somebody has really pressed the key.
    """
    arguments, keywords = copy.deepcopy((case.arguments, dict(case.keywords)))
    raised, out_of_time, value = None, False, None
    with _real_interrupts() as interrupts, quiet():
        try:
            value = call_within(seconds, lambda: function(*arguments, **keywords))
        except OutOfTimeError:
            out_of_time = True
        except AlarmError:  # the time of the notebook's cell is over, not of this call
            raise
        except BaseException as error:  # also SystemExit: it is the answer's, and not the notebook's
            raised = _described(error)
    if interrupts:
        raise KeyboardInterrupt
    if isinstance(value, types.CoroutineType):
        value.close()  # else Python warns that nobody has waited for it
    return Call(value, raised, out_of_time, _changed(case, arguments, keywords))


def _changed(case: Case, arguments: tuple, keywords: dict) -> tuple[int | str, ...]:
    places = [i for i, (a, b) in enumerate(zip(case.arguments, arguments, strict=True)) if not identical(a, b)]
    return (*places, *(name for name, value in case.keywords.items() if not identical(value, keywords.get(name))))


@contextlib.contextmanager
def _real_interrupts() -> Iterator[list[int]]:
    """A list that gets an entry where the user interrupts, which tells that from `raise KeyboardInterrupt`."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return

    def note(number: int, frame: types.FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before in (signal.SIG_IGN, None):
        yield seen
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _described(error: BaseException) -> Raised:
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno, traceback.tb_frame.f_globals))
        traceback = traceback.tb_next
    inside = [frame for frame in frames if not frame[0].startswith(_ENGINE)]
    own = [frame for frame in inside if _is_own(frame[0])]
    try:
        message = " ".join(str(error).split()) if error.args != (None,) else ""
    except BaseException:  # an exception of the learner's making that cannot be shown
        message = ""
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " ..."
    return Raised(
        type(error), message, _line(own[-1]) if own else "", bool(own) and own[-1] is inside[-1], bool(inside)
    )


def _is_own(file: str) -> bool:
    return not file.startswith((*_LIBRARIES, "<frozen", "<__array_function__"))


def _line(frame: tuple[str, int, dict]) -> str:
    file, number, variables = frame
    text = linecache.getline(file, number, variables).strip()
    return f"line {number}: {text}" if text else f"line {number}"


def shown_name(kind: type[BaseException]) -> str:
    """The name of an exception's type, with its module where that is not Python's own or the notebook's."""
    if kind.__module__ in {"builtins", "__main__"}:
        return kind.__name__
    return f"{kind.__module__}.{kind.__name__}"


def is_recursion(raised: Raised) -> bool:
    """Whether a function called itself without end."""
    return issubclass(raised.kind, RecursionError)
