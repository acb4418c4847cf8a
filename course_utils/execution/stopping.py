"""Stop a batch before its end: on Ctrl-C, or when a notebook has failed under --fail-fast."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from course_utils.execution.outcome import INTERRUPTED


class Stop:
    """Whether a batch is to stop, and why; may be asked from any thread."""

    def __init__(self) -> None:
        self._reason = ""

    def now(self, reason: str) -> None:
        """Stop for a reason, a kind of failure; the first one counts."""
        self._reason = self._reason or reason

    def why(self) -> str:
        """The reason; empty as long as the batch goes on."""
        return self._reason


@contextmanager
def stopped_by_signals(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop a batch in order; a second one breaks it off with KeyboardInterrupt."""

    def on_signal(number: int, frame: object) -> None:
        if stop.why() == INTERRUPTED:
            raise KeyboardInterrupt
        stop.now(INTERRUPTED)

    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
