import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from course_utils.rotary import RotaryAttention, RotaryEncoding

WIDTHS = st.integers(1, 16).map(lambda half: 2 * half)
POSITIONS = st.integers(0, 5000)


def rand(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_pairs_turn_by_the_angles_of_the_formula():
    turned = RotaryEncoding(4)(torch.tensor([[1.0, 0.0, 1.0, 0.0]]).expand(4, 4))
    for position, row in enumerate(turned.tolist()):
        slow = position / 10000 ** (2 / 4)
        expected = [math.cos(position), math.sin(position), math.cos(slow), math.sin(slow)]
        assert row == pytest.approx(expected, abs=1e-6)
    assert turned[0].tolist() == [1.0, 0.0, 1.0, 0.0]


@given(WIDTHS, POSITIONS, POSITIONS, st.integers(0, 3000), st.integers(0, 50))
def test_the_score_depends_on_the_distance_only(width, p, r, shift, seed):
    rotary, q, k = RotaryEncoding(width), rand(1, width, seed=seed), rand(1, width, seed=seed + 1)
    here = rotary(q, first=p) @ rotary(k, first=r).T
    there = rotary(q, first=p + shift) @ rotary(k, first=r + shift).T
    assert_close(here, there, atol=1e-9, rtol=1e-9)


@given(WIDTHS, POSITIONS, st.integers(0, 50))
def test_a_vector_keeps_its_length(width, first, seed):
    x = rand(3, width, seed=seed)
    assert_close(RotaryEncoding(width)(x, first=first).norm(dim=-1), x.norm(dim=-1), atol=1e-10, rtol=1e-10)


def test_a_sequence_turns_as_its_vectors_do_one_by_one():
    rotary, x = RotaryEncoding(6), rand(2, 3, 5, 6)
    one_by_one = [rotary(x[..., p : p + 1, :], first=p + 7) for p in range(5)]
    assert_close(rotary(x, first=7), torch.cat(one_by_one, dim=-2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_the_type_stays(dtype):
    assert RotaryEncoding(4)(torch.ones(2, 4, dtype=dtype)).dtype == dtype


def test_attention_sees_the_order_and_not_the_place():
    torch.manual_seed(0)
    layer = RotaryAttention(8, 8, 2).eval().double()
    x = rand(1, 9, 8)
    whole, maps = layer(x, return_attention=True)
    assert_close(layer(x), whole)
    assert not torch.allclose(layer(x.flip(1)), whole.flip(1))  # order matters
    only_the_last = torch.zeros(9, 9).index_fill(1, torch.arange(4, 9), 1.0)  # the first four are hidden
    assert_close(layer(x, only_the_last)[:, 4:], layer(x[:, 4:]))  # and the others do not notice where they stand
    assert maps.shape == (1, 2, 9, 9)


def test_padding_is_hidden():
    layer = RotaryAttention(8, 8, 2).eval().double()
    x, mask = rand(1, 5, 8), torch.tensor([[1, 1, 1, 0, 0]])
    assert_close(layer(x, token_mask=mask)[:, :3], layer(x[:, :3]))


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="head_dim=5"):
        RotaryEncoding(5)
    with pytest.raises(ValueError, match=r"head_dim=4\], got \[3, 6\]"):
        RotaryEncoding(4)(torch.ones(3, 6))
