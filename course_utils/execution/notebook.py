"""Execute one notebook with papermill, and say what came of it."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError, strip_color

from course_utils import results
from course_utils.execution import outcome as kinds
from course_utils.execution.outcome import Failure, Outcome
from course_utils.execution.plan import Run
from course_utils.execution.source import KERNEL_ARGUMENTS, heading_of_cell
from course_utils.execution.watch import UNLIMITED, Limits, Watch

OnCell = Callable[[int, int, str], None]  # called with the number of a cell, that of all, and its heading

_EXTENSION = "course_utils.execution.shell_commands"
_PAPERMILLS_OWN = {"injected-parameters", "papermill-error-cell-tag"}
_START_TIMEOUT = 120  # seconds; a kernel takes one, but not where many start at once on a busy machine


class _WatchedClient(PapermillNotebookClient):
    """papermill's client, which also tells the watch about the kernel."""

    def papermill_execute_cells(self) -> None:
        watch = self.nb_man.watch
        watch.kernel_started(self.km.provisioner.pid)
        try:
            super().papermill_execute_cells()
            watch.sample_memory()  # of a notebook that is over in a moment, the only sample
        except DeadKernelError:
            process = getattr(self.km.provisioner, "process", None)
            watch.exit_code = process.poll() if process else None
            raise


