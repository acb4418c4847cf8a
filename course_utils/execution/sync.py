"""Bring each notebook in step with its source, executing it only where its outputs may have changed.

The notebook keeps in its metadata what its outputs were made from: a digest of every code cell, of every library
file behind them, and of the outputs themselves. Contents are compared, never the times of files.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from rich.console import Console

import course_utils
from course_utils.execution.dependencies import dependency_digests
from course_utils.execution.line import CellCallback, progress_line
from course_utils.execution.outputs import NotebookFailedError, make_outputs, output_digest
from course_utils.execution.source import SourceError, code_cells, place_of_cell, read_source

REMEDY = "make sync"
_PACKAGE = Path(course_utils.__file__).resolve().parent


class SyncError(RuntimeError):
    """A notebook that could not be brought in step; the file on disk is as it was."""


@dataclass(frozen=True)
class Comparison:
    """A source and the notebook beside it.

    Attributes:
        source: path of the .py file.
        target: path of the .ipynb file.
        wanted: the notebook as the source says it is; with the old outputs where they still hold.
        files: digests of the library files that it depends on.
        difference: the first difference between the two files, in words; empty if there is none.
        stale: why the outputs have to be made anew, in words; empty if they hold.
    """

    source: Path
    target: Path
    wanted: nbformat.NotebookNode
    files: Mapping[str, str]
    difference: str
    stale: str


def compare(source: Path, package: Path = _PACKAGE) -> Comparison:
    """Hold a notebook against its source.

    Args:
        source: a .py file in the percent format.
        package: folder of the library.

    Raises:
        SyncError: if the source or a library file cannot be read as what it should be.
    """
    target = source.with_suffix(".ipynb")
    try:
        wanted = read_source(source)
        files = dependency_digests(source.read_text(encoding="utf-8"), package)
    except (SourceError, SyntaxError) as error:
        raise SyncError(f"{source.name}: {error}") from error
    old = _read(target)
    if old is None:
        return Comparison(source, target, wanted, files, "", f"{target.name} is not there, or is no notebook")
    stale = _why_stale(wanted, old, files)
    difference = _different_cell(wanted, old)
    if not stale:
        _carry_outputs(wanted, old, files)
        difference = difference or _different_rest(wanted, old, target)
    return Comparison(source, target, wanted, files, difference, stale)


def sync(source: Path, on_cell: CellCallback = lambda done, total: None, package: Path = _PACKAGE) -> str:
    """Write the notebook of a source anew where it differs from what it should be.

    Args:
        source: a .py file in the percent format.
        on_cell: called after each code cell that is executed.
        package: folder of the library.

    Returns:
        What was done, in words.

    Raises:
        SyncError: if a cell fails or a file cannot be read; the old notebook stays.
    """
    return _mend(compare(source, package), on_cell)


def sync_all(sources: Sequence[Path], console: Console) -> bool:
    """Sync several notebooks, with a line on each; one that fails does not stop the others.

    Returns:
        Whether all of them are in step now.
    """
    failed = False
    for number, source in enumerate(sources, start=1):
        title = f"[{number}/{len(sources)}] {source.stem}"
        try:
            comparison = compare(source)
            if comparison.stale:
                with progress_line(console, title) as on_cell:
                    done = _mend(comparison, on_cell)
            else:
                done = _mend(comparison)
        except SyncError as error:
            failed, done = True, f"FAILED: {error}"
        console.print(f"{title}: {done}", markup=False, highlight=False, soft_wrap=True)
    return not failed


def check_all(sources: Sequence[Path], console: Console) -> bool:
    """Say which notebooks are not in step, and why; write nothing.

    Returns:
        Whether all of them are.
    """
    problems = [problem for source in sources if (problem := check(source))]
    for problem in problems:
        console.print(problem, markup=False, highlight=False, soft_wrap=True)
    return not problems


def check(source: Path, package: Path = _PACKAGE) -> str:
    """What is wrong with the notebook of a source, its name and the remedy included; empty if nothing is."""
    try:
        comparison = compare(source, package)
    except SyncError as error:
        return str(error)
    reason = comparison.difference or comparison.stale
    return f"{comparison.target.name}: {reason}; run `{REMEDY}`" if reason else ""


def as_text(notebook: nbformat.NotebookNode) -> str:
    """The notebook as it stands in its file."""
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT).rstrip("\n") + "\n"


def _mend(comparison: Comparison, on_cell: CellCallback = lambda done, total: None) -> str:
    """Write what a comparison found to be wrong anew; say what was done."""
    if comparison.stale:
        start = time.perf_counter()
        try:
            make_outputs(comparison.wanted, comparison.source.parent, on_cell)
        except NotebookFailedError as error:
            raise SyncError(f"{comparison.source.name}, {error}") from error
        _note_origin(comparison.wanted, comparison.files)
        _write(comparison.wanted, comparison.target)
        return f"executed in {time.perf_counter() - start:.0f} s, as {comparison.stale}"
    if comparison.difference:
        _write(comparison.wanted, comparison.target)
        return f"rewritten with its outputs kept, as {comparison.difference}"
    return "up to date"


def _why_stale(wanted: nbformat.NotebookNode, old: nbformat.NotebookNode, files: Mapping[str, str]) -> str:
    origin = old.metadata.get("course", {}).get("executed_from", {})
    made, places = origin.get("cells", []), [index for index, cell in enumerate(wanted.cells) if _is_code(cell)]
    for number, index in enumerate(places):
        if number >= len(made) or wanted.cells[index].id != made[number][0]:
            return f"the code of {place_of_cell(wanted.cells, index)} is not what its outputs were made from"
    if len(made) > len(places):
        return "a code cell is gone from the source"
    shown = [index for index, cell in enumerate(old.cells) if _is_code(cell)]
    for number, index in enumerate(shown):
        if number >= len(made) or output_digest(old.cells[index]) != made[number][1]:
            return f"the output of {place_of_cell(old.cells, index)} is not the one that was made"
    if len(shown) < len(made):
        return "a code cell is gone from the notebook, and its output with it"
    before = origin.get("files", {})
    for path in sorted({*files, *before}):
        if files.get(path) != before.get(path):
            what = "changed" if path in files and path in before else "came in" if path in files else "went away"
            return f"{path} {what} after the outputs were made"
    return ""


def _different_cell(wanted: nbformat.NotebookNode, old: nbformat.NotebookNode) -> str:
    for index, cell in enumerate(wanted.cells):
        place = place_of_cell(wanted.cells, index)
        if index >= len(old.cells):
            return f"{place} of the source is missing in the notebook"
        other = old.cells[index]
        if (cell.cell_type, cell.source) != (other.cell_type, other.source):
            return f"{place} differs from the source"
        if cell.metadata != other.metadata:
            return f"{place} has other tags or metadata than the source: {dict(other.metadata)}"
        if cell.id != other.get("id"):
            return f"{place} has another id than its content gives"
    if len(old.cells) > len(wanted.cells):
        return f"{place_of_cell(old.cells, len(wanted.cells))} of the notebook is not in the source"
    return ""


def _different_rest(wanted: nbformat.NotebookNode, old: nbformat.NotebookNode, target: Path) -> str:
    """The first difference outside the cells, where there is one."""
    for key in sorted({*wanted.metadata, *old.metadata}):
        if wanted.metadata.get(key) != old.metadata.get(key):
            return f"its metadata {key!r} differ from what the source gives: {old.metadata.get(key)}"
    if as_text(wanted).encode() != target.read_bytes():
        return "its file is laid out in another way"
    return ""


def _carry_outputs(wanted: nbformat.NotebookNode, old: nbformat.NotebookNode, files: Mapping[str, str]) -> None:
    for cell, before in zip(code_cells(wanted), code_cells(old), strict=True):
        cell.outputs, cell.execution_count = before.outputs, before.execution_count
    _note_origin(wanted, files)


def _note_origin(notebook: nbformat.NotebookNode, files: Mapping[str, str]) -> None:
    cells = [[cell.id, output_digest(cell)] for cell in code_cells(notebook)]
    notebook.metadata["course"] = nbformat.from_dict({"executed_from": {"cells": cells, "files": dict(files)}})


def _is_code(cell: nbformat.NotebookNode) -> bool:
    return cell.cell_type == "code"


def _read(path: Path) -> nbformat.NotebookNode | None:
    if not path.is_file():
        return None
    try:
        return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.validator.ValidationError, UnicodeDecodeError, AttributeError):
        return None  # a merge conflict, say: it is made anew from the source


def _write(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write all of it or nothing: an interruption leaves the old file."""
    nbformat.validate(notebook)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="\n", dir=path.parent, delete=False) as file:
        file.write(as_text(notebook))
    try:
        Path(file.name).chmod(0o644)  # a temporary file is its owner's alone
        Path(file.name).replace(path)
    except OSError:
        Path(file.name).unlink()
        raise
