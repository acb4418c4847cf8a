"""Notebooks written for the purpose of these tests, whose kernels start in a second, and what runs them."""

import json
from pathlib import Path

import nbformat
from click.testing import CliRunner, Result
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_utils.cli import main

PARAMETERS = "n: int = 1  # a number"
RECORD = "from course_utils.results import record\n"


def write(path: Path, *cells: str, parameters: str | None = PARAMETERS, kernel: str = "python3") -> Path:
    """A notebook of a heading, parameters and these cells of code; a cell that begins with # and a blank is text."""
    made = [new_markdown_cell("# Title")]
    if parameters is not None:
        made.append(new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    made += [new_markdown_cell(cell) if cell.startswith("# ") else new_code_cell(cell) for cell in cells]
    spec = {"kernelspec": {"name": kernel, "display_name": "Python 3", "language": "python"}}
    path.parent.mkdir(exist_ok=True, parents=True)
    nbformat.write(new_notebook(cells=made, metadata=spec), path)
    return path


def course(*arguments: object) -> Result:
    """The command `course` in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def report_of(folder: Path) -> dict:
    """The content of a folder's results.json."""
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def text_of(copy: Path) -> str:
    """All text that the cells of an executed copy printed."""
    cells = nbformat.read(copy, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs)
