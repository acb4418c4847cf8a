import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.experiments.residuals import DEPTH, over_seeds, similarity, similarity_over_depth


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([[1.0, 0.0], [0.0, 2.0]], 0.0),
        ([[1.0, 1.0], [3.0, 3.0]], 1.0),
        ([[1.0, 0.0], [-5.0, 0.0]], -1.0),
        ([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 1 / 3),  # one pair of three is alike
    ],
)
def test_similarity_is_the_mean_cosine_of_different_tokens(tokens, expected):
    assert similarity(torch.tensor(tokens)) == pytest.approx(expected, abs=1e-6)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**31), scale=st.floats(0.01, 100))
def test_similarity_does_not_depend_on_the_length_of_tokens(seed, scale):
    tokens = torch.randn(5, 8, generator=torch.Generator().manual_seed(seed))
    assert similarity(scale * tokens) == pytest.approx(similarity(tokens), abs=1e-5)


def test_without_residuals_all_tokens_are_alike_after_twelve_layers_and_with_them_not():
    without, with_them = (over_seeds(range(3), residual=residual) for residual in (False, True))
    assert all(len(run) == DEPTH + 1 for run in without + with_them)
    assert all(abs(run[0]) < 0.1 for run in without + with_them)  # random tokens
    assert all(run[3] > 0.99 and run[-1] > 0.9999 for run in without)
    assert all(run[3] < 0.3 and 0.4 < run[-1] < 0.98 for run in with_them)


def test_what_counts_is_how_large_attention_is_beside_the_residual():
    assert similarity_over_depth(residual=True, seed=0, value_gain=0.25)[-1] < 0.2
    assert similarity_over_depth(residual=True, seed=0, value_gain=4.0)[-1] > 0.99
    # Without the residual, layer norm takes the gain out again.
    plain, larger = (similarity_over_depth(residual=False, seed=0, value_gain=gain)[1] for gain in (1.0, 4.0))
    assert larger == pytest.approx(plain, abs=1e-3)


def test_sharper_attention_makes_tokens_alike_later():
    plain, sharp = (similarity_over_depth(residual=False, seed=0, score_gain=gain) for gain in (1.0, 16.0))
    assert sharp[2] < 0.5 < 0.9 < plain[2]
    assert sharp[-1] > 0.99


def test_the_callers_random_numbers_are_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = similarity_over_depth(residual=True, seed=1)
    assert torch.equal(torch.rand(3), expected)
    assert similarity_over_depth(residual=True, seed=1) == first
