"""The two ends of multi-head attention, which all its variants share: from tokens to heads, and back again."""

from torch import Tensor

from course_utils.attention import MultiheadAttention


def split_into_heads(layer: MultiheadAttention, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The queries, keys and values of each head.

    Args:
        layer: whose `qkv_proj` makes them.
        x: [B, T, input_dim].

    Returns:
        q, k and v, each [B, H, T, head_dim].

    Raises:
        ValueError: if x has another rank or width.
    """
    input_dim = layer.qkv_proj.in_features
    if x.dim() != 3 or x.size(-1) != input_dim:
        raise ValueError(f"x must be [batch, length, input_dim={input_dim}], got {list(x.shape)}")
    qkv = layer.qkv_proj(x).unflatten(-1, (layer.num_heads, 3 * layer.head_dim))  # [B, T, H, 3·head_dim]
    q, k, v = qkv.transpose(1, 2).chunk(3, dim=-1)
    return q, k, v


def join_heads(layer: MultiheadAttention, values: Tensor) -> Tensor:
    """Put what the heads found, [B, H, T, head_dim], side by side and mix it with `o_proj`: [B, T, embed_dim]."""
    return layer.o_proj(values.transpose(1, 2).flatten(2))
