"""ResNet-34 features of CIFAR-100 in the files that the tutorial writes, brought into the course's order.

The tutorial keeps features in `train_set_features.tar` [50000, 512] and `test_set_features.tar` [10000, 512], in the
order of torchvision's original files. Without these the rows belong to unknown images, and are refused.
"""

from pathlib import Path

import torch
from torch import Tensor

from course_utils import cifar100
from course_utils.paths import checkpoint_dir

WIDTH = 512  # of ResNet-34


class TutorialFeaturesError(ValueError):
    """The tutorial's feature files are there and cannot be used."""


def are_there() -> bool:
    """Whether both files lie in the checkpoint folder, where the tutorial puts them."""
    return all(_path(part).is_file() for part in cifar100.PARTS)


def load() -> Tensor:
    """The features float32 [60000, 512] of the images of `load_images("cifar100")`, in their order.

    Raises:
        TutorialFeaturesError: if a file holds something else, or the order of its rows is not known.
        ImportError: if torchvision, which reads the original files, is not installed.
    """
    return torch.cat([_load_part(part) for part in cifar100.PARTS])


def _path(part: str) -> Path:
    return checkpoint_dir() / f"{part}_set_features.tar"


def _load_part(part: str) -> Tensor:
    features = _read(part)
    try:
        order = cifar100.original_order(part)
    except cifar100.ImagesMissingError as error:
        raise TutorialFeaturesError(
            f"the features in {_path(part)} are in the order of CIFAR-100's original files, which are not there to "
            f"tell which row belongs to which image: {error}; or remove the feature files, and they are computed anew"
        ) from error
    return features[torch.from_numpy(order)].float()


def _read(part: str) -> Tensor:
    path, expected = _path(part), (cifar100.PARTS[part].size, WIDTH)
    try:
        features = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # not chained: torch's own message recommends to load the file unsafely
        raise _refused(path, "it cannot be read as a tensor, and nothing in it was run") from None
    if not isinstance(features, Tensor):
        raise _refused(path, f"it holds no tensor but {type(features).__name__}")
    if features.shape != expected or not features.is_floating_point():
        raise _refused(path, f"it must hold floats {list(expected)}, and holds {features.dtype} {list(features.shape)}")
    if not features.isfinite().all():
        raise _refused(path, "some of its features are no finite numbers")
    return features


def _refused(path: Path, why: str) -> TutorialFeaturesError:
    return TutorialFeaturesError(f"the features in {path} cannot be used: {why}; remove it, and they are computed anew")
