"""Student copies: exercises and hints without solutions, made from the notebook's source, and never out of step."""

from pathlib import Path

import jupytext
import nbformat
import pytest
from click.testing import CliRunner

from course_utils.cli import main
from course_utils.execution.source import SourceError, read_source
from course_utils.execution.student_copy import (
    called_check,
    copy_path,
    copy_problem,
    leftover_copies,
    student_copy,
    write_copy,
)

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "notebooks").glob("[0-9]*.py"))
HINT = "\n".join(f"# <details><summary>Hint {n}: where</summary>\n#\n# Text {n}.\n# </details>" for n in (1, 2, 3))
SOURCE = f"""\
# %% [markdown]
# # Small
# Some text.

# %% tags=["parameters"]
seed: int = 3  # of the random numbers

# %%
from course_utils import checks

# %% tags=["course-only"]
checks.keep_progress(False)  # the answers here are the course's own

# %% [markdown] tags=["exercise"]
# ### Exercise 1: Scores
# *(easy, 5 minutes)* Write them.

# %% [markdown] tags=["hint"]
{HINT}

# %% jupyter={{"source_hidden": true}} tags=["solution"]
def my_scores(q, k):
    \"\"\"Scores.\"\"\"
    return "the secret"


# %% tags=["check"]
checks.attention_scores(my_scores)

# %%
print("goes on")
"""


@pytest.fixture
def source(tmp_path) -> Path:
    """The source of a small notebook with one exercise."""
    path = tmp_path / "notebooks" / "01_small.py"
    path.parent.mkdir()
    path.write_text(SOURCE, encoding="utf-8")
    return path


def changed(source: Path, *replacements: tuple[str, str]) -> Path:
    text = source.read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    source.write_text(text, encoding="utf-8")
    return source


def test_a_student_copy_has_the_exercise_and_not_its_solution(source):
    copy = student_copy(source)
    nbformat.validate(copy)
    code = [cell for cell in copy.cells if cell.cell_type == "code"]
    assert [cell.source for cell in code] == [
        "seed: int = 3  # of the random numbers",
        "from course_utils import checks",
        'def my_scores(q, k):\n    """Scores."""\n    raise NotImplementedError("your turn")',
        "checks.attention_scores(my_scores)",
        'print("goes on")',
    ]
    assert [cell.metadata.get("tags") for cell in code] == [["parameters"], None, ["your-turn"], ["check"], None]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert all("jupyter" not in cell.metadata for cell in copy.cells)
    assert "This is your copy" in copy.cells[1].source
    assert "secret" not in nbformat.writes(copy)
    assert "keep_progress" not in nbformat.writes(copy)
    assert copy.metadata["course"] == {"student_copy_of": "01_small"}
    assert len({cell.id for cell in copy.cells}) == len(copy.cells)
    assert student_copy(source) == copy


def test_the_solution_is_folded_in_the_full_notebook_and_stays_so_on_the_way_back(source):
    notebook = read_source(source)
    (solution,) = [cell for cell in notebook.cells if "solution" in cell.metadata.get("tags", [])]
    assert solution.metadata["jupyter"] == {"source_hidden": True}
    back = jupytext.writes(jupytext.reads(nbformat.writes(notebook), fmt="ipynb"), fmt="py:percent")
    assert '# %% jupyter={"source_hidden": true} tags=["solution"]' in back


def test_a_notebook_without_exercises_has_no_student_copy(source):
    assert write_copy(source) == "student copy written"
    source.write_text("# %% [markdown]\n# # Small\n", encoding="utf-8")
    assert student_copy(source) is None
    assert "has no exercises; remove the copy" in copy_problem(source)
    assert write_copy(source) == "student copy removed, as it has no exercises"
    assert (copy_problem(source), write_copy(source)) == ("", "")


