"""Attention whose cost grows with the length and not with its square: linear attention, and a sliding window.

Shape letters: T length, d_k width of a query or key, d_v of a value; other sizes may stand before them.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.attention import MultiheadAttention
from course_utils.heads import join_heads, split_into_heads


def linear_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Attention with the weights φ(q)·φ(k) in place of exp(q·k), where φ(x) = elu(x) + 1 (Katharopoulos et al., 2020).

    The weights are products, so the sums over keys can be done first, once for all queries: Σ φ(k) vᵀ and Σ φ(k).

    Args:
        q: queries [..., T, d_k].
        k: keys [..., T, d_k].
        v: values [..., T, d_v].
        causal: sum over the keys up to each query only. This forms T states of [d_k, d_v].

    Returns:
        [..., T, d_v]: weighted means of the values, never with a [T, T] matrix.
    """
    q, k = F.elu(q) + 1, F.elu(k) + 1  # φ: all positive
    if causal:
        state = (k[..., :, None] * v[..., None, :]).cumsum(dim=-3)  # [..., T, d_k, d_v]
        total = k.cumsum(dim=-2)  # [..., T, d_k]
        return (q[..., None, :] @ state)[..., 0, :] / (q * total).sum(dim=-1, keepdim=True)
    state = k.transpose(-2, -1) @ v  # [..., d_k, d_v]
    total = k.sum(dim=-2, keepdim=True)  # [..., 1, d_k]
    return (q @ state) / (q * total).sum(dim=-1, keepdim=True)


def window_attention(q: Tensor, k: Tensor, v: Tensor, radius: int, causal: bool = False) -> Tensor:
    """Scaled dot-product attention in which a query sees the keys at most `radius` places away (Beltagy et al., 2020).

    Args:
        q: queries [..., T, d_k].
        k: keys [..., T, d_k].
        v: values [..., T, d_v].
        radius: places to either side; 0 is the query's own place.
        causal: to the left only.

    Returns:
        [..., T, d_v]. For each query there are 2·radius + 1 scores (causal: radius + 1), however long the sequence.

    Raises:
        ValueError: if radius is negative.
    """
    if radius < 0:
        raise ValueError(f"radius must be at least 0, got {radius}")
    right = 0 if causal else radius
    size = radius + right + 1

    def windows(x: Tensor) -> Tensor:
        return F.pad(x, (0, 0, radius, right)).unfold(-2, size, 1)  # [..., T, d, size]

    scores = (q[..., None, :] @ windows(k))[..., 0, :] / math.sqrt(q.size(-1))  # [..., T, size]
    length = q.size(-2)
    key = torch.arange(length, device=q.device)[:, None] + torch.arange(-radius, right + 1, device=q.device)
    scores = scores.masked_fill((key < 0) | (key >= length), float("-inf"))  # beyond the ends there is no key
    weights = scores.softmax(dim=-1)
    return (windows(v) @ weights[..., None])[..., 0]


class LinearAttention(MultiheadAttention):
    """Multi-head `linear_attention` over [B, T, D] without masks; parameters are those of `MultiheadAttention`."""

    def forward(
        self, x: Tensor, mask: None = None, return_attention: bool = False, *, token_mask: None = None
    ) -> Tensor:
        """Map [B, T, input_dim] to [B, T, embed_dim]."""
        _refuse(mask, token_mask, return_attention)
        return join_heads(self, linear_attention(*split_into_heads(self, x)))


class WindowAttention(MultiheadAttention):
    """Multi-head `window_attention` over [B, T, D] without masks; parameters are those of `MultiheadAttention`.

    Args:
        input_dim: width of the input.
        embed_dim: width D of the output.
        num_heads: number of heads.
        radius: places to either side that a token sees.
    """

    def __init__(self, input_dim: int, embed_dim: int, num_heads: int, radius: int):
        super().__init__(input_dim, embed_dim, num_heads)
        self.radius = radius

    def forward(
        self, x: Tensor, mask: None = None, return_attention: bool = False, *, token_mask: None = None
    ) -> Tensor:
        """Map [B, T, input_dim] to [B, T, embed_dim]."""
        _refuse(mask, token_mask, return_attention)
        return join_heads(self, window_attention(*split_into_heads(self, x), self.radius))


def _refuse(mask: Tensor | None, token_mask: Tensor | None, return_attention: bool) -> None:
    """These layers form no [T, T] matrix: there is none to mask, and none to return."""
    if mask is not None or token_mask is not None or return_attention:
        raise ValueError(
            "this attention has no [T, T] weights to mask or to return; use MultiheadAttention for masks and maps"
        )
