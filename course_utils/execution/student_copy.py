"""The student copy of a notebook: exercises, hints and stubs, without solutions and outputs, made from the same source.

Cells are told by their tags, as course_utils/checks/__init__.py describes.
"""

import ast
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import nbformat

from course_utils.atomic import write_atomically
from course_utils.execution.names import names_of
from course_utils.execution.source import KERNELSPEC, SourceError, digest, place_of_cell, read_source
from course_utils.execution.stub import StubError, stub_of

EXERCISE, HINT, SOLUTION, CHECK, COURSE_ONLY, YOUR_TURN = (
    "exercise",
    "hint",
    "solution",
    "check",
    "course-only",
    "your-turn",
)
HINTS = 3
NOTE = """\
> **This is your copy**, with the exercises and without their solutions.
> Where a cell says *your turn*, write your answer, run the cell, and then the check below it.
> It tells what is right, or what most likely went wrong; your input stays as it is.
> What you have done is noted on this computer only: `course progress` shows it."""
_IMPORTS = (ast.Import, ast.ImportFrom)
_ORDER = {EXERCISE: {CHECK, None}, HINT: {EXERCISE}, SOLUTION: {HINT}, CHECK: {SOLUTION}}  # what stands before each


def copy_path(source: Path) -> Path:
    """Where the student copy of a source lies: in the folder exercises/ beside the one of the notebooks."""
    return source.resolve().parent.parent / "exercises" / f"{source.stem}.ipynb"


