"""Grade a folder of student notebooks: the answers of each run in a process of their own, with limits.

An answer that is wrong, endless, greedy or fatal costs its own mark: where one ends the process, another process goes
on behind it. This protects the grades of a class from accidents, not a computer from malice: see docs/teaching.md.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import course_utils
from course_utils.checks import grading_process as lines
from course_utils.checks.outcome import FAILED, OPEN, PASSED, STATES
from course_utils.execution.processes import cores, end_processes, memory_of, new_mark

GRADED = "graded"
OUT_OF_TIME, OUT_OF_MEMORY, ENDED, INTERRUPTED = "out of time", "out of memory", "ended the process", "interrupted"
_BETWEEN_LOOKS = 0.1  # seconds
_MOST_TRIES = 6  # of one notebook
_SUFFIXES = {".ipynb", ".py"}


@dataclass(frozen=True)
class Limits:
    """What one notebook may take.

    Attributes:
        seconds: in all.
        cell_seconds: of one cell.
        memory: in bytes.
    """

    seconds: float = 300.0
    cell_seconds: float = 60.0
    memory: int = 4 << 30


@dataclass(frozen=True)
class Mark:
    """What came of one exercise of one student.

    Attributes:
        state: passed, failed or open.
        diagnosis: in a few words; may be empty.
    """

    state: str = OPEN
    diagnosis: str = ""


@dataclass
class Grades:
    """The grades of one student.

    Attributes:
        student: by the name of the file or folder.
        files: that were handed in.
        marks: by exercise; those that do not occur in the files are missing.
        problems: of files that could not be graded to the end, in words.
    """

    student: str
    files: list[str] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """Graded, or what kept the files from it."""
        return "; ".join(self.problems) or GRADED

    def count(self, state: str, exercises: Iterable[str]) -> int:
        """How many of some exercises are in a state."""
        return sum(self.marks.get(name, Mark()).state == state for name in exercises)


def copies_in(folder: Path, notebooks: Sequence[str]) -> dict[str, list[Path]]:
    """The notebooks of each student in a folder.

    A file in a subfolder belongs to the student of the subfolder's name; a file in the folder itself to the one of the
    file's name, without that of a notebook: alice_01_attention.ipynb is alice's. Hidden files and folders are left out.

    Args:
        folder: with .ipynb and .py files.
        notebooks: stems of the course's notebooks.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.suffix not in _SUFFIXES or not path.is_file() or any(part.startswith((".", "__")) for part in parts):
            continue
        student = parts[0] if len(parts) > 1 else _student_of(path.stem, notebooks)
        found.setdefault(student, []).append(path)
    return found


def grade(
    copies: Mapping[str, Sequence[Path]],
    limits: Limits,
    jobs: int | None = None,
    on_done: Callable[[str, Path], None] = lambda student, path: None,
) -> list[Grades]:
    """Grade notebooks.

    Args:
        copies: paths by student.
        limits: of each notebook.
        jobs: notebooks at the same time; by default one on each core.
        on_done: called after each notebook, from this thread.

    Returns:
        The grades, in the order of the students.
    """
    grades = {student: Grades(student, [path.name for path in paths]) for student, paths in copies.items()}
    units = [(student, path) for student, paths in copies.items() for path in paths]
    stop = threading.Event()
    with ThreadPoolExecutor(jobs or cores()) as pool:
        running = {pool.submit(grade_notebook, path, limits, stop): (student, path) for student, path in units}
        try:
            for future in as_completed(running):
                student, path = running[future]
                marks, problem = future.result()
                _merge(grades[student].marks, marks)
                if problem:
                    grades[student].problems.append(f"{path.name}: {problem}" if len(copies[student]) > 1 else problem)
                on_done(student, path)
        except BaseException:  # Ctrl-C: the processes end, and with them the threads that wait for them
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return list(grades.values())


