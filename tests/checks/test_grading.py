"""Grading: which cells of a copy are run, and what a class of generated students gets, some of them broken."""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from course_utils import checks
from course_utils.checks.answer_cells import UnreadableError, cells_of, needed
from course_utils.checks.grades_report import common_mistakes, csv_of, exercises_of, page_of
from course_utils.checks.grading import Grades, Limits, Mark, copies_in, grade_notebook
from course_utils.cli import main

NOTEBOOKS = ("01_attention", "02_encoder", "03_reverse_task", "04_set_anomaly")
SETUP = "import math\nimport torch\nfrom course_utils import checks"
SCORES, WEIGHTS, WHY = "attention_scores", "attention_weights", "why_scale"
RIGHT = {
    SCORES: "def my_scores(q, k):\n    return q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))",
    WEIGHTS: "def my_weights(scores):\n    return torch.softmax(scores, -1)",
    WHY: "choice = {label!r}",
}
CALLS = {
    SCORES: "checks.attention_scores(my_scores)",
    WEIGHTS: "checks.attention_weights(my_weights)",
    WHY: "checks.why_scale(choice)",
}


def right_label():
    return next(label for label, option in checks.tasks()[WHY].options.items() if option.right)


def wrong_label():
    return next(label for label, option in checks.tasks()[WHY].options.items() if not option.right)


def notebook(*codes: str) -> str:
    cells = [
        {"cell_type": "code", "metadata": {}, "source": code, "outputs": [], "execution_count": 1} for code in codes
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


def answered(**answers: str) -> list[str]:
    """The code cells of a copy with these answers, and right ones otherwise."""
    codes = [SETUP]
    for name, right in RIGHT.items():
        codes += [answers.get(name, right.format(label=right_label()) if name == WHY else right), CALLS[name]]
    return codes


# Which cells are run.


def numbers(*codes: str, tmp_path: Path) -> list[int]:
    path = tmp_path / "copy.ipynb"
    path.write_text(notebook(*codes))
    return [cell.number for cell in needed(cells_of(path))]


def test_only_what_an_answer_needs_is_run(tmp_path):
    codes = [
        "import torch\nfrom course_utils import checks",
        "seed = 3",
        "model = train(epochs=100)  # takes an hour",
        "width = 4",
        "def my_scores(q, k):\n    return q @ k.mT / width",
        "print(model)",
        "width += 1",
        "checks.attention_scores(my_scores)",
        "x = my_scores(1, 2)",
    ]
    assert numbers(*codes, tmp_path=tmp_path) == [1, 4, 5, 7, 8]
    assert numbers(*codes[:7], tmp_path=tmp_path) == []


def test_cells_that_change_a_needed_thing_and_star_imports_are_run(tmp_path):
    codes = [
        "from course_utils import checks",
        "from mine import *",
        "parts = []",
        "parts.append(3)",
        "parts[0] = 4",
        "other.append(3)",
        "f = lambda x: parts",
        "checks.a(f)",
    ]
    assert numbers(*codes, tmp_path=tmp_path) == [1, 2, 3, 4, 5, 7, 8]


def test_magics_are_understood_and_cells_that_are_no_python_passed_over(tmp_path):
    codes = ["%matplotlib inline\n!pip install x\nfrom course_utils import checks", "def f(:", "checks.a(1)"]
    path = tmp_path / "copy.ipynb"
    path.write_text(notebook(*codes))
    cells = cells_of(path)
    assert [cell.problem for cell in cells] == ["", "SyntaxError in line 1: invalid syntax", ""]
    assert [cell.exercises for cell in cells] == [(), (), ("a",)]
    assert [cell.number for cell in needed(cells)] == [1, 3]


def test_scripts_are_read_in_both_formats(tmp_path):
    percent = tmp_path / "percent.py"
    percent.write_text("# %% [markdown]\n# # Text\n\n# %%\nx = 3\n\n# %%\nchecks.a(x)\n")
    assert [cell.code.strip() for cell in cells_of(percent)] == ["x = 3", "checks.a(x)"]
    plain = tmp_path / "plain.py"
    plain.write_text("# A text\n\nx = 3\n\nchecks.a(x)\n")
    assert "checks.a(x)" in [cell.code.strip() for cell in cells_of(plain)]


@pytest.mark.parametrize(
    "content", [b"", b'{"cells": [', b"[]", b"3", b'{"cells": 3}', b'{"cells": [{"source": 3}]}', b"\xff\xfe\x00"]
)
def test_broken_files_are_told(tmp_path, content):
    path = tmp_path / "copy.ipynb"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match="the file"):
        cells_of(path)


