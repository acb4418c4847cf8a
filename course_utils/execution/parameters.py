"""The parameters of a notebook: what its cell tagged `parameters` assigns."""

import ast
from typing import Any

import nbformat

DEFAULT_PROFILE = "quick"


def default_parameters(notebook: nbformat.NotebookNode) -> dict[str, Any]:
    """Values of the parameters by name, in order; a value that is no plain one is left out.

    Raises:
        SyntaxError: if the cell is no Python.
    """
    defaults = {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", []):
            for statement in ast.parse(cell.source).body:
                for name in _assigned_names(statement):
                    try:
                        defaults[name] = ast.literal_eval(statement.value)
                    except ValueError:
                        continue
    return defaults


def default_profile(notebook: nbformat.NotebookNode) -> str:
    """The value of the parameter `profile`; "quick" for a notebook that has none."""
    return str(default_parameters(notebook).get("profile", DEFAULT_PROFILE))


def _assigned_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    else:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
