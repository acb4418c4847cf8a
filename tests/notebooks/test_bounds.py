"""The file of expected numbers: what it may say, and what it says of the course's notebooks."""

import math
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_utils import results
from course_utils.cli import main
from course_utils.execution.bounds import (
    Expected,
    ExpectedError,
    Range,
    Tolerance,
    expected_beside,
    load_expected,
    violations,
)
from course_utils.execution.parameters import default_parameters, default_profile
from course_utils.execution.source import read_source

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
EXAMPLE = """
[nbval]
rtol = 1e-4
[nbval.trained]
rtol = 5e-3
atol = 1e-3
[nbval.03_reverse_task]
rtol = 1e-2
[03_reverse_task.quick]
test_acc = [0.98, 1.0]
[03_reverse_task.full]
test_acc = [0.999, 1]
"""


def load(tmp_path: Path, text: str) -> Expected:
    path = tmp_path / "expected.toml"
    path.write_text(text)
    return load_expected(path)


def test_ranges_and_tolerances_are_read(tmp_path):
    expected = load(tmp_path, EXAMPLE)
    assert expected.of("03_reverse_task", "quick") == {"test_acc": Range(0.98, 1.0)}
    assert expected.of("03_reverse_task", "full") == {"test_acc": Range(0.999, 1)}
    assert expected.of("03_reverse_task", "other") == {}
    assert expected.of("01_attention", "quick") == {}
    assert expected.tolerance_of("01_attention") == Tolerance(rtol=1e-4, atol=1e-6)
    assert expected.tolerance_of("03_reverse_task") == Tolerance(rtol=1e-2, atol=1e-6)


def test_cells_about_training_have_a_wider_tolerance(tmp_path):
    expected = load(tmp_path, EXAMPLE)
    assert expected.tolerance_of("01_attention", ["trained"]) == Tolerance(rtol=5e-3, atol=1e-3)
    assert expected.tolerance_of("01_attention", ["parameters"]) == Tolerance(rtol=1e-4, atol=1e-6)
    assert expected.tolerance_of("03_reverse_task", ["trained"]) == Tolerance(rtol=1e-2, atol=1e-3)


def test_nothing_is_expected_where_no_file_is(tmp_path):
    assert expected_beside(tmp_path / "a.ipynb") == Expected()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a.quick]\nacc = 0.9", r"expected\.toml: a\.quick\.acc must be a range such as \[0\.98, 1\.0\], got 0\.9"),
        ("[a.quick]\nacc = [0.9]", r"a\.quick\.acc must be a range"),
        ("[a.quick]\nacc = [0.9, 'high']", r"a\.quick\.acc must be a range"),
        ("[a.quick]\nacc = [0.9, nan]", r"a\.quick\.acc must be a range"),
        ("[a.quick]\nacc = [true, 1]", r"a\.quick\.acc must be a range"),
        ("[a.quick]\nacc = [1.0, 0.9]", r"a\.quick\.acc must be \[lowest, highest\], got \[1\.0, 0\.9\]"),
        ("[a]\nacc = [0.9, 1.0]", r"a\.acc must be a table; the form is \[NOTEBOOK\.PROFILE\]"),
        ("a = 1", r"a must be a table"),
        ("nbval = 1", r"nbval must be a table"),
        ("[nbval]\nrtol = -1", r"\[nbval\] holds rtol and atol, numbers of at least 0; got rtol = -1"),
        ("[nbval.trained]\nrtol = -1", r"\[nbval\.trained\] holds rtol and atol.*got rtol = -1"),
        ("[nbval]\ntol = 1", r"got tol = 1"),
        ("[nbval.a]\natol = 'small'", r"\[nbval\.a\] holds rtol and atol.*got atol = small"),
        ("[a.quick\n", r"expected\.toml: .*line 1"),
    ],
)
def test_mistakes_are_named(tmp_path, text, message):
    with pytest.raises(ExpectedError, match=message):
        load(tmp_path, text)


def test_violations_say_value_and_range():
    ranges = {"test_acc": Range(0.98, 1.0), "val_acc": Range(0.9, 1.0)}
    assert violations({"test_acc": 0.98, "val_acc": 1.0, "unbounded": 7}, ranges) == []
    assert violations({"test_acc": 0.5}, ranges) == [
        "test_acc = 0.5 is outside its range, 0.98 to 1",
        "val_acc was not recorded; its range is 0.9 to 1",
    ]


@pytest.mark.parametrize(
    ("value", "expected", "allowed"),
    [
        (1.00004, 1.0, True),
        (1.0002, 1.0, False),
        (1e-7, 0.0, True),
        (1e-5, 0.0, False),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.inf, 1.0, False),
        (math.inf, math.inf, True),
        (-math.inf, math.inf, False),
        (math.nan, math.nan, True),
    ],
)
def test_tolerance(value, expected, allowed):
    assert Tolerance(rtol=5e-5, atol=1e-6).allows(value, expected) is allowed


