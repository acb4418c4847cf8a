from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from feature_fixtures import generated_images, small_backbone, small_network
from torch import nn
from torch.testing import assert_close

from course_utils.backbones import BACKBONES, Backbone, Normalise
from course_utils.features import Extractor, extract


@pytest.mark.parametrize("shape", [(3, 2, 2), (3, 2, 2, 3)])
def test_pixels_are_the_flattened_image_from_0_to_1(shape):
    images = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    images[0, 0, 0] = 255
    features = extract(images, "pixels")
    assert features.dtype == torch.float32
    assert features.shape == (3, np.prod(shape[1:]))
    assert torch.equal(features, torch.from_numpy(images.reshape(3, -1)).float() / 255)
    assert features.max() == 1.0


def test_features_are_a_copy_and_the_images_may_be_read_only():
    images = np.zeros((2, 2, 2), dtype=np.uint8)
    images.setflags(write=False)
    extract(images)[:] = 1
    assert not images.any()


def test_an_image_that_is_no_contiguous_array_has_its_pixels_in_order():
    images = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    assert torch.equal(extract(images[::-1].transpose(0, 2, 1)), extract(images[::-1].transpose(0, 2, 1).copy()))


@pytest.mark.parametrize(
    ("error", "images", "backbone", "named"),
    [
        (ValueError, np.zeros((2, 2, 2), np.uint8), "eyes", "no backbone 'eyes'; there are: .*pixels"),
        (TypeError, np.zeros((2, 2, 2), np.float32), "pixels", "uint8.* got float32"),
        (ValueError, np.zeros((2, 4), np.uint8), "pixels", r"\(2, 4\)"),
    ],
)
def test_what_is_no_image_and_no_backbone_is_refused(error, images, backbone, named):
    with pytest.raises(error, match=named):
        extract(images, backbone)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(BACKBONES, "small", small_backbone())
    return generated_images(11).images


def test_features_of_an_image_are_the_same_alone_and_in_any_batch(small):
    together = extract(small, "small")
    assert (together.shape, together.dtype) == ((11, 5), torch.float32)
    assert not together.requires_grad
    for row in range(11):
        assert_close(extract(small[row : row + 1], "small")[0], together[row])
    assert_close(extract(small[::-1], "small").flip(0), together)
    assert together.std(dim=0).min() > 0.01


def test_images_are_brought_to_the_size_by_bilinear_interpolation(small):
    as_they_are = torch.from_numpy(small.astype(np.float32)).permute(0, 3, 1, 2)
    resized = F.interpolate(as_they_are, size=(8, 8), mode="bilinear", antialias=True)
    with torch.no_grad():
        assert_close(extract(small, "small"), small_network().eval()(resized))
    assert extract(small, "pixels", size=4).shape == (11, 4 * 4 * 3)


def test_a_backbone_may_ask_for_bicubic_interpolation_which_stays_between_black_and_white(small, monkeypatch):
    monkeypatch.setitem(BACKBONES, "pixels", replace(BACKBONES["pixels"], interpolation="bicubic"))
    monkeypatch.setitem(BACKBONES, "bicubic", replace(BACKBONES["small"], interpolation="bicubic"))
    larger = extract(small, "pixels", size=12)
    assert (larger.min(), larger.max()) == (0.0, 1.0)
    assert not torch.allclose(extract(small, "bicubic"), extract(small, "small"))
    assert Extractor("bicubic").numerics != Extractor("small").numerics


@pytest.mark.parametrize("size", [5, 8, 13])
def test_any_input_size_works_and_gives_other_features(small, size):
    features = extract(small, "small", size)
    assert features.shape == (11, 5)
    assert torch.equal(features, extract(small, "small")) == (size == 8)


def test_a_grey_image_is_a_colour_image_of_equal_channels(small):
    grey = small[..., 0]
    assert_close(extract(grey, "small"), extract(np.stack([grey] * 3, axis=-1), "small"))


def test_mirrored_features_are_those_of_mirrored_images(small):
    mirrored = Extractor("small", mirrored=True).features(small)
    assert_close(mirrored, extract(small[:, :, ::-1], "small"))
    assert not torch.allclose(mirrored, extract(small, "small"))


def test_half_precision_is_near_and_has_a_name_of_its_own(small):
    half = Extractor("small", precision="bfloat16")
    assert_close(half.features(small), extract(small, "small"), rtol=0.1, atol=0.1)
    assert half.numerics != Extractor("small").numerics


def test_no_images_give_no_features(small):
    assert extract(small[:0], "small").shape == (0, 5)


@pytest.mark.parametrize(
    ("change", "named"),
    [({"precision": "float16"}, "float32, bfloat16, got 'float16'"), ({"device": "meta"}, "cpu, cuda, got 'meta'")],
)
def test_unknown_precisions_and_devices_are_refused(small, change, named):
    with pytest.raises(ValueError, match=named):
        Extractor("small", **change)


def test_features_of_another_width_and_no_numbers_are_refused(monkeypatch, small):
    monkeypatch.setitem(BACKBONES, "wide", Backbone(small_backbone().build, size=8, width=6))
    with pytest.raises(ValueError, match=r"'wide' must give features \[11, 6\], got \[11, 5\]"):
        extract(small, "wide")

    def divides_by_nothing(size):
        return nn.Sequential(Normalise((0,) * 3, (0,) * 3), nn.Flatten())

    monkeypatch.setitem(BACKBONES, "broken", Backbone(divides_by_nothing))
    with pytest.raises(ValueError, match="'broken' gave features that are no finite numbers"):
        extract(small, "broken")
