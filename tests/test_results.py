import nbformat
import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils import results

NUMBERS = [
    (3, 3),
    (0.25, 0.25),
    (-1e-12, -1e-12),
    (np.float64(0.5), 0.5),
    (np.int64(4), 4),
    (np.array([[7.0]]), 7.0),
    (torch.tensor(0.5), 0.5),
    (torch.tensor([2]), 2),
    (torch.tensor(1.5, requires_grad=True), 1.5),
    (10**20, 10**20),
]


def notebook(*results_of_cells: list[tuple[str, float]]) -> nbformat.NotebookNode:
    def output(name: str, value: float):
        return new_output("display_data", {results.MIME_TYPE: {"name": name, "value": value}, "text/plain": "shown"})

    text = new_output("stream", name="stdout", text="test_acc = 0.1")
    cells = [new_code_cell("", outputs=[text, *(output(*result) for result in cell)]) for cell in results_of_cells]
    return new_notebook(cells=[new_markdown_cell("# Heading"), *cells])


@pytest.mark.parametrize(("value", "number"), NUMBERS)
def test_a_number_is_shown_with_its_name_and_kept_for_reading(monkeypatch, value, number):
    shown = []
    monkeypatch.setattr(InteractiveShell, "initialized", classmethod(lambda cls: True))
    monkeypatch.setattr(results, "display", lambda data, raw: shown.append(data))
    results.record("test_acc", value)
    (data,) = shown
    assert data["text/plain"].startswith("test_acc = ")
    assert data[results.MIME_TYPE] == {"name": "test_acc", "value": number}
    assert type(data[results.MIME_TYPE]["value"]) is type(number)


def test_outside_a_notebook_it_is_printed(capsys):
    results.record("test_acc", 0.123456789)
    results.record("steps", 1200)
    assert capsys.readouterr().out == "test_acc = 0.123457\nsteps = 1200\n"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), torch.tensor(float("nan"))])
def test_what_is_not_finite_is_refused_by_name(value):
    with pytest.raises(ValueError, match="'loss' must be finite"):
        results.record("loss", value)


@pytest.mark.parametrize(
    "value", [True, np.bool_(True), torch.tensor(False), "0.5", None, 1j, [1.0], torch.ones(2), np.ones((2, 2))]
)
def test_what_is_no_single_number_is_refused_by_name(value):
    with pytest.raises(TypeError, match="'loss' must be"):
        results.record("loss", value)


@pytest.mark.parametrize("name", ["", "test acc", "1st", "a-b", 3, None])
def test_a_name_that_is_no_identifier_is_refused(name):
    with pytest.raises(ValueError, match="identifier"):
        results.record(name, 1.0)


def test_the_results_of_a_notebook_are_read_in_order_from_it_and_from_its_file(tmp_path):
    executed = notebook([("loss", 0.5)], [], [("steps", 3), ("accuracy", 1.0)])
    expected = [("loss", 0.5), ("steps", 3), ("accuracy", 1.0)]
    assert list(results.read(executed).items()) == expected
    nbformat.write(executed, tmp_path / "executed.ipynb")
    assert list(results.read(tmp_path / "executed.ipynb").items()) == expected
    assert list(results.read(str(tmp_path / "executed.ipynb")).items()) == expected


def test_a_notebook_without_results_has_none():
    assert results.read(notebook([])) == {}


def test_a_name_recorded_twice_is_refused():
    with pytest.raises(ValueError, match="'loss' was recorded twice"):
        results.read(notebook([("loss", 0.5)], [("loss", 0.5)]))
