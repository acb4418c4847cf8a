import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from course_utils.attention import scaled_dot_product
from course_utils.efficient_attention import LinearAttention, WindowAttention, linear_attention, window_attention

CLOSE = {"atol": 1e-9, "rtol": 1e-9}


def qkv(length: int, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(2, 3, length, width, generator=generator, dtype=torch.float64) for width in (4, 4, 5)]


def by_definition(q, k, v, causal: bool) -> torch.Tensor:
    """Linear attention with the whole matrix of weights."""
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-2, -1)  # [..., T, T]
    weights = weights.tril() if causal else weights
    return weights / weights.sum(dim=-1, keepdim=True) @ v


@given(st.integers(1, 12), st.booleans(), st.integers(0, 50))
def test_linear_attention_is_the_weighted_mean_of_its_definition(length, causal, seed):
    q, k, v = qkv(length, seed)
    assert_close(linear_attention(q, k, v, causal), by_definition(q, k, v, causal), **CLOSE)


def test_causal_linear_attention_is_a_recurrent_network():
    q, k, v = qkv(7)
    state, total, outputs = 0, 0, []
    for t in range(7):
        key, query = F.elu(k[..., t, :]) + 1, F.elu(q[..., t, :]) + 1
        state = state + key[..., :, None] * v[..., t, None, :]  # [..., d_k, d_v]
        total = total + key
        outputs.append((query[..., None, :] @ state)[..., 0, :] / (query * total).sum(dim=-1, keepdim=True))
    assert_close(linear_attention(q, k, v, causal=True), torch.stack(outputs, dim=-2), **CLOSE)


@given(st.integers(1, 12), st.integers(0, 14), st.booleans(), st.integers(0, 50))
def test_window_attention_is_full_attention_under_a_band(length, radius, causal, seed):
    q, k, v = qkv(length, seed)
    distance = torch.arange(length)[:, None] - torch.arange(length)  # query minus key
    band = (distance.abs() <= radius) & ((distance >= 0) | (not causal))
    assert_close(window_attention(q, k, v, radius, causal), scaled_dot_product(q, k, v, band)[0], **CLOSE)


def test_gradients_are_those_of_the_definition():
    ours, theirs = ([each.requires_grad_() for each in qkv(6)] for _ in range(2))
    (window_attention(*ours, 2).square().sum() + linear_attention(*ours).square().sum()).backward()
    distance = torch.arange(6)[:, None] - torch.arange(6)
    band = distance.abs() <= 2
    (scaled_dot_product(*theirs, band)[0].square().sum() + by_definition(*theirs, False).square().sum()).backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert_close(mine.grad, other.grad, **CLOSE)


def test_layers_use_the_functions_on_each_head():
    torch.manual_seed(0)
    x = torch.randn(2, 9, 8)
    for layer in (LinearAttention(8, 8, 2), WindowAttention(8, 8, 2, radius=3)):
        assert layer(x).shape == (2, 9, 8)
        with pytest.raises(ValueError, match="no \\[T, T\\] weights"):
            layer(x, return_attention=True)
        with pytest.raises(ValueError, match="no \\[T, T\\] weights"):
            layer(x, token_mask=torch.ones(2, 9))
    far = x.clone()
    far[:, 8] += 1
    layer = WindowAttention(8, 8, 2, radius=3)
    assert torch.equal(layer(x)[:, :5], layer(far)[:, :5])
    assert not torch.equal(layer(x)[:, 5:], layer(far)[:, 5:])


def test_a_negative_radius_is_refused():
    with pytest.raises(ValueError, match="radius must be at least 0, got -1"):
        window_attention(*qkv(4), -1)
