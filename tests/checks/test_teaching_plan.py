"""The plan of sessions in docs/teaching.md: it names each exercise once, in its notebook's session of 90 minutes."""

import re
from pathlib import Path

import pytest
import torch

from course_utils import checks
from course_utils.checks.exercise import Case, Exercise, Mistake
from course_utils.checks.function_check import check_function
from course_utils.execution.student_copy import student_copy

PAGE = Path(__file__).resolve().parents[2] / "docs" / "teaching.md"
TEXT = PAGE.read_text(encoding="utf-8")
SESSIONS = {
    re.search(r"`(\w+)`", part.splitlines()[0]).group(1): part
    for part in re.split(r"\n### \d+\. ", TEXT.split("## Hand out")[0])[1:]
}


def test_each_notebook_with_exercises_has_a_session():
    assert set(SESSIONS) == {task.notebook for task in checks.tasks().values()}


@pytest.mark.parametrize("notebook", SESSIONS)
def test_a_session_names_each_exercise_of_its_notebook_once(notebook):
    rows = [line for line in SESSIONS[notebook].splitlines() if re.match(r"\| (\d+|home) \|", line)]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[2])]
    assert sorted(named) == sorted(task.name for task in checks.tasks().values() if task.notebook == notebook)
    assert sum(int(row.split("|")[1]) for row in rows if "home" not in row.split("|")[1]) == 90


@pytest.mark.parametrize("notebook", SESSIONS)
def test_exercises_in_class_fit_into_their_minutes(notebook):
    for row in SESSIONS[notebook].splitlines():
        match = re.match(r"\| (\d+) \| exercises?: ([^|]*) \|", row)
        if match:
            names = re.findall(r"`(\w+)`", match.group(2))
            assert sum(checks.tasks()[name].minutes for name in names) <= int(match.group(1)), row


def test_the_ten_lines_of_the_page_make_an_exercise():
    code = re.search(r"```python\n(row_softmax = .*?)```", TEXT, re.DOTALL).group(1)
    assert len(code.splitlines()) <= 11
    variables = {"Exercise": Exercise, "Case": Case, "Mistake": Mistake, "torch": torch}
    exec(code, variables)
    exercise = variables["row_softmax"]
    assert check_function(exercise, lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True)).passed
    for mistake in exercise.mistakes:
        assert check_function(exercise, mistake.wrong).diagnosis == mistake.name


def test_the_cells_of_the_page_make_a_student_copy(tmp_path):
    code = re.search(r'```python\n(# %% \[markdown\] tags=\["exercise"\].*?)```', TEXT, re.DOTALL).group(1)
    (tmp_path / "small.py").write_text(code, encoding="utf-8")
    copy = student_copy(tmp_path / "small.py")
    assert [cell.metadata.get("tags") for cell in copy.cells] == [
        ["exercise"],
        None,
        ["hint"],
        ["your-turn"],
        ["check"],
    ]
