"""A figure as plain data: what it plots, its labels and limits, so that a test can tell whether it has changed."""

from typing import Any

import course_utils.quiet  # noqa: F401

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

MIME_TYPE = "application/vnd.course.figure+json"
_DIGITS = 6  # significant, of each number: more would only carry rounding


def describe(figure: Figure) -> dict[str, Any]:
    """Titles, labels, limits and a summary of every plotted array, axes by axes, as plain JSON types."""
    title = figure.get_suptitle()
    return {"title": title, "axes": [_describe_axes(axes) for axes in figure.axes]}


def summary(values: Any) -> dict[str, Any]:
    """An array in a few numbers that change if any large part of it changes, moves or is transposed.

    Returns:
        Its shape, smallest and largest value, mean, and for each dimension the mean of the values weighted by a ramp
        from -1 to 1 along it, which tells where the values lie.
    """
    array = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    finite = np.nan_to_num(array)
    result: dict[str, Any] = {"shape": list(array.shape)}
    if array.size == 0:
        return result
    result |= {"min": _rounded(finite.min()), "max": _rounded(finite.max()), "mean": _rounded(finite.mean())}
    ramps = []
    for dimension, size in enumerate(array.shape):
        ramp = np.linspace(-1, 1, size).reshape([-1 if d == dimension else 1 for d in range(array.ndim)])
        ramps.append(_rounded((finite * ramp).mean()))
    return result | {"ramps": ramps}


def _describe_axes(axes: Axes) -> dict[str, Any]:
    description: dict[str, Any] = {
        "title": axes.get_title(),
        "xlabel": axes.get_xlabel(),
        "ylabel": axes.get_ylabel(),
        "xlim": [_rounded(limit) for limit in axes.get_xlim()],
        "ylim": [_rounded(limit) for limit in axes.get_ylim()],
        "xscale": axes.get_xscale(),
        "yscale": axes.get_yscale(),
        "ticks": [_tick_labels(axes.xaxis), _tick_labels(axes.yaxis)],
        "legend": [text.get_text() for text in axes.get_legend().get_texts()] if axes.get_legend() else [],
        "texts": [text.get_text() for text in axes.texts],
        "lines": [_summary_of_points(line.get_xydata()) for line in axes.lines],
        "images": [summary(image.get_array()) for image in axes.images],
        "bars": [summary([bar.get_height() for bar in group]) for group in _bar_groups(axes)],
        "points": [_describe_collection(collection) for collection in axes.collections],
    }
    return {key: value for key, value in description.items() if value not in ("", [], [[], []])}


def _summary_of_points(points: np.ndarray) -> dict[str, Any]:
    """Points [N, 2] in the two coordinates apart, so that a small change of a small y is not lost beside a large x."""
    x, y = np.ma.asarray(points).T
    return {"x": summary(x), "y": summary(y)}


def _tick_labels(axis: Any) -> list[str]:
    """Labels that were set by hand; those of a numeric scale follow from the limits."""
    formatter = type(axis.get_major_formatter()).__name__
    if formatter not in ("FixedFormatter", "FuncFormatter", "StrCategoryFormatter"):
        return []
    return [label.get_text() for label in axis.get_ticklabels()]


def _bar_groups(axes: Axes) -> list[BarContainer]:
    return [container for container in axes.containers if isinstance(container, BarContainer)]


def _describe_collection(collection: Collection) -> dict[str, Any]:
    if isinstance(collection, PathCollection):  # a scatter plot
        return _summary_of_points(collection.get_offsets())
    values = collection.get_array()
    return summary(values if values is not None else [])


def _rounded(value: float) -> float:
    return float(f"{float(value):.{_DIGITS}g}")
