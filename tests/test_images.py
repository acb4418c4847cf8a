import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from course_utils.images import canonical_order, load_images, split_each_class


@pytest.fixture
def digits():
    return load_images("digits")


def test_the_digits_are_the_default_and_1797_grey_images_of_ten_classes(digits):
    assert np.array_equal(load_images().images, digits.images)
    assert digits.name == "digits"
    assert (digits.images.shape, digits.images.dtype) == ((1797, 8, 8), np.uint8)
    assert (digits.labels.shape, digits.labels.dtype) == ((1797,), np.int64)
    assert (digits.images.min(), digits.images.max()) == (0, 255)
    assert len(np.unique(digits.images)) == 17
    assert digits.class_names == [str(digit) for digit in range(10)]
    assert set(np.bincount(digits.labels)) <= set(range(174, 184))


def test_the_splits_share_no_image_and_leave_none_out(digits):
    assert digits.splits.keys() == {"train", "val", "test"}
    assert sorted(np.concatenate(list(digits.splits.values()))) == list(range(1797))
    assert all((np.diff(indices) > 0).all() for indices in digits.splits.values())


@pytest.mark.parametrize(("split", "share"), [("test", 0.2), ("val", 0.08), ("train", 0.72)])
def test_each_class_has_its_share_of_each_split(digits, split, share):
    shares = np.bincount(digits.labels[digits.splits[split]]) / np.bincount(digits.labels)
    assert shares == pytest.approx(np.full(10, share), abs=0.005)


def test_order_and_splits_do_not_depend_on_how_the_source_arranges_the_images(digits, monkeypatch):
    pixels, labels = load_digits(return_X_y=True)
    shuffled = np.random.default_rng(0).permutation(len(labels))
    monkeypatch.setattr("course_utils.images.load_digits", lambda return_X_y: (pixels[shuffled], labels[shuffled]))
    again = load_images("digits")
    assert np.array_equal(again.images, digits.images)
    assert np.array_equal(again.labels, digits.labels)
    assert all(np.array_equal(again.splits[split], digits.splits[split]) for split in digits.splits)


def test_the_canonical_order_is_by_label_and_then_not_by_brightness(digits):
    assert (np.diff(digits.labels) >= 0).all()
    assert canonical_order(digits.images, digits.labels).tolist() == list(range(1797))
    brightness = digits.images[digits.labels == 0].mean(axis=(1, 2))
    assert abs(np.corrcoef(brightness, np.arange(len(brightness)))[0, 1]) < 0.2


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_splitting_takes_the_first_of_each_class_and_loses_none(labels, fraction):
    labels = np.array(labels)
    first, rest = split_each_class(labels, fraction)
    assert sorted([*first, *rest]) == list(range(len(labels)))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        taken = [index for index in first if labels[index] == label]
        assert taken == members[: round(fraction * len(members))].tolist()


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, float("nan")])
def test_a_fraction_that_leaves_a_part_empty_is_refused_by_value(fraction):
    with pytest.raises(ValueError, match=f"between 0 and 1, got {fraction}"):
        split_each_class(np.array([0, 1]), fraction)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no image set 'cats'; there are: .*digits"):
        load_images("cats")
