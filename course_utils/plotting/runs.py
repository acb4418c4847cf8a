"""Curves of what was measured several times, in panels side by side."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from course_utils.plotting.style import PALETTE, as_array, new_figure, styled

_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
_MARKERS = "os^Dv*"


@styled
def panels_over_runs(
    panels: Mapping[str, tuple[ArrayLike, Mapping[str, ArrayLike]]],
    *,
    xlabel: str,
    ylabel: str,
    reference: tuple[ArrayLike, str] | None = None,
    ylim: tuple[float, float] | None = None,
    xscale: str = "linear",
) -> Figure:
    """For each label the mean over the runs as a line, and each run as a thin one.

    Args:
        panels: by title, side by side with one y axis: x [N], and by label the runs [R, N]. A label has the same
            colour, line and marker in each.
        xlabel: what x is, with its unit.
        ylabel: what y is, with its unit.
        reference: heights (one number, or [N]) and their name, drawn as a thin grey line in steps.
        ylim: of the y axis.
        xscale: "linear" or "log".
    """
    labels = list(dict.fromkeys(label for _, ys in panels.values() for label in ys))
    figure = new_figure(6.4 if len(panels) == 1 else 4.0 * len(panels), 3.6 + 0.22 * ((len(labels) + 2) // 2))
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, (x, ys)) in zip(grid, panels.items(), strict=True):
        x = as_array(x)
        for label, runs in ys.items():
            _draw(axes, x, np.atleast_2d(as_array(runs)), label, labels.index(label))
        if reference is not None:
            heights, name = reference
            heights = np.broadcast_to(as_array(heights), x.shape)
            axes.plot(x, heights, color="grey", linewidth=1.2, drawstyle="steps-mid", label=name, zorder=1)
        axes.set(xlabel=xlabel, ylabel=ylabel, title=title, xscale=xscale)
        axes.grid(True, alpha=0.4)
        if xscale == "linear":
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if ylim is not None:
        grid[0].set_ylim(*ylim)
    named = {}
    for axes in grid:
        named |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=2, handlelength=3.5)
    return figure


def _draw(axes: Axes, x: np.ndarray, runs: np.ndarray, label: str, number: int) -> None:
    colour = PALETTE[number % len(PALETTE)]
    if len(runs) > 1:
        axes.plot(x, runs.T, color=colour, linewidth=0.7, alpha=0.5)
    style = {"linestyle": _LINES[number % len(_LINES)], "marker": _MARKERS[number % len(_MARKERS)]}
    axes.plot(x, runs.mean(axis=0), label=label, color=colour, markersize=4.5, **style)
