"""What came of one run of a notebook."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from course_utils.execution.plan import Run

# Why a run did not pass, as results.json has it; docs/batch.md says the same in more words.
ERROR = "error"  # a cell raised an exception
COMMAND = "command"  # a line `!command` ended with another exit code than 0
CELL_TIMEOUT = "cell_timeout"  # a cell took longer than --cell-timeout
TIMEOUT = "timeout"  # the notebook took longer than --timeout
KERNEL_DIED = "kernel_died"  # by os._exit, for lack of memory, in a crash
RANGE = "range"  # a result is outside of its range, or was not recorded
RESULT = "result"  # a result was recorded twice
INTERRUPTED = "interrupted"  # by Ctrl-C
STOPPED = "stopped"  # another notebook failed, under --fail-fast
WORKER_LOST = "worker_lost"  # every worker of the cluster that was given the notebook died
INTERNAL = "internal"  # the notebook could not be executed or saved

PASSED, FAILED, ENDED, SKIPPED = "passed", "failed", "interrupted", "skipped"


@dataclass(frozen=True)
class Failure:
    """Why a run did not pass.

    Attributes:
        kind: one of the words above.
        message: in a line, or more for an exception that has more.
        cell: its number in the source, counted from 1; None if it was in no cell.
        heading: that the cell stands under.
    """

    kind: str
    message: str
    cell: int | None = None
    heading: str = ""

    def __str__(self) -> str:
        place = f"cell {self.cell}" if self.cell else ""
        place += f" ({self.heading})" if self.heading else ""
        return f"{place}: {self.message}" if place else self.message


@dataclass(frozen=True)
class Outcome:
    """What came of one run.

    Attributes:
        run: what was to be done.
        seconds: wall-clock time, kernel start included.
        results: the numbers that the notebook recorded.
        failure: what failed and where; None if it passed.
        note: what else there is to know.
        peak_memory: of the kernel and its children together, in bytes, sampled; None if it was not measured.
        copy: the executed notebook as text; None if the run did not begin.
        worker: where it ran; empty for this machine.
    """

    run: Run
    seconds: float = 0.0
    results: Mapping[str, int | float] = field(default_factory=dict)
    failure: Failure | None = None
    note: str = ""
    peak_memory: int | None = None
    copy: str | None = None
    worker: str = ""

    @property
    def passed(self) -> bool:
        """Whether the notebook ran to its end, with results as expected."""
        return self.failure is None

    @property
    def status(self) -> str:
        """One of passed, failed, interrupted (had begun) and skipped (had not)."""
        if self.failure is None:
            return PASSED
        if self.failure.kind in (INTERRUPTED, STOPPED):
            return SKIPPED if self.copy is None else ENDED
        return FAILED
