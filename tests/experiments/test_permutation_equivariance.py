"""Attention follows a shuffle to rounding; with positions it does not."""

import pytest

from course_utils.experiments.permutation_equivariance import equivariance_error


@pytest.mark.parametrize("length", [6, 16, 64])
def test_attention_follows_a_permutation_and_positions_break_it(length):
    errors = equivariance_error(length, seeds=range(100, 105))
    assert {name: len(values) for name, values in errors.items()} == dict.fromkeys(errors, 5)
    assert max(errors["attention"]) < 1e-6
    assert min(errors["with positions"]) > 0.03
    assert min(errors["another permutation"]) > max(errors["with positions"]) / 2


def test_a_single_token_has_nothing_to_permute():
    errors = equivariance_error(length=1, seeds=[0])
    assert errors == {"attention": [0.0], "with positions": [0.0], "another permutation": [0.0]}
