"""What all tests share: settings that make a run repeat, and places that keep it away from the checkout."""

from pathlib import Path

import pytest
import torch
from browser import chromium  # noqa: F401 (a fixture)
from checkpoint_fixtures import world  # noqa: F401 (a fixture)
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


def pytest_configure(config) -> None:
    """Declare the marker of a test that injects a fault into checkpoint files or their download."""
    config.addinivalue_line("markers", "fault(name): injects a fault; the end of the run says how many were handled")


def pytest_collection_modifyitems(items) -> None:
    """Carry the fault's name into the report, also from the worker processes of a parallel run."""
    for item in items:
        fault = item.get_closest_marker("fault")
        if fault is not None:
            item.user_properties.append(("fault", fault.args[0]))


def pytest_terminal_summary(terminalreporter) -> None:
    """Print how many faults were injected, and how many ended as they should."""
    outcomes = {
        outcome: _faults(terminalreporter.stats.get(outcome, [])) for outcome in ("passed", "failed", "skipped")
    }
    kinds = {kind for faults in outcomes.values() for kind in faults}
    if kinds:
        counts = ", ".join(f"{len(faults)} {outcome}" for outcome, faults in outcomes.items())
        terminalreporter.write_line(f"faults of checkpoints injected: {len(kinds)} kinds; tests of them: {counts}")


def _faults(reports) -> list[str]:
    return [value for report in reports for key, value in getattr(report, "user_properties", ()) if key == "fault"]
