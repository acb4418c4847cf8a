"""The processes of a kernel, whoever started them: they carry a mark in their environment, which children inherit.

A process group would miss what a notebook starts in a session of its own, and a parent's pid what outlives its parent.
"""

import time
import uuid

import psutil

_VARIABLE = "COURSE_RUN_MARK"
_PATIENCE = 5.0  # seconds; a killed process is gone in a moment, except where the disk or the GPU holds it


def new_mark() -> dict[str, str]:
    """An entry for the environment of a kernel, which no other has."""
    return {_VARIABLE: uuid.uuid4().hex}


def marked_processes(mark: dict[str, str]) -> list[psutil.Process]:
    """All living processes that carry a mark."""
    return [process for process in psutil.process_iter() if _carries(process, mark)]


def end_processes(mark: dict[str, str]) -> list[psutil.Process]:
    """Kill all processes that carry a mark, and those which they start meanwhile.

    Returns:
        Those that are still there after some seconds; none, as a rule.
    """
    deadline = time.monotonic() + _PATIENCE
    while (found := marked_processes(mark)) and time.monotonic() < deadline:
        for process in found:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(found, timeout=0.2)
    return found


def memory_of(pid: int) -> int:
    """Memory in bytes that a process and its children hold at this moment; 0 if it has ended."""
    try:
        process = psutil.Process(pid)
        return sum(map(_resident, [process, *process.children(recursive=True)]))
    except psutil.Error:
        return 0


def cores() -> int:
    """Processor cores that this process may use."""
    try:
        return len(psutil.Process().cpu_affinity())
    except (AttributeError, psutil.Error):  # macOS has no affinity
        return psutil.cpu_count() or 1


def _carries(process: psutil.Process, mark: dict[str, str]) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.environ().get(_VARIABLE) == mark[_VARIABLE]
    except (psutil.Error, OSError):  # it has ended, or is somebody else's
        return False


def _resident(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0
