"""A notebook as its source says it is: the .py file in the percent format, turned into cells without outputs."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import jupytext
import nbformat

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# What the kernel says of itself, on encryption or on its interruption at the end, is not for the terminal.
KERNEL_ARGUMENTS = ["--log-level=CRITICAL"]
# What jupytext puts into a notebook under the settings in pyproject.toml; with it, the way back gives the source again.
JUPYTEXT = {
    "cell_metadata_filter": "tags,jupyter,-all",
    "notebook_metadata_filter": "kernelspec,-jupytext.text_representation.jupytext_version",
}
_KEPT_CELL_METADATA = ("tags", "jupyter")


class SourceError(ValueError):
    """A notebook's source that cannot be turned into a notebook of this course."""


def read_source(path: Path) -> nbformat.NotebookNode:
    """The notebook of a source file: the same file gives the same notebook, cell ids included.

    Args:
        path: a .py file in the percent format.

    Raises:
        SourceError: if the source names another kernel than python3.
    """
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    kernel = notebook.metadata.get("kernelspec", KERNELSPEC).get("name")
    if kernel != KERNELSPEC["name"]:
        raise SourceError(f"{path.name} names the kernel {kernel!r}, which readers lack; its header must say python3")
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": dict(KERNELSPEC), "jupytext": dict(JUPYTEXT), "language_info": {"name": "python"}}
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in _KEPT_CELL_METADATA if key in cell.metadata}
        cell.metadata = nbformat.from_dict(kept)
        content = json.dumps([cell.cell_type, cell.metadata.get("tags", []), cell.source])
        seen[content] += 1
        cell.id = digest(f"{content}{seen[content]}")
    return notebook


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The cells that a kernel runs."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def digest(content: str | bytes) -> str:
    """A short name for some content: equal for equal content, whatever the machine."""
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()[:12]


def place_of_cell(cells: list[nbformat.NotebookNode], index: int) -> str:
    """A cell in words: its number, counted from 1, and the heading it stands under."""
    heading = heading_of_cell(cells, index)
    return f"cell {index + 1}" + (f" ({heading})" if heading else "")


def heading_of_cell(cells: list[nbformat.NotebookNode], index: int) -> str:
    """The heading that a cell stands under; empty if there is none."""
    for cell in reversed(cells[: index + 1]):
        if cell.cell_type == "markdown":
            headings = [line for line in cell.source.splitlines() if line.startswith("#")]
            if headings:
                return headings[-1].lstrip("# ")
    return ""
