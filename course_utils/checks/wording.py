"""Inputs and outputs as short text: small arrays whole, large ones cut."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from course_utils.checks.equality import DEEPEST, number_kind, plain
from course_utils.checks.exercise import Case

_WIDTH = 56  # characters, so that two stand side by side
_LONGEST = 900
_DIGITS = 4


def shown(value: Any) -> str:
    """A value as text, of some lines at most."""
    text = _shown(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " ..."


def shown_call(function: Callable, case: Case) -> str:
    """The input of a case, one argument a line or more, under the names that the function gives them."""
    lines = []
    for name, value in [
        *zip(_names(function, len(case.arguments)), case.arguments, strict=True),
        *case.keywords.items(),
    ]:
        text = shown(value)
        lines.append(f"{name} =\n{text}" if "\n" in text else f"{name} = {text}")
    return "\n".join(lines) or "(no arguments)"


def _names(function: Callable, count: int) -> list[str]:
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    try:
        names = [name for name, p in inspect.signature(function).parameters.items() if p.kind in positional]
    except (ValueError, TypeError):
        names = []
    return [names[place] if place < len(names) else f"argument {place + 1}" for place in range(count)]


def _shown(value: Any, depth: int = 0) -> str:
    if depth > DEEPEST:
        return "..."
    if isinstance(value, torch.Tensor | np.ndarray):
        return _shown_array(plain(value), bare=False)
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, Mapping):
        return "\n".join(f"{key!r}: {_shown(item, depth + 1)}" for key, item in value.items()) or "{}"
    if isinstance(value, list | tuple):
        numbers = plain(value)
        if isinstance(numbers, np.ndarray):
            return _shown_array(numbers, bare=True)
        return "\n".join(f"[{place}] {_shown(item, depth + 1)}" for place, item in enumerate(value)) or "(nothing)"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float | np.generic):
        return _shown_number(value)
    if isinstance(value, torch.nn.Module):
        return f"a module of type {type(value).__name__}"
    if callable(value):
        return f"the function {getattr(value, '__name__', type(value).__name__)}"
    return f"an object of type {type(value).__name__}"


def _shown_array(array: Any, bare: bool) -> str:
    if not isinstance(array, np.ndarray):
        return array.words
    if array.ndim == 0:
        return _shown_number(array.item())
    if array.dtype.kind == "f":
        array = np.round(array.astype(np.float64), 12) + 0.0  # no -0
    text = np.array2string(
        array,
        precision=_DIGITS,
        suppress_small=True,
        threshold=64,
        edgeitems=2,
        max_line_width=_WIDTH,
        separator=", " if array.dtype.kind == "b" else "  ",
    )
    kind = "" if array.dtype.kind == "f" else f", {number_kind(array)}"
    return text if bare else f"shape {list(array.shape)}{kind}\n{text}"


def _shown_number(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{float(value):.{_DIGITS + 2}g}"
    return str(value)
