import pytest
import torch

from course_utils.learned_positions import LearnedPositions


def test_each_position_has_its_vector():
    layer = LearnedPositions(4, max_len=6)
    assert torch.equal(layer(torch.zeros(2, 3, 4)), layer.vectors[:3].expand(2, 3, 4))
    assert torch.equal(layer(torch.zeros(2, 3, 4), first=3), layer.vectors[3:].expand(2, 3, 4))


def test_a_position_that_is_not_reached_gets_no_gradient():
    layer = LearnedPositions(4, max_len=6)
    layer(torch.zeros(2, 3, 4)).square().sum().backward()
    moved = layer.vectors.grad.abs().sum(dim=-1) > 0
    assert moved.tolist() == [True] * 3 + [False] * 3


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="7 tokens is longer than max_len=6"):
        LearnedPositions(4, 6)(torch.zeros(1, 3, 4), first=4)
    with pytest.raises(ValueError, match=r"d_model=4\], got \[1, 3, 5\]"):
        LearnedPositions(4, 6)(torch.zeros(1, 3, 5))
    with pytest.raises(ValueError, match="max_len=0"):
        LearnedPositions(4, 0)
