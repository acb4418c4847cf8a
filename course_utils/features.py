"""Features of images from frozen backbones: what a set model sees of each image."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor


def extract(images: np.ndarray, backbone: str = "pixels") -> Tensor:
    """Features of each image.

    Args:
        images: uint8 [N, height, width] or [N, height, width, channels].
        backbone: "pixels", the image itself, flattened and scaled to the range 0 to 1.

    Returns:
        float32 [N, D].

    Raises:
        ValueError: for an unknown backbone, or images of another rank.
        TypeError: for images of another type than uint8.
    """
    if backbone not in BACKBONES:
        raise ValueError(f"there is no backbone {backbone!r}; there are: {', '.join(sorted(BACKBONES))}")
    if images.dtype != np.uint8:
        raise TypeError(f"images must be uint8, from 0 to 255, got {images.dtype}")
    if images.ndim not in (3, 4):
        raise ValueError(f"images must be [N, height, width] or [N, height, width, channels], got {images.shape}")
    return BACKBONES[backbone](images)


def _pixels(images: np.ndarray) -> Tensor:
    return torch.from_numpy(images.reshape(len(images), -1) / np.float32(255))


BACKBONES: dict[str, Callable[[np.ndarray], Tensor]] = {"pixels": _pixels}