class _WatchedEngine(NBClientEngine):
    """papermill's engine, which also reports each cell that begins, and sets the kernel's environment."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man, kernel_name, watch: Watch, on_cell: OnCell, environment, source: Path, **kwargs
    ):
        nb_man.nb.metadata.papermill["input_path"] = source.name  # papermill would keep all of the notebook there
        start_cell = nb_man.cell_start
        cells = nb_man.nb.cells

        def start_cell_and_report(cell, cell_index=None, **arguments):
            start_cell(cell, cell_index=cell_index, **arguments)
            watch.cell_started(cell_index)
            on_cell(cell_index + 1, len(cells), heading_of_cell(cells, cell_index))

        nb_man.cell_start = start_cell_and_report
        nb_man.watch = watch
        client = _WatchedClient(
            nb_man,
            kernel_name=kernel_name,
            timeout=None,
            startup_timeout=_START_TIMEOUT,
            extra_arguments=[*KERNEL_ARGUMENTS, f"--ext={_EXTENSION}"],
        )
        return client.execute(env=environment)


papermill_engines.register("course", _WatchedEngine)


def execute(
    run: Run,
    output: Path,
    limits: Limits = UNLIMITED,
    environment: Mapping[str, str] | None = None,
    on_cell: OnCell = lambda cell, cells, heading: None,
    why_stop: Callable[[], str] = lambda: "",
) -> Outcome:
    """Execute a notebook into an output file; no process of its kernel is left afterwards.

    Args:
        run: the notebook and its parameters.
        output: where the executed copy goes; it is written after each cell, and also if one fails.
        limits: of time.
        environment: variables to set for the kernel.
        on_cell: called before each cell.
        why_stop: called often, from another thread; the kind of failure where the batch is to stop, else empty.

    Returns:
        The outcome; whatever fails is reported there and not raised.
    """
    start = time.perf_counter()
    with Watch(limits, why_stop) as watch:
        variables = {**os.environ, **(environment or {}), **watch.mark}
        failure = _execute(run, output, variables, on_cell, watch, limits)
        if _died_at_its_start(failure, watch):
            failure = _execute(run, output, variables, on_cell, watch, limits)
    seconds = time.perf_counter() - start
    recorded, copy = {}, None
    try:
        if output.is_file():
            copy = output.read_text(encoding="utf-8")
            recorded = results.read(output)
    except ValueError as error:  # a name recorded twice fails this notebook, not the run
        failure = failure or Failure(kinds.RESULT, str(error))
    return Outcome(run, seconds, recorded, failure, peak_memory=watch.peak_memory or None, copy=copy)


def _died_at_its_start(failure: Failure | None, watch: Watch) -> bool:
    """Whether there was no kernel at all, as happens when another program takes a port that was picked for it."""
    return failure is not None and failure.kind == kinds.KERNEL_DIED and watch.cell is None and not watch.reason


def _execute(
    run: Run, output: Path, environment: Mapping[str, str], on_cell: OnCell, watch: Watch, limits: Limits
) -> Failure | None:
    try:
        executed = papermill.execute_notebook(
            nbformat.reads(run.content, as_version=4),
            # Absolute, since papermill changes the working directory of all threads at times; and it fills in braces.
            str(output.absolute()).replace("{", "{{").replace("}", "}}"),
            parameters=dict(run.parameters),
            engine_name="course",
            kernel_name=run.kernel,
            progress_bar=False,
            autosave_cell_every=10,  # seconds
            watch=watch,
            on_cell=on_cell,
            environment=environment,
            source=run.notebook,
        )
    except PapermillExecutionError as error:
        return _of_cell(error, output, watch)
    except Exception as error:  # a dead kernel, a full disk: the other notebooks still have their turn
        return _of_kernel(error, output, watch, limits)
    stopped = [cell for cell in executed.cells if cell.metadata.get("papermill", {}).get("exception")]
    if stopped:  # papermill takes sys.exit() for a good end
        return _placed(kinds.ERROR, "SystemExit: the cells after it did not run", output, watch.cell)
    return None


def _of_cell(error: PapermillExecutionError, output: Path, watch: Watch) -> Failure:
    """The failure of an exception that a cell raised."""
    if watch.reason:  # it caught its own death as an exception
        return _placed(watch.reason, f"{error.ename}: {error.evalue}", output, watch.cell)
    kind = kinds.COMMAND if error.ename == "CalledProcessError" else kinds.ERROR
    return _placed(kind, f"{error.ename}: {error.evalue}", output, watch.cell)


def _of_kernel(error: Exception, output: Path, watch: Watch, limits: Limits) -> Failure:
    """The failure of a kernel that has ended or did not begin; it is noted in the executed copy as well."""
    if watch.reason:
        kind, message = watch.reason, _why_ended(watch.reason, limits)
    elif isinstance(error, DeadKernelError):
        kind, message = kinds.KERNEL_DIED, f"the kernel died{_how(watch.exit_code)}"
    elif isinstance(error, RuntimeError) and watch.cell is None:
        kind, message = kinds.KERNEL_DIED, f"the kernel did not start: {error}"
    else:
        kind, message = kinds.INTERNAL, f"{type(error).__name__}: {error}"
    failure = _placed(kind, message, output, watch.cell)
    _note_in_copy(failure, output, watch.cell)
    return failure


def _why_ended(reason: str, limits: Limits) -> str:
    return {
        kinds.TIMEOUT: f"the notebook took longer than {limits.seconds or 0:g} s",
        kinds.CELL_TIMEOUT: f"the cell took longer than {limits.cell_seconds or 0:g} s",
        kinds.INTERRUPTED: "interrupted",
        kinds.STOPPED: "stopped, as another notebook failed",
    }.get(reason, reason)


def _how(exit_code: int | None) -> str:
    """How a process ended, in words."""
    if exit_code is None:
        return ""
    if exit_code >= 0:
        return f" with exit code {exit_code}"
    name = signal.Signals(-exit_code).name if -exit_code in list(signal.Signals) else f"signal {-exit_code}"
    return f" of {name}" + (", as it does when memory runs out" if name == "SIGKILL" else "")


def _placed(kind: str, message: str, output: Path, index: int | None) -> Failure:
    """A failure in the cell of an index in the executed copy; cells are counted as in the source."""
    message = strip_color(message)
    if index is None or not output.is_file():
        return Failure(kind, message)
    cells = [
        cell
        for cell in nbformat.read(output, as_version=4).cells
        if "papermill-error-cell-tag" not in cell.metadata.get("tags", [])
    ]
    before = [cell for cell in cells[: index + 1] if not _PAPERMILLS_OWN.intersection(cell.metadata.get("tags", []))]
    return Failure(kind, message, len(before), heading_of_cell(cells, index))


def _note_in_copy(failure: Failure, output: Path, index: int | None) -> None:
    """Let the executed copy say that it is not complete; papermill marks the cell as completed."""
    if index is None or not output.is_file():
        return
    copy = nbformat.read(output, as_version=4)
    cell = copy.cells[index]
    cell.setdefault("outputs", []).append(
        nbformat.v4.new_output("error", ename=failure.kind, evalue=failure.message, traceback=[str(failure)])
    )
    cell.metadata.setdefault("papermill", {}).update(exception=True, status="failed")
    copy.metadata.setdefault("papermill", {})["exception"] = True
    nbformat.write(copy, output)
