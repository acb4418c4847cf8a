"""Two quantities of the same things, a point for each: do they go together?"""

from collections.abc import Mapping

from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_utils.plotting.style import PALETTE, as_array, new_figure, styled

_MARKERS = "osD^vP"


@styled
def scatter(groups: Mapping[str, tuple[ArrayLike, ArrayLike]], *, xlabel: str, ylabel: str, title: str = "") -> Figure:
    """Points in groups, each with a marker and a colour of its own.

    Args:
        groups: by label, x and y, [N] each.
        xlabel: what x is, with its unit.
        ylabel: what y is, with its unit.
        title: of the axes.
    """
    figure = new_figure(6, 3.8)
    axes = figure.subplots()
    for (label, (x, y)), marker, colour in zip(groups.items(), _MARKERS, PALETTE, strict=False):
        axes.plot(as_array(x), as_array(y), marker, label=label, color=colour, alpha=0.75, markersize=7)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axes.grid(True, alpha=0.4)
    if len(groups) > 1:
        axes.legend()
    return figure
