"""Features that are computed once and kept: extraction that can be killed, goes on, and can be shared by machines.

The images are cut into chunks at fixed places. Each finished chunk is a file of its own, written whole or not at all;
an extraction that is killed goes on with the chunks that are missing. When all are there they are joined into one
file, the same to the byte however often the work was interrupted and by how many processes it was done.

A cache goes by the name and the content of what it was made from (backbone, weights, input size, precision, images),
so that one that has become stale is never found.
"""

import hashlib
import json
import mmap
import os
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor

from course_utils import tutorial_features
from course_utils.atomic import write_atomically
from course_utils.features import Extractor, check_images, default_size
from course_utils.images import ImageSet, fingerprint, load_images
from course_utils.paths import feature_dir
from course_utils.work_progress import shown_work

CHUNK = 256  # images; a multiple of the batches, which are then the same wherever an extraction begins
_SECONDS_TO_WAIT_FOR_OTHERS = 24 * 3600.0
_SECONDS_BETWEEN_LOOKS = 0.25
_ATTEMPTS = 20  # to write a chunk into a folder that other processes remove


@dataclass(frozen=True)
class Shard:
    """The share of one machine in the work: of `count` shards the one of this number, from 1."""

    number: int = 1
    count: int = 1

    def __post_init__(self):
        if not 1 <= self.number <= self.count:
            raise ValueError(f"a shard is I/N with 1 <= I <= N, got {self}")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """A shard from words like "2/3"."""
        number, slash, count = text.partition("/")
        if not (slash and number.isdecimal() and count.isdecimal()):
            raise ValueError(f"a shard is I/N, such as 2/3 for the second of three, got {text!r}")
        return cls(int(number), int(count))


