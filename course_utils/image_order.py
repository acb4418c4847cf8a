"""The order of labelled images and their division, by what the images are and not by how their source arranges them."""

import hashlib

import numpy as np


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
