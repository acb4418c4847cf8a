"""Sets of labelled images: where they come from, their canonical order and their splits."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from course_utils.image_order import canonical_order, split_each_class
from course_utils.stacked import Stacked

TEST_FRACTION = 0.2  # of each class, for an image set that comes without a test split
VALIDATION_FRACTION = 0.1  # of each class of the training images
_ROWS_AT_ONCE = 4096  # hashed in pieces, so that images on the disk need not all be in memory


@dataclass(frozen=True)
class ImageSet:
    """Labelled images in canonical order, with the indices of each split.

    Attributes:
        name: as given to `load_images`.
        images: uint8 [N, height, width] (grey) or [N, height, width, 3] (colour), from 0 to 255: an array, or
            memory-mapped ones `Stacked` to be indexed like one.
        labels: int64 [N], class numbers from 0.
        class_names: the name of each class.
        splits: for "train", "val" and "test" the indices of its images, ascending; disjoint.
    """

    name: str
    images: np.ndarray | Stacked
    labels: np.ndarray
    class_names: list[str]
    splits: dict[str, np.ndarray]


def load_images(name: str = "digits") -> ImageSet:
    """Load an image set by name.

    Args:
        name: "digits", 1,797 scans of handwritten digits, 8x8 pixels, from the scikit-learn package
            (Alpaydin & Kaynak, 1998); or "cifar100", 60,000 colour photographs, 32x32 pixels, of 100 classes
            (Krizhevsky, 2009), which are read from the disk as they are needed.

    Raises:
        ValueError: for an unknown name, or files that are damaged.
        ImagesMissingError: if CIFAR-100 is neither there nor can be downloaded; says what to do.
    """
    if name not in _SOURCES:
        raise ValueError(f"there is no image set {name!r}; there are: {', '.join(sorted(_SOURCES))}")
    return _SOURCES[name]()


def fingerprint(images: np.ndarray | Stacked) -> str:
    """SHA-256 of the shape and the pixels of images [N, ...], in their order, as hexadecimal digits."""
    digest = hashlib.sha256(repr((*map(int, images.shape), str(images.dtype))).encode())
    for start in range(0, len(images), _ROWS_AT_ONCE):
        digest.update(np.ascontiguousarray(images[start : start + _ROWS_AT_ONCE]))
    return digest.hexdigest()


def stratified_cut(image_set: ImageSet, class_numbers: list[int], per_class: dict[str, int]) -> ImageSet:
    """A small image set out of a large one: some classes, and the first images of each in each split.

    Args:
        image_set: to cut from.
        class_numbers: which classes to keep, ascending; they are numbered anew from 0.
        per_class: for each split the number of images of each class.

    Raises:
        ValueError: if a class has fewer images in a split.
    """
    chosen = []
    for split, count in per_class.items():
        for number in class_numbers:
            members = image_set.splits[split][image_set.labels[image_set.splits[split]] == number]
            if len(members) < count:
                name = image_set.class_names[number]
                raise ValueError(f"class {name!r} has {len(members)} images in {split!r}, but {count} are asked for")
            chosen.append(members[:count])
    rows = np.sort(np.concatenate(chosen))
    return ImageSet(
        name=f"{image_set.name}_cut",
        images=image_set.images[rows],
        labels=np.searchsorted(class_numbers, image_set.labels[rows]),
        class_names=[image_set.class_names[number] for number in class_numbers],
        splits={split: np.flatnonzero(np.isin(rows, image_set.splits[split])) for split in per_class},
    )


def _digits() -> ImageSet:
    pixels, labels = load_digits(return_X_y=True)
    images = np.round(pixels.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)  # 17 grey levels, 0 to 16
    order = canonical_order(images, labels)
    images, labels = images[order], labels[order].astype(np.int64)

    test, development = split_each_class(labels, TEST_FRACTION)
    validation, train = split_each_class(labels[development], VALIDATION_FRACTION)
    splits = {"train": development[train], "val": development[validation], "test": test}
    return ImageSet("digits", images, labels, [str(digit) for digit in range(10)], splits)


def _cifar100() -> ImageSet:
    from course_utils import cifar100  # imported here: digits do not need it

    train, test = cifar100.load("train"), cifar100.load("test")
    labels = np.concatenate([train.labels, test.labels]).astype(np.int64)
    validation, training = split_each_class(train.labels, VALIDATION_FRACTION)
    splits = {"train": training, "val": validation, "test": np.arange(len(train.labels), len(labels))}
    return ImageSet("cifar100", Stacked([train.images, test.images]), labels, list(cifar100.CLASS_NAMES), splits)


_SOURCES: dict[str, Callable[[], ImageSet]] = {"digits": _digits, "cifar100": _cifar100}
