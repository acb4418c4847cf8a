"""Curves that were measured several times, with different seeds: the median, and how far the others lie from it."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_utils.plotting.charts import line_styles
from course_utils.plotting.style import PALETTE, as_array, new_figure, styled


@styled
def curves_with_spread(
    x: ArrayLike,
    ys: Mapping[str, ArrayLike],
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    xscale: str = "linear",
    yscale: str = "linear",
    markers: bool = False,
    reference: tuple[float, str] | None = None,
    legend_beside: bool = False,
) -> Figure:
    """Lines over a common x axis through the median over seeds, on a band from the smallest to the largest value.

    Args:
        x: [N].
        ys: by label, [seeds, N] each.
        xlabel: what x is, with its unit.
        ylabel: what y is, with its unit.
        title: of the axes.
        xscale: "linear" or "log".
        yscale: "linear" or "log".
        markers: mark each point, where points are few.
        reference: a height and its name, drawn as a dashed line.
        legend_beside: put the legend beside the axes, where it covers no band.

    Raises:
        ValueError: if an array is not [seeds, N].
    """
    x = as_array(x)
    figure = new_figure(8 if legend_beside else 6, 3.5)
    axes = figure.subplots()
    for (label, y), style, colour in zip(ys.items(), line_styles(), PALETTE, strict=False):
        y = as_array(y)
        if y.ndim != 2 or y.shape[1] != len(x):
            raise ValueError(f"{label!r} must be [seeds, {len(x)}], got {list(y.shape)}")
        axes.fill_between(x, y.min(axis=0), y.max(axis=0), color=colour, alpha=0.25, linewidth=0)
        axes.plot(x, np.median(y, axis=0), label=label, color=colour, marker="o" if markers else None, **style)
    if reference is not None:
        height, name = reference
        axes.axhline(height, color="grey", linestyle="--", linewidth=1, label=name)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title, xscale=xscale, yscale=yscale)
    axes.grid(True, alpha=0.4)
    if legend_beside:
        figure.legend(loc="outside right upper")
    elif len(ys) > 1 or reference is not None:
        axes.legend()
    return figure
