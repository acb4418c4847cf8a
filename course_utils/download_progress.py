"""Progress of a download, shown where a person is looking and gone when it has ended."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS_UNSEEN = 1.0  # a quick download shows nothing at all
_SECONDS_BETWEEN_UPDATES = 0.3

ShowBytes = Callable[[int], None]


@contextmanager
def shown_bytes(title: str, total: int | None) -> Iterator[ShowBytes]:
    """A function that is told the number of bytes received, and shows it in a notebook or a terminal.

    Args:
        title: what is being downloaded.
        total: bytes to expect, if known.
    """
    if _in_notebook():
        with _notebook_bar(title, total) as show:
            yield _patient(show)
    elif sys.stderr.isatty():
        with _terminal_bar(title, total) as show:
            yield show
    else:
        yield lambda received: None


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython.core.interactiveshell")  # where nobody has imported it, there is no notebook
    return shell is not None and shell.InteractiveShell.initialized()


@contextmanager
def _notebook_bar(title: str, total: int | None) -> Iterator[ShowBytes]:
    from IPython.display import display

    empty = {"text/plain": ""}
    handle = None

    def show(received: int) -> None:
        nonlocal handle
        if handle is None:
            handle = display(empty, raw=True, display_id=True)
        text = f"{title}: {received:,} bytes" + (f" of {total:,}" if total else "")
        bar = f'<progress value="{received}" max="{total}"></progress> {text}' if total else text
        handle.update({"text/plain": text, "text/html": bar}, raw=True)

    try:
        yield show
    finally:
        if handle is not None:
            handle.update(empty, raw=True)


@contextmanager
def _terminal_bar(title: str, total: int | None) -> Iterator[ShowBytes]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda received: progress.update(task, completed=received)


def _patient(show: ShowBytes) -> ShowBytes:
    """Show nothing in the first moment, and then not at every call."""
    next_time = time.monotonic() + _SECONDS_UNSEEN

    def show_now_and_then(received: int) -> None:
        nonlocal next_time
        if time.monotonic() >= next_time:
            next_time = time.monotonic() + _SECONDS_BETWEEN_UPDATES
            show(received)

    return show_now_and_then
