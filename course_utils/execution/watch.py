"""Watch over a kernel: end it when it has had its time or the batch is to stop, and measure its memory."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from course_utils.execution.outcome import CELL_TIMEOUT, TIMEOUT
from course_utils.execution.processes import end_processes, memory_of, new_mark

_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_BETWEEN_SAMPLES = 0.4


@dataclass(frozen=True)
class Limits:
    """How long a notebook may take; None for as long as it likes.

    Attributes:
        seconds: for the whole notebook, kernel start included.
        cell_seconds: for one cell.
    """

    seconds: float | None = None
    cell_seconds: float | None = None


UNLIMITED = Limits()


class Watch:
    """A thread that looks after one kernel, which it knows by a mark in the environment of all its processes.

    To end a kernel it kills: one that hangs does not listen to anything milder. The client of the kernel then finds
    it dead, and the outputs that have come so far are kept.

    Args:
        limits: of time.
        why_stop: called now and then; a kind of failure where the batch is to stop, else empty.

    Attributes:
        mark: for the environment of the kernel.
        reason: the kind of failure for which the kernel was ended; empty if it was not.
        peak_memory: in bytes.
        cell: index of the cell that runs, or ran last; None before the first.
    """

    def __init__(self, limits: Limits, why_stop: Callable[[], str] = lambda: ""):
        self.mark = new_mark()
        self.reason = ""
        self.peak_memory = 0
        self.cell: int | None = None
        self.exit_code: int | None = None
        self._limits, self._why_stop = limits, why_stop
        self._start = self._cell_start = time.monotonic()
        self._pid: int | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        end_processes(self.mark)

    def kernel_started(self, pid: int | None) -> None:
        """Tell which process the kernel is."""
        self._pid = pid
        self._cell_start = time.monotonic()

    def cell_started(self, index: int) -> None:
        """Tell that a cell begins; its time is counted from now."""
        self._cell_start = time.monotonic()
        self.cell = index

    def sample_memory(self) -> None:
        """Look how much memory the kernel and its children hold now."""
        if self._pid is not None:
            self.peak_memory = max(self.peak_memory, memory_of(self._pid))

    def _look(self) -> None:
        next_sample = 0.0
        while not self._over.wait(_SECONDS_BETWEEN_LOOKS):
            if time.monotonic() > next_sample:
                next_sample = time.monotonic() + _SECONDS_BETWEEN_SAMPLES
                self.sample_memory()
            self.reason = self.reason or self._why_end()
            if self.reason:  # again at each look: a kernel that is just being started does not carry the mark yet
                end_processes(self.mark)

    def _why_end(self) -> str:
        now = time.monotonic()
        if self._limits.seconds is not None and now - self._start > self._limits.seconds:
            return TIMEOUT
        in_cell = self.cell is not None and self._limits.cell_seconds is not None
        if in_cell and now - self._cell_start > self._limits.cell_seconds:
            return CELL_TIMEOUT
        return self._why_stop()
