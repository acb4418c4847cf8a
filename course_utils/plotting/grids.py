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
    panels: Mapping[tuple[str, str], Mapping[str, ArrayLike]],
    *,
    xlabel: str,
    ylabel: str,
    yscale: str = "linear",
    reference: tuple[float, str] | None = None,
) -> Figure:
    """Small panels in rows and columns, each with a thin line for every run of every arm.

    Args:
        x: [N].
        panels: by the names of their row and column, in the order to draw them; each holds the curves of its runs
            [runs, N] by arm, at most four arms. An arm looks the same in all panels.
        xlabel: what x is, with its unit.
        ylabel: what y is, with its unit.
        yscale: "linear" or "log".
        reference: a height and its name, drawn as a dotted line in each panel.

    Raises:
        ValueError: if a panel of the grid is missing, or there are more than four arms.
    """
    rows, columns, arms = _unique(row for row, _ in panels), _unique(column for _, column in panels), _arms(panels)
    if len(panels) != len(rows) * len(columns):
        raise ValueError(f"{len(rows)} rows and {len(columns)} columns need as many panels, got {len(panels)}")
    if len(arms) > len(_STYLES):
        raise ValueError(f"at most {len(_STYLES)} arms stay apart without colour, got {', '.join(arms)}")
    figure = new_figure(2.6 * len(columns) + 0.8, 1.75 * len(rows) + 1.0)
    grid = figure.subplots(len(rows), len(columns), sharex=True, sharey=True, squeeze=False)
    handles = {}
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            axes = grid[i, j]
            if reference is not None:
                height, name = reference
                handles[name] = axes.axhline(height, color="grey", linestyle=(0, (1, 2)), linewidth=1.2)
            for arm, runs in panels[row, column].items():
                style = {"color": PALETTE[arms.index(arm)], "linestyle": _STYLES[arms.index(arm)]}
                for run in np.atleast_2d(as_array(runs)):
                    (handles[arm],) = axes.plot(as_array(x), run, linewidth=1.3, alpha=0.85, **style)
            axes.set(yscale=yscale)
            axes.grid(True, alpha=0.4)
            axes.set_title(", ".join(filter(None, (row, column))), fontsize="small")
    for axes in grid[-1]:
        axes.set_xlabel(xlabel)
    for axes in grid[:, 0]:
        axes.set_ylabel(ylabel)
    order = [*arms, *([reference[1]] if reference is not None else [])]
    figure.legend([handles[name] for name in order], order, loc="outside upper center", ncols=min(3, len(order)))
    return figure


def _unique(names) -> list[str]:
    return list(dict.fromkeys(names))


def _arms(panels: Mapping[tuple[str, str], Mapping[str, ArrayLike]]) -> list[str]:
    return _unique(arm for panel in panels.values() for arm in panel)
