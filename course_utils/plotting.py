"""Every figure that a notebook draws from numbers.

Each function takes arrays or tensors and returns a matplotlib `Figure`; `show` puts it into the notebook together with
a text alternative and a description of what was plotted, by which a test can tell whether a figure has changed.
"""

import base64
import functools
import io
from collections.abc import Callable, Mapping, Sequence

import matplotlib
import numpy as np
import seaborn as sns
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from course_utils.figure_description import MIME_TYPE, describe

SEQUENTIAL = "cividis"  # for weights from 0 to 1; made for colour-blind readers
DIVERGING = "vlag"  # for values around 0
PALETTE = sns.color_palette("colorblind")
ODD_COLOUR = PALETTE[3]
_STYLE = {
    **sns.axes_style("whitegrid"),
    **sns.plotting_context("notebook", font_scale=0.85),
    "axes.grid": False,
    "axes.prop_cycle": matplotlib.cycler(color=PALETTE),
    "axes.titlesize": "medium",
    "image.cmap": SEQUENTIAL,
    "svg.hashsalt": "course",
}


def show(figure: Figure, alt: str) -> None:
    """Put a figure into the notebook.

    Args:
        figure: as returned by a function of this module.
        alt: what the figure shows, in a sentence or two, for readers who cannot see it.

    Raises:
        ValueError: if alt is empty.
    """
    if not alt.strip():
        raise ValueError("a figure needs alt text: say in a sentence what it shows")
    if not InteractiveShell.initialized():
        print(alt)
        return
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=100, bbox_inches="tight", metadata={"Software": None})
    bundle = {
        "image/png": base64.b64encode(png.getvalue()).decode(),
        "text/plain": alt,
        MIME_TYPE: describe(figure),
    }
    display(bundle, metadata={"image/png": {"alt": alt}}, raw=True)


