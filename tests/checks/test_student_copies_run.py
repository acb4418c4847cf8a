"""The notebooks of the course, run: stubs that stop nothing, and solutions that are graded as right."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from course_utils.checks.grading import Limits, Mark, grade_notebook
from course_utils.execution.source import read_source
from course_utils.execution.student_copy import called_check, student_copy

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
SOURCES = sorted(NOTEBOOKS.glob("[0-9]*.py"))


def exercises_in(source: Path) -> list[str]:
    """Names of the checks that a notebook calls; the test is skipped if there are none."""
    cells = [cell for cell in read_source(source).cells if "check" in cell.metadata.get("tags", [])]
    if not cells:
        pytest.skip("it has no exercises")
    return [called_check(cell.source).func.attr for cell in cells]


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_student_copy_runs_from_top_to_bottom_as_it_is(source, progress_file):
    names = exercises_in(source)
    copy = student_copy(source)
    place = {"metadata": {"path": str(NOTEBOOKS.parent)}}
    NotebookClient(copy, kernel_name="python3", timeout=None, startup_timeout=120, resources=place).execute()
    nbformat.validate(copy)
    shown = [cell.outputs for cell in copy.cells if "check" in cell.metadata.get("tags", [])]
    assert [len(outputs) for outputs in shown] == [1] * len(names)
    assert all("not done yet" in outputs[0].data["text/plain"] for outputs in shown)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_notebook_with_its_solutions_is_graded_as_right_and_the_copy_as_open(source, tmp_path):
    names = exercises_in(source)
    limits = Limits(seconds=1200.0, cell_seconds=600.0)
    marks, problem = grade_notebook(source, limits)
    assert (marks, problem) == (dict.fromkeys(names, Mark("passed")), "")
    (tmp_path / "copy.ipynb").write_text(nbformat.writes(student_copy(source)), encoding="utf-8")
    marks, problem = grade_notebook(tmp_path / "copy.ipynb", limits)
    assert ({name: mark.state for name, mark in marks.items()}, problem) == (dict.fromkeys(names, "open"), "")
