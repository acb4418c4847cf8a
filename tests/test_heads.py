import pytest
import torch
from torch.testing import assert_close

from course_utils.attention import MultiheadAttention, scaled_dot_product
from course_utils.heads import join_heads, split_into_heads


def test_attention_between_the_two_ends_is_the_layer():
    torch.manual_seed(0)
    layer, x = MultiheadAttention(6, 8, 2), torch.randn(3, 5, 6)
    q, k, v = split_into_heads(layer, x)
    assert q.shape == k.shape == v.shape == (3, 2, 5, 4)
    assert_close(join_heads(layer, scaled_dot_product(q, k, v)[0]), layer(x))


def test_the_first_rows_of_the_projection_are_the_first_head():
    layer, x = MultiheadAttention(4, 4, 2), torch.eye(4)[None]
    for part, rows in zip(split_into_heads(layer, x), ([0, 1], [2, 3], [4, 5]), strict=True):
        assert_close(part[0, 0].T, layer.qkv_proj.weight[rows])


def test_another_width_is_refused():
    with pytest.raises(ValueError, match=r"input_dim=6\], got \[3, 5, 7\]"):
        split_into_heads(MultiheadAttention(6, 8, 2), torch.zeros(3, 5, 7))
