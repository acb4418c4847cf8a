"""Run notebooks on a cluster by Dask distributed: notebook and parameters travel there, results come back.

No disk has to be shared. The course must be installed where the workers run.
"""

import contextlib
import math
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import distributed
from distributed.comm.core import CommClosedError

from course_utils.execution.line import Lines
from course_utils.execution.local import shared_threads
from course_utils.execution.notebook import execute
from course_utils.execution.outcome import INTERNAL, INTERRUPTED, WORKER_LOST, Failure, Outcome
from course_utils.execution.plan import Run
from course_utils.execution.processes import cores
from course_utils.execution.stopping import Stop
from course_utils.execution.watch import Limits

MOST_MOVES = 2  # times that a notebook is given to another worker because its own has died
_SECONDS_TO_CONNECT = 20
_SECONDS_TO_ASK = 5
_SECONDS_TO_STOP = 10
_SECONDS_BETWEEN_LOOKS = 0.5
_GPU = "GPU"  # the name of the workers' resource


class ClusterError(RuntimeError):
    """The cluster cannot be used."""


def run_on_cluster(
    runs: Sequence[Run], folder: Path, limits: Limits, jobs: int | None, scheduler: str | None, lines: Lines, stop: Stop
) -> Iterator[Outcome]:
    """The outcomes of runs, in the order in which they end.

    Args:
        runs: what is to be done.
        folder: of the executed copies, on this machine.
        limits: of each run.
        jobs: workers to start on this machine; None for one for each GPU, or else for each core. A scheduler has
            workers of its own.
        scheduler: address of one that runs already; None to start one with workers on this machine.
        lines: where progress is shown.
        stop: once it says so, kernels are ended and no further run begins.

    Raises:
        ClusterError: if there is no scheduler at the address, or it has no workers.
    """
    with _client(scheduler, jobs, len(runs)) as client, _at_most_moves(client):
        topic = f"course-run-{uuid.uuid4().hex}"
        asked_to_stop = distributed.Variable(topic, client=client)
        asked_to_stop.set("")
        client.subscribe_topic(topic, lambda event: _show(event[1], lines))
        resources = {_GPU: 1} if _has_gpus(client) else None
        waiting = {
            client.submit(_work, run, limits, topic, key=f"{topic}-{number}", pure=False, resources=resources): run
            for number, run in enumerate(runs)
        }
        give_up = math.inf
        try:
            while waiting and time.monotonic() < give_up:
                for future in _ended(waiting):
                    yield _kept(_outcome_of(future, waiting.pop(future)), folder)
                if stop.why() and give_up == math.inf:
                    asked_to_stop.set(stop.why())
                    give_up = time.monotonic() + _SECONDS_TO_STOP
        except BaseException:  # nobody takes the outcomes any more: the kernels are not to go on for nothing
            asked_to_stop.set(INTERRUPTED)
            raise
        client.cancel(list(waiting))
        for run in waiting.values():  # no worker is left that could say it
            yield Outcome(run, failure=Failure(stop.why(), "not begun, or its worker does not answer"))
        asked_to_stop.delete()


def _work(run: Run, limits: Limits, topic: str) -> Outcome:
    """Execute a notebook on a worker; called there."""
    worker = distributed.get_worker()
    name = worker.address
    asked_to_stop = _Asking(distributed.Variable(topic))
    if asked_to_stop():
        return Outcome(run, failure=Failure(asked_to_stop(), "not begun"), worker=name)

    def tell(**what: Any) -> None:
        worker.log_event(topic, {"title": run.title, **what})

    tell(worker=name)
    with tempfile.TemporaryDirectory(prefix="course-run-") as folder:
        outcome = execute(
            run,
            Path(folder) / "executed.ipynb",
            limits,
            shared_threads(max(1, worker.state.nthreads)),
            on_cell=lambda cell, cells, heading: tell(cell=cell, cells=cells, heading=heading),
            why_stop=asked_to_stop,
        )
    return replace(outcome, worker=name)


