"""The results that stand in an executed copy, or in the report of a batch, as lines of text."""

import json
from pathlib import Path

import nbformat

from course_utils import results

_REPORT = "results.json"


class NoResultsError(ValueError):
    """A path that is neither an executed copy nor a batch's folder or report."""


def lines_of(path: Path) -> list[str]:
    """`name = value` for each result of a copy; with the title of the run before it for those of a report.

    Args:
        path: an .ipynb file, a folder with a results.json, or that file itself.

    Raises:
        NoResultsError: if it is none of these.
        ValueError: if a result was recorded twice.
    """
    if path.is_dir():
        path = path / _REPORT
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoResultsError(f"{path} is no executed notebook and no report of a run") from error
    if isinstance(content, dict) and "cells" in content:
        recorded = results.read(nbformat.read(path, as_version=4))
        return [f"{name} = {value}" for name, value in recorded.items()]
    if isinstance(content, dict) and "runs" in content:
        return [
            f"{run['title']}: {name} = {value}" for run in content["runs"] for name, value in run["results"].items()
        ]
    raise NoResultsError(f"{path} is no executed notebook and no report of a run")
