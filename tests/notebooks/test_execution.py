"""Each notebook runs from top to bottom, from any folder, with its checkpoint and without, and its results hold."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from course_utils import results
from course_utils.execution.bounds import expected_beside, violations
from course_utils.reverse import RECIPES, TRAIN_SIZES

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FAST = {"01_attention"}  # the others take more than ten seconds or so
REVERSE_TASK = ROOT / "notebooks" / "03_reverse_task.ipynb"


def marked(notebooks: list[Path]) -> list:
    return [
        pytest.param(path, id=path.stem, marks=[] if path.stem in FAST else [pytest.mark.slow]) for path in notebooks
    ]


def execute(notebook: Path, output: Path, **parameters) -> nbformat.NotebookNode:
    """The executed copy; papermill raises an error where a cell does."""
    return papermill.execute_notebook(str(notebook), str(output), parameters, kernel_name="python3", progress_bar=False)


@pytest.mark.parametrize("notebook", marked(NOTEBOOKS))
def test_notebook_runs_and_its_results_hold(notebook, tmp_path):
    executed = execute(notebook, tmp_path / "out.ipynb")
    recorded = results.read(executed)
    assert recorded
    assert violations(recorded, expected_beside(notebook).of(notebook.stem, "quick")) == []


@pytest.mark.parametrize(
    "notebook", marked([path for path in NOTEBOOKS if path.stem in ("03_reverse_task", "04_set_anomaly")])
)
def test_notebook_trains_where_its_checkpoint_is_absent(notebook, tmp_path, monkeypatch):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH_CHECKPOINT", str(empty))
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    executed = execute(notebook, tmp_path / "out.ipynb")
    assert violations(results.read(executed), expected_beside(notebook).of(notebook.stem, "quick")) == []


@pytest.mark.slow
def test_outputs_come_again(tmp_path):
    """The regression test of the outputs, `pytest --nbval`, called from elsewhere; `make nbval` does it at the root."""
    command = [sys.executable, "-m", "pytest", "--nbval", os.path.relpath(ROOT / "notebooks", tmp_path), "-q"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("place", ["root", "notebooks", "elsewhere"])
def test_one_epoch_from_any_folder(place, tmp_path):
    folder = {"root": ROOT, "notebooks": ROOT / "notebooks", "elsewhere": tmp_path}[place]
    notebook = os.path.relpath(REVERSE_TASK, folder)  # as a person would type it there
    output = tmp_path / "out.ipynb"
    command = [sys.executable, "-m", "papermill", notebook, str(output), "-p", "max_epochs", "1"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    executed = nbformat.read(output, as_version=4)
    injected = [cell.source for cell in executed.cells if "injected-parameters" in cell.metadata.get("tags", [])]
    assert "max_epochs = 1" in injected[0]
    assert steps_of_training(executed) == TRAIN_SIZES["quick"] // RECIPES["quick"].batch_size


def steps_of_training(notebook: nbformat.NotebookNode) -> int:
    """Optimizer steps that the figure of the gradient's norm shows."""
    mime = "application/vnd.course.figure+json"
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            for axes in output.get("data", {}).get(mime, {}).get("axes", []):
                if axes.get("ylabel") == "norm of the gradient":
                    return axes["lines"][0]["y"]["shape"][0]
    raise AssertionError("the notebook draws no gradient's norm")
