import math

import pytest
import torch
from torch.testing import assert_close

from course_utils.encoder import PositionalEncoding as SameFromEncoder
from course_utils.positions import PositionalEncoding


def encoding(d_model: int, max_len: int = 50) -> torch.Tensor:
    """The encoding itself: [max_len, d_model]."""
    return PositionalEncoding(d_model, max_len)(torch.zeros(1, max_len, d_model))[0]


@pytest.mark.parametrize(
    ("d_model", "position_1"),
    [
        (5, [0.84147, 0.54030, 0.025116, 0.99968, 0.00063096]),
        (4, [0.84147, 0.54030, 0.0100, 0.99995]),
        (1, [0.84147]),
        (2, [0.84147, 0.54030]),
    ],
)
def test_even_and_odd_widths_have_the_exponents_of_the_formula(d_model, position_1):
    assert_close(encoding(d_model)[1], torch.tensor(position_1), atol=1e-5, rtol=0)
    assert encoding(d_model)[0].tolist() == [float(i % 2) for i in range(d_model)]  # sin 0, cos 0, ...


@pytest.mark.parametrize("d_model", [7, 16])
def test_every_entry_is_a_sine_or_cosine_of_its_angle_to_the_last_position(d_model):
    pe = PositionalEncoding(d_model).pe[0]
    for position in (0, 3, 4999):
        for i in range(d_model):
            angle = position / 10000 ** ((i - i % 2) / d_model)
            expected = math.cos(angle) if i % 2 else math.sin(angle)
            assert pe[position, i].item() == pytest.approx(expected, abs=1e-6)


def test_a_shift_is_the_same_rotation_at_every_position():
    pe = encoding(8, max_len=5000).double()  # the slowest pair turns once in 6,283 positions
    solution = torch.linalg.lstsq(pe[:-3], pe[3:]).solution
    assert_close(pe[:-3] @ solution, pe[3:], atol=1e-5, rtol=0)
    assert_close(solution @ solution.T, torch.eye(8, dtype=torch.float64), atol=1e-4, rtol=0)


def test_the_encoding_is_added_to_each_sample_and_cut_to_the_length():
    x = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0))
    assert_close(PositionalEncoding(6, max_len=9)(x) - x, encoding(6)[:4].expand(3, 4, 6), atol=1e-6, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_output_has_the_type_of_the_input(dtype):
    assert PositionalEncoding(6)(torch.zeros(1, 2, 6, dtype=dtype)).dtype == dtype


def test_the_buffer_moves_with_the_module_and_is_not_in_the_state_dict():
    module = PositionalEncoding(6, max_len=9)
    assert module.pe.shape == (1, 9, 6)
    assert dict(module.named_buffers()).keys() == {"pe"}
    assert module.state_dict() == {}
    assert module.double().pe.dtype == torch.float64


def test_the_longest_sequence_fits_and_a_longer_one_is_refused_by_max_len():
    module = PositionalEncoding(6, max_len=9)
    assert module(torch.zeros(2, 9, 6)).shape == (2, 9, 6)
    with pytest.raises(ValueError, match="10 tokens is longer than max_len=9"):
        module(torch.zeros(2, 10, 6))


@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 6), (6,)])
def test_another_rank_or_width_is_refused_by_both_sizes(shape):
    with pytest.raises(ValueError, match="d_model=6") as caught:
        PositionalEncoding(6)(torch.zeros(shape))
    assert str(list(shape)) in str(caught.value)


def test_integers_are_refused_because_they_would_lose_the_sines():
    with pytest.raises(TypeError, match="int64"):
        PositionalEncoding(6)(torch.zeros(2, 3, 6, dtype=torch.int64))


@pytest.mark.parametrize(("d_model", "max_len"), [(0, 10), (-2, 10), (4, 0)])
def test_sizes_below_1_are_refused(d_model, max_len):
    with pytest.raises(ValueError, match=f"{d_model=} and {max_len=}"):
        PositionalEncoding(d_model, max_len)


def test_the_encoder_module_offers_the_same_class():
    assert SameFromEncoder is PositionalEncoding
