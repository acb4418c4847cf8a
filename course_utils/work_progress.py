"""Progress of work that can be counted: how much is done, how fast, and how long it will still take."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS_UNSEEN = 1.0  # work that is soon done shows nothing
_SECONDS_BETWEEN_UPDATES = 0.5
_SECONDS_BETWEEN_LINES = 30.0  # where the progress goes into a file

Show = Callable[[int], None]


@contextmanager
def shown_work(title: str, total: int, done: int = 0, unit: str = "images") -> Iterator[Show]:
    """A function that is told how much is done, and shows it: in a notebook, in a terminal, or line by line in a log.

    A bar in a notebook or a terminal is gone when the work has ended.

    Args:
        title: what is being done.
        total: how much there is to do.
        done: how much of it was done before, which says nothing of the speed.
        unit: what is counted.
    """
    started = time.monotonic()
    next_time = started + _SECONDS_UNSEEN
    pause = _SECONDS_BETWEEN_UPDATES
    if _in_notebook():
        place = _in_cell()
    elif sys.stderr.isatty():
        place = _on_last_line()
    else:
        place, pause = _in_log(), _SECONDS_BETWEEN_LINES
        next_time = started + pause
    with place as write:

        def show(now_done: int) -> None:
            nonlocal next_time
            now = time.monotonic()
            if now >= next_time:
                next_time = now + pause
                write(
                    f"{title}: {progress_text(now_done, total, now_done - done, now - started, unit)}", now_done / total
                )

        yield show


def progress_text(done: int, total: int, newly: int, seconds: float, unit: str) -> str:
    """Progress in words: "1,280 of 60,000 images, 40 images/s, 24 min left"."""
    text = f"{done:,} of {total:,} {unit}"
    if newly <= 0 or seconds <= 0:
        return text
    rate = newly / seconds
    left = (total - done) / rate
    time_left = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} min"
    return f"{text}, {rate:.3g} {unit}/s, {time_left} left"


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython.core.interactiveshell")  # where nobody has imported it, there is no notebook
    return shell is not None and shell.InteractiveShell.initialized()


@contextmanager
def _in_cell() -> Iterator[Callable[[str, float], None]]:
    from IPython.display import display

    empty = {"text/plain": ""}
    handle = None

    def write(text: str, share: float) -> None:
        nonlocal handle
        if handle is None:
            handle = display(empty, raw=True, display_id=True)
        bar = f'<progress value="{share:.4f}" max="1"></progress> {text}'
        handle.update({"text/plain": text, "text/html": bar}, raw=True)

    try:
        yield write
    finally:
        if handle is not None:
            handle.update(empty, raw=True)


@contextmanager
def _on_last_line() -> Iterator[Callable[[str, float], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda text, share: progress.update(task, description=text, completed=share)


@contextmanager
def _in_log() -> Iterator[Callable[[str, float], None]]:
    yield lambda text, share: print(text, file=sys.stderr, flush=True)
