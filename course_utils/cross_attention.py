"""Cross-attention: the queries come from one sequence, the keys and values from another (Vaswani et al., 2017)."""

from torch import Tensor, nn

from course_utils.attention import combined_mask, fused_attention, scaled_dot_product
from course_utils.key_value_cache import KeyValueCache


class CrossAttention(nn.Module):
    """Attention of a sequence to a memory, such as the output of an encoder.

    Args:
        input_dim: width of the sequence that asks.
        memory_dim: width of the memory that is asked.
        embed_dim: width D of the output, and of all heads together.
        num_heads: number of heads H; it divides embed_dim.

    Attributes:
        q_proj: Linear input_dim -> embed_dim, of the sequence.
        k_proj: Linear memory_dim -> embed_dim, of the memory; so is v_proj.
        o_proj: Linear embed_dim -> embed_dim, applied to the concatenated heads.

    Raises:
        ValueError: if a size is below 1 or num_heads does not divide embed_dim.
    """

    def __init__(self, input_dim: int, memory_dim: int, embed_dim: int, num_heads: int):
        super().__init__()
        if min(input_dim, memory_dim, embed_dim, num_heads) < 1 or embed_dim % num_heads != 0:
            raise ValueError(
                f"sizes must be at least 1 and embed_dim divisible by num_heads, "
                f"got {input_dim=}, {memory_dim=}, {embed_dim=}, {num_heads=}"
            )
        self.num_heads = num_heads
        self.q_proj = nn.Linear(input_dim, embed_dim)
        self.k_proj = nn.Linear(memory_dim, embed_dim)
        self.v_proj = nn.Linear(memory_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)
        for projection in self.children():
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        return_attention: bool = False,
        *,
        token_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every token of x attend to every token of the memory that the masks allow.

        Args:
            x: [B, Tq, input_dim].
            memory: [B, Tk, memory_dim].
            mask: who may attend to whom: [Tq, Tk], [B, Tq, Tk] or [B, H, Tq, Tk]; a size of 1 broadcasts.
            return_attention: also return the attention weights.
            token_mask: [B, Tk], True where a real token of the memory stands.
            cache: keys and values of the memory, filled on first use: it stays the same from token to token.

        Returns:
            [B, Tq, embed_dim]; with `return_attention` also the weights [B, H, Tq, Tk].

        Raises:
            ValueError: if a tensor has another rank or size.
        """
        self._check(x, memory)
        q = self._split(self.q_proj(x))  # [B, H, Tq, head_dim]
        if cache is not None and cache.length:
            k, v = cache.keys, cache.values
        else:
            k, v = self._split(self.k_proj(memory)), self._split(self.v_proj(memory))  # [B, H, Tk, head_dim]
            if cache is not None:
                cache.append(k, v)

        mask = combined_mask(mask, token_mask, (*q.shape[:3], k.size(-2)))
        if return_attention:
            values, attention = scaled_dot_product(q, k, v, mask)
        else:
            values, attention = fused_attention(q, k, v, mask), None
        output = self.o_proj(values.transpose(1, 2).flatten(2))
        return (output, attention) if return_attention else output

    def _split(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # [B, T, D] -> [B, H, T, head_dim]

    def _check(self, x: Tensor, memory: Tensor) -> None:
        widths = self.q_proj.in_features, self.k_proj.in_features
        fits = x.dim() == memory.dim() == 3 and (x.size(-1), memory.size(-1)) == widths and len(x) == len(memory)
        if not fits:
            raise ValueError(
                f"x must be [batch, length, {widths[0]}] and memory [batch, length, {widths[1]}] of the same batch, "
                f"got {list(x.shape)} and {list(memory.shape)}"
            )
