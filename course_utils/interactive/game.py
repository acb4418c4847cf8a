"""The odd-one-out game: in each set one image is of another class; the reader chooses, then the model."""

import numpy as np
from numpy.typing import ArrayLike

from course_utils import plotting
from course_utils.figure_description import summary
from course_utils.interactive.piece import Piece, assemble, picture_url
from course_utils.plotting.style import as_array

_DRAWN_SETS = 4  # in the plain figure


def odd_one_out_game(
    images: ArrayLike, odd: ArrayLike, probabilities: ArrayLike, *, seed: int = 0, alt: str | None = None
) -> Piece:
    """Sets of images, in each of which the reader looks for the odd one, and then sees the model's probabilities.

    The images of each set are shown in a random order, and the probabilities with them: in the course's sets the odd
    one stands last. Whoever looks into the page's source finds the answers there.

    Args:
        images: uint8 [S, T, height, width], drawn as ink on paper, or [S, T, height, width, 3], drawn as they are.
        odd: position of the odd one in each set, [S].
        probabilities: of the model that an image is the odd one, [S, T]; those of a set add up to 1.
        seed: of the order.
        alt: what is to be seen, in a sentence or two.

    Raises:
        ValueError: if the shapes disagree, a position is outside of its set, or the numbers are no probabilities.
    """
    images, odd, probabilities = as_array(images), as_array(odd).astype(int), as_array(probabilities).astype(float)
    if images.ndim not in (4, 5) or odd.shape != images.shape[:1] or probabilities.shape != images.shape[:2]:
        raise ValueError(
            "images, odd and probabilities must be [S, T, height, width], [S] and [S, T], "
            f"got {list(images.shape)}, {list(odd.shape)} and {list(probabilities.shape)}"
        )
    sets, size = probabilities.shape
    if sets == 0 or odd.min() < 0 or odd.max() >= size:
        raise ValueError(f"each odd one must be at a position from 0 to {size - 1}, got {odd.tolist()}")
    if not np.isfinite(probabilities).all() or probabilities.min() < 0 or np.abs(probabilities.sum(1) - 1).max() > 1e-3:
        raise ValueError("the probabilities of each set must add up to 1: give the softmax's output, not its input")

    orders = np.random.default_rng(seed).permuted(np.tile(np.arange(size), (sets, 1)), axis=1)  # [S, T]
    rows = np.arange(sets)[:, None]
    images, probabilities = images[rows, orders].astype(np.uint8), probabilities[rows, orders]
    odd = (orders == odd[:, None]).argmax(axis=1)
    found = int((probabilities.argmax(axis=1) == odd).sum())
    return assemble(
        "oddOneOutGame",
        {
            "rounds": [
                {
                    "pictures": [picture_url(image, inverted=images.ndim == 4) for image in images[row]],
                    "odd": int(odd[row]),
                    "probabilities": [round(value, 5) for value in probabilities[row].tolist()],
                }
                for row in range(sets)
            ]
        },
        scripts=("game.js",),
        styles=("game.css",),
        fallback=plotting.image_sets(
            images[:_DRAWN_SETS],
            odd=odd[:_DRAWN_SETS].tolist(),
            captions=[[f"{value:.0%}" for value in row] for row in probabilities[:_DRAWN_SETS]],
            marked="odd one; below each image the model's probability that it is",
        ),
        alt=alt
        or f"A game: {sets} sets of {size} images, in each of which one is of another class. "
        f"The model finds it in {found} of them.",
        facts={"odd": odd.tolist(), "probabilities": summary(probabilities), "images": summary(images)},
    )
