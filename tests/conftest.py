"""What all tests share: settings that make a run repeat, and places that keep it away from the checkout."""

from pathlib import Path

import pytest
import torch
from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("repeatable")
torch.set_num_threads(1)  # the models are tiny: handing work over costs more than it saves

PUBLISHED = Path(__file__).resolve().parents[2] / "shared" / "published" / "ReverseTask.ckpt"


@pytest.fixture
def published_checkpoint() -> Path:
    """The tutorial's checkpoint of the reverse task, which is not part of the project."""
    if not PUBLISHED.is_file():
        pytest.skip("the published ReverseTask.ckpt is not beside this checkout")
    return PUBLISHED


@pytest.fixture
def no_checkpoints(tmp_path, monkeypatch) -> Path:
    """An empty folder in place of the saved models; logs of a training run go to a temporary folder too."""
    folder = tmp_path / "no_saved_models"
    folder.mkdir()
    monkeypatch.setenv("PATH_CHECKPOINT", str(folder))
    monkeypatch.setattr("course_utils.training.runs_dir", lambda: tmp_path / "runs")
    return folder
