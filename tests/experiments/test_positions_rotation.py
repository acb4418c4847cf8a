import math

import pytest
import torch
from torch.testing import assert_close

from course_utils.experiments.positions_rotation import angles_of_formula, fitted_shift, rotation


@pytest.mark.parametrize("width", [2, 6, 48])
@pytest.mark.parametrize("offset", [1, 5, 100])
def test_a_shift_of_an_even_width_is_the_rotation_of_the_formula(width, offset):
    measured = rotation(width, offset)
    assert measured["error"] < 1e-6
    assert measured["from_orthogonal"] < 1e-4
    assert measured["determinant"] == pytest.approx(1, abs=1e-4)
    assert measured["from_angles"] < 1e-5


def test_the_fitted_matrix_turns_each_pair_by_its_angle():
    matrix, _ = fitted_shift(4, 3)
    expected = torch.zeros(4, 4, dtype=torch.float64)
    for pair, angle in enumerate((3.0, 3 / 100)):
        cos, sin = math.cos(angle), math.sin(angle)  # of sin(a + angle) and cos(a + angle)
        expected[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = torch.tensor([[cos, sin], [-sin, cos]])
    assert_close(matrix, expected, atol=1e-6, rtol=0)


def test_angles_are_wrapped_to_half_a_turn():
    assert_close(angles_of_formula(4, 5), torch.tensor([0.05, 2 * math.pi - 5], dtype=torch.float64))


@pytest.mark.parametrize(("width", "offset"), [(3, 5), (5, 5), (5, 100)])
def test_the_last_sine_of_an_odd_width_lacks_its_cosine(width, offset):
    _, errors = fitted_shift(width, offset)
    frequency = 10000 ** (-(width - 1) / width)
    assert errors[:-1].max() < 1e-6
    assert errors[-1].item() == pytest.approx(math.sin(offset * frequency), rel=0.05)


def test_an_odd_width_has_no_rotation():
    with pytest.raises(ValueError, match="width=5"):
        rotation(5, 1)


@pytest.mark.parametrize(("offset", "positions"), [(0, 100), (-1, 100), (5, 10)])
def test_too_few_positions_are_refused(offset, positions):
    with pytest.raises(ValueError, match=f"offset={offset} and positions={positions}"):
        fitted_shift(8, offset, positions)
