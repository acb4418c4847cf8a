"""Each way in which a notebook can fail: what it is reported as, how long it takes, and that nothing of it is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from rich.console import Console
from small_notebooks import RECORD, text_of, write

from course_utils import results
from course_utils.execution import outcome as kinds
from course_utils.execution.notebook import execute
from course_utils.execution.outcome import Outcome
from course_utils.execution.plan import plan
from course_utils.execution.processes import end_processes, marked_processes, new_mark
from course_utils.execution.watch import Limits

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals that Windows does not have")
BOUND = 12  # seconds, of a run that is ended after one or two; the rest is for the kernel's start on a busy machine
HANGS = """\
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        time.sleep(60)
    except BaseException:
        pass"""
DETACHED = """\
import subprocess
child = subprocess.Popen(["sleep", "600"], start_new_session=True)"""


def run(tmp_path: Path, *cells: str, **options) -> Outcome:
    """The outcome of a notebook; its bound of time and what it leaves behind are asserted."""
    (planned,) = plan([write(tmp_path / "a.ipynb", *cells)])
    start = time.monotonic()
    outcome = execute(planned, tmp_path / "out.ipynb", **options)
    assert time.monotonic() - start < BOUND
    assert no_kernel_is_left(tmp_path)
    return outcome


def no_kernel_is_left(folder: Path) -> bool:
    """Whether no process has a connection file that was made since the folder was; nor a sleep of this file's."""
    since = folder.stat().st_ctime
    return not [
        process
        for process in psutil.process_iter(["cmdline", "create_time"])
        if process.info["create_time"] >= since - 1
        and process.status() != psutil.STATUS_ZOMBIE
        and process.is_running()
        and _is_ours(process)
    ]


def _is_ours(process: psutil.Process) -> bool:
    """Whether this process, or one that it started, is an ancestor; or it is the sleep of a notebook."""
    if process.info["cmdline"] == ["sleep", "600"]:
        return True
    try:
        return psutil.Process() in process.parents() and "ipykernel_launcher" in process.info["cmdline"]
    except psutil.Error:
        return False


def test_a_notebook_that_runs_to_its_end(tmp_path):
    outcome = run(tmp_path, RECORD + "record('x', n)", DETACHED)
    assert (outcome.status, outcome.results) == ("passed", {"x": 1})
    assert 10e6 < outcome.peak_memory < 1e9


def test_the_executed_copy_names_its_source_and_does_not_hold_it_twice(tmp_path):
    run(tmp_path, RECORD + "record('x', n)  # a remark")
    copy = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert copy.metadata.papermill.input_path.endswith(".ipynb")
    assert (tmp_path / "out.ipynb").read_text(encoding="utf-8").count("a remark") == 1


def test_an_exception(tmp_path):
    failure = run(tmp_path, RECORD + "record('x', 1)", "# ## Later", "{}['key']", "print('never')").failure
    assert (failure.kind, failure.message, failure.cell, failure.heading) == ("error", "KeyError: 'key'", 5, "Later")
    assert results.read(tmp_path / "out.ipynb") == {"x": 1}
    assert "never" not in text_of(tmp_path / "out.ipynb")


def test_leaving_by_sys_exit_is_no_good_end(tmp_path):
    failure = run(tmp_path, "import sys\nsys.exit(0)", "print('never')").failure
    assert (failure.kind, failure.cell) == ("error", 3)
    assert "SystemExit" in failure.message


@pytest.mark.parametrize("line", ["!exit 3", "!false", "%%bash\nfalse"])
def test_a_failed_command(tmp_path, line):
    failure = run(tmp_path, line).failure
    assert (failure.kind, failure.cell) == ("command", 3)
    assert "exit status" in failure.message


def test_a_command_that_succeeds_or_whose_failure_does_not_matter(tmp_path):
    outcome = run(tmp_path, "word = 'found'\n!echo {word} $word", "!false || true")
    assert outcome.passed
    assert text_of(tmp_path / "out.ipynb").split() == ["found", "found"]


