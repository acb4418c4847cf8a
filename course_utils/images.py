"""Sets of labelled images: where they come from, their canonical order and their splits."""

import hashlib
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

TEST_FRACTION = 0.2  # of each class, for an image set that comes without a test split
VALIDATION_FRACTION = 0.1  # of each class of the training images


@dataclass(frozen=True)
class ImageSet:
    """Labelled images in canonical order, with the indices of each split.

    Attributes:
        name: as given to `load_images`.
        images: uint8 [N, height, width] (grey) or [N, height, width, 3] (colour), from 0 to 255.
        labels: int64 [N], class numbers from 0.
        class_names: the name of each class.
        splits: for "train", "val" and "test" the indices of its images, ascending; disjoint.
    """

    name: str
    images: np.ndarray
    labels: np.ndarray
    class_names: list[str]
    splits: dict[str, np.ndarray]


def load_images(name: str = "digits") -> ImageSet:
    """Load an image set by name.

    Args:
        name: "digits", 1,797 scans of handwritten digits, 8x8 pixels, from the scikit-learn package
            (Alpaydin & Kaynak, 1998).

    Raises:
        ValueError: for an unknown name.
    """
    if name not in _SOURCES:
        raise ValueError(f"there is no image set {name!r}; there are: {', '.join(sorted(_SOURCES))}")
    return _SOURCES[name]()


def canonical_order(images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Indices that sort images by label, then by the SHA-256 of their bytes.

    The order, and so each split, depends on what the images are and not on how their source arranged them.
    """
    hashes = [hashlib.sha256(image.tobytes()).digest() for image in images]
    return np.array(sorted(range(len(images)), key=lambda index: (labels[index], hashes[index])), dtype=np.int64)


def split_each_class(labels: np.ndarray, fraction: float) -> tuple[np.ndarray, np.ndarray]:
    """Split off the first images of each class.

    Args:
        labels: [N], in canonical order, in which the first images of a class are as good as random ones.
        fraction: of each class, strictly between 0 and 1; rounded to whole images.

    Returns:
        Indices of the split-off part and of the rest, both ascending.
    """
    if not 0.0 < fraction < 1.0:
        raise ValueError(f"fraction must lie between 0 and 1, got {fraction}")
    first = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        first[members[: round(fraction * len(members))]] = True
    return np.flatnonzero(first), np.flatnonzero(~first)


def _digits() -> ImageSet:
    pixels, labels = load_digits(return_X_y=True)
    images = np.round(pixels.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)  # 17 grey levels, 0 to 16
    order = canonical_order(images, labels)
    images, labels = images[order], labels[order].astype(np.int64)

    test, development = split_each_class(labels, TEST_FRACTION)
    validation, train = split_each_class(labels[development], VALIDATION_FRACTION)
    splits = {"train": development[train], "val": development[validation], "test": test}
    return ImageSet("digits", images, labels, [str(digit) for digit in range(10)], splits)


_SOURCES = {"digits": _digits}
