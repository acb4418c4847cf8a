"""The exercises as they stand in the notebooks: each once, as its check describes it, with a solution that passes."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_utils import checks
from course_utils.checks.exercise import Choice, Exercise
from course_utils.checks.outcome import OPEN, PASSED
from course_utils.checks.session import judge
from course_utils.execution.source import read_source
from course_utils.execution.stub import stub_of
from course_utils.execution.student_copy import called_check

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = sorted((ROOT / "notebooks").glob("0*.py"))
TASKS = checks.tasks()
ABOUT_A_MEASUREMENT = {name for name, task in TASKS.items() if callable(getattr(task, "expected", None))}


def exercises_of(path: Path) -> list[SimpleNamespace]:
    """The exercises of a notebook: heading, text, hints, solution, and the call of the check."""
    found, cells = [], {}
    for cell in read_source(path).cells:
        for tag in cell.metadata.get("tags", []):
            cells[tag] = cell.source
        if "check" in cell.metadata.get("tags", []):
            call = called_check(cell.source)
            heading, _, text = cells["exercise"].partition("\n")
            found.append(
                SimpleNamespace(
                    notebook=path.stem,
                    name=call.func.attr,
                    call=call,
                    heading=heading,
                    text=text.strip(),
                    hints=cells["hint"],
                    solution=cells["solution"],
                )
            )
    return found


def headings(path: Path) -> set[str]:
    text = "\n".join(cell.source for cell in read_source(path).cells if cell.cell_type == "markdown")
    return set(re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE))


EXERCISES = [exercise for path in SOURCES for exercise in exercises_of(path)]
NAMED = {"argvalues": EXERCISES, "ids": [exercise.name for exercise in EXERCISES]}


def answer_of(exercise: SimpleNamespace, code: str):
    """What the check is called with, once the notebook's imports of PyTorch and of math, and a cell, have been run."""
    variables: dict = {}
    for cell in read_source(ROOT / "notebooks" / f"{exercise.notebook}.py").cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else ():
            if re.match(r"(import|from) (math|torch)\b", ast.unparse(node)):
                exec(ast.unparse(node), variables)
    exec(code, variables)
    return eval(ast.unparse(exercise.call.args[0]), variables)


def test_each_exercise_stands_once_in_its_notebook():
    placed = {(exercise.name, exercise.notebook) for exercise in EXERCISES}
    assert placed == {(name, task.notebook) for name, task in TASKS.items()}
    assert len(EXERCISES) == len(TASKS)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_the_exercises_are_numbered_and_the_sections_they_point_to_are_there(path):
    own = exercises_of(path)
    chapter = int(path.stem[:2])
    expected = [f"### Exercise {chapter}.{i}: {TASKS[exercise.name].title}" for i, exercise in enumerate(own, 1)]
    assert [exercise.heading for exercise in own] == expected
    assert {TASKS[exercise.name].section for exercise in own} <= headings(path)


@pytest.mark.parametrize("exercise", **NAMED)
def test_the_text_says_how_hard_it_is_and_how_long_it_takes(exercise):
    task = TASKS[exercise.name]
    assert exercise.text.startswith(f"*({task.difficulty}, {task.minutes} minutes)*")


@pytest.mark.parametrize("exercise", **NAMED)
def test_no_hint_is_open_or_empty_or_holds_the_solution(exercise):
    steps = re.findall(r"<details><summary>(.+?)</summary>\n\n(.+?)\n</details>", exercise.hints, flags=re.DOTALL)
    assert [summary.partition(":")[0] for summary, _ in steps] == ["Hint 1", "Hint 2", "Hint 3"]
    assert all(len(text.strip()) > 15 for _, text in steps)
    lines = [line.strip().removeprefix("return ") for line in exercise.solution.splitlines()]
    assert not [line for line in lines if len(line) > 25 and line in exercise.hints + exercise.text]


@pytest.mark.parametrize("exercise", **NAMED)
def test_the_solution_passes_and_its_stub_is_open(exercise):
    task = TASKS[exercise.name]
    if exercise.name in ABOUT_A_MEASUREMENT:
        pytest.skip("needs what the notebook measures: its execution shows that the solution passes")
    assert judge(task, answer_of(exercise, exercise.solution)).state == PASSED
    assert judge(task, answer_of(exercise, stub_of(exercise.solution))).state == OPEN


@pytest.mark.parametrize("exercise", **NAMED)
def test_the_statements_to_choose_from_are_those_that_are_explained(exercise):
    task = TASKS[exercise.name]
    labels = re.findall(r"^- \*\*([a-z])\*\* .+$", exercise.text, flags=re.MULTILINE)
    assert labels == (list(task.options) if isinstance(task, Choice) else [])


@pytest.mark.parametrize("exercise", **NAMED)
def test_a_function_has_a_docstring_with_shapes_that_the_student_copy_keeps(exercise):
    if not isinstance(TASKS[exercise.name], Exercise):
        return
    (function,) = (node for node in ast.parse(stub_of(exercise.solution)).body if isinstance(node, ast.FunctionDef))
    assert ast.get_docstring(function)
    assert function.name.startswith("my_")
