"""How quantities grow: panels with logarithmic axes, on which a power law is a straight line."""

from collections.abc import Mapping

from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_utils.plotting.charts import line_styles
from course_utils.plotting.style import PALETTE, as_array, new_figure, styled

_MARKERS = "osD^vP"


@styled
def growth(
    x: ArrayLike,
    panels: Mapping[str, Mapping[str, ArrayLike]],
    *,
    xlabel: str,
    symbol: str,
    exponents: Mapping[str, Mapping[str, float]],
    fitted_from: float,
) -> Figure:
    """Quantities side by side against one x, with the power of x that each curve was fitted by in its legend.

    Args:
        x: [N], positive.
        panels: by the label of the y axis, with its unit; each holds by name a curve [N] of positive values.
        xlabel: what x is, with its unit.
        symbol: of x, for the legends, such as "T".
        exponents: of the fit, for each panel and each curve.
        fitted_from: the x from which on the curves were fitted; the part is shaded.
    """
    x = as_array(x)
    figure = new_figure(5 * len(panels), 4.4)
    for axes, (ylabel, curves) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        axes.set(xscale="log", yscale="log", xlabel=xlabel, ylabel=ylabel)
        axes.axvspan(fitted_from, x.max(), color="grey", alpha=0.12, linewidth=0)
        for (name, y), style, colour, marker in zip(curves.items(), line_styles(), PALETTE, _MARKERS, strict=False):
            label = f"{name}: ${symbol}^{{{exponents[ylabel][name]:.2f}}}$"
            axes.plot(x, as_array(y), label=label, color=colour, marker=marker, markersize=5, **style)
        axes.grid(True, alpha=0.4)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize="small")
    return figure