@pytest.mark.parametrize(
    ("code", "profile"),
    [
        ('profile: str = "full"  # one of: quick, full', "full"),
        ('n: int = 3\nprofile = "small"', "small"),
        ("n: int = 3", "quick"),
    ],
)
def test_profile_is_read_from_the_parameters(code, profile):
    cells = [new_code_cell("profile = 'other'"), new_code_cell(code, metadata={"tags": ["parameters"]})]
    assert default_profile(new_notebook(cells=cells)) == profile


def test_parameters_are_read_with_their_values():
    code = "from typing import Optional\n\nmax_epochs: Optional[int] = None\nsizes: list[int] = [5, 10]\nm = n * 10"
    notebook = new_notebook(cells=[new_code_cell(code, metadata={"tags": ["parameters"]})])
    assert default_parameters(notebook) == {"max_epochs": None, "sizes": [5, 10]}


# The course's own notebooks.


def unmatched(notebook: nbformat.NotebookNode, name: str, expected: Expected) -> list[str]:
    """What stands on one side only: a result without a range, or a range without a result."""
    recorded, profile = results.read(notebook), default_profile(notebook)
    ranges = expected.of(name, profile)
    missing = [f"{name}: the result {result} has no range in [{name}.{profile}]" for result in recorded.keys() - ranges]
    left_over = [
        f"{name}: the range {result} in [{name}.{profile}] has no result" for result in ranges.keys() - recorded
    ]
    return sorted(missing + left_over)


def recording(**recorded: float) -> nbformat.NotebookNode:
    outputs = [
        new_output("display_data", {results.MIME_TYPE: {"name": name, "value": value}})
        for name, value in recorded.items()
    ]
    return new_notebook(cells=[new_code_cell("", outputs=outputs)])


def test_unmatched_finds_both_sides(tmp_path):
    expected = load(tmp_path, "[a.quick]\nacc = [0, 1]\n")
    assert unmatched(recording(acc=0.5), "a", expected) == []
    assert unmatched(recording(acc=0.5, loss=1.0), "a", expected) == ["a: the result loss has no range in [a.quick]"]
    assert unmatched(recording(), "a", expected) == ["a: the range acc in [a.quick] has no result"]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_result_has_a_range_and_is_within(path):
    notebook, expected = nbformat.read(path, as_version=4), expected_beside(path)
    assert unmatched(notebook, path.stem, expected) == []
    assert violations(results.read(notebook), expected.of(path.stem, default_profile(notebook))) == []


def test_every_entry_is_of_a_notebook():
    expected = load_expected(NOTEBOOKS / "expected.toml")
    notebooks = {path.stem for path in NOTEBOOKS.glob("*.py")}
    assert {*expected.ranges, *expected.tolerances} <= notebooks


def test_full_profile_has_the_same_results():
    for name, profiles in load_expected(NOTEBOOKS / "expected.toml").ranges.items():
        assert set(profiles) <= {"quick", "full"}, name
        if "full" in profiles:
            assert set(profiles["full"]) == set(profiles["quick"]), name


# A run of a notebook.


NOTEBOOK = """\
# %% tags=["parameters"]
profile: str = "quick"  # one of: quick, full
accuracy: float = 0.95  # what to record

# %%
from course_utils.results import record

record("test_acc", accuracy)
"""


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    path = tmp_path / "small.ipynb"
    path.with_suffix(".py").write_text(NOTEBOOK)
    nbformat.write(read_source(path.with_suffix(".py")), path)
    return path


def run(notebook: Path, expected: str, *arguments: str):
    (notebook.parent / "expected.toml").write_text(expected)
    return CliRunner().invoke(main, ["run", str(notebook), "--output", str(notebook.parent / "out"), *arguments])


def test_run_within_its_range_passes(notebook):
    result = run(notebook, "[small.quick]\ntest_acc = [0.9, 1.0]\n")
    assert (result.exit_code, "passed" in result.output) == (0, True)


def test_run_outside_its_range_fails_and_says_value_and_range(notebook):
    result = run(notebook, "[small.quick]\ntest_acc = [0.98, 1.0]\n")
    assert result.exit_code == 1
    assert "small failed: test_acc = 0.95 is outside its range, 0.98 to 1" in result.output


def test_run_is_held_to_the_ranges_of_its_profile(notebook):
    expected = "[small.quick]\ntest_acc = [0.9, 1.0]\n[small.full]\ntest_acc = [0.99, 1.0]\n"
    result = run(notebook, expected, "-p", "profile", "full")
    assert result.exit_code == 1
    assert "test_acc = 0.95 is outside its range, 0.99 to 1" in result.output


def test_run_with_another_recipe_is_not_held_and_says_so(notebook):
    result = run(notebook, "[small.quick]\ntest_acc = [0.9, 1.0]\n", "-p", "accuracy", "0.5")
    assert result.exit_code == 0
    assert "accuracy changed" in result.output


def test_mistake_in_the_ranges_stops_the_run_before_it_starts(notebook):
    result = run(notebook, "[small.quick]\ntest_acc = 0.9\n")
    assert result.exit_code == 2
    assert "small.quick.test_acc must be a range" in result.output
    assert not (notebook.parent / "out").exists()
