"""Features of images from frozen backbones: what a set model sees of each image."""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.backbones import BACKBONES, backbone, build, fold_batch_norm, weights_hash
from course_utils.stacked import Stacked

__all__ = ["BACKBONES", "Extractor", "default_size", "extract"]

PRECISIONS = ("float32", "bfloat16")
# Whoever changes what an extraction computes, by a rounding even, counts this up: features cached before are then
# not mistaken for features of now.
NUMERICS = 1
_BATCH = {"cpu": 4, "cuda": 256}  # images; on a CPU what a layer gives for them should stay in its cache


def extract(images: np.ndarray | Stacked, backbone: str = "pixels", size: int | None = None) -> Tensor:
    """Features of each image, computed now; `feature_cache.cached_features` keeps them.

    Args:
        images: uint8 [N, height, width] or [N, height, width, channels].
        backbone: "pixels", the image itself, flattened and scaled to the range 0 to 1; "resnet34" or
            "efficientnet_lite0", networks trained on ImageNet; or another of `backbones.BACKBONES`.
        size: height and width in pixels that images are brought to; None for the backbone's own.

    Returns:
        float32 [N, D].

    Raises:
        ValueError: for an unknown backbone, or images of another rank.
        TypeError: for images of another type than uint8.
        ImportError: if a package is not installed that the backbone comes from.
    """
    return Extractor(backbone, size).features(images)


def default_size(name: str) -> int | None:
    """Height and width in pixels that a backbone brings images to unless it is told otherwise; None: as they are.

    Raises:
        ValueError: for an unknown backbone.
    """
    return backbone(name).size


class Extractor:
    """A backbone on a device, ready to turn images into features.

    The features of an image are the same alone and in any batch, to rounding. Batches are cut at fixed places, so
    that on one kind of processor, and with the same number of threads, they are the same to the bit.

    Args:
        name: of the backbone.
        size: height and width in pixels that images are brought to; None for the backbone's own.
        mirrored: whether left and right are exchanged.
        precision: "float32" (where a GPU has TF32, its convolutions compute in that), or "bfloat16": faster where a
            processor has it, and right to about two digits.
        device: "cpu" or "cuda"; None for a GPU if there is one.

    Raises:
        ValueError: for an unknown backbone or precision, or a size below 1.
        ImportError: if a package is not installed that the backbone comes from.
    """

    def __init__(
        self,
        name: str,
        size: int | None = None,
        *,
        mirrored: bool = False,
        precision: str = "float32",
        device: str | None = None,
    ):
        if precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
        self.name = name
        self.size = size or backbone(name).size
        self.interpolation = backbone(name).interpolation
        self.mirrored = mirrored
        self.precision = precision
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.batch_size = _BATCH[_kind(self.device)]
        network = build(name, size)
        self.has_weights = bool(network.state_dict())
        self.weights_hash = weights_hash(network)
        if backbone(name).folds:
            network = fold_batch_norm(network)
        self._network = network.to(self.device, memory_format=torch.channels_last)

    @property
    def numerics(self) -> str:
        """What the rounding of the features depends on, in a word."""
        tf32 = self.precision == "float32" and _kind(self.device) == "cuda"  # what a GPU's convolutions compute in
        kind = "tf32" if tf32 else self.precision
        resized = "" if self.interpolation == "bilinear" else f"-{self.interpolation}"
        return f"{kind}-{NUMERICS}{resized}"

    def features(self, images: np.ndarray | Stacked, tick: Callable[[int], None] = lambda count: None) -> Tensor:
        """Features float32 [N, D] of images uint8 [N, height, width] or [N, height, width, channels], on the CPU.

        Args:
            images: N may be 0 only if the backbone has a width of its own.
            tick: is told the number of images of each batch that is done.

        Raises:
            ValueError: for images of another rank, or features that are no finite numbers.
            TypeError: for images of another type than uint8.
        """
        check_images(images)
        batches = []
        half = torch.autocast(_kind(self.device), dtype=torch.bfloat16, enabled=self.precision == "bfloat16")
        with torch.inference_mode(), half:
            for start in range(0, len(images), self.batch_size):
                batch = images[start : start + self.batch_size]
                batches.append(self._network(self._prepared(batch)).float().cpu())
                tick(len(batch))
        if not batches:
            return torch.empty(0, backbone(self.name).width or 0)
        return self._checked(torch.cat(batches).clone(), len(images))

    def _prepared(self, images: np.ndarray) -> Tensor:
        """Images uint8 as float [B, channels, size, size], from 0 to 255, on the device."""
        tensor = torch.from_numpy(np.array(images))  # a copy: the images may be read-only
        tensor = tensor.unsqueeze(-1) if tensor.dim() == 3 else tensor
        tensor = tensor.to(self.device).permute(0, 3, 1, 2).float()  # [B, H, W, C] -> [B, C, H, W]
        if self.size is not None and tensor.shape[2:] != (self.size, self.size):
            tensor = F.interpolate(tensor, size=(self.size, self.size), mode=self.interpolation, antialias=True)
            tensor = tensor.clamp(0, 255) if self.interpolation == "bicubic" else tensor  # which overshoots at edges
        tensor = tensor.flip(-1) if self.mirrored else tensor
        return tensor.contiguous(memory_format=torch.channels_last)

    def _checked(self, features: Tensor, count: int) -> Tensor:
        width = backbone(self.name).width
        if features.shape != (count, width or features.shape[-1]):
            raise ValueError(
                f"the backbone {self.name!r} must give features [{count}, {width or 'D'}], got {list(features.shape)}"
            )
        if not features.isfinite().all():
            raise ValueError(f"the backbone {self.name!r} gave features that are no finite numbers")
        return features


def _kind(device: str) -> str:
    """The kind of a device, such as cuda of cuda:1."""
    kind = torch.device(device).type
    if kind not in _BATCH:
        raise ValueError(f"device must be one of {', '.join(_BATCH)}, got {device!r}")
    return kind


def check_images(images: np.ndarray | Stacked) -> None:
    """Refuse what is no array of images.

    Raises:
        ValueError: for another rank than 3 or 4.
        TypeError: for another type than uint8.
    """
    if images.dtype != np.uint8:
        raise TypeError(f"images must be uint8, from 0 to 255, got {images.dtype}")
    if images.ndim not in (3, 4):
        raise ValueError(f"images must be [N, height, width] or [N, height, width, channels], got {images.shape}")