@dataclass(frozen=True)
class Key:
    """What features are made from; features with equal keys are the same."""

    backbone: str
    weights: str
    size: int | None
    mirrored: bool
    numerics: str
    images: str

    @property
    def digest(self) -> str:
        """A short name of the content."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def cached_features(
    image_set: ImageSet,
    backbone: str = "pixels",
    size: int | None = None,
    *,
    mirrored: bool = False,
    precision: str = "float32",
    device: str | None = None,
    workers: int | None = None,
) -> Tensor:
    """Features of each image of a set, extracted where that was not done before.

    They lie in the folder PATH_FEATURES (by default data/features) and are read from there as they are needed.
    Features of a backbone without weights (pixels) are as quickly computed as read, and are not kept.
    Features of ResNet-34 in the tutorial's files are taken if these lie in the checkpoint folder.

    Args:
        image_set: as from `images.load_images`.
        backbone: name of the backbone, as in `features.extract`.
        size: height and width in pixels that images are brought to; None for the backbone's own.
        mirrored: whether left and right of the images are exchanged.
        precision: "float32" or "bfloat16".
        device: "cpu" or "cuda"; None for a GPU if there is one.
        workers: batches computed at the same time on a CPU, each by one thread; None for as many as torch would use.

    Returns:
        float32 [N, D], memory-mapped. What you write into it stays yours: the file does not change.

    Raises:
        ValueError: for an unknown name or precision, or images of another rank.
        TypeError: for images of another type than uint8.
        ImportError: if a package is not installed that the backbone comes from.
    """
    check_images(image_set.images)
    as_in_the_tutorial = (image_set.name, backbone, mirrored) == ("cifar100", "resnet34", False)
    if as_in_the_tutorial and size in (None, default_size(backbone)) and tutorial_features.are_there():
        print("Using the tutorial's feature files in the checkpoint folder.")
        return tutorial_features.load()
    extractor = Extractor(backbone, size, mirrored=mirrored, precision=precision, device=device)
    if not extractor.has_weights:
        return extractor.features(image_set.images)
    cache = FeatureCache(image_set, extractor)
    try:
        return cache.open()
    except FileNotFoundError:
        cache.extract(workers=workers)
        return cache.open()


def command(
    images: str,
    backbone: str,
    size: int | None,
    mirrored: bool,
    precision: str,
    shard: str,
    workers: int | None,
    say: Callable[[str], None],
) -> None:
    """What `course features` does: extract, and say what is where.

    Args:
        images: name of the image set.
        backbone: name of the backbone.
        size: as for `cached_features`, and so are mirrored, precision and workers.
        mirrored: see there.
        precision: see there.
        shard: I/N, which share of the work to do.
        workers: see there.
        say: is told each line of the outcome.

    Raises:
        ValueError: for an unknown name, size, precision or shard, or damaged files.
        ImportError: if a package is not installed.
        OSError: if the images are not there, or the folder cannot be written to.
    """
    share = Shard.parse(shard)
    extractor = Extractor(backbone, size, mirrored=mirrored, precision=precision)
    if not extractor.has_weights:
        raise ValueError(f"the backbone {backbone!r} is computed as quickly as it is read: there is nothing to keep")
    cache = FeatureCache(load_images(images), extractor)
    if cache.extract(share, workers):
        features = cache.open()
        say(f"{cache.path}: float32 {list(features.shape)}, sha256 {cache.sha256()}")
    else:
        say(f"shard {share} is done; of the others {len(cache.missing_chunks())} chunks are not yet in {cache.chunks}")


def open_mapped(path: Path) -> Tensor:
    """An array in a .npy file, memory-mapped for reading single rows; what is written into it does not change the file.

    The system is told that rows are read in no order. It would else read, and hold in memory, many more around each.
    """
    array = np.load(path, mmap_mode="c", allow_pickle=False)
    if hasattr(mmap, "MADV_RANDOM"):  # not on Windows
        array._mmap.madvise(mmap.MADV_RANDOM)
    return torch.from_numpy(array)


class FeatureCache:
    """The file of the features of an image set, and the chunks that it is made of.

    Args:
        image_set: as from `images.load_images`.
        extractor: turns its images into features.
        folder: where the files lie; None for PATH_FEATURES.
    """

    def __init__(self, image_set: ImageSet, extractor: Extractor, folder: Path | None = None):
        check_images(image_set.images)
        if not len(image_set.images):
            raise ValueError(f"there are no images in the set {image_set.name!r}")
        self.images = image_set.images
        self.extractor = extractor
        self.key = Key(
            backbone=extractor.name,
            weights=extractor.weights_hash,
            size=extractor.size,
            mirrored=extractor.mirrored,
            numerics=extractor.numerics,
            images=fingerprint(image_set.images),
        )
        how = "-mirrored" if extractor.mirrored else ""
        name = f"{image_set.name}-{extractor.name}-{extractor.size}{how}-{extractor.numerics}-{self.key.digest}"
        folder = folder or feature_dir()
        self.path = folder / f"{name}.npy"
        self.description = folder / f"{name}.json"  # written last: where it is, the features are complete
        self.chunks = folder / f"{name}.chunks"

    def open(self) -> Tensor:
        """The features, float32 [N, D], memory-mapped; what is written into them does not change the file.

        Raises:
            FileNotFoundError: if they are not there, or not all of them.
        """
        if not self.is_complete():
            raise FileNotFoundError(f"the features {self.path} are not there, or not whole; extract them first")
        return open_mapped(self.path)

    def is_complete(self) -> bool:
        """Whether the file is there and is, by its hash, the one that was written."""
        try:
            described = json.loads(self.description.read_text(encoding="utf-8"))
            return described["key"] == asdict(self.key) and described["sha256"] == _sha256_of_file(self.path)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def sha256(self) -> str:
        """The hash of the complete file."""
        return json.loads(self.description.read_text(encoding="utf-8"))["sha256"]

    def missing_chunks(self, shard: Shard = Shard()) -> list[slice]:
        """The chunks of a shard that are still to be computed."""
        mine = self._all_chunks()[shard.number - 1 :: shard.count]
        return [chunk for chunk in mine if not self._chunk_path(chunk).is_file()]

    def extract(self, shard: Shard = Shard(), workers: int | None = None) -> bool:
        """Compute what is missing of a shard, and join the chunks if then all are there.

        A process that finds another one at work on the same shard waits for it.

        Args:
            shard: which share of the chunks; by default all.
            workers: batches computed at the same time on a CPU, each by one thread.

        Returns:
            Whether the features are complete.
        """
        if self.is_complete():
            shutil.rmtree(self.chunks, ignore_errors=True)  # another process was killed when it was about to do so
            return True
        with self._lock(f".{shard.number}-of-{shard.count}"):
            # In this order: another process removes its chunks only once the features are complete.
            missing = self.missing_chunks(shard)
            if not self.is_complete():
                self._compute(missing, workers)
        with self._lock(""):
            complete = self.is_complete() or self._join()
            if complete:
                shutil.rmtree(self.chunks, ignore_errors=True)
        return complete

    def _all_chunks(self) -> list[slice]:
        count = len(self.images)
        return [slice(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]

    def _chunk_path(self, chunk: slice) -> Path:
        return self.chunks / f"{chunk.start:07d}-{chunk.stop:07d}.npz"

    def _compute(self, chunks: Sequence[slice], workers: int | None) -> None:
        self.chunks.mkdir(parents=True, exist_ok=True)
        before = len(self.images) - sum(chunk.stop - chunk.start for chunk in chunks)
        done, counting, stopped = before, threading.Lock(), threading.Event()

        def tick(count: int) -> None:
            nonlocal done
            with counting:
                done += count
            if stopped.is_set():
                raise _StoppedError

        def compute(chunk: slice) -> None:
            if not stopped.is_set():
                _write_chunk(self._chunk_path(chunk), self.extractor.features(self.images[chunk], tick).numpy())

        title = f"features of {self.extractor.name}"
        with _single_threads(self.extractor.device, workers) as pool, shown_work(title, len(self.images), done) as show:
            try:
                pending = {pool.submit(compute, chunk) for chunk in chunks}
                while pending:
                    finished, pending = wait(pending, timeout=_SECONDS_BETWEEN_LOOKS, return_when=FIRST_COMPLETED)
                    for future in finished:
                        future.result()
                    show(done)
            finally:  # an error or an interruption: what is running ends with its batch, what is not never starts
                stopped.set()
                pool.shutdown(wait=True, cancel_futures=True)

    def _join(self) -> bool:
        """Make one file of the chunks; False if some are missing, or damaged and thus removed."""
        chunks = self._all_chunks()
        if self.missing_chunks():
            return False
        whole = [chunk for chunk in chunks if self._is_whole(chunk)]
        if len(whole) < len(chunks):
            self._compute([chunk for chunk in chunks if chunk not in whole], workers=None)
        self._write_joined(chunks)
        return True

    def _is_whole(self, chunk: slice) -> bool:
        """Whether a chunk can be read and is what it should be; one that is not is removed."""
        try:
            features = self._read_chunk(chunk)
            if features.dtype == np.float32 and features.ndim == 2 and len(features) == chunk.stop - chunk.start:
                return True
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            pass
        self._chunk_path(chunk).unlink()
        return False

    def _read_chunk(self, chunk: slice) -> np.ndarray:
        with np.load(self._chunk_path(chunk), allow_pickle=False) as file:
            return file["features"]  # its checksum is verified by reading it

    def _write_joined(self, chunks: Sequence[slice]) -> None:
        shape = (len(self.images), self._read_chunk(chunks[0]).shape[1])
        partial = self.path.with_name(f".{self.path.name}.partial")
        with partial.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for chunk in chunks:
                file.write(np.ascontiguousarray(self._read_chunk(chunk), dtype="<f4"))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)
        described = {"key": asdict(self.key), "shape": shape, "sha256": _sha256_of_file(self.path)}
        write_atomically(self.description, (json.dumps(described, indent=1) + "\n").encode())

    @contextmanager
    def _lock(self, which: str) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_name(f".{self.path.stem}{which}.lock"), timeout=_SECONDS_TO_WAIT_FOR_OTHERS):
            yield


class _StoppedError(Exception):
    """The extraction was stopped between two batches."""


@contextmanager
def _single_threads(device: str, workers: int | None) -> Iterator[ThreadPoolExecutor]:
    """Threads that compute one batch each, on one core each.

    Two threads that share a batch wait for each other at each layer, and for long where other programs want the cores
    as well; two that have a batch each do not. And what a batch gives does not depend on how many cores there are.
    """
    before = torch.get_num_threads()
    many = (workers or before) if device == "cpu" else 1
    try:
        with ThreadPoolExecutor(many, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield pool
    finally:
        torch.set_num_threads(before)


def _write_chunk(path: Path, features: np.ndarray) -> None:
    """Write a chunk so that it appears whole or not at all; other processes may be writing the same one.

    Another process may join all chunks and remove their folder at any moment, with what is being written in it. Then
    the chunk is written again: whoever finds the features complete removes it.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _write_in_folder(path, features)
        except FileNotFoundError:
            continue
    _write_in_folder(path, features)


def _write_in_folder(path: Path, features: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        with partial.open("wb") as file:
            np.savez(file, features=features)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _sha256_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
