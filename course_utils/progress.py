"""Progress of a training run, shown where a person is looking and gone when it has ended."""

import sys
import time

import course_utils.quiet  # noqa: F401

import pytorch_lightning as pl
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from pytorch_lightning.callbacks import RichProgressBar


class NotebookProgress(pl.Callback):
    """A progress bar in the cell's output that leaves nothing behind, so that an executed notebook stays the same.

    Args:
        seconds_between_updates: how often the bar moves.
    """

    _EMPTY = {"text/plain": ""}  # noqa: RUF012 (Lightning copies callbacks; this is never written)

    def __init__(self, seconds_between_updates: float = 0.3):
        self._interval = seconds_between_updates
        self._handle = None
        self._last_update = 0.0

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Open the display, empty."""
        self._handle = display(self._EMPTY, raw=True, display_id=True)

    def on_train_batch_end(self, trainer: pl.Trainer, *_) -> None:
        """Move the bar, unless it moved a moment ago."""
        now = time.monotonic()
        if self._handle is None or now - self._last_update < self._interval:
            return
        self._last_update = now
        step, steps = trainer.global_step, int(trainer.estimated_stepping_batches)
        metrics = "".join(f", {name} {float(value):.4g}" for name, value in trainer.progress_bar_metrics.items())
        text = f"epoch {trainer.current_epoch + 1} of {trainer.max_epochs}, step {step} of {steps}{metrics}"
        bar = f'<progress value="{step}" max="{steps}"></progress> {text}'
        self._handle.update({"text/plain": text, "text/html": bar}, raw=True)

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Empty the display."""
        self._clear()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Empty the display; the error speaks for itself."""
        self._clear()

    def _clear(self) -> None:
        if self._handle is not None:
            self._handle.update(self._EMPTY, raw=True)


def progress_callbacks() -> list[pl.Callback]:
    """A progress bar for a notebook or a terminal; none where nobody is looking."""
    if InteractiveShell.initialized():
        return [NotebookProgress()]
    return [RichProgressBar()] if sys.stderr.isatty() else []
