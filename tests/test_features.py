import numpy as np
import pytest
import torch

from course_utils.features import extract


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
