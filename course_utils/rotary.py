"""Rotary positions: turn queries and keys, so that their scores depend on distances (Su et al., 2021)."""

import torch
from torch import Tensor, nn

from course_utils.attention import MultiheadAttention, combined_mask, fused_attention, scaled_dot_product
from course_utils.heads import join_heads, split_into_heads


class RotaryEncoding(nn.Module):
    """Turn each pair of dimensions (2i, 2i+1) of the vector at position p by the angle p / base^(2i/head_dim).

    A rotation keeps the length of a vector, and the dot product of two turned vectors depends on the difference of
    their positions only. The angles are those of `PositionalEncoding`; there they are added, here they turn.

    Args:
        head_dim: width of the vectors, an even number.
        base: the slowest pair turns nearly `base` times more slowly than the first, which turns by 1 a position.

    Raises:
        ValueError: if head_dim is not an even number from 2 on, or base is below 1.
    """

    def __init__(self, head_dim: int, base: float = 10_000.0):
        super().__init__()
        if head_dim < 2 or head_dim % 2 or base < 1:
            raise ValueError(f"head_dim must be even and at least 2 and base at least 1, got {head_dim=} and {base=}")
        exponent = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim  # 2i / head_dim
        # On the CPU and in double precision, whatever the module is moved to: far positions need exact angles.
        self.frequency = base**-exponent  # [head_dim / 2], radians a position

    def forward(self, x: Tensor, first: int = 0) -> Tensor:
        """Turn vectors that stand at the positions first, first + 1, ...

        Args:
            x: [..., T, head_dim]; queries or keys, never values.
            first: position of the first vector.

        Returns:
            A tensor of the same shape and type.

        Raises:
            ValueError: if x has another width.
        """
        if x.dim() < 2 or x.size(-1) != 2 * len(self.frequency):
            raise ValueError(f"x must be [..., length, head_dim={2 * len(self.frequency)}], got {list(x.shape)}")
        position = torch.arange(first, first + x.size(-2))
        angle = position[:, None] * self.frequency  # [T, head_dim / 2]
        cos, sin = angle.cos().to(x), angle.sin().to(x)  # in the type of x, where x lies
        even, odd = x[..., 0::2], x[..., 1::2]  # the two coordinates of each pair
        turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)  # [..., T, head_dim / 2, 2]
        return turned.flatten(-2)


class RotaryAttention(MultiheadAttention):
    """Multi-head self-attention with rotary positions; arguments and parameters are those of `MultiheadAttention`."""

    def __init__(self, input_dim: int, embed_dim: int, num_heads: int):
        super().__init__(input_dim, embed_dim, num_heads)
        self.rotary = RotaryEncoding(self.head_dim)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        return_attention: bool = False,
        *,
        token_mask: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """As `MultiheadAttention.forward`, but the scores know how far apart two tokens stand."""
        q, k, v = split_into_heads(self, x)  # each [B, H, T, head_dim]
        q, k = self.rotary(q), self.rotary(k)
        mask = combined_mask(mask, token_mask, (*q.shape[:3], q.size(-2)))
        if return_attention:
            values, attention = scaled_dot_product(q, k, v, mask)
            return join_heads(self, values), attention
        return join_heads(self, fused_attention(q, k, v, mask))
