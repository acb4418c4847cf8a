"""What tests of features share: a small backbone whose features are quickly made, and images for it."""

import time

import numpy as np
import torch
from torch import nn

from course_utils.backbones import Backbone, Normalise
from course_utils.images import ImageSet


class Slowly(nn.Module):
    """Takes some time for each batch, so that a process can be killed in the middle."""

    def __init__(self, seconds: float):
        super().__init__()
        self.seconds = seconds

    def forward(self, x):
        time.sleep(self.seconds)
        return x


def small_network(size: int | None = 8, seed: int = 0, seconds: float = 0.0, width: int = 5) -> nn.Module:
    """A frozen network of random weights with a batch norm that has seen something: [B, 3, size, size] -> [B, 5]."""
    torch.manual_seed(seed)
    norm = nn.BatchNorm2d(width)
    for tensor in (norm.running_mean, norm.running_var, norm.weight, norm.bias):
        nn.init.uniform_(tensor, 0.5, 2.0)
    layers = [nn.Conv2d(3, width, 3, bias=False), norm, nn.ReLU(), Slowly(seconds), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(Normalise((124, 116, 104), (58, 57, 57)), nn.Sequential(*layers, nn.Flatten()))


def small_backbone(**settings) -> Backbone:
    return Backbone(lambda size: small_network(size, **settings), size=8, width=5, folds=True)


def generated_images(count: int, classes: int = 2, seed: int = 0) -> ImageSet:
    """Colour images of 6 x 6 random pixels, dealt out to classes and splits."""
    generator = np.random.default_rng(seed)
    labels = np.sort(np.arange(count) % classes)
    parts = {
        split: np.flatnonzero(np.arange(count) % 3 == number) for number, split in enumerate(("train", "val", "test"))
    }
    images = generator.integers(0, 256, (count, 6, 6, 3), dtype=np.uint8)
    return ImageSet("generated", images, labels, [str(number) for number in range(classes)], parts)
