"""Self-attention in which no token sees a later one, with a cache for generating token by token."""

import torch
from torch import Tensor

from course_utils.attention import MultiheadAttention, combined_mask, fused_attention, scaled_dot_product
from course_utils.heads import join_heads, split_into_heads
from course_utils.key_value_cache import KeyValueCache


def causal_mask(num_queries: int, num_keys: int, device: torch.device | str | None = None) -> Tensor:
    """Which key comes no later than which query, where the queries are the last of the keys.

    Args:
        num_queries: Tq.
        num_keys: Tk, at least Tq.
        device: of the mask.

    Returns:
        Boolean [Tq, Tk], True where a query may attend; the lower triangle for Tq = Tk.

    Raises:
        ValueError: if there are more queries than keys.
    """
    if num_queries > num_keys:
        raise ValueError(f"the queries are the last of the keys, so {num_queries=} must not exceed {num_keys=}")
    return torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril(num_keys - num_queries)


class CausalAttention(MultiheadAttention):
    """Multi-head self-attention under a causal mask; its parameters are those of `MultiheadAttention`."""

    def forward(
        self,
        x: Tensor,
        return_attention: bool = False,
        *,
        token_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every token attend to itself and to earlier ones.

        Args:
            x: [B, T, input_dim]; with a cache only the new tokens, which follow those in the cache.
            return_attention: also return the attention weights.
            token_mask: [B, Tk], True where a real token stands; with a cache it covers the tokens in the cache as well.
            cache: keys and values of the earlier tokens; those of x are added to it.

        Returns:
            [B, T, embed_dim]; with `return_attention` also the weights [B, H, T, Tk].

        Raises:
            ValueError: if x or the mask has another rank or size.
        """
        q, k, v = split_into_heads(self, x)  # each [B, H, T, head_dim]
        if cache is not None:
            k, v = cache.append(k, v)  # [B, H, Tk, head_dim]
        shape = (*q.shape[:3], k.size(-2))  # [B, H, T, Tk]
        mask = combined_mask(causal_mask(*shape[2:], device=x.device), token_mask, shape)
        if return_attention:
            values, attention = scaled_dot_product(q, k, v, mask)
            return join_heads(self, values), attention
        return join_heads(self, fused_attention(q, k, v, mask))