def test_a_copy_cannot_drift(source):
    assert copy_problem(source) == "exercises/01_small.ipynb: is not there; run `make sync`"
    assert write_copy(source) == "student copy written"
    assert (copy_problem(source), write_copy(source)) == ("", "student copy up to date")
    changed(source, ("Write them.", "Write the scores."))
    assert copy_problem(source) == "exercises/01_small.ipynb: differs from 01_small.py; run `make sync`"
    assert write_copy(source) == "student copy written"
    path = copy_path(source)
    path.write_text(path.read_text(encoding="utf-8").replace("your turn", "my turn"), encoding="utf-8")
    assert "differs from 01_small.py" in copy_problem(source)
    write_copy(source)
    path.with_name("09_gone.ipynb").write_text("{}")
    assert leftover_copies([source]) == ["exercises/09_gone.ipynb: it has no source; remove it"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('tags=["hint"]', 'tags=["text"]', "has the tag solution, after exercise; the order is exercise -> hint"),
        ('# %% tags=["check"]', "# %%", "the last exercise ends with the cell solution, and not with a check"),
        ('jupyter={"source_hidden": true} ', "", "has the tag solution, but is not folded"),
        ("# <details><summary>Hint 3", "# <summary>Hint 3", "has the tag hint, but has not 3 steps"),
        (
            "# <details><summary>Hint 3",
            "# <details open><summary>Hint 3",
            "but has not 3 steps, each in <details> that are",
        ),
        ("# ### Exercise 1: Scores\n", "", "does not begin with a heading `### `"),
        ("checks.attention_scores(my_scores)", "print(my_scores)", "is not a call checks.NAME"),
        (
            "checks.attention_scores(my_scores)",
            "x = 1\nchecks.attention_scores(my_scores)",
            "is not a call checks.NAME",
        ),
        ('print("goes on")', "print(my_scores(1, 2))", "uses my_scores, a stub in the student copy; use the library's"),
        ("def my_scores(q, k):", "print(1)\ndef my_scores(q, k):", "no stub can be made, line 1, `print"),
        (
            '# %% [markdown] tags=["exercise"]',
            '# %% tags=["exercise"]',
            "has the tag exercise, but is no markdown cell",
        ),
    ],
)
def test_cells_that_would_not_make_an_exercise_are_refused(source, old, new, reason):
    changed(source, (old, new))
    with pytest.raises(SourceError, match="cell") as caught:
        student_copy(source)
    assert reason in str(caught.value)
    assert reason in copy_problem(source)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("checks.a(f)", "a"),
        ("x = 3\noutcome = checks.a(f, b=1)", "a"),
        ("checks.keep_progress(False)", None),
        ("other.a(f)", None),
        ("checks.a", None),
        ("checks.a(", None),
        ("", None),
    ],
)
def test_the_call_of_a_check_is_found(code, name):
    call = called_check(code)
    assert (call and call.func.attr) == name


def test_the_command_makes_and_checks_student_copies(source):
    source.write_text(SOURCE.replace("checks.attention_scores(my_scores)", "checks.attention_scores(None)"))
    run = CliRunner().invoke(main, ["sync", "--check", str(source)])
    assert run.exit_code == 1
    assert "exercises/01_small.ipynb: is not there" in run.output
    run = CliRunner().invoke(main, ["sync", str(source)])
    assert (run.exit_code, "01_small: student copy written" in run.output) == (0, True), run.output
    run = CliRunner().invoke(main, ["sync", "--check", str(source)])
    assert (run.exit_code, run.output) == (0, "")
    changed(source, ('# %% tags=["check"]', "# %%"))
    run = CliRunner().invoke(main, ["sync", "--check", str(source)])
    assert run.exit_code == 1
    assert "ends with the cell solution" in run.output


# The notebooks of the course.


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_the_student_copies_of_the_course_are_in_step(path):
    assert copy_problem(path) == ""


def test_no_student_copy_is_left_over():
    assert leftover_copies(SOURCES) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_student_copy_holds_a_solution_or_an_output(path):
    copy = student_copy(path)
    if copy is None:
        pytest.skip("it has no exercises")
    assert [cell.source for cell in copy.cells if "solution" in cell.metadata.get("tags", [])] == []
    assert [cell.outputs for cell in copy.cells if cell.get("outputs")] == []
    turns = [cell.source for cell in copy.cells if "your-turn" in cell.metadata.get("tags", [])]
    assert all("your turn" in code or "= ..." in code for code in turns)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_each_notebook_with_exercises_keeps_no_progress_of_its_own_answers(path):
    notebook = read_source(path)
    if not any("solution" in cell.metadata.get("tags", []) for cell in notebook.cells):
        pytest.skip("it has no exercises")
    own = [cell.source for cell in notebook.cells if "course-only" in cell.metadata.get("tags", [])]
    assert any(code.startswith("checks.keep_progress(False)") for code in own)
