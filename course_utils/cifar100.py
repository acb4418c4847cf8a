"""CIFAR-100 (Krizhevsky, 2009): 60,000 colour photographs, verified, in canonical order, read from the disk as needed.

Prepared files <PATH_DATASETS>/cifar100/{train,test}_{images,labels}.npy are used without touching the network.
Where they are missing they are made from the original files, which torchvision finds in PATH_DATASETS or downloads.
Either way the images count as CIFAR-100 only if their content has the hash given here. Hashing them costs some tenths
of a second each time they are opened, and spares everyone results from half a file.
"""

import hashlib
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock

from course_utils.atomic import write_atomically
from course_utils.downloads import offline
from course_utils.image_order import canonical_order
from course_utils.paths import dataset_dir

ADDRESS = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
_IN_ALPHABETICAL_ORDER = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
    castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
    elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
    man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
    pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
    skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
    tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CLASS_NAMES = tuple(_IN_ALPHABETICAL_ORDER.split())


@dataclass(frozen=True)
class Known:
    """What is known of a part.

    Attributes:
        size: number of images.
        sha256: of the bytes of the images, uint8 [N, 32, 32, 3], and then of the labels, uint8 [N]; canonical order.
    """

    size: int
    sha256: str


PARTS = {
    "train": Known(50_000, "e1f1a348202dcc78906fdc6c28a1407d532a5f499e12795740deb0015ab4b6ae"),
    "test": Known(10_000, "e254914a5ee03c84d5a797477d2dde9954994874bde26282e6a4ea36c74c408b"),
}


class ImagesMissingError(FileNotFoundError):
    """CIFAR-100 is neither there nor could it be downloaded."""


class ImagesDamagedError(ValueError):
    """A file holds other images than those of CIFAR-100, or only a part of them."""


@dataclass(frozen=True)
class Part:
    """Images uint8 [N, 32, 32, 3], memory-mapped where they lie in a file, and their labels uint8 [N], 0 to 99."""

    images: np.ndarray
    labels: np.ndarray


def load(part: str) -> Part:
    """The training or the test images, in canonical order.

    Args:
        part: "train" (50,000 images) or "test" (10,000).

    Raises:
        ImagesMissingError: if they are not there and could not be downloaded; says what to fetch, and where to put it.
        ImagesDamagedError: if a prepared file is not what it should be; says which, and what to do.
        ImportError: if the original files are needed and torchvision, which reads them, is not installed.
    """
    if _is_prepared(part):
        return _open(part)
    with _only_one_process():
        if not _is_prepared(part):  # nor has another process prepared it in the meantime
            made = _from_originals(part)
            if not _write(part, made):
                return made
    return _open(part)


def original_order(part: str) -> np.ndarray:
    """For each image in canonical order, its number in the original files of a part.

    Raises:
        ImagesMissingError: if the original files are not in PATH_DATASETS. They are not downloaded for this.
        ImportError: if torchvision is not installed.
    """
    original = _originals(part, download=False)
    return canonical_order(original.images, original.labels)


def _paths(part: str) -> tuple[Path, Path]:
    folder = dataset_dir() / "cifar100"
    return folder / f"{part}_images.npy", folder / f"{part}_labels.npy"


def _is_prepared(part: str) -> bool:
    return all(path.is_file() for path in _paths(part))


def _open(part: str) -> Part:
    images_path, labels_path = _paths(part)
    size = PARTS[part].size
    images = _open_array(images_path, (size, 32, 32, 3))
    labels = np.array(_open_array(labels_path, (size,)))
    if _sha256(images, labels) != PARTS[part].sha256:
        raise _damaged(images_path, f"it and {labels_path.name} are not CIFAR-100 in canonical order: the hash differs")
    return Part(images, labels)


def _open_array(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """A memory-mapped array of bytes of a known shape."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:  # no header, or fewer bytes than it promises
        raise _damaged(path, f"it is no array, or not all of one ({error})") from error
    if array.dtype != np.uint8 or array.shape != shape:
        raise _damaged(path, f"it must be uint8 {list(shape)}, and is {array.dtype} {list(array.shape)}")
    return array


def _sha256(images: np.ndarray, labels: np.ndarray) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(images))
    digest.update(np.ascontiguousarray(labels.astype(np.uint8)))
    return digest.hexdigest()


def _damaged(path: Path, what: str) -> ImagesDamagedError:
    return ImagesDamagedError(
        f"the file {path} cannot be used: {what}; remove it, and it is made anew from the original files of CIFAR-100"
    )


def _from_originals(part: str) -> Part:
    """A part in canonical order, in memory, from the original files, which are downloaded if need be."""
    original = _originals(part, download=not offline())
    order = canonical_order(original.images, original.labels)
    made = Part(np.ascontiguousarray(original.images[order]), original.labels[order])
    if _sha256(made.images, made.labels) != PARTS[part].sha256:
        raise ImagesDamagedError(
            f"the original files in {dataset_dir() / 'cifar-100-python'} hold other images than CIFAR-100's; "
            f"remove that folder and fetch {ADDRESS} anew"
        )
    return made


def _originals(part: str, download: bool) -> Part:
    """A part as torchvision reads it, in its own order; the library verifies the files."""
    try:
        from torchvision.datasets import CIFAR100
    except ImportError as error:
        raise ImportError(
            f"the prepared files of CIFAR-100 are not in {dataset_dir() / 'cifar100'}, and making them needs "
            f'torchvision: install the extra "cifar" (pip install "transformer-course[cifar]"); images="digits" works '
            f"without"
        ) from error
    try:
        data = CIFAR100(root=dataset_dir(), train=part == "train", download=download)
    except (OSError, RuntimeError) as error:  # no network, no room, or not the right bytes
        why = "COURSE_OFFLINE switches the network off" if offline() else f"the download failed ({error})"
        raise ImagesMissingError(
            f"CIFAR-100 is not there, and {why if download or offline() else 'its original files are needed'}: fetch "
            f"{ADDRESS} by hand and unpack it into the folder {dataset_dir()}, so that it holds cifar-100-python/; "
            f'images="digits" works meanwhile'
        ) from error
    return Part(data.data, np.array(data.targets, dtype=np.uint8))


def _write(part: str, made: Part) -> bool:
    """Keep a part in prepared files; False where the folder cannot be written to."""
    try:
        for path, array in zip(_paths(part), (made.images, made.labels), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            content = io.BytesIO()
            np.save(content, array)
            write_atomically(path, content.getvalue())
    except OSError:
        return False
    return True


@contextmanager
def _only_one_process() -> Iterator[None]:
    """Let one process at a time download and prepare; where nothing can be written there is nothing to guard."""
    with ExitStack() as held:
        try:
            dataset_dir().mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(dataset_dir() / ".cifar100.lock", timeout=3600))
        except OSError:
            pass
        yield
