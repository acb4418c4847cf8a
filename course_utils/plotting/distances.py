"""Distances between attention maps, and what a weight has to do with the similarity of positions."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from course_utils.plotting.style import PALETTE, as_array, new_figure, styled


@styled
def distances(matrix: ArrayLike, names: Sequence[str], *, label: str, axis: str, yardstick: ArrayLike) -> Figure:
    """The distance of each from each as colours and numbers, with a yardstick for each in a column of its own.

    Args:
        matrix: [N, N].
        names: of the N.
        label: what the distances are, with their unit.
        axis: what the N are, such as "head".
        yardstick: the distance of each from itself elsewhere, [N].
    """
    matrix, yardstick = as_array(matrix), as_array(yardstick)
    size = 0.55 * len(names)
    figure = new_figure(size + 3.2, size + 1.2)
    left, right = figure.subplots(1, 2, width_ratios=[len(names), 1.0], sharey=True)
    largest = float(max(matrix.max(), yardstick.max()))
    for axes, values in ((left, matrix), (right, yardstick[:, None])):
        image = axes.imshow(values, vmin=0, vmax=largest, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if value < 0.5 * largest else "black"  # readable on both ends of the colour map
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize="small")
    left.set_yticks(range(len(names)), names)
    left.set_xticks(range(len(names)), names)
    left.set(xlabel=f"another {axis}", ylabel=axis, title="the same sets")
    right.set_xticks([])
    right.set(xlabel=f"the same\n{axis}", title="two sets")
    figure.colorbar(image, ax=[left, right], label=label, shrink=0.9)
    return figure


@styled
def mirror_profile(distance: ArrayLike, log_weight: ArrayLike, similarity: ArrayLike) -> Figure:
    """Weight and similarity of positions over the distance from the mirrored position, and the one over the other.

    Args:
        distance: [T], from 0.
        log_weight: mean natural logarithm of the weight at each, [T].
        similarity: of encodings at each, [T].
    """
    distance, log_weight, similarity = as_array(distance), as_array(log_weight), as_array(similarity)
    figure = new_figure(9, 4.0)
    grid = figure.subplot_mosaic([["weight", "both"], ["similarity", "both"]], width_ratios=[1.1, 1])
    grid["weight"].plot(distance, np.exp(log_weight), marker="o", markersize=4)
    grid["weight"].set(yscale="log", ylabel="attention weight\n(geometric mean)")
    grid["similarity"].plot(distance, similarity, marker="s", markersize=4, linestyle="--", color=PALETTE[1])
    grid["similarity"].set(ylabel="similarity of the\nencodings (cosine)")
    grid["similarity"].sharex(grid["weight"])
    for name in ("weight", "similarity"):
        grid[name].set_xlabel("distance from the mirrored position")
        grid[name].xaxis.set_major_locator(MaxNLocator(integer=True))
        grid[name].grid(True, alpha=0.4)
    grid["weight"].set_xlabel("")
    grid["weight"].tick_params(labelbottom=False)
    both = grid["both"]
    both.plot(similarity[1:], np.exp(log_weight[1:]), linestyle="none", marker="o", markersize=4, color=PALETTE[2])
    width, height = np.ptp(similarity[1:]), np.ptp(log_weight[1:])
    for away, x, y in zip(distance[1:], similarity[1:], log_weight[1:], strict=True):
        apart = np.hypot((similarity[1:] - x) / width, (log_weight[1:] - y) / height)
        nearest = 1 + np.argsort(apart)[1]  # its name is written away from the nearest dot
        right, above = similarity[nearest] <= x, log_weight[nearest] <= y
        offset = (5 if right else -5, 0 if above else -7)
        align = "left" if right else "right"
        both.annotate(f"{away:.0f}", (x, np.exp(y)), offset, textcoords="offset points", ha=align, fontsize=8)
    both.margins(0.08)
    both.set(yscale="log", xlabel="similarity of the encodings (cosine)", ylabel="attention weight (geometric mean)")
    both.set_title("each dot a distance, from 1 on")
    both.grid(True, alpha=0.4)
    return figure
