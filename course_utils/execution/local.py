"""Run notebooks on this machine, some at a time, each in a kernel of its own."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from course_utils.execution.line import Lines
from course_utils.execution.notebook import execute
from course_utils.execution.outcome import INTERRUPTED, Failure, Outcome
from course_utils.execution.plan import Run
from course_utils.execution.processes import cores
from course_utils.execution.stopping import Stop
from course_utils.execution.watch import Limits

# What the numerical libraries read when they are loaded, to know how many threads to start.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def run_locally(
    runs: Sequence[Run], folder: Path, limits: Limits, jobs: int | None, lines: Lines, stop: Stop
) -> Iterator[Outcome]:
    """The outcomes of runs, in the order in which they end.

    A thread waits for each kernel; the work is done in the kernels' processes.

    Args:
        runs: what is to be done; begun in this order.
        folder: of the executed copies.
        limits: of each run.
        jobs: how many run at the same time; None for one on each core.
        lines: where progress is shown.
        stop: once it says so, kernels are ended and no further run begins.
    """
    jobs = min(jobs or cores(), len(runs))
    environment = shared_threads(jobs)

    def work(run: Run) -> Outcome:
        if stop.why():
            return Outcome(run, failure=Failure(stop.why(), "not begun"))
        lines.started(run.title)
        return execute(
            run,
            folder / run.file_name,
            limits,
            environment,
            on_cell=lambda cell, cells, heading: lines.at_cell(run.title, cell, cells, heading),
            why_stop=stop.why,
        )

    waiting, running = list(runs), set()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:  # not earlier, as an outcome may be a reason to stop
                    running.add(pool.submit(work, waiting.pop(0)))
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
        except BaseException:  # nobody takes the outcomes any more: the kernels are not to go on for nothing
            stop.now(INTERRUPTED)
            raise


def shared_threads(jobs: int) -> Mapping[str, str]:
    """Variables that share out the cores to some kernels; what the user has set stays, and one kernel gets all."""
    if jobs == 1:
        return {}
    share = str(max(1, cores() // jobs))
    return {name: share for name in THREAD_VARIABLES if name not in os.environ}
