"""Whole programs: what the import of the package costs, and a batch of the notebooks with two workers."""

import re
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import nbformat

from benchmarks.measure import Row, row_of

ROOT = Path(__file__).resolve().parent.parent
_COURSE = "from course_utils.cli import main; main()"


def _seconds(*command: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - begun


def imports(size: str, threads: int) -> list[Row]:
    """`import course_utils` against an empty program."""
    count = 31 if size == "full" else 2
    pairs = [(_seconds("-c", "import course_utils"), _seconds("-c", "pass")) for _ in range(count)]
    return [
        row_of(
            [ours for ours, _ in pairs],
            [theirs for _, theirs in pairs],
            what="import course_utils",
            against="an empty program",
            size="a process",
            threads=1,
            at_most=1.2,
        )
    ]


def _cells(notebook: Path) -> float:
    """Seconds that the cells of an executed copy took together."""
    timed = [cell.metadata.get("papermill", {}) for cell in nbformat.read(notebook, as_version=4).cells]
    return sum(cell["duration"] or 0.0 for cell in timed if "duration" in cell)


def _kernel_start(notebook: Path) -> float:
    """Seconds from the beginning of a run to that of its first cell."""
    metadata = nbformat.read(notebook, as_version=4)
    begun = datetime.fromisoformat(metadata.metadata.papermill["start_time"])
    first = min(cell.metadata.papermill["start_time"] for cell in metadata.cells if cell.metadata.get("papermill"))
    return (datetime.fromisoformat(first) - begun).total_seconds()


def batch(size: str, threads: int) -> list[Row]:
    """`course run` with two workers, against the cells and the starts of the kernels one after the other."""
    notebooks = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "notebooks").glob("[0-9]*.py"))
    notebooks = [re.sub(r"\.py$", ".ipynb", name) for name in notebooks][: None if size == "full" else 1]
    with tempfile.TemporaryDirectory() as folder:
        command = ["-c", _COURSE, "run", *notebooks, "--jobs", "2", "--output", folder]
        seconds = _seconds(*command)
        copies = list(Path(folder).rglob("*.ipynb"))
        alone = sum(_cells(copy) + _kernel_start(copy) for copy in copies)
    return [
        row_of(
            [seconds],
            [alone],
            what=f"course run of {len(copies)} notebooks, two workers",
            against="their cells and kernel starts in a row",
            size="quick profile",
            threads=1,
            at_most=0.65 if size == "full" else None,
        )
    ]
