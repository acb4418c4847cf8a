"""The weight off the anti-diagonal against the similarity of positions, on maps whose profile is known."""

import math

import pytest
import torch

from course_utils.experiments.mirror_profile import mirror_profile
from course_utils.positions import PositionalEncoding


def similarity(length: int, d_model: int) -> torch.Tensor:
    encoding = PositionalEncoding(d_model, max_len=length).pe[0].double()
    return torch.cosine_similarity(encoding[:, None], encoding[None], dim=-1)  # [T, T]


def test_weights_that_are_made_of_the_similarity_follow_it():
    scores = 20 * similarity(16, 32).flip(0)  # row q: the similarity to position 15 - q
    scores = scores - scores.logsumexp(dim=-1).mean()  # one constant for all rows, so that no row is shifted
    profile = mirror_profile(scores.exp().expand(3, 1, 16, 16), d_model=32)
    assert profile["correlation"] == pytest.approx(1.0, abs=1e-6)
    assert abs(profile["correlation_with_distance"]) < 0.95
    assert profile["similarity"][0] == pytest.approx(1.0)
    assert profile["similarity"][1] == pytest.approx(float(similarity(16, 32)[4, 5]))


def test_weights_that_follow_the_mere_distance_are_told_apart():
    positions = torch.arange(16.0)
    away = (positions[None] - (15 - positions)[:, None]).abs()
    profile = mirror_profile((-away).softmax(dim=-1), d_model=32)
    assert profile["correlation_with_distance"] < -0.999
    assert profile["correlation"] < 0.95


def test_each_weight_is_counted_at_its_distance():
    anti_diagonal = torch.full((4, 4), 0.1) + 0.6 * torch.eye(4).flip(0)
    profile = mirror_profile(anti_diagonal, d_model=8)
    assert profile["distance"] == [0, 1, 2, 3]
    assert profile["weight"] == pytest.approx([0.7, 0.1, 0.1, 0.1], rel=1e-6)
    assert profile["log_weight"] == pytest.approx([math.log(0.7)] + [math.log(0.1)] * 3, rel=1e-6)


@pytest.mark.parametrize("shape", [(4, 5), (3, 3)])
def test_other_maps_are_refused(shape):
    with pytest.raises(ValueError, match=r"\[\.\.\., T, T\]"):
        mirror_profile(torch.rand(shape), d_model=8)
