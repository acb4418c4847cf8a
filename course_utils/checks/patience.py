"""Call a function that may never come back, in this very thread, and get out of it when its time is over.

A learner's function lives in the notebook's kernel, so it cannot be moved to another process. In the main thread a
timer's signal raises an exception inside it; elsewhere, and on Windows, another thread asks the interpreter to raise
one. Neither reaches a call that stays in compiled code and never returns to Python; nothing in the same process does.
"""

import contextlib
import ctypes
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


class OutOfTimeError(BaseException):
    """The function has not come back in its time. No ordinary `except` clause catches it."""


def call_within(seconds: float, function: Callable[[], Any]) -> Any:
    """Call a function, and give up after some seconds.

    Args:
        seconds: of the clock on the wall.
        function: without arguments.

    Returns:
        What the function returns.

    Raises:
        OutOfTimeError: when the time is over.
        BaseException: what the function raises.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if hasattr(signal, "setitimer") and in_main_thread:
        return _call_with_signal(seconds, function)
    return _call_with_thread(seconds, function)


def _call_with_signal(seconds: float, function: Callable[[], Any]) -> Any:
    guard = sys._getframe()
    delays = itertools.cycle(1e-6 * step for step in range(1, 40))

    def ring(number: int, frame: FrameType | None) -> None:
        if frame is guard or not _stands_in(frame, guard):
            return  # the call is just over
        # Code that catches everything in an endless loop is left where one comes in its except clause, outside its
        # try. So the next one comes soon after, a little later each time.
        signal.setitimer(signal.ITIMER_REAL, next(delays), _AGAIN)
        raise OutOfTimeError(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    rest, interval = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    start = time.monotonic()
    try:
        return function()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if rest:  # somebody else's timer goes on
            signal.setitimer(signal.ITIMER_REAL, max(rest - (time.monotonic() - start), 1e-3), interval)


def _stands_in(frame: FrameType | None, guard: FrameType) -> bool:
    """Whether a frame was called from the guard's, directly or not."""
    while frame is not None:
        if frame is guard:
            return True
        frame = frame.f_back
    return False


def _call_with_thread(seconds: float, function: Callable[[], Any]) -> Any:
    with contextlib.ExitStack() as stack:
        stack.enter_context(_alarm(seconds, threading.get_ident()))
        return function()


@contextlib.contextmanager
def _alarm(seconds: float, thread: int) -> Iterator[None]:
    """While it lasts, and after some seconds, another thread raises the exception in this one, again and again."""
    over, lock = threading.Event(), threading.Lock()

    def wait() -> None:
        pause = seconds
        while not over.wait(pause):
            with lock:
                if not over.is_set():
                    sys.setswitchinterval(1e-6)
                    _raise_in(thread, OutOfTimeError)
            pause = _AGAIN_FROM_THREAD

    interval = sys.getswitchinterval()
    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    try:
        yield
    finally:
        _end_alarm(over, lock, thread)
        sys.setswitchinterval(interval)


def _end_alarm(over: threading.Event, lock: threading.Lock, thread: int) -> None:
    try:
        over.set()
        with lock:  # none is on its way now
            _raise_in(thread, None)
    except OutOfTimeError:  # it came just here
        over.set()
        _raise_in(thread, None)
        raise


def _raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Have the interpreter raise an exception in a thread; None takes back one that has not been raised yet."""
    argument = ctypes.py_object(exception) if exception else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), argument)
