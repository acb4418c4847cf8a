"""Attention over tokens: one query at work, masks, and the maps of layers and heads."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_utils.plotting.style import PALETTE, as_array, new_figure, styled


@styled
def worked_example(
    names: Sequence[str], query: ArrayLike, keys: ArrayLike, weights: ArrayLike, values: ArrayLike, output: ArrayLike
) -> Figure:
    """One query at work in two dimensions: its keys, the weights they get, and the mean of the values.

    Args:
        names: of the N keys.
        query: [2].
        keys: [N, 2].
        weights: [N], summing to 1.
        values: [N, 2].
        output: [2], the weighted mean of the values.
    """
    query, keys, weights = as_array(query), as_array(keys), as_array(weights)
    values, output = as_array(values), as_array(output)
    figure = new_figure(10, 3.4)
    left, middle, right = figure.subplots(1, 3)

    for number, (name, key) in enumerate(zip(names, keys, strict=True)):
        _arrow(left, key, PALETTE[number], name)
    _arrow(left, query, "black", "query")
    left.margins(0.3)
    left.set(title="Query and keys", xlabel="first dimension", ylabel="second dimension")

    bars = middle.bar(names, weights, color=PALETTE[: len(names)])
    middle.bar_label(bars, fmt="%.2f", padding=2)
    middle.set(title="Attention weights", ylabel="weight", ylim=(0, 1))

    for number, (name, value, weight) in enumerate(zip(names, values, weights, strict=True)):
        right.scatter(*value, s=30 + 500 * weight, color=PALETTE[number])
        right.annotate(name, value, xytext=(0, 16), textcoords="offset points", ha="center", color=PALETTE[number])
        right.plot(*zip(value, output, strict=True), color=PALETTE[number], linewidth=0.5 + 5 * weight, alpha=0.4)
    right.scatter(*output, marker="*", s=180, color="black", zorder=3)
    right.annotate("output", output, xytext=(-8, -18), textcoords="offset points", ha="right")
    right.margins(0.25)
    right.set(title="Values and their weighted mean", xlabel="first dimension", ylabel="second dimension")
    return figure


def _arrow(axes: Axes, tip: np.ndarray, colour, label: str) -> None:
    arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 2}
    axes.annotate("", xy=tip, xytext=(0, 0), arrowprops=arrow)
    axes.plot(*tip, alpha=0)  # makes room: annotations do not count for the limits
    beyond = 12 * tip / np.linalg.norm(tip)  # points: the label stands where the arrow points to
    axes.annotate(label, tip, xytext=beyond, textcoords="offset points", color=colour, ha="center", va="center")


@styled
def masks(panels: Mapping[str, ArrayLike], names: Sequence[str]) -> Figure:
    """Masks side by side: who may attend to whom.

    Args:
        panels: by title, boolean [T, T], True where the query (row) may attend to the key (column).
        names: of the T tokens.
    """
    figure = new_figure(3.1 * len(panels), 3.4)
    for axes, (title, mask) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items(), strict=True):
        mask = as_array(mask)
        axes.imshow(mask, vmin=0, vmax=1, cmap="Blues")
        for row, column in np.ndindex(mask.shape):
            allowed = bool(mask[row, column])
            axes.text(column, row, "1" if allowed else "0", ha="center", va="center", color="w" if allowed else "k")
        _name_tokens(axes, names, names)
        _separate_cells(axes, mask.shape)
        axes.set_title(title)
    return figure


def _name_tokens(axes: Axes, queries: Sequence, keys: Sequence) -> None:
    """Tokens on the axes of an attention map."""
    axes.set_yticks(range(len(queries)), [str(name) for name in queries])
    axes.set_xticks(range(len(keys)), [str(name) for name in keys])
    if max((len(str(name)) for name in keys), default=0) > 2:
        axes.tick_params(axis="x", rotation=45)
    axes.set(xlabel="key", ylabel="query")


def _separate_cells(axes: Axes, shape: tuple[int, int]) -> None:
    rows, columns = shape
    axes.set_yticks(np.arange(rows - 1) + 0.5, minor=True)
    axes.set_xticks(np.arange(columns - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)


@styled
def attention_maps(
    attention: Sequence[ArrayLike],
    queries: Sequence | None = None,
    keys: Sequence | None = None,
    *,
    numbers: bool = False,
) -> Figure:
    """Attention maps of each layer (row) and head (column), on one colour scale from 0 to the largest weight.

    Args:
        attention: for each layer, weights [H, T, T].
        queries: names of the tokens on the rows; their numbers by default.
        keys: names of the tokens on the columns; the queries' by default.
        numbers: write each weight into its cell, for small maps.
    """
    layers = [as_array(layer) for layer in attention]
    heads, length, _ = layers[0].shape
    queries = range(length) if queries is None else queries
    keys = queries if keys is None else keys
    panel = max(2.2, 0.26 * length) if heads > 1 or len(layers) > 1 else max(3.4, 0.3 * length)
    figure = new_figure(panel * heads + 1.0, panel * len(layers) + 0.5)
    grid = figure.subplots(len(layers), heads, squeeze=False, sharex=True, sharey=True)
    largest = max(float(layer.max()) for layer in layers)
    for (layer, head), axes in np.ndenumerate(grid):
        image = axes.imshow(layers[layer][head], vmin=0, vmax=largest)
        _name_tokens(axes, queries, keys)
        axes.label_outer()
        if numbers:
            _write_numbers(axes, layers[layer][head], largest)
        if grid.size > 1:
            axes.set_title(f"layer {layer + 1}, head {head + 1}")
    figure.colorbar(image, ax=grid, label="attention weight", shrink=0.8)
    return figure


def _write_numbers(axes: Axes, matrix: np.ndarray, largest: float) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        colour = "white" if value < 0.5 * largest else "black"  # readable on the colour map's dark and light end
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize="small")
