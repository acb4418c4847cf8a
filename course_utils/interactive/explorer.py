"""The attention explorer: choose layer, head and query, mask keys, and see the weights renormalise."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_utils.figure_description import summary
from course_utils.interactive.packing import attention_layers, pack_weights
from course_utils.interactive.piece import Piece, assemble, picture_url
from course_utils.plotting.style import as_array, new_figure, styled

_MOST_CELLS = 4_096  # that the plain figure draws: it is part of the page
_MOST_NAMES = 20  # of tokens on one axis of the plain figure; more are numbered


def attention_explorer(
    maps: Sequence[ArrayLike],
    tokens: Sequence,
    keys: Sequence | None = None,
    *,
    thumbnails: ArrayLike | None = None,
    alt: str | None = None,
) -> Piece:
    """Attention maps to look into: of each layer and head, for each query, and with keys masked.

    The weights travel in the page with one byte each, and are right to 0.004; up to 15,000 weights with two bytes
    each, right to 0.00002. The page states it.

    Args:
        maps: for each layer, weights [H, Tq, Tk] of one sequence or set; each row adds up to 1, or to 0 where a query
            sees no key.
        tokens: names of the Tq queries.
        keys: names of the Tk keys; those of the queries by default.
        thumbnails: uint8 [Tq, height, width], an image for each token, drawn as ink on paper, or
            [Tq, height, width, 3], drawn as they are. The names remain for those who cannot see them.
        alt: what is to be seen, in a sentence or two; by default only what the piece offers.

    Raises:
        ValueError: if maps are no attention weights, or the numbers of names, images and weights disagree.
    """
    weights = attention_layers(maps)
    layers, heads, rows, columns = weights.shape
    queries = [str(token) for token in tokens]
    names = queries if keys is None else [str(key) for key in keys]
    if (len(queries), len(names)) != (rows, columns):
        raise ValueError(
            f"maps of {rows} queries and {columns} keys need as many names, got {len(queries)} tokens and "
            f"{len(names)} keys"
        )
    packed = pack_weights(weights)
    size = f"{layers} layer{'s' * (layers > 1)} with {heads} head{'s' * (heads > 1)}{' each' * (layers > 1)}"
    return assemble(
        "explorer",
        {
            "shape": list(weights.shape),
            "weights": packed,
            "queries": queries,
            "keys": None if keys is None else names,
            "pictures": None if thumbnails is None else _pictures(thumbnails, rows),
        },
        scripts=("weights.js", "map.js", "explorer.js"),
        styles=("explorer.css",),
        fallback=_figure(weights, queries, names),
        alt=alt or f"Attention weights of {size} over {rows} tokens; choose a query, mask keys.",
        facts={"queries": queries, "keys": names, "weights": summary(weights)},
    )


def _pictures(thumbnails: ArrayLike, number: int) -> list[str]:
    images = as_array(thumbnails)
    if images.ndim not in (3, 4) or len(images) != number:
        raise ValueError(f"thumbnails must be [{number}, height, width] or with colours, got {list(images.shape)}")
    return [picture_url(image.astype(np.uint8), inverted=images.ndim == 3) for image in images]


@styled
def _figure(weights: np.ndarray, queries: list[str], keys: list[str]) -> Figure:
    """All maps if they are small, or those of the first layer, or the first one."""
    if weights.size > _MOST_CELLS:
        weights = weights[:1]
    if weights.size > _MOST_CELLS:
        weights = weights[:, :1]
    layers, heads = weights.shape[:2]
    single = layers == heads == 1
    side = 5.5 if single else min(2.0, 10 / heads)
    figure = new_figure(side * heads + 1.2, side * layers + 0.4)
    grid = figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True)
    largest = weights.max()
    for (layer, head), axes in np.ndenumerate(grid):
        image = axes.imshow(weights[layer, head], vmin=0, vmax=largest or 1, interpolation="nearest")
        axes.set(title=f"layer {layer + 1}, head {head + 1}" if side > 1.5 else f"{layer + 1}, {head + 1}")
        axes.set(xlabel="key", ylabel="query")
        if not single:
            axes.set(xticks=[], yticks=[])
        elif max(len(queries), len(keys)) <= _MOST_NAMES:
            _name(axes, queries, keys)
        else:
            axes.set(xlabel="key, by position", ylabel="query, by position")
            axes.set_xticks(*_numbered(len(keys)))
            axes.set_yticks(*_numbered(len(queries)))
        axes.label_outer()
    figure.colorbar(image, ax=grid, label="attention weight", shrink=0.8)
    return figure


def _numbered(length: int) -> tuple[range, list[str]]:
    """Every fifth place and its number, counted from 1 as in the explorer."""
    places = range(4, length, 5)
    return places, [str(place + 1) for place in places]


def _name(axes: Axes, queries: list[str], keys: list[str]) -> None:
    # matplotlib would read a dollar sign as the start of a formula
    axes.set_yticks(range(len(queries)), [name.replace("$", r"\$") for name in queries])
    axes.set_xticks(range(len(keys)), [name.replace("$", r"\$") for name in keys])
    if max(map(len, keys)) > 2:
        axes.tick_params(axis="x", rotation=90)
