"""What a learner's function prints or shows does not flood the notebook, and its `exit()` does not end the kernel."""

import contextlib
import io
from collections.abc import Iterator

from IPython.core.interactiveshell import InteractiveShell


class _Sink(io.TextIOBase):
    """A stream that keeps nothing."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


class _NoDisplay:
    """Stands where a notebook's publisher of figures and tables stands."""

    is_publishing = False

    def publish(self, *arguments: object, **keywords: object) -> None:
        """Show nothing."""

    def clear_output(self, wait: bool = False) -> None:
        """Clear nothing."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """While it lasts, nothing is printed or displayed, and a notebook's `exit()` raises SystemExit."""
    with contextlib.redirect_stdout(_Sink()), contextlib.redirect_stderr(_Sink()), _no_notebook():
        yield


@contextlib.contextmanager
def _no_notebook() -> Iterator[None]:
    if not InteractiveShell.initialized():
        yield
        return
    shell = InteractiveShell.instance()
    publisher = shell.display_pub
    shell.display_pub, shell.ask_exit = _NoDisplay(), _exit
    try:
        yield
    finally:
        shell.display_pub = publisher
        with contextlib.suppress(AttributeError):
            del shell.ask_exit


def _exit() -> None:
    raise SystemExit
