"""Call a function that may never come back, in this very thread, and get out of it when its time is over.

A learner's function lives in the notebook's kernel, so it cannot be moved to another process. In the main thread a
timer's signal raises an exception inside it; elsewhere, and on Windows, another thread asks the interpreter to raise
one. Neither reaches a call that stays in compiled code and never returns to Python; nothing in the same process does.
"""

import contextlib
import ctypes
import gc
import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_AGAIN = 0.05  # seconds between tries, for code that catches the exception
_AGAIN_FROM_THREAD = 1e-5
_delays = itertools.cycle(1e-6 * step for step in range(1, 40))


class OutOfTimeError(Exception):
    """The function has not come back in its time."""


class AlarmError(BaseException):
    """What is raised inside a function whose time is over. No ordinary `except` clause catches it.

    Attributes:
        guard: the frame of the call that is to be left, as one such call may stand in another.
    """

    def __init__(self, guard: FrameType | None = None):
        super().__init__("its time is over")
        if guard is not None:
            self.guard = guard


def call_within(seconds: float, function: Callable[[], Any]) -> Any:
    """Call a function, and give up after some seconds. Such calls may stand in one another.

    Args:
        seconds: of the clock on the wall.
        function: without arguments.

    Returns:
        What the function returns.

    Raises:
        OutOfTimeError: when the time is over.
        AlarmError: when the time of a call around this one is over; let it pass.
        BaseException: what the function raises.
    """
    guard = sys._getframe()
    in_main_thread = threading.current_thread() is threading.main_thread()
    alarm = _signals if hasattr(signal, "setitimer") and in_main_thread else _exceptions_from_a_thread
    try:
        with alarm(seconds, guard):
            return function()
    except AlarmError as error:
        if error.guard is not guard:
            raise
    raise OutOfTimeError(f"not done after {seconds:g} s")


_deadlines: list[tuple[FrameType, float]] = []  # of the calls in the main thread, the outermost first


@contextlib.contextmanager
def _signals(seconds: float, guard: FrameType) -> Iterator[None]:
    """While it lasts, and after some seconds, a signal raises the exception, again and again."""
    before = signal.signal(signal.SIGALRM, _ring)
    rest, interval = signal.getitimer(signal.ITIMER_REAL)
    start, depth = time.monotonic(), len(_deadlines)
    _deadlines.append((guard, start + seconds))
    _set_timer()
    try:
        yield
    finally:
        del _deadlines[depth:]  # with what an inner call has left there, if this one's alarm came at its end
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if _deadlines:
            _set_timer()
        elif rest:  # somebody else's timer goes on
            signal.setitimer(signal.ITIMER_REAL, max(rest - (time.monotonic() - start), 1e-3), interval)


def _set_timer() -> None:
    first = min(deadline for _, deadline in _deadlines)
    signal.setitimer(signal.ITIMER_REAL, max(first - time.monotonic(), 1e-3), _AGAIN)


def _ring(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    over = [guard for guard, deadline in _deadlines if now >= deadline]
    if not over or not _runs_in(frame, over[0]):
        return
    # Code that catches everything in an endless loop is left where one comes in its except clause, outside its try.
    # So the next one comes soon after, a little later each time.
    signal.setitimer(signal.ITIMER_REAL, next(_delays), _AGAIN)
    raise AlarmError(over[0])


def _runs_in(frame: FrameType | None, guard: FrameType) -> bool:
    """Whether an exception raised in a frame reaches the guard's through the function that it guards.

    It does not where the frame belongs to what sets the alarm, or to the collection of garbage, which swallows it.
    """
    swallowing = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None and frame is not guard and frame.f_code not in swallowing:
        if frame.f_back is guard:
            return frame.f_globals is not contextlib.__dict__
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _exceptions_from_a_thread(seconds: float, guard: FrameType) -> Iterator[None]:
    """While it lasts, and after some seconds, another thread raises the exception in this one, again and again."""
    thread, interval = threading.get_ident(), sys.getswitchinterval()
    over, lock = threading.Event(), threading.Lock()
    alarm = type("AlarmError", (AlarmError,), {"guard": guard})  # the interpreter takes a class

    def wait() -> None:
        pause = seconds
        while not over.wait(pause):
            with lock:
                if not over.is_set():
                    sys.setswitchinterval(1e-6)  # so that the next one comes before code leaves its except clause
                    _raise_in(thread, alarm)
            pause = _AGAIN_FROM_THREAD

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    try:
        yield
    finally:
        try:
            over.set()
            with lock:  # none is on its way now
                _raise_in(thread, None)
        except AlarmError:  # it came just here
            over.set()
            _raise_in(thread, None)
            raise
        finally:
            sys.setswitchinterval(interval)


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Have the interpreter raise an exception in a thread; None takes back one that has not been raised yet."""
    argument = ctypes.py_object(exception) if exception else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), argument)
