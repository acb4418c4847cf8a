"""The command `course run`, on small notebooks written for the purpose."""

import re
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner, Result
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_utils import results
from course_utils.cli import main

PARAMETERS = new_code_cell("n: int = 1  # a number\nname: str = 'one'", metadata={"tags": ["parameters"]})
RECORD = "from course_utils import results\n"


def write(path: Path, *cells) -> Path:
    """A notebook of a heading, parameters, and these cells (a string is code)."""
    cells = [new_markdown_cell("# Title"), PARAMETERS, *(new_code_cell(c) if isinstance(c, str) else c for c in cells)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.parent.mkdir(exist_ok=True)
    nbformat.write(new_notebook(cells=cells, metadata=kernel), path)
    return path


def course_run(*arguments) -> Result:
    return CliRunner().invoke(main, ["run", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="module")
def mixed_run(folder) -> Result:
    """A run of notebooks of which the second and third fail."""
    failing = [new_markdown_cell("## Some heading\nProse."), "1 + 1", new_markdown_cell("More prose."), "{}['key']"]
    recorded = RECORD + "results.record('n_times_2', n * 2)\nresults.record('x', len(name))"
    recorded_twice = RECORD + "results.record('loss', 1.0)\nresults.record('loss', 2.0)"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        return course_run(
            *("-p", "n", "7", "-p", "name", "seven", "--output", "executed"),
            write(folder / "01_good.ipynb", recorded),
            write(folder / "02_bad.ipynb", *failing, "raise SystemExit('never run')"),
            write(folder / "03_twice.ipynb", recorded_twice),
            write(folder / "04_good_too.ipynb", "assert (n, name) == (7, 'seven')"),
        )


def table(output: str) -> dict[str, list[str]]:
    """The cells of each notebook's row but the first, with their lines joined."""
    rows: dict[str, list[str]] = {}
    for line in output.splitlines():
        if line.startswith("│"):
            name, *cells = (cell.strip() for cell in line.strip("│").split("│"))
            if name:
                rows[name] = cells
            else:
                *_, last = rows
                rows[last] = [f"{above} {cell}".strip() for above, cell in zip(rows[last], cells, strict=True)]
    return rows


def test_a_failure_makes_the_exit_code_1_and_the_other_notebooks_still_run(mixed_run):
    assert mixed_run.exit_code == 1
    assert "01_good: passed" in mixed_run.output
    assert "02_bad: FAILED" in mixed_run.output
    assert "04_good_too: passed" in mixed_run.output


def test_a_failure_is_reported_with_its_cell_heading_and_error(mixed_run):
    (line,) = [line for line in mixed_run.output.splitlines() if line.startswith("02_bad failed")]
    assert re.search(r"\bcell 6\b", line)
    assert "Some heading" in line
    assert "KeyError: 'key'" in line


def test_the_table_has_status_time_results_and_the_executed_copy(mixed_run):
    rows = table(mixed_run.output)
    assert list(rows) == ["01_good", "02_bad", "03_twice", "04_good_too"]
    status, seconds, recorded, executed = rows["01_good"]
    assert (status, recorded, executed) == ("passed", "n_times_2 = 14 x = 5", "executed/01_good.ipynb")
    assert re.fullmatch(r"\d+\.\d", seconds)
    status, _, recorded, executed = rows["02_bad"]
    assert (status, recorded, executed) == ("FAILED", "", "executed/02_bad.ipynb")


def test_results_recorded_twice_fail_that_notebook_and_not_the_run(mixed_run):
    assert "03_twice: FAILED" in mixed_run.output
    (line,) = [line for line in mixed_run.output.splitlines() if line.startswith("03_twice failed")]
    assert "'loss' was recorded twice" in line


def test_the_executed_copies_hold_the_results_and_the_sources_stay_as_they_were(mixed_run, folder):
    assert results.read(folder / "executed" / "01_good.ipynb") == {"n_times_2": 14, "x": 5}
    for name in ("01_good", "02_bad"):
        source = nbformat.read(folder / f"{name}.ipynb", as_version=4)
        assert not any(cell.get("outputs") for cell in source.cells)


def test_a_long_path_of_an_executed_copy_stands_whole_in_the_table(tmp_path):
    folder = tmp_path / ("a_folder_of_a_long_name_" * 5)
    output = course_run("--output", folder, write(tmp_path / "one.ipynb")).output
    assert "…" not in output
    assert str(folder / "one.ipynb") in "".join(
        line.split("│")[-2].strip() for line in output.splitlines() if "│" in line
    )


def test_the_output_of_a_log_has_no_control_characters(mixed_run):
    assert "\x1b" not in mixed_run.output
    assert "\r" not in mixed_run.output


def test_a_run_in_which_all_pass_has_exit_code_0(tmp_path):
    notebook = write(tmp_path / "05_fine.ipynb", "assert (n, name) == (1, 'one')")
    result = course_run("--output", tmp_path / "executed", notebook)
    assert result.exit_code == 0
    assert "05_fine: passed" in result.output


@pytest.fixture
def no_kernel(monkeypatch):
    monkeypatch.setattr("papermill.execute_notebook", lambda *args, **kwargs: pytest.fail("a kernel was started"))


def test_an_unknown_parameter_is_refused_with_exit_code_2_before_a_kernel_starts(tmp_path, no_kernel):
    notebook = write(tmp_path / "06_any.ipynb", "1")
    result = course_run("-p", "m", "7", "--output", tmp_path / "executed", notebook)
    assert result.exit_code == 2
    message = " ".join(result.output.split())
    assert "no parameter 'm'" in message
    assert re.search(r"\bn, name\b|\bname, n\b", message)
    assert not (tmp_path / "executed").exists()


def test_a_parameter_of_a_notebook_that_lost_the_tag_is_refused(tmp_path, no_kernel):
    notebook = write(tmp_path / "07_untagged.ipynb", "1")
    contents = nbformat.read(notebook, as_version=4)
    contents.cells[1].metadata = {}
    nbformat.write(contents, notebook)
    result = course_run("-p", "n", "7", "--output", tmp_path / "executed", notebook)
    assert result.exit_code == 2
    assert "'n'" in result.output


def test_two_notebooks_of_one_name_are_refused_because_one_copy_would_replace_the_other(tmp_path, no_kernel):
    result = course_run(*(write(tmp_path / folder / "08_same.ipynb", "1") for folder in ("one", "two")))
    assert result.exit_code == 2
    assert "same name" in result.output


@pytest.mark.parametrize("arguments", [["-p", "n"], ["missing.ipynb"], ["--colour"], ["."]])
def test_wrong_usage_has_exit_code_2(arguments, no_kernel):
    assert course_run(*arguments).exit_code == 2


def test_its_help_names_the_exit_codes():
    text = " ".join(course_run("--help").output.split())
    assert "0 if all passed, 1 if one failed, 2 for wrong usage, 130 if interrupted" in text
