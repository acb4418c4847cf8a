"""Numbers with their intervals, a row for each."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_utils.plotting.style import PALETTE, new_figure, styled

_MARKERS = "os^Dv"


@styled
def intervals(
    rows: Mapping[str, Mapping[str, tuple[float, float, float]]],
    *,
    xlabel: str,
    ylabel: str,
    runs: Mapping[str, Sequence[float]] | None = None,
    reference: tuple[float, str] | None = None,
) -> Figure:
    """Dots with whiskers, a row for each name; where a row has several, one below the other.

    Args:
        rows: by name, from top to bottom, and then by what the dot stands for: value, lower and upper bound. Where
            there is one kind of dot only, its name may be empty: there is no legend then.
        xlabel: what the numbers are, with their unit.
        ylabel: what the rows are.
        runs: by row, the single runs that a number is the mean of, drawn as small ticks.
        reference: a number and its name, drawn as a dashed line.
    """
    kinds = list(dict.fromkeys(kind for row in rows.values() for kind in row))
    with_legend = kinds != [""] or reference is not None
    figure = new_figure(6.4, 0.7 + (0.22 * len(kinds) + 0.22) * len(rows) + (0.5 if with_legend else 0))
    axes = figure.subplots()
    step = 0.8 / max(len(kinds), 2)
    for number, (kind, marker) in enumerate(zip(kinds, _MARKERS, strict=False)):
        offset = (number - (len(kinds) - 1) / 2) * step
        there = [(place + offset, row[kind]) for place, row in enumerate(rows.values()) if kind in row]
        heights = [height for height, _ in there]
        values = [value for _, (value, _, _) in there]
        errors = [[value - low for _, (value, low, _) in there], [high - value for _, (value, _, high) in there]]
        axes.errorbar(
            values, heights, xerr=errors, fmt=marker, color=PALETTE[number], label=kind or "_", capsize=3, markersize=6
        )
    for place, name in enumerate(rows):
        for run in (runs or {}).get(name, ()):
            axes.plot([run], [place + 0.3], marker="|", color="black", markersize=7, linestyle="none")
    if reference is not None:
        axes.axvline(reference[0], color="grey", linestyle="--", linewidth=1, label=reference[1])
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(True, axis="x", alpha=0.4)
    if with_legend:
        figure.legend(loc="outside lower center", ncols=2)
    return figure
