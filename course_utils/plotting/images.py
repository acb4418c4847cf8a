"""Sets of images, and attention between them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from numpy.typing import ArrayLike

from course_utils.plotting.style import ODD_COLOUR, as_array, new_figure, styled


@styled
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
    sets = as_array(sets).astype(np.uint8)
    number, length = sets.shape[:2]
    figure = new_figure(0.95 * length, (1.25 if captions else 1.0) * number + 0.35)
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


@styled
def attention_over_images(attention: Sequence[ArrayLike], images: ArrayLike, odd: int) -> Figure:
    """Attention maps of each layer and head over a set, with the images themselves on the axes.

    Args:
        attention: for each layer, weights [H, T, T].
        images: uint8 [T, height, width] or [T, height, width, 3].
        odd: position of the odd one, framed on the axes.
    """
    layers = [as_array(layer) for layer in attention]
    images = as_array(images).astype(np.uint8)
    heads = len(layers[0])
    figure = new_figure(2.9 * heads + 0.8, 2.9 * len(layers) + 0.3)
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
