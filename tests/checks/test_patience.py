"""Getting out of functions that never end, in the main thread and elsewhere."""

import contextlib
import signal
import threading
import time

import pytest

from course_utils.checks.patience import OutOfTimeError, call_within

SHORT, LONG = 0.2, 600.0
with_signals = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that signal")


def loop():
    while True:
        pass


def loop_that_catches_everything():
    n = 0
    while True:
        try:  # noqa: SIM105
            n += 1
        except:  # noqa: E722
            pass


def nested_loop_that_catches_everything():
    while True:
        try:
            with contextlib.suppress(BaseException):
                sum(range(100))
        except BaseException:
            len("caught")


def endless_recursion_that_is_caught():
    try:
        return endless_recursion_that_is_caught()
    except RecursionError:
        return endless_recursion_that_is_caught()


def in_thread(function):
    """What a function returns or raises in a thread of its own."""
    found = []

    def run():
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert found, "the thread has not come back"
    return found[0]


ENDLESS = [loop, loop_that_catches_everything, nested_loop_that_catches_everything, endless_recursion_that_is_caught]


@pytest.mark.parametrize("function", ENDLESS)
def test_an_endless_function_is_left(function):
    with pytest.raises(OutOfTimeError, match=r"not done after 0\.2 s"):
        call_within(SHORT, function)


@with_signals
def test_a_sleeping_function_is_left():
    with pytest.raises(OutOfTimeError, match=r"not done after 0\.2 s"):
        call_within(SHORT, lambda: time.sleep(LONG))


@pytest.mark.parametrize("function", ENDLESS[:3])
def test_an_endless_function_is_left_in_another_thread_too(function):
    assert isinstance(in_thread(lambda: call_within(SHORT, function)), OutOfTimeError)


@pytest.mark.parametrize("run", [lambda function: function(), in_thread], ids=["main thread", "another"])
def test_a_function_that_ends_is_not_disturbed(run):
    assert run(lambda: call_within(LONG, lambda: 7)) == 7


def test_what_the_function_raises_comes_through():
    with pytest.raises(ZeroDivisionError):
        call_within(LONG, lambda: 1 / 0)
    assert isinstance(in_thread(lambda: call_within(LONG, lambda: 1 / 0)), ZeroDivisionError)


@with_signals
def test_nothing_comes_after_the_end():
    """A late alarm would hit whatever the notebook does next."""
    for _ in range(200):
        try:
            call_within(0.002, lambda: sum(range(40_000)))
        except OutOfTimeError:
            continue
    deadline = time.monotonic() + 0.2
    while time.monotonic() < deadline:
        sum(range(100))
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@with_signals
def test_somebody_elses_timer_goes_on():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, LONG)
        call_within(LONG, lambda: None)
        rest, _ = signal.getitimer(signal.ITIMER_REAL)
        assert LONG - 60 < rest <= LONG
        signal.raise_signal(signal.SIGALRM)
        assert rung == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("run", [lambda function: function(), in_thread], ids=["main thread", "another"])
def test_the_inner_time_leaves_the_inner_call_and_the_outer_time_both(run):
    def inner():
        with pytest.raises(OutOfTimeError):
            call_within(SHORT, loop)
        return "went on"

    assert run(lambda: call_within(LONG, inner)) == "went on"

    seen = []

    def inner_that_has_longer():
        try:
            call_within(LONG, loop)
        except Exception as error:  # of the outer call it is none
            seen.append(error)

    def outer():
        with pytest.raises(OutOfTimeError):
            call_within(SHORT, inner_that_has_longer)
        return "left"

    assert run(outer) == "left"
    assert seen == []
