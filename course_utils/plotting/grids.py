"""Curves of many runs in a grid of small panels that share their axes."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_utils.plotting.style import PALETTE, as_array, new_figure, styled

_STYLES = ("-", "--", "-.", ":")


@styled
def curve_grid(
    x: ArrayLike,
    panels: Mapping[str, Mapping[str, ArrayLike]],
    *,
    columns: int,
    xlabel: str,
    ylabel: str,
    yscale: str = "linear",
    reference: tuple[float, str] | None = None,
) -> Figure:
    """Small panels in rows and columns, each with a thin line for every run of every arm.

    Args:
        x: [N].
        panels: by title, in reading order; each holds the curves of its runs [runs, N] by arm. An arm looks the same
            in all panels, and there are at most four.
        columns: panels in a row; the rows are full.
        xlabel: what x is, with its unit.
        ylabel: what y is, with its unit.
        yscale: "linear" or "log".
        reference: a height and its name, drawn as a dotted grey line in each panel.

    Raises:
        ValueError: if the panels do not fill their rows, or there are more than four arms.
    """
    arms = list(dict.fromkeys(arm for panel in panels.values() for arm in panel))
    if columns < 1 or not panels or len(panels) % columns:
        raise ValueError(f"{len(panels)} panels do not fill rows of {columns}; choose another number of columns")
    if len(arms) > len(_STYLES):
        raise ValueError(f"at most {len(_STYLES)} arms stay apart without colour, got {'; '.join(arms)}")
    rows = len(panels) // columns
    figure = new_figure(2.6 * columns + 0.8, 1.75 * rows + 1.0)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    handles = {}
    for axes, (title, panel) in zip(grid.flat, panels.items(), strict=True):
        if reference is not None:
            height, name = reference
            handles[name] = axes.axhline(height, color="grey", linestyle=(0, (1, 2)), linewidth=1.2)
        for arm, runs in panel.items():
            style = {"color": PALETTE[arms.index(arm)], "linestyle": _STYLES[arms.index(arm)]}
            for run in np.atleast_2d(as_array(runs)):
                (handles[arm],) = axes.plot(as_array(x), run, linewidth=1.3, alpha=0.85, **style)
        axes.set(yscale=yscale)
        axes.set_title(title, fontsize="small")
        axes.grid(True, alpha=0.4)
    for axes in grid[-1]:
        axes.set_xlabel(xlabel)
    for axes in grid[:, 0]:
        axes.set_ylabel(ylabel)
    names = [*arms, *([reference[1]] if reference is not None else [])]
    if len(names) > 1:
        in_a_row = len(names) if columns > 2 or len(names) < 4 else 2
        figure.legend([handles[name] for name in names], names, loc="outside upper center", ncols=in_a_row)
    return figure