def test_whose_copy_a_file_is(tmp_path):
    for name in (
        "anna/01_attention.ipynb",
        "anna/deeper/02_encoder.ipynb",
        "ben_01_attention.ipynb",
        "03_reverse_task-ben.py",
        "carla.ipynb",
        "01_attention.ipynb",
        ".ipynb_checkpoints/x.ipynb",
        "anna/__pycache__/y.py",
        "grades.csv",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    found = {student: [path.name for path in paths] for student, paths in copies_in(tmp_path, NOTEBOOKS).items()}
    assert found == {
        "01_attention": ["01_attention.ipynb"],
        "ben": ["03_reverse_task-ben.py", "ben_01_attention.ipynb"],
        "anna": ["01_attention.ipynb", "02_encoder.ipynb"],
        "carla": ["carla.ipynb"],
    }


# The reports.

GRADES = [
    Grades("anna", ["a.ipynb"], {SCORES: Mark("passed"), WHY: Mark("failed", "chose a")}),
    Grades(
        "=1+1",
        ["b.ipynb"],
        {SCORES: Mark("failed", "raises <script>alert(1)</script>"), WHY: Mark("failed", "chose a")},
    ),
    Grades("carla", ["c.ipynb"], {}, ["unreadable: the file is no notebook"]),
]


def test_the_table_has_a_line_for_each_student():
    exercises = exercises_of(GRADES, checks.tasks())
    assert {SCORES, WHY, WEIGHTS} <= set(exercises)
    assert {checks.tasks()[name].notebook for name in exercises} == {"01_attention"}
    rows = list(csv.DictReader(csv_of(GRADES, exercises).splitlines()))
    assert [row["student"] for row in rows] == ["anna", "'=1+1", "carla"]
    assert [(row["passed"], row["failed"], row["open"]) for row in rows] == [
        ("1", "1", str(len(exercises) - 2)),
        ("0", "2", str(len(exercises) - 2)),
        ("0", "0", str(len(exercises))),
    ]
    assert (rows[0][WHY], rows[0][f"{WHY}: diagnosis"]) == ("failed", "chose a")
    assert rows[2]["status"] == "unreadable: the file is no notebook"


def test_the_page_shows_the_most_common_mistake_first_and_runs_no_script_of_a_student():
    first = common_mistakes(GRADES)[0]
    assert (first.exercise, first.diagnosis, first.students) == (WHY, "chose a", ("anna", "=1+1"))
    page = page_of(GRADES, exercises_of(GRADES, checks.tasks()), checks.tasks())
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.index("chose a") < page.index("raises &lt;script&gt;")
    assert "carla: unreadable" in page
    assert 'src="' not in page
    assert "http" not in page
    assert page_of([], [], checks.tasks()).count("<tr>") >= 1


def test_a_folder_without_notebooks_is_wrong_usage(tmp_path):
    run = CliRunner().invoke(main, ["grade", str(tmp_path)])
    assert run.exit_code == 2
    assert "there are no .ipynb and no .py files" in run.output


# A class.

STRANGE = {
    "endless": {SCORES: "def my_scores(q, k):\n    while True:\n        pass"},
    "exits": {SCORES: "import sys\ndef my_scores(q, k):\n    sys.exit(1)"},
    "kills": {SCORES: "import os\ndef my_scores(q, k):\n    os._exit(1)"},
    "hog": {SCORES: "def my_scores(q, k):\n    x = []\n    while True:\n        x.append(torch.ones(10_000_000))"},
    "raises": {SCORES: "def my_scores(q, k):\n    return 1 / 0"},
    "syntax": {SCORES: "def my_scores(q, k)\n    return 3"},
    "missing": {SCORES: ""},
    "stub": {SCORES: 'def my_scores(q, k):\n    raise NotImplementedError("your turn")'},
    "none": {SCORES: "def my_scores(q, k):\n    q @ k.mT"},
    "in-place": {WEIGHTS: "def my_weights(s):\n    s -= s.amax(-1, True)\n    return s.softmax(-1)"},
    "cell-exits": {SCORES: "exit()"},
    "shadows": {SCORES: RIGHT[SCORES] + "\nchecks = torch = print = None\nimport torch"},
    "lies": {
        SCORES: "class Lies:\n    def __getattr__(self, n): return lambda *a: True\nchecks = Lies()\nmy_scores = max"
    },
    "patches": {SCORES: "checks.attention_scores = lambda f: True\ndef my_scores(q, k):\n    return q @ k.mT"},
    "background": {
        SCORES: "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        + RIGHT[SCORES]
    },
    "unneeded-loop": {WHY: "choice = {label!r}\nwhile False:\n    pass"},
}
EXPECTED = {  # state, and how the diagnosis begins
    "endless": ("failed", "does not come to an end"),
    "exits": ("failed", "raises SystemExit"),
    "kills": ("failed", "ended the process"),
    "hog": ("failed", ("raises", "out of memory", "does not come")),
    "raises": ("failed", "raises ZeroDivisionError"),
    "syntax": ("failed", "its cell fails: SyntaxError in line 1"),
    "missing": ("open", "no answer: my_scores is not defined"),
    "stub": ("open", ""),
    "none": ("failed", "returns None"),
    "in-place": ("passed", ""),
    "cell-exits": ("open", "no answer: my_scores is not defined"),
    "shadows": ("passed", ""),
    "lies": ("failed", ""),
    "patches": ("failed", ""),
    "background": ("passed", ""),
    "unneeded-loop": ("passed", ""),
}


@pytest.mark.slow
def test_a_class_of_thirty_some_of_them_broken(tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    students: dict[str, str] = {}
    for number in range(6):
        students[f"right-{number}"] = notebook(*answered())
        students[f"unscaled-{number}"] = notebook(*answered(**{SCORES: "def my_scores(q, k):\n    return q @ k.mT"}))
    for number in range(3):
        students[f"guess-{number}"] = notebook(*answered(**{WHY: f"choice = {wrong_label()!r}"}))
    for name, answers in STRANGE.items():
        answers = {key: code.replace("{label!r}", repr(right_label())) for key, code in answers.items()}
        students[name] = notebook(*answered(**answers))
    students["broken"] = '{"cells": [{"cell_type"'
    students["empty"] = ""
    students["a&b"] = notebook(*answered())
    assert len(students) >= 33
    for name, content in students.items():
        (folder / f"{name}_01_attention.ipynb").write_text(content)
    (folder / "nested").mkdir()
    (folder / "nested" / "01_attention.py").write_text("# %%\n" + "\n\n# %%\n".join(answered()))

    arguments = ["grade", str(folder), "--jobs", "2", "--timeout", "300", "--cell-timeout", "120", "--memory", "1.5"]
    run = CliRunner().invoke(main, arguments, env={"COLUMNS": "160"})
    assert run.exit_code == 1, run.output  # two could not be read

    rows = {row["student"]: row for row in csv.DictReader((folder / "grades.csv").read_text().splitlines())}
    assert len(rows) == len(students) + 1
    for name in [*(f"right-{number}" for number in range(6)), "nested", "a&b"]:
        assert [rows[name][exercise] for exercise in RIGHT] == ["passed"] * 3, rows[name]
    for number in range(6):
        row = rows[f"unscaled-{number}"]
        assert (row[SCORES], row[f"{SCORES}: diagnosis"]) == ("failed", "the scores are not scaled")
        assert (row[WEIGHTS], row[WHY]) == ("passed", "passed")
    for number in range(3):
        assert rows[f"guess-{number}"][f"{WHY}: diagnosis"] == f"chose {wrong_label()}"
    for name, (state, diagnosis) in EXPECTED.items():
        assert rows[name][SCORES] == state, rows[name]
        assert rows[name][f"{SCORES}: diagnosis"].startswith(diagnosis), rows[name]
        others = [rows[name][exercise] for exercise in (WEIGHTS, WHY)]
        assert others == (["failed", "passed"] if name == "in-place" else ["passed", "passed"]), rows[name]
    assert rows["in-place"][f"{WEIGHTS}: diagnosis"]
    for name in ("broken", "empty"):
        assert rows[name]["status"].startswith("unreadable: the file is no notebook")
        assert rows[name]["passed"] == "0"
    assert {row["status"] for name, row in rows.items() if name not in ("broken", "empty")} == {"graded"}

    page = (folder / "grades.html").read_text()
    assert page.index("the scores are not scaled") < page.index(f"chose {wrong_label()}")
    assert "a&amp;b" in page
    assert "a&b" not in page
    assert not [p for p in psutil.process_iter() if _is_left_over(p)]


def _is_left_over(process: psutil.Process) -> bool:
    try:
        return process.cmdline()[-1:] == ["import time; time.sleep(600)"]
    except (psutil.Error, OSError):
        return False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no such signal to one process")
def test_an_interruption_ends_the_processes(tmp_path):
    for name in ("anna", "ben", "carla"):
        (tmp_path / f"{name}.ipynb").write_text(notebook(SETUP, "while True:\n    f = 3", "checks.why_scale(f)"))
    program = "import sys; from course_utils.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "grade", str(tmp_path), "--jobs", "2"]
    course = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path)

    def answers() -> list[psutil.Process]:
        return [child for child in psutil.Process(course.pid).children() if child.is_running()]

    deadline = time.monotonic() + 300
    while len(answers()) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    running = answers()
    assert len(running) == 2
    course.send_signal(signal.SIGINT)
    assert course.wait(120) == 130
    assert not [process for process in running if process.is_running()]
    assert not (tmp_path / "grades.csv").exists()


@pytest.mark.slow
def test_a_copy_that_takes_too_long_in_all_keeps_what_it_has(tmp_path):
    path = tmp_path / "copy.ipynb"
    loop = "import time\nwhile True:\n    try:\n        time.sleep(1)\n    except BaseException:\n        continue"
    codes = answered()
    path.write_text(notebook(*codes[:3], f"{loop}\nmy_weights = 3", *codes[3:]))
    marks, problem = grade_notebook(path, Limits(seconds=60.0, cell_seconds=600.0))
    assert marks[SCORES] == Mark("passed")
    assert problem == "out of time: took longer than 60 s, in cell 4"


def test_a_call_of_a_modules_function_is_needed_by_no_answer(tmp_path):
    path = tmp_path / "copy.py"
    cells = ["import torch", "torch.manual_seed(0)", "x = torch.ones(2)", "x.add_(1)", "y = 2\nchecks.entropy(x)"]
    path.write_text("".join(f"# %%\n{cell}\n\n" for cell in cells))
    assert [cell.code.strip() for cell in needed(cells_of(path))] == [cells[0], *cells[2:]]
