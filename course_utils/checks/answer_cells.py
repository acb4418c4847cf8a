"""The cells of a student's notebook that a grade depends on: the checks, and what their answers are made of.

A copy may be an .ipynb or a .py file, and may have lost all tags; checks are told by their call `checks.NAME(...)`.
"""

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jupytext
from IPython.core.inputtransformer2 import TransformerManager

from course_utils.execution.names import Names, names_of

_LARGEST = 50_000_000  # bytes


class UnreadableError(ValueError):
    """A file that is no notebook."""


@dataclass(frozen=True)
class Cell:
    """One code cell.

    Attributes:
        number: counted from 1 among the code cells.
        code: with magics turned into calls.
        tree: of that code; None if it is no Python.
        problem: the syntax error, if there is one.
        exercises: names of the checks that it calls.
        names: that it binds, changes and uses.
    """

    number: int
    code: str
    tree: ast.Module | None
    problem: str
    exercises: tuple[str, ...]
    names: Names


def cells_of(path: Path) -> list[Cell]:
    """The code cells of a notebook.

    Raises:
        UnreadableError: if the file is broken, or no notebook at all.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise UnreadableError(f"the file is larger than {_LARGEST // 1_000_000} MB")
        text = path.read_text(encoding="utf-8-sig")
        codes = _codes_of_json(text) if path.suffix == ".ipynb" else _codes_of_script(text)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"the file cannot be read: {error}") from error
    return [_cell(number, code) for number, code in enumerate(codes, start=1)]


def needed(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with checks, and those before them that bind or change a name which they need, in order."""
    imported = frozenset().union(*(_imported(cell) for cell in cells))
    chosen: set[int] = set()
    for place, cell in enumerate(cells):
        if not cell.exercises:
            continue
        own, wanted = {place}, set(cell.names.used)
        while more := [
            earlier for earlier in range(place) if earlier not in own and _gives(cells[earlier], wanted, imported)
        ]:
            own.update(more)
            wanted.update(*(cells[earlier].names.used for earlier in more))
        chosen |= own
    return [cells[place] for place in sorted(chosen)]


def _gives(cell: Cell, wanted: set[str], imported: frozenset[str]) -> bool:
    """Whether a cell binds one of some names, or changes one; a call of a module's function changes no module."""
    given = cell.names.bound | (cell.names.changed - imported)
    return cell.tree is not None and bool(given & (wanted | {"*"}))


def _imported(cell: Cell) -> set[str]:
    """The names that a cell imports."""
    nodes = ast.walk(cell.tree) if cell.tree is not None else ()
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}


def _codes_of_json(text: str) -> list[str]:
    try:
        cells = json.loads(text)["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        sources = [cell["source"] for cell in code]
        return ["".join(source) for source in sources]
    except json.JSONDecodeError as error:
        raise UnreadableError(f"the file is no notebook: {error}") from error
    except (KeyError, TypeError, IndexError, RecursionError) as error:
        raise UnreadableError("the file is no notebook: it has no cells, or they are not as they should be") from error


def _codes_of_script(text: str) -> list[str]:
    try:
        notebook = jupytext.reads(text, fmt="py:percent" if "# %%" in text else "py:light")
    except Exception as error:  # of whatever kind: jupytext and its parsers have several
        raise UnreadableError(f"the file cannot be read as cells: {error}") from error
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def _cell(number: int, code: str) -> Cell:
    nothing = Names(frozenset(), frozenset(), frozenset())
    try:
        code = TransformerManager().transform_cell(code)
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # ValueError: a null byte
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        return Cell(number, code, None, f"{type(error).__name__}{line}: {reason}", (), nothing)
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    exercises = [
        function.attr
        for function in calls
        if isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "checks"
        and function.attr != "keep_progress"
    ]
    return Cell(number, code, tree, "", tuple(dict.fromkeys(exercises)), names_of(tree))
