import json
import multiprocessing
import os
import random
import shutil
import signal
import threading
import time

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from feature_fixtures import generated_images, small_backbone
from torch.testing import assert_close

from course_utils import feature_cache
from course_utils.backbones import BACKBONES
from course_utils.cli import main
from course_utils.feature_cache import FeatureCache, Shard, cached_features
from course_utils.features import Extractor, extract
from course_utils.images import ImageSet

IMAGES = generated_images(75)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder for the cache, chunks of 8 images, and a small backbone."""
    monkeypatch.setenv("PATH_FEATURES", str(tmp_path / "features"))
    monkeypatch.setenv("PATH_CHECKPOINT", str(tmp_path))
    monkeypatch.setattr(feature_cache, "CHUNK", 8)
    monkeypatch.setitem(BACKBONES, "small", small_backbone())
    return tmp_path / "features"


def cache(**settings) -> FeatureCache:
    return FeatureCache(IMAGES, Extractor("small", **settings))


@pytest.fixture
def unbroken(tmp_path) -> bytes:
    """The file that an extraction without any interruption writes."""
    whole = FeatureCache(IMAGES, Extractor("small"), tmp_path / "unbroken")
    whole.extract(workers=1)
    return whole.path.read_bytes()


def files(folder) -> list[str]:
    """What lies in the cache, locks aside."""
    return sorted(path.suffix for path in folder.iterdir() if path.suffix != ".lock")


def test_features_are_those_of_the_backbone_and_a_file_that_numpy_reads(folder):
    features = cached_features(IMAGES, "small")
    assert_close(features, extract(IMAGES.images, "small"))
    assert np.array_equal(np.load(cache().path), features.numpy())
    assert files(folder) == [".json", ".npy"]
    described = json.loads(cache().description.read_text())
    assert described["key"]["backbone"] == "small"
    assert described["shape"] == [75, 5]


def test_they_are_computed_once_and_then_mapped_into_memory(folder, monkeypatch):
    first = cached_features(IMAGES, "small").clone()
    monkeypatch.setattr(Extractor, "features", lambda *arguments: pytest.fail("computed again"))
    again = cached_features(IMAGES, "small")
    assert torch.equal(again, first)
    before = cache().path.read_bytes()
    again[0] = 7.0  # stays with the one who wrote it
    assert cache().path.read_bytes() == before
    assert torch.equal(cached_features(IMAGES, "small"), first)


def test_reading_needs_no_right_to_write(folder):
    first = cached_features(IMAGES, "small").clone()
    for path in folder.glob(".*.lock"):
        path.unlink()
    folder.chmod(0o500)
    try:
        assert torch.equal(cached_features(IMAGES, "small"), first)
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_bytes_are_the_same_for_any_number_of_workers(unbroken, workers):
    cache().extract(workers=workers)
    assert cache().path.read_bytes() == unbroken


def test_threads_are_set_back():
    threads = torch.get_num_threads()
    cache().extract(workers=3)
    assert torch.get_num_threads() == threads


def changed_images() -> ImageSet:
    images = IMAGES.images.copy()
    images[70, 0, 0, 0] ^= 1
    return ImageSet("generated", images, IMAGES.labels, IMAGES.class_names, IMAGES.splits)


@pytest.mark.parametrize("what", ["weights", "size", "mirrored", "precision", "images", "numerics"])
def test_a_cache_of_anything_else_is_not_used(what, monkeypatch):
    cached_features(IMAGES, "small")
    images, settings = IMAGES, {}
    if what == "weights":
        monkeypatch.setitem(BACKBONES, "small", small_backbone(seed=1))
    elif what == "images":
        images = changed_images()
    elif what == "numerics":
        monkeypatch.setattr("course_utils.features.NUMERICS", 99)
    else:
        settings = {"size": {"size": 9}, "mirrored": {"mirrored": True}, "precision": {"precision": "bfloat16"}}[what]
    other = FeatureCache(images, Extractor("small", **settings))
    assert not other.is_complete()
    assert other.path != cache(**{}).path or what in ("weights", "numerics")
    assert_close(cached_features(images, "small", **settings), Extractor("small", **settings).features(images.images))
    assert len(list(other.path.parent.glob("*.npy"))) == 2


def test_pixels_are_not_kept(folder):
    assert torch.equal(cached_features(IMAGES), extract(IMAGES.images))
    assert not folder.exists()


@pytest.mark.parametrize("count", [1, 2, 3, 20])
def test_shards_by_several_machines_become_the_same_bytes(unbroken, folder, tmp_path, count):
    """Each machine has a folder of its own; in the end their chunks are copied together and joined."""
    for number in range(1, count + 1):
        machine = FeatureCache(IMAGES, Extractor("small"), tmp_path / f"machine{number}")
        assert machine.extract(Shard(number, count)) == (count == 1)
        for chunk in machine.chunks.glob("*.npz"):
            cache().chunks.mkdir(parents=True, exist_ok=True)
            (cache().chunks / chunk.name).write_bytes(chunk.read_bytes())
    if count > 1:
        assert cache().missing_chunks() == []
    cache().extract()
    assert cache().path.read_bytes() == unbroken
    assert files(folder) == [".json", ".npy"]


def test_shards_in_one_folder_are_joined_by_the_last(unbroken, folder):
    assert [cache().extract(Shard(number, 3)) for number in (2, 3, 1)] == [False, False, True]
    assert cache().path.read_bytes() == unbroken
    assert files(folder) == [".json", ".npy"]


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "a/b", "1/2/3", "-1/2"])
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(ValueError, match="a shard is I/N"):
        Shard.parse(text)


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-50])


def other_byte(path):
    content = bytearray(path.read_bytes())
    content[-30 if path.suffix == ".npy" else 300] ^= 255
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut_off, other_byte, empty, os.remove])
@pytest.mark.parametrize("suffix", [".npy", ".json"])
def test_a_damaged_or_half_written_file_is_computed_anew(unbroken, folder, damage, suffix):
    cached_features(IMAGES, "small")
    damage(cache().path.with_suffix(suffix))
    if (damage, suffix) != (other_byte, ".json"):
        with pytest.raises(FileNotFoundError, match="not there, or not whole"):
            cache().open()
    cached_features(IMAGES, "small")
    assert cache().path.read_bytes() == unbroken


@pytest.mark.parametrize("damage", [cut_off, other_byte, empty])
def test_a_damaged_chunk_is_computed_anew(unbroken, damage):
    cache().extract(Shard(1, 2))
    damage(sorted(cache().chunks.glob("*.npz"))[2])
    cache().extract()
    assert cache().path.read_bytes() == unbroken


def test_a_chunk_of_other_shape_is_computed_anew(unbroken):
    cache().extract(Shard(1, 2))
    np.savez(sorted(cache().chunks.glob("*.npz"))[1], features=np.zeros((7, 5), np.float32))
    cache().extract()
    assert cache().path.read_bytes() == unbroken


def test_an_error_in_the_middle_is_raised_and_what_was_finished_is_kept(unbroken, monkeypatch):
    features = Extractor.features

    def fails_at_the_fifth_chunk(self, images, tick):
        if np.array_equal(images, IMAGES.images[32:40]):
            raise RuntimeError("out of memory")
        return features(self, images, tick)

    monkeypatch.setattr(Extractor, "features", fails_at_the_fifth_chunk)
    with pytest.raises(RuntimeError, match="out of memory"):
        cache().extract(workers=1)
    monkeypatch.setattr(Extractor, "features", features)
    assert 0 < len(cache().missing_chunks()) <= 6
    cache().extract()
    assert cache().path.read_bytes() == unbroken


@pytest.mark.parametrize(
    ("error", "images", "named"),
    [
        (TypeError, IMAGES.images.astype(np.float32), "uint8.* got float32"),
        (ValueError, IMAGES.images[:, 0, 0], r"\(75, 3\)"),
        (ValueError, IMAGES.images[:0], "no images"),
    ],
)
def test_what_are_no_images_is_refused_and_leaves_nothing(folder, error, images, named):
    with pytest.raises(error, match=named):
        cached_features(ImageSet("generated", images, IMAGES.labels, [], {}), "small")
    assert not folder.exists()


needs_fork = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system starts no processes by fork"
)


def started(seconds: float = 0.004, shard: str = "1/1") -> multiprocessing.Process:
    """A process that extracts, and takes some time for each batch."""

    def work():
        torch.set_num_threads(1)
        BACKBONES["small"] = small_backbone(seconds=seconds)
        cache().extract(Shard.parse(shard), workers=2)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


@needs_fork
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_moments_it_goes_on_and_ends_in_the_same_bytes(unbroken, folder, seed):
    moments = random.Random(seed)
    kills, process = 0, started()
    while process.is_alive():
        time.sleep(moments.uniform(0.005, 0.06))
        if kills < 12 and process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            kills += 1
            assert not cache().is_complete() or cache().path.read_bytes() == unbroken
            process = started()
    assert process.exitcode == 0
    assert kills > 0
    assert cache().path.read_bytes() == unbroken
    assert files(folder) == [".json", ".npy"]


@needs_fork
@pytest.mark.parametrize("moment", ["npy is written", "json is written", "chunks are removed"])
def test_killed_while_it_joins_the_chunks_it_ends_in_the_same_bytes(unbroken, folder, moment, monkeypatch):
    def die(*arguments, **options):
        os.kill(os.getpid(), signal.SIGKILL)

    target = {
        "npy is written": (feature_cache.os, "fsync"),
        "json is written": (feature_cache, "write_atomically"),
        "chunks are removed": (feature_cache.shutil, "rmtree"),
    }[moment]
    cache().extract(Shard(1, 2))
    cache()._compute(cache().missing_chunks(), 1)
    with monkeypatch.context() as patched:
        patched.setattr(*target, die)
        process = started()
        process.join()
    assert process.exitcode == -signal.SIGKILL
    assert cache().is_complete() == (moment == "chunks are removed")
    cache().extract()
    assert cache().path.read_bytes() == unbroken
    assert files(folder) == [".json", ".npy"]


@needs_fork
@pytest.mark.parametrize("shards", [["1/1", "1/1"], ["1/2", "2/2"], ["1/1", "1/2", "2/2"]])
def test_processes_at_the_same_time_end_in_the_same_bytes(unbroken, folder, shards):
    processes = [started(shard=shard) for shard in shards]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(shards)
    assert cache().path.read_bytes() == unbroken
    assert files(folder) == [".json", ".npy"]


def test_a_second_process_waits_and_computes_nothing(unbroken, monkeypatch):
    computed = []
    features = Extractor.features

    def counted(self, images, tick):
        computed.append(len(images))
        time.sleep(0.005)
        return features(self, images, tick)

    monkeypatch.setattr(Extractor, "features", counted)
    # Made one after the other: two threads that draw a network's weights share the random numbers.
    both = [threading.Thread(target=made.extract, kwargs={"workers": 1}) for made in (cache(), cache())]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sum(computed) == 75
    assert cache().path.read_bytes() == unbroken


class TestCommand:
    @pytest.fixture(autouse=True)
    def images(self, monkeypatch):
        monkeypatch.setattr("course_utils.feature_cache.load_images", lambda name: IMAGES)

    def call(self, *arguments: str):
        return CliRunner().invoke(main, ["features", "--backbone", "small", *arguments])

    def test_it_extracts_and_says_where_the_features_are_and_their_hash(self):
        done = self.call()
        assert done.exit_code == 0, done.output
        assert f"{cache().path}: float32 [75, 5], sha256 {cache().sha256()}" in done.output

    def test_shards_say_what_is_still_to_come(self):
        done = self.call("--shard", "1/2", "--workers", "2")
        assert done.exit_code == 0, done.output
        assert f"shard 1/2 is done; of the others 5 chunks are not yet in {cache().chunks}" in done.output
        assert str(cache().path) in self.call("--shard", "2/2").output

    def test_size_mirror_and_precision_are_passed_on(self):
        assert self.call("--size", "9", "--mirrored", "--precision", "bfloat16").exit_code == 0
        assert cache(size=9, mirrored=True, precision="bfloat16").is_complete()

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [
            (["--shard", "3/2"], "a shard is I/N"),
            (["--size", "0"], "0"),
            (["--precision", "float8"], "float32, bfloat16"),
            (["--backbone", "eyes"], "no backbone 'eyes'"),
            (["--backbone", "pixels"], "nothing to keep"),
        ],
    )
    def test_wrong_usage_is_exit_code_2(self, arguments, named):
        done = self.call(*arguments)
        assert done.exit_code == 2
        assert named in done.output

    def test_missing_images_are_exit_code_1_and_no_traceback(self, monkeypatch):
        def missing(name):
            raise FileNotFoundError("CIFAR-100 is not there")

        monkeypatch.setattr("course_utils.feature_cache.load_images", missing)
        done = self.call()
        assert (done.exit_code, done.output) == (1, "Error: CIFAR-100 is not there\n")


def test_a_chunk_is_written_again_if_its_folder_goes_away_meanwhile(tmp_path, monkeypatch):
    path = tmp_path / "chunks" / "0.npz"
    fsync, removed = os.fsync, []

    def remove_once(descriptor):
        fsync(descriptor)
        if not removed:
            removed.append(shutil.rmtree(path.parent))

    monkeypatch.setattr(feature_cache.os, "fsync", remove_once)
    feature_cache._write_chunk(path, np.ones((2, 3), np.float32))
    assert len(removed) == 1
    assert np.load(path)["features"].tolist() == [[1.0] * 3] * 2
    assert [file.name for file in path.parent.iterdir()] == ["0.npz"]
