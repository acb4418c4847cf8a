from types import SimpleNamespace

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from pytorch_lightning.callbacks import RichProgressBar

from course_utils import progress
from course_utils.progress import NotebookProgress, progress_callbacks


@pytest.fixture
def shown(monkeypatch) -> list[dict[str, str]]:
    """What the display held, one state after the other."""
    states = []

    def display(data, raw, display_id):
        states.append(data)
        return SimpleNamespace(update=lambda data, raw: states.append(data))

    monkeypatch.setattr(progress, "display", display)
    return states


def trainer(step: int) -> SimpleNamespace:
    return SimpleNamespace(
        global_step=step,
        estimated_stepping_batches=30,
        current_epoch=0,
        max_epochs=3,
        progress_bar_metrics={"val_acc": torch.tensor(0.9876)},
    )


@pytest.mark.parametrize("ending", ["on_fit_end", "on_exception"])
def test_the_bar_moves_with_the_steps_and_leaves_nothing_behind(shown, ending):
    bar = NotebookProgress(seconds_between_updates=0)
    bar.on_fit_start(trainer(0), None)
    for step in (1, 2):
        bar.on_train_batch_end(trainer(step), None, None, None, 0)
    getattr(bar, ending)(trainer(2), None, *([KeyboardInterrupt()] if ending == "on_exception" else []))
    assert [state["text/plain"] for state in shown] == [
        "",
        "epoch 1 of 3, step 1 of 30, val_acc 0.9876",
        "epoch 1 of 3, step 2 of 30, val_acc 0.9876",
        "",
    ]
    assert '<progress value="2" max="30">' in shown[2]["text/html"]
    assert shown[-1].keys() == {"text/plain"}


def test_the_bar_rests_between_updates(shown):
    bar = NotebookProgress(seconds_between_updates=1e9)
    bar.on_fit_start(trainer(0), None)
    for step in range(1, 20):
        bar.on_train_batch_end(trainer(step), None, None, None, 0)
    assert len(shown) <= 2


def test_an_error_before_the_fit_shows_nothing(shown):
    NotebookProgress().on_exception(trainer(0), None, RuntimeError())
    assert shown == []


@pytest.mark.parametrize(
    ("in_notebook", "in_terminal", "expected"),
    [
        (True, False, [NotebookProgress]),
        (False, True, [RichProgressBar]),
        (False, False, []),
        (True, True, [NotebookProgress]),
    ],
)
def test_a_bar_is_shown_where_a_person_looks(monkeypatch, in_notebook, in_terminal, expected):
    monkeypatch.setattr(InteractiveShell, "initialized", classmethod(lambda cls: in_notebook))
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: in_terminal, write=lambda text: None))
    assert [type(callback) for callback in progress_callbacks()] == expected
