"""Make the outputs of a notebook, and tell whether they are still the ones that were made."""

import json
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from course_utils.execution.line import CellCallback
from course_utils.execution.source import KERNEL_ARGUMENTS, KERNELSPEC, code_cells, digest, place_of_cell


class NotebookFailedError(RuntimeError):
    """A cell of a notebook raised an error, or its kernel died."""


def make_outputs(notebook: nbformat.NotebookNode, folder: Path, on_cell: CellCallback) -> None:
    """Execute a notebook in a fresh kernel and keep the outputs that would come again on another day.

    Args:
        notebook: it is given its outputs and execution counts; of a failure it keeps those made so far.
        folder: the kernel's working directory.
        on_cell: called after each code cell.

    Raises:
        NotebookFailedError: naming the cell and the exception.
        KeyboardInterrupt: on Ctrl-C, after the kernel has ended.
    """
    metadata = notebook.metadata.copy()
    client = NotebookClient(
        notebook,
        kernel_name=KERNELSPEC["name"],
        timeout=None,
        record_timing=False,  # times differ from run to run
        store_widget_state=False,
        extra_arguments=KERNEL_ARGUMENTS,
        resources={"metadata": {"path": str(folder)}},
        on_cell_executed=lambda cell, cell_index, execute_reply: on_cell(cell_index + 1, len(notebook.cells)),
    )
    try:
        client.execute()
    except AssertionError as error:
        if client.km is None:  # the client ended its kernel on Ctrl-C, and stumbles over that
            raise KeyboardInterrupt from error
        raise
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise NotebookFailedError(_failure(notebook, error)) from error
    finally:
        notebook.metadata = metadata  # the client adds the language's version
    for cell in code_cells(notebook):
        cell.outputs = _joined_streams(cell.outputs)


def output_digest(cell: nbformat.NotebookNode) -> str:
    """A digest of what a code cell shows: its outputs and its execution count."""
    return digest(json.dumps([cell.execution_count, cell.outputs], sort_keys=True))


def _joined_streams(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """The outputs with neighbouring pieces of one stream joined; where a stream is cut depends on its timing."""
    joined: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if output.output_type == "stream" and last and last.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def _failure(notebook: nbformat.NotebookNode, error: Exception) -> str:
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and any(output.output_type == "error" for output in cell.outputs):
            name, value = getattr(error, "ename", type(error).__name__), getattr(error, "evalue", error)
            return f"{place_of_cell(notebook.cells, index)}: {name}: {value}"
    begun = [index for index, cell in enumerate(notebook.cells) if cell.get("execution_count") is not None]
    return f"{place_of_cell(notebook.cells, begun[-1] if begun else 0)}: {type(error).__name__}: {error}"
