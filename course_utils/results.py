"""Named results: the numbers of a notebook that matter, readable from its executed copy."""

import math
import numbers
from pathlib import Path
from typing import Any

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

MIME_TYPE = "application/vnd.course.result+json"


def record(name: str, value: Any) -> None:
    """Show a number under a name, and keep it in the notebook's output for `read`.

    Args:
        name: a Python identifier, unique in the notebook.
        value: a finite number, or a tensor or array that holds a single one.

    Raises:
        ValueError: if the name is no identifier or the value is not finite.
        TypeError: if the value is no single number.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"a result's name must be an identifier such as test_acc, got {name!r}")
    number = _plain_number(name, value)
    text = f"{name} = {number:.6g}" if isinstance(number, float) else f"{name} = {number}"
    if InteractiveShell.initialized():
        display({MIME_TYPE: {"name": name, "value": number}, "text/plain": text}, raw=True)
    else:
        print(text)


def read(notebook: str | Path | nbformat.NotebookNode) -> dict[str, int | float]:
    """The results that an executed notebook recorded, in order.

    Args:
        notebook: the notebook, or the path of its .ipynb file.

    Raises:
        ValueError: if a name was recorded twice.
    """
    if not isinstance(notebook, nbformat.NotebookNode):
        notebook = nbformat.read(notebook, as_version=4)
    recorded: dict[str, int | float] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            result = output.get("data", {}).get(MIME_TYPE)
            if result is None:
                continue
            if result["name"] in recorded:
                raise ValueError(f"the result {result['name']!r} was recorded twice; give each its own name")
            recorded[result["name"]] = result["value"]
    return recorded


def _plain_number(name: str, value: Any) -> int | float:
    if hasattr(value, "item"):  # a tensor, or a NumPy array or scalar
        try:
            value = value.item()
        except (RuntimeError, ValueError) as error:
            raise TypeError(f"the result {name!r} must be one number, got one of shape {tuple(value.shape)}") from error
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"the result {name!r} must be a number, got {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"the result {name!r} must be finite, got {value}")
    return int(value) if isinstance(value, numbers.Integral) else float(value)
