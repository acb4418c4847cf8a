import pytest
import torch

from course_utils.rules import cosine_rule


def test_the_image_whose_direction_differs_is_odd_whatever_its_length_and_place():
    others = torch.tensor([[1.0, 0.1], [3.0, 0.0], [0.5, 0.02]])
    for position in range(4):
        odd_among_them = torch.cat([others[:position], torch.tensor([[0.1, 2.0]]), others[position:]])
        assert cosine_rule(odd_among_them) == position


def test_any_number_of_sets_at_once():
    sets = torch.randn(2, 3, 5, 7, generator=torch.Generator().manual_seed(0))
    found = cosine_rule(sets)
    assert found.shape == (2, 3)
    assert all(found[i, j] == cosine_rule(sets[i, j]) for i in range(2) for j in range(3))


def test_directions_are_seen_from_the_centre():
    centre = torch.tensor([10.0, 10.0])
    sets = centre + torch.tensor([[1.0, 0.1], [3.0, 0.0], [0.2, 2.0], [0.5, 0.02]])
    assert cosine_rule(sets, centre) == 2
    assert torch.equal(cosine_rule(sets, centre), cosine_rule(sets - centre))


@pytest.mark.parametrize("shape", [(2, 5), (3,)])
def test_sets_in_which_none_can_be_odd_are_refused_by_shape(shape):
    with pytest.raises(ValueError, match=r"T of at least 3, got \["):
        cosine_rule(torch.zeros(shape))
