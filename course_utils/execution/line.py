"""The line that shows how far a notebook is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

CellCallback = Callable[[int, int], None]  # called with the number of cells done, and of all cells


@contextmanager
def progress_line(console: Console, title: str) -> Iterator[CellCallback]:
    """A line that moves with the cells in a terminal; elsewhere one line at the start."""
    if not console.is_terminal:
        console.print(f"{title}: running", markup=False)
        yield lambda done, total: None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("cell"), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
