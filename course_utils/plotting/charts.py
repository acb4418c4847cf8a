"""Charts of numbers: curves, bars, a heat map, and what a training run went through."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from course_utils.plotting.style import DIVERGING, PALETTE, as_array, new_figure, styled


@styled
def curves(
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
) -> Figure:
    """Lines over a common x axis, with a legend where there are several.

    Args:
        x: [N].
        ys: by label, [N] each.
        xlabel: what x is, with its unit.
        ylabel: what y is, with its unit.
        title: of the axes.
        xscale: "linear" or "log".
        yscale: "linear" or "log".
        markers: mark each point, where points are few.
        reference: a height and its name, drawn as a dashed line.
    """
    figure = new_figure(6, 3.5)
    axes = figure.subplots()
    for (label, y), style in zip(ys.items(), line_styles(), strict=False):
        axes.plot(as_array(x), as_array(y), label=label, marker="o" if markers else None, **style)
    if reference is not None:
        height, name = reference
        axes.axhline(height, color="grey", linestyle="--", linewidth=1, label=name)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title, xscale=xscale, yscale=yscale)
    axes.grid(True, alpha=0.4)
    if len(ys) > 1 or reference is not None:
        axes.legend()
    return figure


def line_styles() -> list[dict]:
    """Line styles that stay apart without colour."""
    return [{"linestyle": style} for style in ("-", "--", "-.", ":", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))]


@styled
def bars(
    values: Mapping[str, float], *, ylabel: str, errors: Mapping[str, float] | None = None, title: str = ""
) -> Figure:
    """A few numbers side by side, each with its value.

    Args:
        values: by label.
        ylabel: what they are, with their unit.
        errors: half-width of the interval of each, by label.
        title: of the axes.
    """
    figure = new_figure(max(4.0, 1.3 * len(values)), 3.2)
    axes = figure.subplots()
    drawn = axes.bar(
        list(values),
        list(values.values()),
        color=PALETTE[: len(values)],
        yerr=None if errors is None else [errors[label] for label in values],
    )
    axes.bar_label(drawn, fmt="%.3g", padding=3)
    axes.margins(y=0.15)
    axes.set(ylabel=ylabel, title=title)
    return figure


@styled
def heatmap(matrix: ArrayLike, *, xlabel: str, ylabel: str, colour_label: str, title: str = "") -> Figure:
    """A matrix of values around 0, as colours.

    Args:
        matrix: [rows, columns].
        xlabel: what the columns are.
        ylabel: what the rows are.
        colour_label: what the values are, with their unit.
        title: of the axes.
    """
    matrix = as_array(matrix)
    figure = new_figure(8, 3.6)
    axes = figure.subplots()
    limit = float(np.abs(matrix).max())
    image = axes.imshow(matrix, aspect="auto", cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    figure.colorbar(image, ax=axes, label=colour_label)
    return figure


@styled
def position_curves(encoding: ArrayLike, dimensions: Sequence[int]) -> Figure:
    """Some dimensions of a positional encoding as curves over the position, each in a panel of its own.

    Args:
        encoding: [T, d_model].
        dimensions: which to draw, from 0.
    """
    encoding = as_array(encoding)
    figure = new_figure(8, 1.1 * len(dimensions) + 0.6)
    grid = figure.subplots(len(dimensions), 1, sharex=True, squeeze=False)[:, 0]
    for axes, dimension, colour in zip(grid, dimensions, PALETTE, strict=False):
        axes.plot(encoding[:, dimension], marker=".", color=colour)
        axes.set(ylim=(-1.15, 1.15), ylabel=f"dim. {dimension}")
        axes.grid(True, alpha=0.4)
    grid[-1].set(xlabel="position")
    grid[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


@styled
def learning_curves(
    train_loss: ArrayLike, learning_rate: ArrayLike, val_step: ArrayLike, val_acc: ArrayLike, *, loss_unit: str
) -> Figure:
    """What a training run went through: loss and learning rate at each step, accuracy at each validation.

    Args:
        train_loss: [steps].
        learning_rate: [steps].
        val_step: optimizer steps made before each validation.
        val_acc: accuracy of each validation, from 0 to 1.
        loss_unit: of the loss, such as "nats a digit".
    """
    figure = new_figure(10, 3.0)
    left, middle, right = figure.subplots(1, 3)
    steps = np.arange(1, len(as_array(train_loss)) + 1)
    left.plot(steps, as_array(train_loss))
    left.set(yscale="log", ylabel=f"training loss ({loss_unit})", title="Loss")
    middle.plot(steps, as_array(learning_rate), color=PALETTE[1])
    middle.set(ylabel="learning rate", title="Schedule")
    right.plot(as_array(val_step), as_array(val_acc), marker="o", color=PALETTE[2])
    right.set(ylabel="validation accuracy", ylim=(0, 1.05), title="Validation")
    for axes in (left, middle, right):
        axes.set_xlabel("optimizer step")
        axes.set_xlim(0, len(steps) * 1.03)
        axes.grid(True, alpha=0.4)
    return figure