def student_copy(source: Path) -> nbformat.NotebookNode | None:
    """The student copy of a notebook; None if it has no exercises.

    Args:
        source: a .py file in the percent format.

    Raises:
        SourceError: if the cells of an exercise are not as they should be, naming the cell.
    """
    notebook = read_source(source)
    if not any(_kind(cell) for cell in notebook.cells):
        return None
    _check_cells(notebook.cells)
    cells: list[nbformat.NotebookNode] = []
    for index, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        if COURSE_ONLY in tags:
            continue
        made = nbformat.from_dict({**cell, "metadata": {"tags": tags} if tags else {}})
        if made.cell_type == "code":
            made.outputs, made.execution_count = [], None
        if SOLUTION in tags:
            try:
                made.source = stub_of(cell.source)
            except (StubError, SyntaxError) as error:
                raise SourceError(f"{place_of_cell(notebook.cells, index)}: no stub can be made, {error}") from error
            made.metadata["tags"] = [YOUR_TURN if tag == SOLUTION else tag for tag in tags]
        cells.append(made)
        if len(cells) == 1:
            cells.append(nbformat.v4.new_markdown_cell(NOTE))
    _give_ids(cells)
    made_from = {"student_copy_of": source.stem}
    metadata = {"course": made_from, "kernelspec": dict(KERNELSPEC), "language_info": {"name": "python"}}
    return nbformat.from_dict({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def copy_problem(source: Path) -> str:
    """What is wrong with the student copy of a source, the remedy included; empty if nothing is."""
    try:
        made, path = student_copy(source), copy_path(source)
    except (SourceError, SyntaxError) as error:
        return f"{source.name}: {error}"
    name = f"exercises/{path.name}"
    if made is None:
        return f"{name}: {source.name} has no exercises; remove the copy" if path.exists() else ""
    if not path.is_file():
        return f"{name}: is not there; run `make sync`"
    return "" if path.read_bytes() == _as_bytes(made) else f"{name}: differs from {source.name}; run `make sync`"


def write_copy(source: Path) -> str:
    """Write the student copy of a source, or remove one that no exercise is left for.

    Returns:
        What was done, in words; empty if there was nothing to do.

    Raises:
        SourceError: if the cells of an exercise are not as they should be; the old copy stays.
    """
    made, path = student_copy(source), copy_path(source)
    if made is None:
        if not path.exists():
            return ""
        path.unlink()
        return "student copy removed, as it has no exercises"
    if path.is_file() and path.read_bytes() == _as_bytes(made):
        return "student copy up to date"
    nbformat.validate(made)
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, _as_bytes(made))
    return "student copy written"


def leftover_copies(sources: Iterable[Path]) -> list[str]:
    """Student copies in the folder exercises/ whose source is gone, in words.

    Args:
        sources: all that there are.
    """
    wanted = {copy_path(source) for source in sources}
    there = {path for folder in {path.parent for path in wanted} for path in folder.glob("*.ipynb")}
    return [f"exercises/{path.name}: it has no source; remove it" for path in sorted(there - wanted)]


def _as_bytes(notebook: nbformat.NotebookNode) -> bytes:
    return (nbformat.writes(notebook, version=nbformat.NO_CONVERT).rstrip("\n") + "\n").encode()


def called_check(code: str) -> ast.Call | None:
    """The call `checks.NAME(...)` that a cell consists of, or ends in; None if it does not."""
    try:
        body = ast.parse(code).body
    except SyntaxError:
        return None
    call = body[-1].value if body and isinstance(body[-1], ast.Expr | ast.Assign) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value
    named = isinstance(owner, ast.Name) and owner.id == "checks"
    return call if named and call.func.attr != "keep_progress" else None


def _kind(cell: nbformat.NotebookNode) -> str | None:
    return next((tag for tag in cell.metadata.get("tags", []) if tag in _ORDER), None)


def _check_cells(cells: list[nbformat.NotebookNode]) -> None:
    before, solved, ordinary = None, {}, []
    for index, cell in enumerate(cells):
        kind, place = _kind(cell), place_of_cell(cells, index)
        if kind is None:
            if cell.cell_type == "code" and COURSE_ONLY not in cell.metadata.get("tags", []):
                ordinary.append((index, cell))
            continue
        if before not in _ORDER[kind]:
            raise SourceError(f"{place} has the tag {kind}, after {before}; the order is {' -> '.join(_ORDER)}")
        before = kind
        if problem := _problem_of(cell, kind):
            raise SourceError(f"{place} has the tag {kind}, but {problem}")
        if kind == SOLUTION:
            statements = [node for node in ast.parse(cell.source).body if not isinstance(node, _IMPORTS)]
            solved |= dict.fromkeys(names_of(ast.Module(statements, [])).bound, place)
    if before != CHECK:
        raise SourceError(f"the last exercise ends with the cell {before}, and not with a check")
    _check_uses(cells, ordinary, solved)


def _problem_of(cell: nbformat.NotebookNode, kind: str) -> str:
    """What is wrong with one cell of an exercise; empty if nothing is."""
    wanted = "markdown" if kind in (EXERCISE, HINT) else "code"
    if cell.cell_type != wanted:
        return f"is no {wanted} cell"
    if kind == EXERCISE and not cell.source.startswith("### "):
        return "does not begin with a heading `### `"
    if kind == HINT and cell.source.count("<details>") != HINTS:
        return f"has not {HINTS} steps, each in <details> that are closed"
    if kind == SOLUTION and not cell.metadata.get("jupyter", {}).get("source_hidden"):
        return 'is not folded; write jupyter={"source_hidden": true} before the tags'
    if kind == CHECK and (called_check(cell.source) is None or len(ast.parse(cell.source).body) != 1):
        return "is not a call checks.NAME(...) alone"
    return ""


def _check_uses(cells: list, ordinary: list, solved: dict[str, str]) -> None:
    """Refuse cells that would fail in the student copy, where a solution is a stub."""
    known = {index: names_of(ast.parse(_without_magics(cell.source))) for index, cell in ordinary}
    rebound = frozenset().union(*(names.bound for names in known.values()))
    for index, names in known.items():
        if stubs := sorted((names.used & set(solved)) - rebound):
            raise SourceError(
                f"{place_of_cell(cells, index)} uses {', '.join(stubs)}, a stub in the student copy; "
                "use the library's version there"
            )


def _without_magics(code: str) -> str:
    return "\n".join(line for line in code.splitlines() if not line.lstrip().startswith(("%", "!")))


def _give_ids(cells: list[nbformat.NotebookNode]) -> None:
    seen: Counter[str] = Counter()
    for cell in cells:
        content = json.dumps([cell.cell_type, cell.metadata.get("tags", []), cell.source])
        seen[content] += 1
        cell.id = digest(f"student {content}{seen[content]}")
