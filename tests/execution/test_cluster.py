"""The engine on Dask: a scheduler and workers as processes of their own on this machine, some of which are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from small_notebooks import RECORD, course, report_of, text_of, write

distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals that Windows does not have")
# Tells which worker runs it, then waits for a file before it ends.
WAITS = """\
import os, time
from pathlib import Path
folder = Path({folder!r})
(folder / f"{{os.getppid()}}-{{time.time()}}").touch()
while not (folder / "go").exists():
    time.sleep(0.1)"""


class Cluster:
    """A scheduler and workers, each a process that can be killed."""

    def __init__(self, folder: Path):
        self._file = folder / "scheduler.json"
        self._folder = folder
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.workers: list[subprocess.Popen] = []

    @property
    def address(self) -> str:
        return json.loads(self._file.read_text())["address"]

    def add_worker(self) -> None:
        self.workers.append(
            self._start("worker", "--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", self._folder)
        )

    def _start(self, *arguments: object) -> subprocess.Popen:
        command = [sys.executable, "-m", "distributed.cli.dask_" + str(arguments[0]), *map(str, arguments[1:])]
        command += ["--scheduler-file", str(self._file)]
        return subprocess.Popen(command, cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    made = Cluster(folder)
    for _ in range(2):
        made.add_worker()
    wait_for((folder / "scheduler.json").is_file)
    with distributed.Client(made.address) as client:
        client.wait_for_workers(2, timeout=30)
    yield made
    made.close()


def wait_for(condition, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def start(folder: Path, *arguments: object) -> subprocess.Popen:
    program = "import sys; from course_utils.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "run", *map(str, arguments), "--output", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def signs(folder: Path) -> list[tuple[int, Path]]:
    """The pid of the worker in each sign that a notebook has made, by time."""
    found = [path for path in folder.iterdir() if "-" in path.name]
    return [(int(path.name.split("-")[0]), path) for path in sorted(found, key=lambda path: path.name.split("-")[1])]


@pytest.mark.slow
def test_notebooks_and_parameters_travel_and_results_come_back(cluster, tmp_path):
    notebook = write(tmp_path / "a.ipynb", RECORD + "record('square', n * n)", "import os\nprint(os.getppid())")
    failing = write(tmp_path / "b.ipynb", "{}['key']")
    result = course(
        *("run", notebook, failing, "--sweep", "a.n=2,3,4", "--engine", "dask"),
        *("--scheduler", cluster.address, "--output", tmp_path / "out"),
    )
    assert result.exit_code == 1
    report = report_of(tmp_path / "out")
    assert [run["results"].get("square") for run in report["runs"]] == [4, 9, 16, None]
    assert [run["error"] and run["error"]["message"] for run in report["runs"]] == [None] * 3 + ["KeyError: 'key'"]
    pids = {int(text_of(tmp_path / "out" / run["output"])) for run in report["runs"][:3]}
    assert pids <= {worker.pid for worker in cluster.workers}
    assert all(run["worker"].startswith("tcp://127.0.0.1:") for run in report["runs"])


@pytest.mark.slow
def test_a_worker_that_dies_gives_its_notebook_to_another(cluster, tmp_path):
    folder = tmp_path / "signs"
    folder.mkdir()
    notebook = write(tmp_path / "a.ipynb", RECORD + "record('x', n)", WAITS.format(folder=str(folder)))
    other = write(tmp_path / "b.ipynb", RECORD + "record('y', n)")
    process = start(tmp_path / "out", notebook, other, "--engine", "dask", "--scheduler", cluster.address)
    wait_for(lambda: len(signs(folder)) == 1)
    ((first, _),) = signs(folder)
    kernels = psutil.Process(first).children(recursive=True)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: len(signs(folder)) == 2)
    (folder / "go").touch()
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0, output
    assert {pid for pid, _ in signs(folder)} == {worker.pid for worker in cluster.workers}
    assert [run["results"] for run in report_of(tmp_path / "out")["runs"]] == [{"x": 1}, {"y": 1}]
    _, alive = psutil.wait_procs(kernels, timeout=5)
    assert alive == []


@pytest.mark.slow
def test_a_notebook_that_kills_its_workers_is_given_up_after_the_third(cluster, tmp_path):
    cluster.add_worker()
    cluster.add_worker()
    code = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nimport time; time.sleep(60)"
    process = start(
        tmp_path / "out", write(tmp_path / "a.ipynb", code), "--engine", "dask", "--scheduler", cluster.address
    )
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    (run,) = report_of(tmp_path / "out")["runs"]
    assert (run["status"], run["error"]["kind"], run["output"]) == ("failed", "worker_lost", None)
    assert sum(worker.poll() is not None for worker in cluster.workers) == 3


@pytest.mark.slow
def test_an_interruption_ends_the_kernels_on_the_workers(cluster, tmp_path):
    folder = tmp_path / "signs"
    folder.mkdir()
    notebook = write(tmp_path / "a.ipynb", WAITS.format(folder=str(folder)))
    process = start(tmp_path / "out", notebook, "--engine", "dask", "--scheduler", cluster.address)
    wait_for(lambda: len(signs(folder)) == 1)
    ((worker, _),) = signs(folder)
    kernels = psutil.Process(worker).children(recursive=True)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=15)
    assert process.returncode == 130, output
    assert "a interrupted: cell 3 (Title): interrupted" in output
    assert kernels
    assert not any(kernel.is_running() for kernel in kernels)
    assert psutil.pid_exists(worker), "the worker goes on"


@pytest.mark.slow
def test_an_interruption_ends_a_run_that_has_no_worker_left(cluster, tmp_path):
    folder = tmp_path / "signs"
    folder.mkdir()
    notebook = write(tmp_path / "a.ipynb", WAITS.format(folder=str(folder)))
    process = start(tmp_path / "out", notebook, "--engine", "dask", "--scheduler", cluster.address)
    wait_for(lambda: len(signs(folder)) == 1)
    for worker in cluster.workers:
        worker.kill()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=25)
    assert process.returncode == 130, output
    assert report_of(tmp_path / "out")["runs"][0]["status"] == "skipped"


@pytest.mark.slow
def test_workers_are_started_here_where_there_is_no_scheduler(tmp_path):
    notebook = write(tmp_path / "a.ipynb", RECORD + "record('x', n)")
    before = set(psutil.Process().children(recursive=True))
    process = start(tmp_path / "out", notebook, "--sweep", "n=1,2", "--engine", "dask", "--jobs", "2")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert [run["results"] for run in report_of(tmp_path / "out")["runs"]] == [{"x": 1}, {"x": 2}]
    assert "Traceback" not in output
    assert set(psutil.Process().children(recursive=True)) <= before


def test_each_worker_sees_one_gpu(monkeypatch):
    from course_utils.execution import cluster as engine

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    assert engine.visible_gpus() == ["2", "5"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert engine.visible_gpus() == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(engine.shutil, "which", lambda name: name)
    listed = subprocess.CompletedProcess([], 0, stdout="GPU 0: A (UUID: x)\nGPU 1: A (UUID: y)\n")
    monkeypatch.setattr(engine.subprocess, "run", lambda *arguments, **options: listed)
    assert engine.visible_gpus() == ["0", "1"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler is for --engine dask"),
        (
            ["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1", "--jobs", "2"],
            "--jobs does not go with --scheduler",
        ),
        (["--engine", "ray"], "'ray' is not one of 'local', 'dask'"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(tmp_path, options, says):
    result = course("run", write(tmp_path / "a.ipynb", "1"), "--output", tmp_path / "out", *options)
    assert result.exit_code == 2
    assert says in result.output


def test_a_scheduler_that_is_not_there_is_wrong_usage(tmp_path, monkeypatch):
    from course_utils.execution import cluster as engine

    monkeypatch.setattr(engine, "_SECONDS_TO_CONNECT", 1)
    options = ["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1", "--output", tmp_path / "out"]
    result = course("run", write(tmp_path / "a.ipynb", "1"), *options)
    assert result.exit_code == 2
    assert "there is no scheduler at tcp://127.0.0.1:1" in result.output