def test_a_cell_that_takes_too_long_and_ignores_interrupts(tmp_path):
    outcome = run(tmp_path, "print('so far', flush=True)\n" + HANGS, limits=Limits(cell_seconds=1.5))
    assert outcome.failure.kind == kinds.CELL_TIMEOUT
    assert str(outcome.failure) == "cell 3 (Title): the cell took longer than 1.5 s"
    assert "so far" in text_of(tmp_path / "out.ipynb")


def test_cells_that_take_long_only_together_do_not_exceed_the_time_of_a_cell(tmp_path):
    assert run(tmp_path, *["import time; time.sleep(1)"] * 3, limits=Limits(cell_seconds=2.5)).passed


def test_a_notebook_that_takes_too_long(tmp_path):
    cells = ["import time; time.sleep(0.1)", DETACHED, *["time.sleep(1)"] * 20]
    outcome = run(tmp_path, *cells, limits=Limits(seconds=4))
    assert (outcome.status, outcome.failure.kind) == ("failed", kinds.TIMEOUT)
    assert 4 <= outcome.seconds < 8


def test_a_kernel_that_does_not_start_in_time(tmp_path):
    outcome = run(tmp_path, "1", limits=Limits(seconds=0.1))
    assert (outcome.status, outcome.failure.kind) == ("failed", kinds.TIMEOUT)


def test_the_copy_of_a_notebook_that_was_ended_says_so(tmp_path):
    run(tmp_path, "1", HANGS, "2", limits=Limits(cell_seconds=1))
    copy = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    nbformat.validate(copy)
    (error,) = [output for cell in copy.cells for output in cell.get("outputs", []) if output.output_type == "error"]
    assert (error.ename, error.evalue) == ("cell_timeout", "the cell took longer than 1 s")
    assert copy.metadata.papermill.exception is True


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import os; os._exit(3)", "the kernel died with exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "the kernel died of SIGKILL, as it does when"),
        ("import ctypes; ctypes.string_at(0)", "the kernel died of SIGSEGV"),
    ],
)
def test_a_dead_kernel(tmp_path, code, says):
    outcome = run(tmp_path, RECORD + "record('x', 1)", DETACHED, code)
    assert (outcome.failure.kind, outcome.failure.cell) == (kinds.KERNEL_DIED, 5)
    assert outcome.failure.message.startswith(says)
    assert outcome.results == {"x": 1}


def test_a_result_recorded_twice(tmp_path):
    failure = run(tmp_path, RECORD + "record('x', 1)\nrecord('x', 2)").failure
    assert (failure.kind, "'x' was recorded twice" in failure.message) == (kinds.RESULT, True)


def test_a_copy_that_cannot_be_written(tmp_path):
    (planned,) = plan([write(tmp_path / "a.ipynb", "1")])
    outcome = execute(planned, tmp_path / "no such folder" / "out.ipynb")
    assert (outcome.failure.kind, outcome.copy) == (kinds.INTERNAL, None)


def test_a_batch_that_stops_ends_the_kernel(tmp_path):
    begun = time.monotonic()
    outcome = run(tmp_path, HANGS, why_stop=lambda: kinds.INTERRUPTED if time.monotonic() > begun + 3 else "")
    assert (outcome.status, outcome.failure.kind) == ("interrupted", kinds.INTERRUPTED)


def test_marked_processes_are_found_wherever_they_went_and_ended():
    mark = new_mark()
    script = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", script], env={**os.environ, **mark}, check=True)
    assert [process.cmdline() for process in marked_processes(mark)] == [["sleep", "600"]]
    assert end_processes(mark) == []
    assert marked_processes(mark) == []
    assert marked_processes(new_mark()) == []


# The command, in a process of its own.


def start(folder: Path, *arguments: object) -> subprocess.Popen:
    program = "import sys; from course_utils.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "run", *map(str, arguments), "--output", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def hanging(path: Path, sign: Path) -> Path:
    """A notebook with a cell that never ends; it makes a file when it is there."""
    return write(path, f"from pathlib import Path\nprint('so far', flush=True)\nPath({str(sign)!r}).touch()\n{HANGS}")


