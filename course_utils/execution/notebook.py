"""Execute one notebook with papermill, and say what came of it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import papermill
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from course_utils import results
from course_utils.execution.line import CellCallback
from course_utils.execution.source import KERNEL_ARGUMENTS, KERNELSPEC, place_of_cell


@dataclass(frozen=True)
class Outcome:
    """What came of one notebook.

    Attributes:
        notebook: path of the source.
        output: path of the executed copy.
        seconds: wall-clock time, kernel start included.
        results: the numbers it recorded.
        error: what failed and where; empty if it passed.
        note: what else there is to know.
    """

    notebook: Path
    output: Path
    seconds: float
    results: Mapping[str, int | float] = field(default_factory=dict)
    error: str = ""
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the notebook ran to its end, with results as expected."""
        return not self.error


class UnknownParameterError(ValueError):
    """A parameter that no chosen notebook knows."""


class _ReportingEngine(NBClientEngine):
    """papermill's engine, which also reports each finished cell."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, on_cell: CellCallback, **kwargs):
        complete = nb_man.cell_complete

        def complete_and_report(cell, cell_index=None, **arguments):
            complete(cell, cell_index=cell_index, **arguments)
            on_cell(cell_index + 1, len(nb_man.nb.cells))

        nb_man.cell_complete = complete_and_report
        return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)


papermill_engines.register("course", _ReportingEngine)


def known_parameters(notebook: Path) -> set[str]:
    """Names of the parameters in a notebook's cell tagged `parameters`."""
    return set(papermill.inspect_notebook(str(notebook)))


def run_notebook(notebook: Path, output: Path, parameters: Mapping[str, Any], on_cell: CellCallback) -> Outcome:
    """Execute a notebook into an output file.

    Args:
        notebook: the .ipynb file.
        output: where the executed copy goes; it is written also if a cell fails.
        parameters: values for the cell tagged `parameters`.
        on_cell: called after each cell.

    Returns:
        The outcome; an error in the notebook is reported there and not raised.
    """
    start = time.perf_counter()
    error = ""
    try:
        papermill.execute_notebook(
            str(notebook),
            str(output),
            parameters=dict(parameters),
            engine_name="course",
            kernel_name=KERNELSPEC["name"],
            extra_arguments=KERNEL_ARGUMENTS,
            progress_bar=False,
            on_cell=on_cell,
        )
    except PapermillExecutionError as failure:
        error = f"{_place_of_failure(output)}: {failure.ename}: {failure.evalue}"
    except Exception as failure:  # a dead kernel, an unwritable folder: the other notebooks still have their turn
        error = f"{type(failure).__name__}: {failure}"
    seconds = time.perf_counter() - start
    recorded = {}
    try:
        recorded = results.read(output) if output.is_file() else {}
    except ValueError as failure:  # a name recorded twice fails this notebook, not the run
        error = error or str(failure)
    return Outcome(notebook, output, seconds, recorded, error)


def _place_of_failure(output: Path) -> str:
    """The cell that failed, in words; cells are counted as in the source."""
    papermills_own = {"injected-parameters", "papermill-error-cell-tag"}
    cells = [
        cell
        for cell in nbformat.read(output, as_version=4).cells
        if not papermills_own.intersection(cell.metadata.get("tags", []))
    ]
    for index, cell in enumerate(cells):
        if cell.cell_type == "code" and any(result.output_type == "error" for result in cell.outputs):
            return place_of_cell(cells, index)
    return "a cell"
