"""Progress: what is kept, where, and how it is shown; and the checks as a notebook calls them."""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from small_exercises import TIMES, WEIGHTS, WHY

from course_utils import checks
from course_utils.checks import progress
from course_utils.checks.outcome import FAILED, OPEN, PASSED
from course_utils.checks.progress import DONE, TRIED, Standing, standings
from course_utils.checks.session import check_of
from course_utils.checks.standing_report import json_of, junit_of
from course_utils.cli import main

SMALL = {task.name: task for task in (WEIGHTS, WHY, TIMES)}


def test_each_outcome_is_kept_and_a_stub_counts_as_no_try(progress_file):
    check = check_of(WHY)
    assert check().state == OPEN
    assert standings()["why"] == Standing(OPEN, 0, "", standings()["why"].last)
    assert check("a").state == FAILED
    assert check("c").state == FAILED
    standing = standings()["why"]
    assert (standing.state, standing.tries, standing.diagnosis) == (TRIED, 2, "chose c")
    assert check("b").state == PASSED
    assert check("a").state == FAILED  # it stays done
    standing = standings()["why"]
    assert (standing.state, standing.tries) == (DONE, 3)
    assert len(progress_file.read_text().splitlines()) == 5


def test_what_is_kept_is_the_outcome_and_not_the_answer(progress_file):
    check_of(WEIGHTS)(lambda scores: scores.softmax(-2))
    (line,) = map(json.loads, progress_file.read_text().splitlines())
    assert set(line) == {"exercise", "notebook", "state", "diagnosis", "time"}
    assert line["diagnosis"] == "softmax over the queries"


def test_nothing_is_kept_where_the_answers_are_the_courses_own(progress_file):
    checks.keep_progress(False)
    assert check_of(WHY)("b").passed
    assert not progress_file.exists()
    checks.keep_progress(True)
    check_of(WHY)("b")
    assert progress_file.exists()


def test_broken_lines_are_passed_over(progress_file):
    check = check_of(WHY)
    check("a")
    with progress_file.open("ab") as stream:
        stream.write(b'\xff\xfe not json\n[1, 2]\n{"exercise": 3}\n{"exercise": "why", "notebook": "x"')  # cut off
    check("b")
    assert (standings()["why"].state, standings()["why"].tries) == (DONE, 2)
    progress_file.write_bytes(b"\x00" * 1000)
    assert standings() == {}
    check("b")
    assert standings()["why"].state == DONE


def test_a_check_works_where_nothing_can_be_written(monkeypatch, tmp_path):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("PATH_PROGRESS", str(tmp_path / "a file" / "progress.jsonl"))
    assert check_of(WHY)("b").passed
    assert standings() == {}


def _check_many(number):
    for _ in range(25):
        check_of(WHY)("a")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_two_kernels_at_once_lose_nothing(progress_file):
    processes = [multiprocessing.get_context("fork").Process(target=_check_many, args=(n,)) for n in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert standings()["why"].tries == 50


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"XDG_STATE_HOME": "/state"}, "/state/transformer-course/progress.jsonl"),
        ("linux", {"HOME": "/me"}, "/me/.local/state/transformer-course/progress.jsonl"),
        ("darwin", {"HOME": "/me"}, "/me/Library/Application Support/transformer-course/progress.jsonl"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/transformer-course/progress.jsonl"),
        ("linux", {"PATH_PROGRESS": "/mine.jsonl", "XDG_STATE_HOME": "/state"}, "/mine.jsonl"),
    ],
)
def test_the_file_lies_where_the_system_keeps_such_things(monkeypatch, platform, environment, expected):
    for name in ("PATH_PROGRESS", "XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
        if name == "HOME":
            monkeypatch.setattr(Path, "home", lambda: Path("/me"))
    monkeypatch.setattr(progress.sys, "platform", platform)
    assert progress.progress_file().as_posix() == expected


def test_progress_as_json_and_junit():
    check_of(WHY)("a")
    check_of(TIMES)(8, seconds=2.0)
    found = json.loads(json_of(SMALL, standings()))
    assert {state: found[state] for state in (DONE, TRIED, OPEN)} == {DONE: 1, TRIED: 1, OPEN: 1}
    rows = {row["exercise"]: row for row in found["exercises"]}
    assert rows["why"]["diagnosis"] == "chose a"
    assert rows["weights"]["last"] is None
    (suite,) = ElementTree.fromstring(junit_of(SMALL, standings()))
    assert suite.attrib == {"name": "01_attention", "tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    assert [child.tag for case in suite for child in case] == ["skipped", "failure"]


def test_the_command_shows_progress(progress_file, tmp_path):
    choices = [task for task in checks.tasks().values() if type(task).__name__ == "Choice"]
    right = next(label for label, option in choices[0].options.items() if option.right)
    wrong = next(label for label, option in choices[1].options.items() if not option.right)
    getattr(checks, choices[0].name)(right)
    getattr(checks, choices[1].name)(wrong)
    run = CliRunner().invoke(main, ["progress", "--junit", str(tmp_path / "p.xml")], env={"COLUMNS": "160"})
    assert run.exit_code == 0
    assert run.output.count("✓ done") == 1
    assert f"chose {wrong}" in run.output
    assert len(ElementTree.parse(tmp_path / "p.xml").getroot()) >= 4
    run = CliRunner().invoke(main, ["progress", "--json"])
    assert json.loads(run.output)["done"] == 1
    run = CliRunner().invoke(main, ["progress", "--junit", str(tmp_path / "none" / "p.xml")])
    assert run.exit_code == 2


def test_an_unknown_exercise_is_named_with_those_that_are_like_it():
    first = next(iter(checks.tasks()))
    with pytest.raises(AttributeError, match=rf"there is no exercise '{first}s'; did you mean .*{first}"):
        getattr(checks, f"{first}s")
    assert first in dir(checks)
    assert getattr(checks, first).__name__ == first


SESSION = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def run(code):
    result = shell.run_cell(code)
    result.raise_error()
    return result.result
run("from course_utils import checks\\nimport torch")
name = next(n for n, t in checks_tasks().items() if type(t).__name__ == "Exercise")
run("print = 3; len = None; softmax = 'mine'; F = torch; torch = 'gone'; math = None; np = 7")
run("def answer(*a, **k): exit()")
outcome = run(f"checks.{name}(answer)")
assert outcome.diagnosis == "raises SystemExit", outcome
run("def answer(*a, **k):\\n    from IPython.display import display\\n    display('shown')\\n    return 1 / 0")
outcome = run(f"checks.{name}(answer)")
assert "line 4: return 1 / 0" in outcome.message, outcome
assert not getattr(shell, "exit_now", False)
import builtins
builtins.print("survived")
"""


def test_a_notebook_that_has_redefined_names_and_calls_exit(tmp_path):
    program = "from course_utils.checks import tasks as checks_tasks\n" + SESSION
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("survived\n")
    assert "'shown'" not in done.stdout
