"""The parameters of a notebook: what its cell tagged `parameters` declares.

Read from the syntax of the cell and not by papermill, whose inspection does not see `int | None` or `Literal[...]`.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import nbformat

DEFAULT_PROFILE = "quick"
TAG = "parameters"
_ONE_OF = re.compile(r"#.*?\bone of:\s*([^;]+)")


@dataclass(frozen=True)
class Parameter:
    """A parameter as its notebook declares it.

    Attributes:
        name: of the variable.
        annotation: its type as it stands in the source; empty if there is none.
        default: its value; None also where that is no plain one.
        plain: whether the default is a value that can be read without running it.
        allowed: the values that its comment `# one of: a, b` names, as text; empty if it names none.
    """

    name: str
    annotation: str = ""
    default: Any = None
    plain: bool = True
    allowed: tuple[str, ...] = ()


def declared_parameters(notebook: nbformat.NotebookNode) -> dict[str, Parameter]:
    """The parameters by name, in order.

    Raises:
        SyntaxError: if the cell is no Python.
    """
    declared = {}
    for cell in parameter_cells(notebook):
        allowed = _allowed_by_line(cell.source)
        for statement in ast.parse(cell.source).body:
            lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            choices = next((allowed[line] for line in lines if line in allowed), ())
            for name in _assigned_names(statement):
                default, plain = _plain_value(statement.value)
                annotation = ast.unparse(statement.annotation) if isinstance(statement, ast.AnnAssign) else ""
                declared[name] = Parameter(name, annotation, default, plain, choices)
    return declared


def derived_parameters(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """Names in the parameters cell whose value follows from another's, with that other one.

    papermill sets a parameter in a cell after this one, so that such a value would keep following the default.

    Raises:
        SyntaxError: if the cell is no Python.
    """
    declared = declared_parameters(notebook)
    derived = {}
    for cell in parameter_cells(notebook):
        for statement in ast.walk(ast.parse(cell.source)):
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                derived[statement.target.id] = statement.target.id
                continue
            for name in _assigned_names(statement):
                used = [node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)]
                sources = [one for one in used if one in declared]
                if sources:
                    derived[name] = sources[0]
    return derived


def default_parameters(notebook: nbformat.NotebookNode) -> dict[str, Any]:
    """Values of the parameters by name, in order; a value that is no plain one is left out.

    Raises:
        SyntaxError: if the cell is no Python.
    """
    return {name: parameter.default for name, parameter in declared_parameters(notebook).items() if parameter.plain}


def default_profile(notebook: nbformat.NotebookNode) -> str:
    """The value of the parameter `profile`; "quick" for a notebook that has none."""
    return str(default_parameters(notebook).get("profile", DEFAULT_PROFILE))


def parameter_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The code cells tagged `parameters`; there should be one."""
    return [cell for cell in notebook.cells if cell.cell_type == "code" and TAG in cell.metadata.get("tags", [])]


def _assigned_names(statement: ast.AST) -> Iterator[str]:
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    else:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id


def _plain_value(expression: ast.expr) -> tuple[Any, bool]:
    try:
        return ast.literal_eval(expression), True
    except ValueError:
        return None, False


def _allowed_by_line(source: str) -> dict[int, tuple[str, ...]]:
    """The values that the comment on each line names."""
    allowed = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and (match := _ONE_OF.search(token.string)):
            allowed[token.start[0]] = tuple(value.strip().strip("\"'`") for value in match[1].split(","))
    return allowed