def kernels_of(process: subprocess.Popen) -> list[psutil.Process]:
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "ipykernel_launcher" in " ".join(child.cmdline())]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_kernels_and_has_exit_code_130(tmp_path, number):
    notebook = hanging(tmp_path / "a.ipynb", tmp_path / "sign")
    waiting = write(tmp_path / "b.ipynb", "1")
    process = start(tmp_path / "out", notebook, waiting, "--jobs", "1")
    wait_for((tmp_path / "sign").is_file)
    kernels = kernels_of(process)
    assert len(kernels) == 1
    asked = time.monotonic()
    process.send_signal(number)
    output, _ = process.communicate(timeout=15)
    assert time.monotonic() - asked < 6
    assert process.returncode == 130
    assert "a interrupted: cell 3 (Title): interrupted" in output
    assert "b skipped: not begun" in output
    assert "so far" in text_of(tmp_path / "out" / "a.ipynb")
    assert not any(kernel.is_running() for kernel in kernels)


def test_a_report_that_cannot_be_written_ends_the_kernels(tmp_path, monkeypatch):
    from course_utils.execution.batch import run_batch
    from course_utils.execution.local import run_locally

    def engine(runs, lines, stop):
        return run_locally(runs, tmp_path, Limits(), 2, lines, stop)

    def fail(batch):
        raise OSError("no space left on device")

    runs = plan([write(tmp_path / "in" / "a.ipynb", "1"), write(tmp_path / "in" / "b.ipynb", HANGS)])
    begun = time.monotonic()
    with pytest.raises(OSError, match="no space left"):
        run_batch(runs, engine, tmp_path, Console(quiet=True), on_change=fail)
    wait_for(lambda: no_kernel_is_left(tmp_path))
    assert time.monotonic() - begun < BOUND


def test_a_batch_that_is_killed_leaves_no_kernel(tmp_path):
    notebook = hanging(tmp_path / "a.ipynb", tmp_path / "sign")
    process = start(tmp_path / "out", notebook)
    wait_for((tmp_path / "sign").is_file)
    kernels = kernels_of(process)
    process.kill()
    process.wait()
    process.stdout.close()
    _, alive = psutil.wait_procs(kernels, timeout=5)
    assert (len(kernels), alive) == (1, [])


def test_fail_fast_stops_what_runs_and_skips_the_rest(tmp_path):
    notebooks = [
        write(tmp_path / "a.ipynb", "import time; time.sleep(1)\nraise ValueError"),
        write(tmp_path / "b.ipynb", HANGS),
        write(tmp_path / "c.ipynb", "1"),
    ]
    process = start(tmp_path / "out", *notebooks, "--jobs", "2", "--fail-fast")
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "a failed: cell 3 (Title): ValueError" in output
    assert "b interrupted: cell 3 (Title): stopped, as another notebook failed" in output
    assert "c skipped" in output


def test_two_batches_do_not_write_to_one_folder(tmp_path):
    first = start(tmp_path / "out", write(tmp_path / "a.ipynb", "import time; time.sleep(600)"))
    wait_for((tmp_path / "out" / "a.ipynb").is_file)
    second = start(tmp_path / "out", write(tmp_path / "b.ipynb", "1"))
    output, _ = second.communicate(timeout=20)
    assert second.returncode == 2
    assert "another run is writing to" in output
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=15)
    third = start(tmp_path / "out", tmp_path / "b.ipynb")
    third.communicate(timeout=20)
    assert third.returncode == 0


def test_the_cores_are_shared_out(tmp_path, monkeypatch):
    from course_utils.execution import local

    monkeypatch.setattr(local, "cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "5")
    shared = local.shared_threads(3)
    assert shared["OMP_NUM_THREADS"] == "2"
    assert "MKL_NUM_THREADS" not in shared, "what the user has set stays"
    assert local.shared_threads(1) == {}
    assert set(local.shared_threads(20).values()) == {"1"}
    run(tmp_path, "import os\nprint(os.environ['OMP_NUM_THREADS'])", environment=shared)
    assert text_of(tmp_path / "out.ipynb").strip() == "2"
