"""The lines that show how far notebooks are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

CellCallback = Callable[[int, int], None]  # called with the number of cells done, and of all cells


@contextmanager
def progress_line(console: Console, title: str) -> Iterator[CellCallback]:
    """A line that moves with the cells in a terminal; elsewhere one line at the start."""
    if not console.is_terminal:
        console.print(f"{title}: running", markup=False)
        yield lambda done, total: None
        return
    with _bars(console) as progress:
        task = progress.add_task(title, total=None, heading="")
        yield lambda done, total: progress.update(task, completed=done, total=total)


class Lines:
    """A line for each notebook that runs: how far it is and under which heading; elsewhere one line at its start.

    Its methods may be called from any thread.

    Args:
        console: where they are shown.
        total: notebooks in the batch.
    """

    def __init__(self, console: Console, total: int):
        self._console, self._total = console, total
        self._bars = _bars(console) if console.is_terminal else None
        self._tasks: dict[str, TaskID] = {}
        self._ended = 0

    def __enter__(self) -> "Lines":
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bars:
            self._bars.stop()

    def started(self, title: str) -> None:
        """A notebook begins, or begins anew on another machine."""
        if not self._bars:
            self._console.print(f"{title}: running", markup=False, highlight=False)
        elif title not in self._tasks:
            self._tasks[title] = self._bars.add_task(title, total=None, heading="")

    def at_cell(self, title: str, cell: int, cells: int, heading: str) -> None:
        """A cell begins."""
        if self._bars and title in self._tasks:
            self._bars.update(self._tasks[title], completed=cell, total=cells, heading=heading)

    def ended(self, title: str, status: str, seconds: float) -> None:
        """A notebook has ended, with its status in the console's markup."""
        self._ended += 1
        if self._bars and title in self._tasks:
            self._bars.remove_task(self._tasks.pop(title))
        text = escape(f"[{self._ended}/{self._total}] {title}")
        self._console.print(f"{text}: {status} in {seconds:.1f} s", highlight=False)


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("cell"),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[heading]}", markup=False),
        console=console,
        transient=True,
    )
