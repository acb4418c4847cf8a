"""Why scores are scaled: the variance, the entropy and the gradient, against what theory gives."""

import math

import pytest
import torch

from course_utils.experiments.power_law import exponent
from course_utils.experiments.score_scaling import (
    KEYS,
    WIDTHS,
    entropy,
    jacobian_norm,
    score_variance,
    softmax_saturation,
)


def test_variance_is_the_width_and_1_when_scaled():
    widths = (4, 64)
    variance = score_variance(widths, samples=20_000, seeds=(7, 8))
    for plain, scaled in zip(variance["plain"], variance["scaled"], strict=True):
        assert plain == pytest.approx(widths, rel=0.05)
        assert scaled == pytest.approx([1, 1], rel=0.05)
        assert [a / d for a, d in zip(plain, widths, strict=True)] == pytest.approx(scaled, rel=1e-4)


@pytest.mark.parametrize("seed", [100, 200, 300])
def test_exponent_of_the_variance_is_1_for_any_seed(seed):
    (plain,) = score_variance(seeds=[seed])["plain"]
    assert exponent(WIDTHS, plain) == pytest.approx(1, abs=0.03)


def test_seeds_differ_and_repeat():
    first, second = score_variance((8,), samples=50, seeds=(1, 2))["plain"]
    assert first != second
    assert score_variance((8,), samples=50, seeds=(2,))["plain"] == [second]


def test_unscaled_softmax_saturates_and_the_scaled_one_does_not():
    saturation = softmax_saturation((2, 1024), seeds=(11, 12, 13))
    for quantity, at_least in (("entropy", 10), ("gradient", 4)):
        for plain, scaled in zip(saturation[quantity]["plain"], saturation[quantity]["scaled"], strict=True):
            assert plain[0] > at_least * plain[1]
            assert scaled[1] == pytest.approx(scaled[0], rel=0.1)


def test_entropy_of_known_rows():
    rows = torch.tensor([[1.0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0]])
    assert entropy(rows).tolist() == pytest.approx([0, math.log(4), math.log(2)])


def test_jacobian_norm_is_that_of_autograd():
    scores = torch.randn(5, KEYS, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for row, norm in zip(scores, jacobian_norm(scores.softmax(dim=-1)), strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), row)
        assert norm.item() == pytest.approx(jacobian.norm().item())
    assert jacobian_norm(torch.tensor([1.0, 0.0, 0.0])).item() == 0  # one key has all the weight: nothing passes
