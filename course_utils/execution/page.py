"""The report of a batch for people: one HTML file that needs no other, but links to the executed copies."""

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import jinja2
import nbformat
from PIL import Image

from course_utils.execution.batch import Batch
from course_utils.execution.outcome import Outcome

_WIDTH = 240  # pixels of a thumbnail, twice as many as shown, for sharp screens
_MOST_THUMBNAILS = 12  # of one notebook


@dataclass(frozen=True)
class Picture:
    """A picture that stands in the page itself.

    Attributes:
        address: a data: URL.
        alt: what it shows.
    """

    address: str
    alt: str


def page_of(batch: Batch, times: Mapping[str, Any]) -> str:
    """The page of a batch that has ended.

    Args:
        batch: all of its outcomes are shown.
        times: started, and seconds.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("course_utils.execution", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    from course_utils.execution.sweep_plot import plots_of_sweeps  # here, as matplotlib takes its time to load

    plots = [Picture(_address(png), alt) for png, alt in plots_of_sweeps(batch.outcomes)]
    return environment.get_template("page.html").render(
        batch=batch,
        times=times,
        passed=sum(outcome.passed for outcome in batch.outcomes),
        plots=plots,
        rows=[(outcome, quote(outcome.run.file_name), thumbnails_of(outcome)) for outcome in batch.outcomes],
    )


def thumbnails_of(outcome: Outcome) -> list[Picture]:
    """The first figures of an executed copy, made small."""
    if outcome.copy is None:
        return []
    pictures = []
    for cell in nbformat.reads(outcome.copy, as_version=4).cells:
        for output in cell.get("outputs", []):
            png = output.get("data", {}).get("image/png")
            small = _small(png) if png else None
            if small:
                alt = output.get("metadata", {}).get("image/png", {}).get("alt", "a figure without a description")
                pictures.append(Picture(_address(small), alt))
    return pictures[:_MOST_THUMBNAILS]


def _small(png: str) -> bytes | None:
    """A picture made small; None where it is none that can be read."""
    try:
        with Image.open(io.BytesIO(base64.b64decode(png))) as image:
            image.thumbnail((_WIDTH, _WIDTH))
            buffer = io.BytesIO()
            image.convert("RGBA").save(buffer, "PNG", optimize=True)
            return buffer.getvalue()
    except (OSError, ValueError):
        return None


def _address(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