class _Asking:
    """Whether the batch is to stop, as its client has it; asked once in a while, as that goes over the network."""

    def __init__(self, variable: distributed.Variable):
        self._variable, self._answer, self._calls = variable, "", 0

    def __call__(self) -> str:
        if self._calls % 10 == 0 and not self._answer:
            try:
                self._answer = self._variable.get(timeout=_SECONDS_TO_ASK)
            except (TimeoutError, OSError, CommClosedError):
                self._answer = ""
        self._calls += 1
        return self._answer


@contextlib.contextmanager
def _client(scheduler: str | None, jobs: int | None, most: int) -> Iterator[distributed.Client]:
    if scheduler is None:
        with _own_cluster(jobs, most) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(f"there is no scheduler at {scheduler}: {error}") from error
    with client:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise ClusterError(
                f"the scheduler at {scheduler} has no workers; start some with `dask worker {scheduler}`"
            )
        yield client


def _own_cluster(jobs: int | None, most: int) -> distributed.SpecCluster:
    """A cluster on this machine: a worker for each GPU, which it sees alone, or else for each core."""
    gpus = visible_gpus()
    count = min(jobs or len(gpus) or cores(), most)
    threads = shared_threads(count)
    specification = {}
    for number in range(count):
        options: dict[str, Any] = {"nthreads": 1, "env": dict(threads)}
        if gpus:
            options["env"] |= {"CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)]}
            options["resources"] = {_GPU: 1}
        specification[number] = {"cls": distributed.Nanny, "options": options}
    scheduler = {"cls": distributed.Scheduler, "options": {"host": "127.0.0.1", "port": 0, "dashboard": False}}
    return distributed.SpecCluster(specification, scheduler=scheduler, silence_logs="CRITICAL")


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [name for name in chosen.split(",") if name and name != "-1"]
    if not shutil.which("nvidia-smi"):
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return [str(number) for number, _ in enumerate(line for line in listed.stdout.splitlines() if line[:3] == _GPU)]


@contextlib.contextmanager
def _at_most_moves(client: distributed.Client) -> Iterator[None]:
    """Let the scheduler give a task up when MOST_MOVES workers more have died with it; afterwards as it was."""
    before = client.run_on_scheduler(_set_allowed_failures, count=MOST_MOVES)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, CommClosedError):
            client.run_on_scheduler(_set_allowed_failures, count=before)


def _set_allowed_failures(count: int, dask_scheduler: distributed.Scheduler) -> int:
    before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, count
    return before


def _has_gpus(client: distributed.Client) -> bool:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return any(_GPU in worker["resources"] for worker in workers)


def _ended(waiting: dict[distributed.Future, Run]) -> list[distributed.Future]:
    with contextlib.suppress(TimeoutError):
        distributed.wait(list(waiting), timeout=_SECONDS_BETWEEN_LOOKS, return_when="FIRST_COMPLETED")
    return [future for future in waiting if future.done()]


def _outcome_of(future: distributed.Future, run: Run) -> Outcome:
    error: BaseException | None = future.exception() if future.status != "cancelled" else None
    if isinstance(error, distributed.KilledWorker):
        times = MOST_MOVES + 1
        return Outcome(
            run, failure=Failure(WORKER_LOST, f"{times} workers that it was given to died, one after another")
        )
    if future.status != "finished":
        return Outcome(run, failure=Failure(INTERNAL, f"{type(error).__name__}: {error}" if error else "cancelled"))
    return replace(future.result(), run=run)


def _kept(outcome: Outcome, folder: Path) -> Outcome:
    """The outcome, with its executed copy in a folder of this machine."""
    if outcome.copy is not None:
        (folder / outcome.run.file_name).write_text(outcome.copy, encoding="utf-8")
    return outcome


def _show(event: dict[str, Any], lines: Lines) -> None:
    if "worker" in event:
        lines.started(event["title"])
    else:
        lines.at_cell(event["title"], event["cell"], event["cells"], event["heading"])
