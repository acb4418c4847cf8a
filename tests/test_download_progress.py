"""Progress of a download: seen in a notebook and a terminal, gone afterwards, nowhere else."""

import sys
from types import SimpleNamespace

import pytest

from course_utils import download_progress
from course_utils.download_progress import shown_bytes


class Handle:
    def __init__(self):
        self.shown = []

    def update(self, data, raw):
        self.shown.append(data)


@pytest.fixture
def notebook(monkeypatch):
    """A notebook that is pretended, and the displays it has opened."""
    opened = []

    def display(data, raw, display_id):
        opened.append(Handle())
        opened[-1].update(data, raw)
        return opened[-1]

    monkeypatch.setattr(download_progress, "_in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", display)
    return opened


def test_a_notebook_shows_a_bar_that_is_empty_in_the_end(notebook, monkeypatch):
    monkeypatch.setattr(download_progress, "_SECONDS_UNSEEN", 0.0)
    with shown_bytes("tiny.ckpt", 2_000) as show:
        show(1_000)
    (handle,) = notebook
    assert handle.shown[1]["text/plain"] == "tiny.ckpt: 1,000 bytes of 2,000"
    assert handle.shown[-1] == {"text/plain": ""}


def test_a_quick_download_leaves_no_trace_in_a_notebook(notebook):
    with shown_bytes("tiny.ckpt", 2_000) as show:
        show(1_000)
    assert notebook == []


def test_a_notebook_is_cleared_after_a_failure_too(notebook, monkeypatch):
    monkeypatch.setattr(download_progress, "_SECONDS_UNSEEN", 0.0)
    with pytest.raises(KeyboardInterrupt), shown_bytes("tiny.ckpt", None) as show:
        show(1_000)
        raise KeyboardInterrupt
    assert notebook[0].shown[-1] == {"text/plain": ""}


def test_a_batch_run_shows_nothing(capfd):
    with shown_bytes("tiny.ckpt", 2_000) as show:
        show(1_000)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with shown_bytes("tiny.ckpt", 2_000) as show:
        show(2_000)
    assert "tiny.ckpt" in capsys.readouterr().err


def test_a_notebook_is_known_by_its_shell(monkeypatch):
    shell = SimpleNamespace(InteractiveShell=SimpleNamespace(initialized=lambda: True))
    monkeypatch.setitem(sys.modules, "IPython.core.interactiveshell", shell)
    assert download_progress._in_notebook()
    monkeypatch.delitem(sys.modules, "IPython.core.interactiveshell")
    assert not download_progress._in_notebook()
