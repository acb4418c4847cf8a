import io

import pytest

from course_utils import work_progress
from course_utils.work_progress import progress_text, shown_work


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((1280, 60_000, 1280, 32.0), "1,280 of 60,000 images, 40 images/s, 24 min left"),
        ((1280, 1480, 80, 2.0), "1,280 of 1,480 images, 40 images/s, 5 s left"),  # 1,200 were there before
        ((5, 60, 0, 3.0), "5 of 60 images"),
        ((60, 60, 60, 0.0), "60 of 60 images"),
    ],
)
def test_the_text_counts_what_is_there_and_times_what_was_done_now(arguments, text):
    assert progress_text(*arguments, unit="images") == text


class FakeTime:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> FakeTime:
    clock = FakeTime()
    monkeypatch.setattr(work_progress, "time", clock)
    return clock


def test_a_log_gets_a_line_now_and_then(clock, capsys):
    with shown_work("features", total=100, done=20) as show:
        for second in range(1, 71):
            clock.now = float(second)
            show(20 + second)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "features: 50 of 100 images, 1 images/s, 50 s left",
        "features: 80 of 100 images, 1 images/s, 20 s left",
    ]


def test_a_terminal_gets_a_bar_that_is_gone_in_the_end(clock, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with shown_work("features", total=100) as show:
        clock.now = 2.0
        show(50)
    assert "50 of 100 images, 25 images/s" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")


def test_a_notebook_gets_a_bar_that_leaves_nothing_behind(clock, monkeypatch):
    shown = []

    class Handle:
        def update(self, bundle, raw):
            shown.append(bundle)

    monkeypatch.setattr(work_progress, "_in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw, display_id: Handle())
    with shown_work("features", total=100) as show:
        show(1)  # too soon to be shown
        clock.now = 2.0
        show(50)
    assert [bundle["text/plain"] for bundle in shown] == ["features: 50 of 100 images, 25 images/s, 2 s left", ""]
    assert '<progress value="0.5000"' in shown[0]["text/html"]


def test_quick_work_shows_nothing(capsys):
    with shown_work("features", total=2) as show:
        show(2)
    assert capsys.readouterr().err == ""
