import hashlib
import pickle
import sys

import numpy as np
import pytest
import torch

from course_utils import cifar100, tutorial_features
from course_utils.cifar100 import CLASS_NAMES, ImagesDamagedError, ImagesMissingError, Known
from course_utils.feature_cache import cached_features
from course_utils.image_order import canonical_order
from course_utils.images import load_images
from course_utils.tutorial_features import TutorialFeaturesError

SIZES = {"train": 100, "test": 40}  # ten and four images of each of ten classes


def generated(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels in the order of an original file, which is none."""
    generator = np.random.default_rng(SIZES[part])
    labels = generator.permutation(np.repeat(np.arange(10, dtype=np.uint8), SIZES[part] // 10))
    return generator.integers(0, 256, (SIZES[part], 32, 32, 3), dtype=np.uint8), labels


def in_order(part: str) -> tuple[np.ndarray, np.ndarray]:
    images, labels = generated(part)
    order = canonical_order(images, labels)
    return images[order], labels[order]


@pytest.fixture
def data_sets(tmp_path, monkeypatch):
    """An empty folder of data sets, no network, and a small data set in the place of CIFAR-100."""
    known = {}
    for part, size in SIZES.items():
        images, labels = in_order(part)
        known[part] = Known(size, hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest())
    monkeypatch.setattr(cifar100, "PARTS", known)
    monkeypatch.setenv("PATH_DATASETS", str(tmp_path / "data"))
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    return tmp_path / "data"


@pytest.fixture
def prepared(data_sets):
    """The folder of the prepared files."""
    folder = data_sets / "cifar100"
    folder.mkdir(parents=True)
    for part in SIZES:
        for name, array in zip(("images", "labels"), in_order(part), strict=True):
            np.save(folder / f"{part}_{name}.npy", array)
    return folder


@pytest.fixture
def originals(data_sets, monkeypatch):
    """The folder of the original files, as torchvision reads them."""
    data_set = pytest.importorskip("torchvision.datasets", reason="the extra 'cifar' is not installed").CIFAR100
    folder = data_sets / data_set.base_folder
    folder.mkdir(parents=True)
    for part in SIZES:
        images, labels = generated(part)
        flat = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        content = pickle.dumps({"data": flat, "fine_labels": labels.tolist()})
        (folder / part).write_bytes(content)
        md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
        monkeypatch.setattr(data_set, f"{part}_list", [[part, md5]])
    meta = pickle.dumps({"fine_label_names": list(CLASS_NAMES)})
    (folder / "meta").write_bytes(meta)
    md5 = hashlib.md5(meta, usedforsecurity=False).hexdigest()
    monkeypatch.setattr(data_set, "meta", {"filename": "meta", "key": "fine_label_names", "md5": md5})
    return folder


def test_the_class_names_are_the_hundred_in_alphabetical_order():
    assert len(CLASS_NAMES) == len(set(CLASS_NAMES)) == 100
    assert list(CLASS_NAMES) == sorted(CLASS_NAMES)
    assert (CLASS_NAMES[0], CLASS_NAMES[71], CLASS_NAMES[99]) == ("apple", "sea", "worm")


def test_prepared_files_are_read_as_they_lie_without_torchvision_and_network(prepared, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    image_set = load_images("cifar100")
    images, labels = (np.concatenate(arrays) for arrays in zip(in_order("train"), in_order("test"), strict=True))
    assert np.array_equal(np.asarray(image_set.images), images)
    assert np.array_equal(image_set.labels, labels)
    assert image_set.labels.dtype == np.int64
    assert image_set.class_names == list(CLASS_NAMES)
    assert all(isinstance(part, np.memmap) for part in image_set.images.arrays)  # nothing was copied
    assert sorted(path.name for path in prepared.parent.iterdir()) == ["cifar100"]  # nothing was written


def test_a_tenth_of_each_training_class_validates_and_the_test_images_test(prepared):
    image_set = load_images("cifar100")
    labels = image_set.labels
    assert np.array_equal(image_set.splits["test"], np.arange(100, 140))
    assert np.array_equal(np.sort(np.concatenate([image_set.splits["train"], image_set.splits["val"]])), np.arange(100))
    assert np.bincount(labels[image_set.splits["val"]]).tolist() == [1] * 10
    assert np.array_equal(image_set.splits["val"], np.arange(0, 100, 10))  # the first of each class


def test_original_files_give_the_same_images_and_splits_and_are_needed_only_once(originals, data_sets):
    made = load_images("cifar100")
    images = np.concatenate([in_order("train")[0], in_order("test")[0]])
    assert np.array_equal(np.asarray(made.images), images)
    for path in originals.iterdir():
        path.unlink()
    again = load_images("cifar100")
    assert np.array_equal(np.asarray(again.images), images)
    assert np.array_equal(again.labels, made.labels)
    assert all(np.array_equal(again.splits[split], made.splits[split]) for split in made.splits)
    assert not list((data_sets / "cifar100").glob(".*"))


def test_where_nothing_can_be_written_the_images_are_kept_in_memory(originals, monkeypatch):
    def no_room(path, content):
        raise OSError("no space left on device")

    monkeypatch.setattr(cifar100, "write_atomically", no_room)
    assert np.array_equal(np.asarray(load_images("cifar100").images)[:100], in_order("train")[0])


def test_no_files_and_no_network_is_one_sentence_that_says_what_to_do(data_sets):
    pytest.importorskip("torchvision", reason="the extra 'cifar' is not installed")
    with pytest.raises(ImagesMissingError) as caught:
        load_images("cifar100")
    message = str(caught.value)
    assert "\n" not in message
    for needed in ("COURSE_OFFLINE", cifar100.ADDRESS, str(data_sets), "cifar-100-python", 'images="digits" works'):
        assert needed in message


def test_a_failed_download_says_why_and_what_to_do(data_sets, monkeypatch):
    data_set = pytest.importorskip("torchvision.datasets", reason="the extra 'cifar' is not installed").CIFAR100

    def unreachable(self):
        raise OSError("name or service not known")

    monkeypatch.delenv("COURSE_OFFLINE")
    monkeypatch.setattr(data_set, "download", unreachable)
    with pytest.raises(ImagesMissingError, match=r"name or service not known.*fetch https://.*digits"):
        load_images("cifar100")


def test_without_torchvision_the_extra_is_named(data_sets, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision.datasets", None)
    with pytest.raises(ImportError, match=r'install the extra "cifar".*"transformer-course\[cifar\]".*digits'):
        load_images("cifar100")


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-1000])


def no_header(path):
    path.write_bytes(b"\0" * path.stat().st_size)


def one_pixel(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def other_dtype(path):
    np.save(path, np.load(path).astype(np.float32))


def one_image_less(path):
    np.save(path, np.load(path)[:-1])


def other_order(path):
    np.save(path, np.load(path)[::-1])


def a_class_missing(path):
    labels = np.load(path.with_name(path.name.replace("images", "labels")))
    np.save(path.with_name(path.name.replace("images", "labels")), np.where(labels == 3, 4, labels).astype(np.uint8))


def empty(path):
    path.write_bytes(b"")


DAMAGES = {
    cut_off: "not all of one",
    no_header: "no array",
    empty: "no array",
    one_pixel: "the hash differs",
    other_order: "the hash differs",
    a_class_missing: "the hash differs",
    other_dtype: r"must be uint8 \[40, 32, 32, 3\], and is float32",
    one_image_less: r"must be uint8 \[40, 32, 32, 3\], and is uint8 \[39, 32, 32, 3\]",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_half_written_file_is_recognised_and_named(prepared, damage):
    damage(prepared / "test_images.npy")
    with pytest.raises(ImagesDamagedError, match=DAMAGES[damage]) as caught:
        load_images("cifar100")
    assert str(prepared / "test_images.npy") in str(caught.value)
    assert "remove it" in str(caught.value)


def test_original_files_of_other_images_are_refused(originals, monkeypatch):
    monkeypatch.setitem(cifar100.PARTS, "test", Known(40, "0" * 64))
    with pytest.raises(ImagesDamagedError, match=r"hold other images than CIFAR-100's.*fetch https://"):
        load_images("cifar100")


class TestTutorialFeatures:
    @pytest.fixture
    def files(self, tmp_path, monkeypatch):
        """The tutorial's feature files, in the order of the original files; row i of a part is 512 times i."""
        monkeypatch.setenv("PATH_CHECKPOINT", str(tmp_path))
        for part, size in SIZES.items():
            rows = torch.arange(size, dtype=torch.float32)[:, None].expand(size, 512)
            torch.save(rows.clone(), tmp_path / f"{part}_set_features.tar")
        return tmp_path

    def test_they_are_brought_into_the_canonical_order(self, originals, files):
        image_set = load_images("cifar100")
        features = cached_features(image_set, "resnet34")
        assert (features.shape, features.dtype) == ((140, 512), torch.float32)
        for part, rows in (("train", slice(0, 100)), ("test", slice(100, 140))):
            images, _ = generated(part)
            assert np.array_equal(images[features[rows, 0].long()], image_set.images[rows])

    def test_without_the_original_files_they_are_refused_with_the_reason(self, prepared, files):
        pytest.importorskip("torchvision", reason="the extra 'cifar' is not installed")
        with pytest.raises(
            TutorialFeaturesError, match=r"in the order of CIFAR-100's original files, which are not there"
        ):
            cached_features(load_images("cifar100"), "resnet34")

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (torch.zeros(40, 256), r"must hold floats \[40, 512\], and holds torch.float32 \[40, 256\]"),
            (torch.zeros(40, 512, dtype=torch.int64), "holds torch.int64"),
            (torch.full((40, 512), torch.nan), "no finite numbers"),
            ({"features": torch.zeros(40, 512)}, "holds no tensor but dict"),
            (CLASS_NAMES.index, "nothing in it was run"),
        ],
    )
    def test_what_holds_something_else_is_refused_by_name(self, originals, files, content, why):
        torch.save(content, files / "test_set_features.tar")
        with pytest.raises(TutorialFeaturesError, match=why) as caught:
            tutorial_features.load()
        assert "test_set_features.tar" in str(caught.value)

    def test_one_file_alone_is_none(self, originals, files):
        (files / "train_set_features.tar").unlink()
        assert not tutorial_features.are_there()