def grade_notebook(path: Path, limits: Limits, stop: threading.Event | None = None) -> tuple[dict[str, Mark], str]:
    """Grade one notebook.

    Args:
        path: of the .ipynb or .py file.
        limits: of its process.
        stop: set by another thread where it is to be given up.

    Returns:
        Marks by exercise, and what kept the notebook from being graded to the end; empty if nothing did.
    """
    deadline, skip, marks = time.monotonic() + limits.seconds, [], {}
    stop = stop or threading.Event()
    for _ in range(_MOST_TRIES):
        said, end = _run(path, limits, skip, max(deadline - time.monotonic(), 1.0), stop)
        if stop.is_set():
            return marks, INTERRUPTED
        for line in said:
            if line["kind"] == lines.UNREADABLE:
                return {}, f"unreadable: {line['reason']}"
            if line["kind"] == lines.OUTCOME:
                marks[line["exercise"]] = Mark(line["state"], line["diagnosis"])
        begun = [line for line in said if line["kind"] == lines.BEGIN]
        if said and said[-1]["kind"] == lines.END:
            return marks, ""
        if not begun:
            return marks, f"could not be run: {end}"
        for name in begun[-1]["exercises"]:
            marks[name] = Mark(FAILED, end)
        skip.append(begun[-1]["cell"])
        if time.monotonic() > deadline:
            return marks, f"{OUT_OF_TIME}: took longer than {limits.seconds:g} s, in cell {skip[-1]}"
    return marks, f"{ENDED} {_MOST_TRIES} times"


def _run(
    path: Path, limits: Limits, skip: Sequence[int], seconds: float, stop: threading.Event
) -> tuple[list[dict], str]:
    """Run a notebook's answers in one process; what it said, and how it ended."""
    mark = new_mark()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        report = Path(folder) / "report.jsonl"
        report.touch()
        work = Path(folder) / "work"
        work.mkdir()
        command = [sys.executable, "-m", lines.__name__, str(path.resolve()), str(report)]
        command += ["--cell-seconds", str(limits.cell_seconds), "--memory", str(limits.memory)]
        command += [part for cell in skip for part in ("--skip", str(cell))]
        process = subprocess.Popen(
            command,
            cwd=work,
            env=_environment(mark, Path(folder)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            end = _wait(process, limits.memory, time.monotonic() + seconds, stop)
        finally:
            end_processes(mark)
            process.wait()
        return _said(report), end or ENDED


def _environment(mark: Mapping[str, str], folder: Path) -> dict[str, str]:
    package = str(Path(course_utils.__file__).resolve().parent.parent)
    return {
        **os.environ,
        **mark,
        "PATH_PROGRESS": str(folder / "progress.jsonl"),
        "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])),
        "PYTHONSAFEPATH": "1",  # what a student's cell writes to the working directory is not imported
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


def _wait(process: subprocess.Popen, memory: int, deadline: float, stop: threading.Event) -> str:
    """Wait for a process to end; why it is to be ended, if it does not by itself."""
    while process.poll() is None:
        if time.monotonic() > deadline:
            return OUT_OF_TIME
        if memory_of(process.pid) > memory:
            return OUT_OF_MEMORY
        if stop.wait(_BETWEEN_LOOKS):
            return INTERRUPTED
    return ""


def _said(report: Path) -> list[dict]:
    """The lines of a report that are as they should be; a student's code might have written others."""
    wanted = {
        lines.BEGIN: {"cell": int, "exercises": list},
        lines.OUTCOME: {"exercise": str, "state": str, "diagnosis": str},
        lines.UNREADABLE: {"reason": str},
        lines.END: {},
    }
    found = []
    for text in report.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
            kinds = wanted[line["kind"]]
        except (ValueError, KeyError, TypeError):
            continue
        sound = all(isinstance(line.get(key), kind) for key, kind in kinds.items())
        if sound and line.get("state", OPEN) in STATES:
            found.append(line)
    return found


def _merge(marks: dict[str, Mark], more: Mapping[str, Mark]) -> None:
    """Add marks; where a student handed in two files with one exercise, the better mark holds."""
    rank = {OPEN: 0, FAILED: 1, PASSED: 2}
    for name, mark in more.items():
        if name not in marks or rank[mark.state] > rank[marks[name].state]:
            marks[name] = mark


def _student_of(stem: str, notebooks: Sequence[str]) -> str:
    for notebook in sorted(notebooks, key=len, reverse=True):
        rest = stem.replace(notebook, "").strip(" _-.")
        if notebook in stem and rest:
            return rest
    return stem