def _styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in the course's style, and leave the reader's own matplotlib settings alone."""

    @functools.wraps(draw)
    def draw_in_style(*args, **kwargs) -> Figure:
        with matplotlib.rc_context(_STYLE):
            return draw(*args, **kwargs)

    return draw_in_style


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained")


def _array(values: ArrayLike) -> np.ndarray:
    """A NumPy array of a tensor or array, wherever it lies."""
    return np.asarray(values.detach().cpu().float() if hasattr(values, "detach") else values)


@_styled
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
    query, keys, weights = _array(query), _array(keys), _array(weights)
    values, output = _array(values), _array(output)
    figure = _figure(10, 3.4)
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


@_styled
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
    figure = _figure(6, 3.5)
    axes = figure.subplots()
    for (label, y), style in zip(ys.items(), _line_styles(), strict=False):
        axes.plot(_array(x), _array(y), label=label, marker="o" if markers else None, **style)
    if reference is not None:
        height, name = reference
        axes.axhline(height, color="grey", linestyle="--", linewidth=1, label=name)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title, xscale=xscale, yscale=yscale)
    axes.grid(True, alpha=0.4)
    if len(ys) > 1 or reference is not None:
        axes.legend()
    return figure


def _line_styles() -> list[dict]:
    """Line styles that stay apart without colour."""
    return [{"linestyle": style} for style in ("-", "--", "-.", ":", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))]


@_styled
def masks(panels: Mapping[str, ArrayLike], names: Sequence[str]) -> Figure:
    """Masks side by side: who may attend to whom.

    Args:
        panels: by title, boolean [T, T], True where the query (row) may attend to the key (column).
        names: of the T tokens.
    """
    figure = _figure(3.1 * len(panels), 3.4)
    for axes, (title, mask) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items(), strict=True):
        mask = _array(mask)
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


@_styled
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
    layers = [_array(layer) for layer in attention]
    heads, length, _ = layers[0].shape
    queries = range(length) if queries is None else queries
    keys = queries if keys is None else keys
    panel = max(2.2, 0.26 * length) if heads > 1 or len(layers) > 1 else max(3.4, 0.3 * length)
    figure = _figure(panel * heads + 1.0, panel * len(layers) + 0.5)
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


@_styled
def heatmap(matrix: ArrayLike, *, xlabel: str, ylabel: str, colour_label: str, title: str = "") -> Figure:
    """A matrix of values around 0, as colours.

    Args:
        matrix: [rows, columns].
        xlabel: what the columns are.
        ylabel: what the rows are.
        colour_label: what the values are, with their unit.
        title: of the axes.
    """
    matrix = _array(matrix)
    figure = _figure(8, 3.6)
    axes = figure.subplots()
    limit = float(np.abs(matrix).max())
    image = axes.imshow(matrix, aspect="auto", cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    figure.colorbar(image, ax=axes, label=colour_label)
    return figure


@_styled
def position_curves(encoding: ArrayLike, dimensions: Sequence[int]) -> Figure:
    """Some dimensions of a positional encoding as curves over the position, each in a panel of its own.

    Args:
        encoding: [T, d_model].
        dimensions: which to draw, from 0.
    """
    encoding = _array(encoding)
    figure = _figure(8, 1.1 * len(dimensions) + 0.6)
    grid = figure.subplots(len(dimensions), 1, sharex=True, squeeze=False)[:, 0]
    for axes, dimension, colour in zip(grid, dimensions, PALETTE, strict=False):
        axes.plot(encoding[:, dimension], marker=".", color=colour)
        axes.set(ylim=(-1.15, 1.15), ylabel=f"dim. {dimension}")
        axes.grid(True, alpha=0.4)
    grid[-1].set(xlabel="position")
    grid[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


@_styled
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
    figure = _figure(10, 3.0)
    left, middle, right = figure.subplots(1, 3)
    steps = np.arange(1, len(_array(train_loss)) + 1)
    left.plot(steps, _array(train_loss))
    left.set(yscale="log", ylabel=f"training loss ({loss_unit})", title="Loss")
    middle.plot(steps, _array(learning_rate), color=PALETTE[1])
    middle.set(ylabel="learning rate", title="Schedule")
    right.plot(_array(val_step), _array(val_acc), marker="o", color=PALETTE[2])
    right.set(ylabel="validation accuracy", ylim=(0, 1.05), title="Validation")
    for axes in (left, middle, right):
        axes.set_xlabel("optimizer step")
        axes.set_xlim(0, len(steps) * 1.03)
        axes.grid(True, alpha=0.4)
    return figure


@_styled
def image_sets(
    sets: ArrayLike, odd: Sequence[int], captions: Sequence[Sequence[str]] | None = None, marked: str = "odd one"
) -> Figure:
    """Sets of images, one set a row, with the odd one framed.

    Args:
        sets: uint8 [S, T, height, width] or [S, T, height, width, 3].
        odd: for each set the position of the odd one.
        captions: for each set a text below each image, such as a probability.
        marked: what the frame means.
    """
    sets = _array(sets).astype(np.uint8)
    number, length = sets.shape[:2]
    figure = _figure(0.95 * length, (1.25 if captions else 1.0) * number + 0.35)
    grid = figure.subplots(number, length, squeeze=False)
    for (row, column), axes in np.ndenumerate(grid):
        _draw_image(axes, sets[row, column])
        if column == odd[row]:
            _frame(axes)
        if captions is not None:
            axes.set_xlabel(captions[row][column], fontsize="small", labelpad=4)
        if column == 0:
            axes.set_ylabel(f"set {row + 1}")
    figure.suptitle(f"framed: {marked}", color=ODD_COLOUR, fontsize="medium")
    return figure


def _draw_image(axes: Axes, image: np.ndarray) -> None:
    axes.imshow(image, cmap="gray_r", vmin=0, vmax=255)
    axes.set(xticks=[], yticks=[])


def _frame(axes: Axes) -> None:
    for spine in axes.spines.values():
        spine.set(color=ODD_COLOUR, linewidth=3)


@_styled
def attention_over_images(attention: Sequence[ArrayLike], images: ArrayLike, odd: int) -> Figure:
    """Attention maps of each layer and head over a set, with the images themselves on the axes.

    Args:
        attention: for each layer, weights [H, T, T].
        images: uint8 [T, height, width] or [T, height, width, 3].
        odd: position of the odd one, framed on the axes.
    """
    layers = [_array(layer) for layer in attention]
    images = _array(images).astype(np.uint8)
    heads = len(layers[0])
    figure = _figure(2.9 * heads + 0.8, 2.9 * len(layers) + 0.3)
    grid = figure.subplots(len(layers), heads, squeeze=False)
    largest = max(float(layer.max()) for layer in layers)
    for (layer, head), axes in np.ndenumerate(grid):
        heat = axes.imshow(layers[layer][head], vmin=0, vmax=largest)
        axes.set(title=f"layer {layer + 1}, head {head + 1}", xticks=[], yticks=[])
        axes.set_xlabel("key", labelpad=20)
        axes.set_ylabel("query", labelpad=20)
        for position, image in enumerate(images):
            _thumbnail(axes, image, (position, len(images) - 0.1), framed=position == odd)
            _thumbnail(axes, image, (-0.9, position), framed=position == odd)
    figure.colorbar(heat, ax=grid, label="attention weight", shrink=0.8)
    return figure


def _thumbnail(axes: Axes, image: np.ndarray, place: tuple[float, float], framed: bool) -> None:
    picture = OffsetImage(image, zoom=13 / image.shape[0], cmap="gray_r")
    picture.image.set_clim(0, 255)
    frame = {"edgecolor": ODD_COLOUR if framed else "none", "linewidth": 2, "facecolor": "none"}
    axes.add_artist(AnnotationBbox(picture, place, pad=0.05, bboxprops=frame, annotation_clip=False))


@_styled
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
    figure = _figure(max(4.0, 1.3 * len(values)), 3.2)
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
